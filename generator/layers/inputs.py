# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The tensors that a layer's forward takes: one, for a loss a target as well, or those that the row names."""

from generator.layers import fill

C_INPUTS = {
    'forward': 'GTorchTensor *input',
    'compute': 'GTorchTensor *input, GTorchTensor *target',
    'forward_many': 'GTorchTensor **inputs, gsize n_inputs',
}


def input_names(layer):
    """Returns the tensors that forward gets, as C expressions."""
    if layer.inputs:
        return [f'inputs[{i}]' for i in range(len(layer.inputs))]
    return ['input', 'target'] if layer.base == 'Loss' else ['input']


def forward_vfunc(layer):
    """Returns the class that has the virtual function, and its name."""
    if layer.inputs:
        return 'Module', 'forward_many'
    return ('Loss', 'compute') if layer.base == 'Loss' else ('Module', 'forward')


def number_check(layer):
    """Returns the check of how many tensors were given."""
    if not layer.inputs:
        return ''
    names = list(layer.inputs)
    listed = f'{", ".join(names[:-1])} and {names[-1]}'
    return fill('layer.c.in', 'takes', n=str(len(names)), names=listed)


def forward_parameters(layer):
    """Returns the parameters of the function by which C and Vala call a layer that takes several tensors."""
    tensors = [f'GTorchTensor *{name}' for name in layer.inputs]
    return ', '.join([f'GTorch{layer.name} *self', *tensors, 'GError **error'])


def public_forward(layer):
    """Returns that function, or nothing for other layers."""
    if not layer.inputs:
        return ''
    names = list(layer.inputs)
    return fill(
        'layer.c.in', 'public_forward', snake=layer.snake, SNAKE=layer.snake.upper(),
        params=''.join(f' * @{name}: {text}\n' for name, text in layer.inputs.items()),
        declared=forward_parameters(layer), names=', '.join(names), n=str(len(names)),
        checks=''.join(f'  g_return_val_if_fail (GTORCH_IS_TENSOR ({name}), NULL);\n' for name in names),
    )
