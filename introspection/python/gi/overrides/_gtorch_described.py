# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The signatures of functions, as inspect shows them. Nothing imports this before it is asked."""

import functools
import inspect

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_signatures import FUNCTIONS, METHODS

# Functions that stand for several: what they take together.
_CREATION = 'out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False'
TOGETHER = {
    'arange': f'start=0, end=None, step=1, *, {_CREATION}',
    'einsum': 'equation, *operands',
    'meshgrid': '*tensors, indexing=None',
    'rand': f'*size, generator=None, {_CREATION}',
    'randint': f'low=0, high=None, size=None, *, generator=None, {_CREATION}',
    'randn': f'*size, generator=None, {_CREATION}',
    **dict.fromkeys(('block_diag', 'broadcast_tensors', 'cartesian_prod'), '*tensors'),
}


OUT = 1  # GIDirection.OUT


@functools.cache
def parsed(text):
    """The signature that a text between brackets has."""
    names = {'inf': float('inf')}
    exec(f'def function({text}): pass', names)
    return inspect.signature(names['function'])


def signature_of(name, method, otherwise):
    """The signature of a function of the namespace: of a row, or of the function in Python that stands for it."""
    if name in TOGETHER:
        return parsed(TOGETHER[name])
    shown = inspect.unwrap(otherwise if method is otherwise else method)
    if hasattr(shown, 'get_arguments'):
        return of_info(shown)
    own = [*inspect.signature(getattr(otherwise, 'form', None) or getattr(method, 'form', shown)).parameters.values()]
    more = [parameter for parameter in own if parameter.kind is parameter.KEYWORD_ONLY]
    rows = (ops.METHODS.get(name), ops.FUNCTIONS.get(name))
    if name in FUNCTIONS and (inspect.ismethoddescriptor(shown) or shown in rows):
        found = [*parsed(FUNCTIONS[name]).parameters.values()]
    else:
        found = [*inspect.signature(shown).parameters.values()]
        more += parsed(FUNCTIONS[name]).parameters.values() if name in FUNCTIONS else []
    if found and found[0].name == 'self':
        found[0] = found[0].replace(name='input', kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature(with_more(found, more))


def with_more(found, more):
    """The parameters @found and what @more has beside them that is given by name only."""
    last = [parameter for parameter in found if parameter.kind is parameter.VAR_KEYWORD]
    found = [parameter for parameter in found if parameter not in last]
    for parameter in more:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in {one.name for one in found}:
            found.append(parameter)
    return [*found, *last]


def of_info(info):
    """The signature of a function of the typelib: without lengths of arrays, and data of callbacks."""
    arguments, hidden = info.get_arguments(), set()
    for argument in arguments:
        hidden |= {argument.get_closure(), argument.get_destroy(), argument.get_type().get_array_length()}
    names = ['self'] if info.is_method() else []
    for i, argument in enumerate(arguments):
        if i not in hidden and int(argument.get_direction()) != OUT:
            names.append(argument.get_name())
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])
