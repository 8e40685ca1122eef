# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hooks of optimizers, which Python calls around steps and state dicts, and the text of an optimizer."""

import functools

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_exchange as exchange
from gi.overrides._gtorch_convert import GTorch

ATTRIBUTE = '_hooks_of_steps'
KINDS = ('step_pre', 'step_post', 'state_dict_pre', 'state_dict_post', 'load_state_dict_pre', 'load_state_dict_post')


class Handle:
    """Removes a hook, also at the end of a `with` block."""

    def __init__(self, functions, key):
        self._functions, self._key = functions, key

    def remove(self):
        """Removes the hook; the second call has no effect."""
        self._functions.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.remove()


def functions(optimizer, kind):
    """The hooks of a kind, in their order."""
    return list(optimizer.__dict__.get(ATTRIBUTE, {}).get(kind, {}).values())


def has_steps(optimizer):
    return bool(functions(optimizer, 'step_pre') or functions(optimizer, 'step_post'))


def _registering(kind, doc):
    name = f'register_{kind}_hook'

    def register(self, hook, **options):
        hooks.check(name, hook)
        prepend = options.pop('prepend', False) if not kind.startswith('step') else False
        if options:
            raise TypeError(f'{name}() has no argument {next(iter(options))!r}')
        found, key = self.__dict__.setdefault(ATTRIBUTE, {}).setdefault(kind, {}), object()
        if prepend:
            rest = dict(found)
            found.clear()
            found[key] = hook
            found.update(rest)
        else:
            found[key] = hook
        return Handle(found, key)

    register.__name__ = register.__qualname__ = name
    register.__doc__ = doc
    return register


REGISTER = {
    f'register_{kind}_hook': _registering(kind, doc)
    for kind, doc in zip(
        KINDS,
        (
            'Calls hook(optimizer, args, kwargs) before each step; it may give other arguments: a tuple and a '
            'dictionary. The optimizer is the first of the arguments.',
            'Calls hook(optimizer, args, kwargs) after each step.',
            'Calls hook(optimizer) before each state_dict().',
            'Calls hook(optimizer, state_dict) after each state_dict(); what it gives, if not None, is the result.',
            'Calls hook(optimizer, state_dict) before each load_state_dict(); what it gives, if not None, is loaded.',
            'Calls hook(optimizer) after each load_state_dict().',
        ),
    )
}


def _recorded(step):
    """step() of a class of the program's, with the range in profiles that steps in C have."""

    def call(self, *args, **options):
        if not hooks.is_profiling():
            return step(self, *args, **options)
        span = GTorch.ProfileRange.new(f'Optimizer.step#{type(self).__name__}.step')
        try:
            return step(self, *args, **options)
        finally:
            span.end()

    return call


def stepping(step, is_own=False):
    """Wraps step() in the hooks: the outermost one calls them, where that of a class calls that of its parent.
    @is_own: that of a class of the program's."""
    if getattr(step, '_calls_hooks', False):
        return step
    wrapped, step = step, _recorded(step) if is_own else step

    @functools.wraps(wrapped)
    def call(self, *args, **options):
        if not has_steps(self) or self.__dict__.get('_in_step'):
            return step(self, *args, **options)
        args = (self, *args)
        for hook in functions(self, 'step_pre'):
            given = hook(self, args, options)
            if given is None:
                continue
            if not (isinstance(given, tuple) and len(given) == 2):
                wanted = 'None or a tuple of the arguments and those by name'
                hooks.refuse('register_step_pre_hook', hook, given, wanted)
            args, options = given
        self.__dict__['_in_step'] = True
        try:
            result = step(*args, **options)
        finally:
            del self.__dict__['_in_step']
        for hook in functions(self, 'step_post'):
            hook(self, args, options)
        return result

    call._calls_hooks = True
    return call


def run(optimizer, kind, *table):
    """Calls the hooks of a state dict, which may replace it."""
    for hook in functions(optimizer, kind):
        found = hook(optimizer, *table)
        if table and found is not None:
            table = (found,)
    return table[0] if table else None


def text(optimizer):
    """The settings of the groups, one to a line."""
    lines = [f'{type(optimizer).__name__} (']
    for i, group in enumerate(optimizer.param_groups):
        settings = {**exchange.forms(optimizer), **{key: group[key] for key in group.keys()}}
        lines.append(f'Parameter Group {i}')
        lines += [f'    {key}: {settings[key]}' for key in sorted(settings) if key not in ('params', 'param_names')]
    return '\n'.join([*lines, ')'])
