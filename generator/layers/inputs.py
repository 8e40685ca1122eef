# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The tensors that a layer's forward takes: one, for a loss a target as well, or those that the row names."""

import re

from generator.layers import fill


class Form:
    """How forward is overridden: the virtual function, the class that has it, its parameters between the module and the
    error, and what it returns."""

    def __init__(self, base, vfunc, declared, returns='GTorchTensor *'):
        self.base, self.vfunc, self.declared, self.returns = base, vfunc, declared, returns
        self.names = re.findall(r'(\w+)(?:, |$)', declared)


BASES = {
    form.base: form for form in (
        Form('Module', 'forward', 'GTorchTensor *input'),
        Form('Loss', 'compute', 'GTorchTensor *input, GTorchTensor *target'),
        Form('ConvTranspose', 'transpose', 'GTorchTensor *input, GTorchTensor *output_size'),
        Form(
            'RNNBase', 'run',
            'GTorchTensor *input, const gint64 *batch_sizes, gsize n_batch_sizes, '
            'GTorchTensor **states, gsize n_states',
            'GPtrArray *',
        ),
    )
}
SEVERAL = Form('Module', 'forward_many', 'GTorchTensor **inputs, gsize n_inputs')


def form_of(layer):
    return SEVERAL if layer.inputs else BASES[layer.base]


def input_names(layer):
    """Returns what forward gets, as C expressions."""
    if layer.inputs:
        given = [f'inputs[{i}]' for i in range(layer.n_needed)]
        rest = range(layer.n_needed, len(layer.inputs))
        return given + [f'gtorch_layer_input (inputs, n_inputs, {i})' for i in rest]
    return list(form_of(layer).names)


def number_check(layer):
    """Returns the check of how many tensors were given."""
    if not layer.inputs:
        return ''
    names = list(layer.inputs)
    listed = f'{", ".join(names[:-1])} and {names[-1]}'
    return fill('layer.c.in', 'takes', least=str(layer.n_needed), n=str(len(names)), names=listed)


def forward_parameters(layer):
    """Returns the parameters of the function by which C and Vala call a layer that takes several tensors."""
    tensors = [f'GTorchTensor *{name}' for name in layer.inputs]
    return ', '.join([f'GTorch{layer.name} *self', *tensors, 'GError **error'])


def public_forward(layer):
    """Returns that function, or nothing for other layers."""
    if not layer.inputs:
        return ''
    names = list(layer.inputs)
    needed, rest = names[:layer.n_needed], names[layer.n_needed:]
    params = ''.join(
        f' * @{name}: {"(nullable): " if name in rest else ""}{text}{", or %NULL" if name in rest else ""}\n'
        for name, text in layer.inputs.items()
    )
    checks = [f'GTORCH_IS_TENSOR ({name})' for name in needed]
    checks += [f'{name} == NULL || GTORCH_IS_TENSOR ({name})' for name in rest]
    least = {'least': str(len(needed))} if rest else {}
    call = fill('layer.c.in', 'call_some' if rest else 'call', n=str(len(names)), **least)
    return fill(
        'layer.c.in', 'public_forward', snake=layer.snake, SNAKE=layer.snake.upper(), params=params,
        declared=forward_parameters(layer), names=', '.join(names), call=call,
        checks=''.join(f'  g_return_val_if_fail ({check}, NULL);\n' for check in checks),
    )
