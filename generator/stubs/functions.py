# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Functions and methods as stubs."""

import inspect

from generator.stubs.types import ANY


def is_info(value):
    """Is it a function of the typelib?"""
    return hasattr(value, 'get_arguments') and hasattr(value, 'get_return_type')


class Functions:
    def __init__(self, known):
        self.types = known

    def signature(self, value):
        """The signature, or None for what has none."""
        if is_info(value):
            from gi.overrides._gtorch_described import of_info

            return of_info(value)
        try:
            return inspect.signature(value)
        except (TypeError, ValueError):
            wrapped = getattr(value, '__wrapped__', None)
            return self.signature(wrapped) if is_info(wrapped) else None

    def infos(self, value):
        """The types of the arguments of a function of the typelib by their names, and that of the result."""
        info = value if is_info(value) else getattr(value, '__wrapped__', None)
        if not is_info(info):
            return {}, None
        found = {argument.get_name(): self.types.of_info(argument.get_type()) for argument in info.get_arguments()}
        result = self.types.of_info(info.get_return_type())
        if any(int(argument.get_direction()) != 0 for argument in info.get_arguments()):
            result = ANY
        return found, result

    def parameters(self, name, value, signature, is_method):
        infos = self.infos(value)[0]
        parts, before, given = [], None, list(signature.parameters.values())
        has_star = False
        for i, parameter in enumerate(given):
            kind = parameter.kind
            if before is parameter.POSITIONAL_ONLY and kind is not before:
                parts.append('/')
            if kind is parameter.KEYWORD_ONLY and not has_star:
                parts, has_star = [*parts, '*'], True
            has_star = has_star or kind is parameter.VAR_POSITIONAL
            parts.append(self.parameter(name, parameter, infos, is_method and i == 0))
            before = kind
        return parts + (['/'] if before is inspect.Parameter.POSITIONAL_ONLY else [])

    def parameter(self, name, parameter, infos, is_self):
        star = {parameter.VAR_POSITIONAL: '*', parameter.VAR_KEYWORD: '**'}.get(parameter.kind, '')
        if is_self:
            return f'{star}{parameter.name}'
        own = name.removeprefix('class ') if name.startswith('class ') else None
        default = None if parameter.default is parameter.empty else parameter.default
        found = self.types.of_constructor(own, parameter.name, default) if own is not None else None
        found = found or infos.get(parameter.name) or self.types.argument(name, parameter.name)
        if star == '**':
            found = ANY
        elif star and found.startswith('_b.int | _t.Sequence[_b.int]'):
            found = '_b.int | _t.Sequence[_b.int]'
        if parameter.default is parameter.empty:
            return f'{star}{parameter.name}: {found}'
        if parameter.default is None and not found.endswith('None') and found != ANY:
            found = f'{found} | None'
        return f'{star}{parameter.name}: {found} = ...'

    def function(self, key, value, indent='', is_method=False, of_module=False):
        """The lines of a function. What is no function of a class has no self."""
        signature = self.signature(value)
        known = key if self.types.row(key) or key.startswith('__') else getattr(value, '__name__', key)
        result = self.infos(value)[1] or self.types.result(key if is_method or of_module else known, of_module)
        if signature is None:
            parts = (['self'] if is_method else []) + [f'*args: {ANY}', f'**kwargs: {ANY}']
        else:
            parts = self.parameters(known, value, signature, is_method)
        return [f'{indent}def {key}({", ".join(parts)}) -> {result}: ...']
