# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The types of arguments and results. A type of the package is written `~Tensor`; each module has its own prefix."""

ANY = '_t.Any'
TENSOR, SIZE = '~Tensor', '_b.int | _t.Sequence[_b.int]'
NUMBER = '_b.float | _b.complex | ~Tensor'
DTYPE = '~DType | _b.str | _b.type[_t.Any] | None'
DEVICE = '~Device | _b.str | _b.int | None'
OF_KIND = {
    'Tensor': TENSOR,
    'Tensor?': f'{TENSOR} | None',
    'Tensor[]': f'_t.Sequence[{TENSOR}]',
    'int': '_b.int',
    'int[]': SIZE,
    'double': '_b.float',
    'number': '_b.float | _b.complex',
    'bool': '_b.bool',
    'DType': DTYPE,
    'Device?': DEVICE,
    'Generator?': '~Generator | None',
    'enum': '_b.str',
}
OF_LAYERS = {
    'int': '_b.int', 'double': '_b.float', 'bool': '_b.bool', 'size': f'{SIZE} | None',
    'factors': ANY, 'enum': '_b.str', 'reduction': '_b.str', 'device': DEVICE, 'dtype': DTYPE, 'module': ANY,
    'processes': ANY,
    'tensor': f'{TENSOR} | None',
}  # fmt: skip
# Arguments of functions without a row, and those that the rules add.
OF_NAME = {
    **dict.fromkeys(('input', 'target', 'other', 'tensor', 'weight', 'src'), TENSOR),
    **dict.fromkeys(('bias', 'out'), f'{TENSOR} | None'),
    **dict.fromkeys(('enabled', 'retain_graph', 'create_graph', 'requires_grad', 'non_blocking', 'copy', 'strict',
                     'pin_memory', 'keepdim', 'inplace', 'foreach', 'maximize', 'capturable', 'differentiable', 'fused',
                     'nesterov', 'amsgrad', 'persistent', 'recurse'), '_b.bool | None'),
    **dict.fromkeys(('lr', 'momentum', 'weight_decay', 'eps', 'gamma', 'p', 'alpha', 'beta', 'min', 'max'),
                    '_b.float | ~Tensor | None'),
    **dict.fromkeys(('in_features', 'out_features', 'in_channels', 'out_channels', 'num_features', 'num_embeddings',
                     'embedding_dim', 'input_size', 'hidden_size', 'num_layers', 'groups', 'step_size'), '_b.int'),
    'betas': '_b.tuple[_b.float, _b.float]',
    'device': DEVICE,
    'dtype': DTYPE,
    'generator': '~Generator | None',
    'gradient': f'{TENSOR} | None',
    'mode': ANY,
    'module': '~Module',
    'modules': '~Module',
    'optimizer': '~Optimizer',
    'params': '_t.Iterable[_t.Any]',
    'parameters': f'_t.Iterable[{TENSOR}] | {TENSOR}',
    'size': SIZE,
    'shape': SIZE,
}
RESULTS = {
    **dict.fromkeys(('dim', 'numel', 'ndimension', 'nelement', 'element_size', 'data_ptr', 'storage_offset',
                     'get_device', '__len__', '__int__', '__index__', 'get_num_threads', 'device_count',
                     'current_device', 'memory_allocated', 'max_memory_allocated', 'memory_reserved',
                     'max_memory_reserved', 'initial_seed'), '_b.int'),
    **dict.fromkeys(('allclose', 'equal', 'is_contiguous', 'is_floating_point', 'is_complex', 'is_pinned',
                     'is_available', 'is_grad_enabled', '__bool__', '__contains__', 'is_tensor', 'is_nonzero',
                     'is_initialized', 'query'), '_b.bool'),
    **dict.fromkeys(('backward', 'zero_grad', 'set_num_threads', 'synchronize', 'empty_cache', 'set_device', 'save',
                     'manual_seed_all', 'add_param_group', 'load_state_dict', 'register_buffer', 'register_parameter',
                     'add_module', 'register_module'), 'None'),
    **dict.fromkeys(('requires_grad_', 'to', 'cpu', 'cuda', 'clone', 'contiguous', 'detach', 'reshape_as', 'view_as',
                     'expand_as', 'type_as', 'tensor', 'as_tensor', 'asarray', 'from_numpy', 'frombuffer',
                     'from_dlpack', 'arange', 'full', 'normal', 'randint', 'einsum', 'new_tensor', '__pos__',
                     'detach_', 'squeeze', 'lerp', 'clamp'), TENSOR),
    **dict.fromkeys(('split', 'chunk', 'unbind', 'meshgrid', 'broadcast_tensors'), f'_b.tuple[{TENSOR}, ...]'),
    '__float__': '_b.float',
    '__complex__': '_b.complex',
    '__hash__': '_b.int',
    '__iter__': f'_t.Iterator[{TENSOR}]',
    '__repr__': '_b.str',
    '__format__': '_b.str',
    '__getitem__': TENSOR,
    '__setitem__': 'None',
    'broadcast_shapes': '_b.tuple[_b.int, ...]',
    'clip_grad_norm_': TENSOR,
    'get_default_dtype': '~DType',
    'state_dict': '_b.dict[_b.str, _t.Any]',
}
# Those of methods of modules, which have names of methods of tensors.
OF_MODULES = {
    **dict.fromkeys(('to', 'cpu', 'cuda', 'float', 'double', 'half', 'bfloat16', 'train', 'eval', 'requires_grad_',
                     'apply', 'type'), '_t.Self'),
    'forward': TENSOR,
    'children': '_t.Iterator[~Module]',
    'modules': '_t.Iterator[~Module]',
    'parameters': '_t.Iterator[~Parameter]',
    'buffers': f'_t.Iterator[{TENSOR}]',
    'named_children': '_t.Iterator[_b.tuple[_b.str, ~Module]]',
    'named_modules': '_t.Iterator[_b.tuple[_b.str, ~Module]]',
    'named_parameters': '_t.Iterator[_b.tuple[_b.str, ~Parameter]]',
    'named_buffers': f'_t.Iterator[_b.tuple[_b.str, {TENSOR}]]',
}
ATTRIBUTES = {
    **dict.fromkeys(('T', 'mT', 'H', 'mH', 'data', 'real', 'imag', 'grad_or_none'), TENSOR),
    **dict.fromkeys(('requires_grad', 'is_leaf', 'is_cuda', 'is_cpu', 'is_floating_point', 'is_complex'), '_b.bool'),
    **dict.fromkeys(('ndim', 'itemsize', 'nbytes', 'output_nr'), '_b.int'),
    'grad': f'{TENSOR} | None',
    'grad_fn': '_b.str | None',
    'shape': '_b.tuple[_b.int, ...]',
    'dtype': '~DType',
    'device': '~Device',
    'training': '_b.bool',
    'weight': TENSOR,
    'type': '_b.str',
    'index': '_b.int | None',
}
PLAIN = {
    'gboolean': '_b.bool', 'gdouble': '_b.float', 'gfloat': '_b.float', 'utf8': '_b.str', 'filename': '_b.str',
    'void': 'None', 'GType': ANY,
    **dict.fromkeys(('gint8', 'guint8', 'gint16', 'guint16', 'gint32', 'guint32', 'gint64', 'guint64'), '_b.int'),
}  # fmt: skip


