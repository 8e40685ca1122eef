# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The signatures of operations in Python, as texts: what a function takes by its row and by the rules of
_gtorch_arguments.py, with PyTorch's mark of the arguments that are given by name only."""

import json
import pathlib
import re

from generator.bindings import fill
from generator.bindings.python import WITHOUT_FUNCTION, default

SPACES = ('torch', 'torch.Tensor', 'torch.nn.functional')
PREFIXED = {'torch.linalg': 'linalg_', 'torch.fft': 'fft_', 'torch.special': 'special_',
            'torch.signal.windows': 'signal_windows_'}
# What the rules add.
CREATION = ('layout=None', 'requires_grad=False', 'pin_memory=False')
LEGACY = ('size_average=None', 'reduce=None')
MORE = {
    **{name: ('out_dtype=None',) for name in ('addmm', 'baddbmm', 'bmm', 'mm')},
    **{name: ('memory_format=None',) for name in ('clone', 'contiguous')},
    'gather': ('sparse_grad=False',),
}
# What the forms of _gtorch_forms.py and _gtorch_overloads.py add, by name only, and those that have other arguments.
IN_PLACE = (
    'alpha_dropout', 'celu', 'dropout', 'dropout1d', 'dropout2d', 'dropout3d', 'elu', 'feature_alpha_dropout',
    'hardsigmoid', 'hardswish', 'hardtanh', 'leaky_relu', 'mish', 'relu', 'relu6', 'rrelu', 'selu', 'silu', 'threshold',
)  # fmt: skip
POOLS = [f'{kind}max_pool{n}d' for kind in ('', 'adaptive_') for n in (1, 2, 3)]
FORMS = {
    **{name: ('inplace=False',) for name in IN_PLACE},
    **{name: ('return_indices=False',) for name in POOLS},
    **{name: ('rounding_mode=None',) for name in ('div', 'true_divide')},
    'nanmean': ('dtype=None',),
    'nonzero': ('as_tuple=False',),
    'norm': ('dtype=None',),
    'repeat_interleave': ('output_size=None',),
    'round': ('decimals=0',),
    'scatter': ('value=None', 'reduce=None'),
}
OTHERWISE = {
    **{name: 'indices_or_sections' for name in ('dsplit', 'hsplit', 'vsplit')},
    'bernoulli': 'p=None, *, generator=None',
    'gelu': "*, approximate='none'",
    'histogram': 'bins=100, *, range=None, weight=None, density=False',
    'tensor_split': 'indices_or_sections, dim=0',
    'unique': 'sorted=True, return_inverse=False, return_counts=False, dim=None',
    'unique_consecutive': 'return_inverse=False, return_counts=False, dim=None',
}
WITH_FORMAT = ('empty', 'empty_like', 'full_like', 'ones_like', 'rand_like', 'randint_like', 'randn_like', 'zeros_like')
WITHOUT_DTYPE = ('tril_indices', 'triu_indices')


class Known:
    """What PyTorch's functions take by name only."""

    def __init__(self, path):
        table = json.loads(pathlib.Path(path).read_text('utf-8'))
        self.by_name = {}
        for space in (*SPACES, *PREFIXED):
            for name, overloads in table.get(space, {}).items():
                self.by_name.setdefault(PREFIXED.get(space, '') + name, set()).update(self._named(overloads))

    @staticmethod
    def _named(overloads):
        """The arguments that some overload takes by name only: others, with numbers, may not say so."""
        named = set()
        for text in overloads:
            after = re.sub(r'[\[(][^\])]*[\])]', '', text).partition('*, ')[2]
            named |= {part.partition('=')[0].strip() for part in after.split(',')}
        return named


def parameter(arg):
    if arg.required:
        return arg.name
    if arg.kind == 'int[]' and not arg.list:  # for which None may be given
        return f'{arg.name}=None'
    text = default(arg)
    text = {'_inf': 'inf', '-_inf': '-inf', '_NONE': 'None', '_NONE_DOUBLE': 'None'}.get(text, text)
    return f'{arg.name}={re.sub(r", ?[)]$", ",)", text) if text.count(",") == 1 else text.replace(", )", ")")}'


def added(row, is_method):
    """What the rules add to the arguments of the row, all of it by name only."""
    found, names = [], {arg.name for arg in row.args}
    if row.creates:
        relative = row.method and (row.name.startswith('new_') or row.name.endswith('_like'))
        found += ['dtype=None'] if row.name in WITHOUT_DTYPE and 'dtype' not in names else []
        found += ['device=None'] if relative and 'device' not in names else []
        found += CREATION
        found += ['memory_format=None'] if row.name in WITH_FORMAT else []
    if any(arg.enum == 'Reduction' for arg in row.args):
        found += LEGACY
    found += (*MORE.get(row.name, ()), *FORMS.get(row.name, ()))
    if not is_method:
        found.append('out=None')
    return found


def text(row, known, is_method):
    """Returns the signature without brackets."""
    args = list(row.args)
    named = known.by_name.get(row.name, set())
    parts, more = [], added(row, is_method)
    if row.method:
        parts.append('self' if is_method else 'input')
        args = args[1:]
    if row.name in OTHERWISE:
        star = [] if is_method or '*' in OTHERWISE[row.name] else ['*']
        return ', '.join([*parts, OTHERWISE[row.name], *star, *([] if is_method else ['out=None'])])
    has_star = False
    for i, arg in enumerate(args):
        if arg is row.variadic:
            parts.append(f'*{arg.name}')
            has_star = True
            continue
        if not has_star and all(other.name in named for other in args[i:]):
            parts.append('*')
            has_star = True
        parts.append(parameter(arg))
    if more and not has_star:
        parts.append('*')
    return ', '.join(parts + more)


def of_method(row, known):
    """The first line of the documentation of a method in C, from which Python takes the signature."""
    return '$' + text(row, known, True).replace('self', 'self, /', 1).replace('inf', '1e999')


def emit(rows, known):
    functions, methods = [], []
    for row in rows:
        if not row.method or row.name not in WITHOUT_FUNCTION:
            functions.append(f'{row.name!r}: {text(row, known, False)!r},')
        if row.method:
            methods.append(f'{row.name!r}: {text(row, known, True)!r},')
            if row.inplace:
                methods.append(f"{row.name + '_'!r}: {text(row, known, True)!r},")
    return fill('signatures.py.in', 'file', functions=functions, methods=methods)