def of_gtype(spec):
    """The type of a property."""
    name = spec.value_type.fundamental.name
    if name in ('gchararray', 'GString'):
        return '_b.str | None'
    return {'gboolean': '_b.bool', 'gdouble': '_b.float', 'gfloat': '_b.float', 'gint': '_b.int', 'guint': '_b.int',
            'gint64': '_b.int', 'guint64': '_b.int', 'glong': '_b.int', 'gulong': '_b.int'}.get(name, ANY)


# Their forms in Python give other results.
SEVERAL = ('histogram', 'histogramdd', 'lstm', 'unique', 'unique_consecutive')


class Types:
    """What is known of the types of functions."""

    def __init__(self, rows, layers):
        self.rows, self.names = {row.name: row for row in rows}, set()
        self.layers = {name: {arg['name']: arg for arg in layer['args']} for name, layer in layers.items()}

    def row(self, name):
        return self.rows.get(name) or self.rows.get(name.removesuffix('_'))

    def of_constructor(self, cls, parameter, default):
        """The type of an argument of the class @cls, by the row of a layer or by its default."""
        arg = self.layers.get(cls, {}).get(parameter)
        found = OF_LAYERS.get(arg['kind']) if arg is not None else None
        if found is not None:
            found = f'{found} | _b.str' if arg.get('rule') else found
            return f'{found} | None' if arg.get('optional') or arg.get('nones') else found
        if isinstance(default, (bool, str)):
            return f'_b.{type(default).__name__}'
        return '_b.float' if isinstance(default, (int, float)) else None

    def argument(self, name, parameter):
        """The type of an argument of the function @name, without that of its default."""
        row = self.row(name)
        for arg in row.args if row is not None else ():
            if arg.name == parameter or (parameter == 'input' and arg.name == 'self'):
                found = NUMBER if arg.name == row.scalar else OF_KIND[arg.kind]
                return f'{found} | None' if arg.is_optional else found
        return OF_NAME.get(parameter, ANY)

    def result(self, name, of_module=False):
        row = self.row(name)
        if of_module:
            return OF_MODULES.get(name) or {'state_dict': RESULTS['state_dict']}.get(name) or (
                'None' if RESULTS.get(name) == 'None' else ANY)
        if name in RESULTS:
            return RESULTS[name]
        if row is None:
            return ANY
        if row.is_list:
            return f'_b.tuple[{TENSOR}, ...]'
        if row.outputs:
            return ANY if row.name in SEVERAL else TENSOR if name.endswith('_') else f'~_{row.name}_result'
        return TENSOR

    def of_info(self, info):
        """The type of an argument or a result of the typelib."""
        interface = info.get_interface()
        if interface is not None:
            name = interface.get_name()
            return f'~{name}' if interface.get_namespace() == 'GTorch' and name in self.names else ANY
        return PLAIN.get(info.get_tag_as_string(), ANY)
