# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations as functions in Python, with defaults, forms for numbers, and operators."""

from generator.bindings import fill
from generator.bindings.rows import BINARY, COMPARE, UNARY, spaces

# A method has the same name as the function, except where the name means something else in Python.
WITHOUT_FUNCTION = {'view', 'expand', 't', 'copy', 'contiguous', 'fill', 'zero', 'item'}


def default(arg):
    if arg.kind in ('Tensor?', 'DType', 'Device?', 'Generator?'):
        return 'None'
    if arg.kind == 'int[]' and not arg.is_optional:
        values = arg.default.strip('[]').replace(' ', '')
        return '(' + ''.join(f'{v}, ' for v in values.split(',') if v).rstrip() + ')'
    if arg.kind == 'bool':
        return 'True' if arg.default == 'true' else 'False'
    if arg.kind == 'enum':
        return repr(arg.default)
    if arg.kind == 'Tensor':
        return arg.default
    return 'None' if arg.default == 'none' else literal(arg)


def literal(arg):
    return f'_{arg.none}' if arg.none else repr(arg.number).replace('inf', '_inf')


def value(arg, function, bare=False):
    """Returns the expression that is passed to the introspected function."""
    name, where = arg.name, f'{function}(): {arg.name}'
    if arg.is_optional and arg.kind == 'int[]':
        return f"_some_ints({name}, '{where}')"
    if arg.has_items:
        return f"_items({name}, '{where}')"
    if arg.is_optional:
        convert = '_index' if arg.kind == 'int' else '_double'
        return f"{literal(arg)} if {name} is None else {convert}({name}, '{where}')"
    return {
        'Tensor': name if bare else f"_tensor({name}, '{where}')",
        'Tensor?': f"_optional({name}, '{where}')",
        'Tensor[]': f"_tensors({name}, '{where}')",
        'int': f"_index({name}, '{where}')",
        'double': f"_double({name}, '{where}')",
        'number': f"_double({name}, '{where}')",
        'bool': f"_bool({name}, '{where}')",
        'int[]': f"{'_sizes' if arg.required else '_ints'}({name}, '{where}')",
        'DType': f'_dtype({name})',
        'Device?': f'_device({name})',
        'Generator?': name,
        'enum': enum(arg, function),
    }[arg.kind]


def enum(arg, function):
    given = arg.name
    if arg.enum == 'FFTNorm':  # PyTorch has None for the default of this one
        given = f'{arg.default!r} if {given} is None else {given}'
    return f"_enum(GTorch.{arg.enum}, {given}, '{function}(): {arg.name}')"


def doc(text):
    text = text.replace('@', '').replace('\\', '\\\\').replace('"', "'")
    return text if text.endswith('.') else text + '.'


def raw(row, suffix):
    """Returns the introspected function."""
    return f'{"RawTensor" if row.method else "GTorch"}.{row.name}{suffix}'


def parameter(row, arg):
    if arg is row.variadic:
        return f'*given, {arg.name}=None'
    return arg.name if arg.required else f'{arg.name}={default(arg)}'


class Wrapper:
    """A wrapper of the introspected function, or of its in-place form."""

    def __init__(self, row, in_place):
        self.row, self.in_place = row, in_place
        self.tail = '_inplace' if in_place else ''
        self.name = f'{row.name}_' if in_place else row.name

    def argument(self, form, i, arg):
        row = self.row
        if (form and arg.name == row.scalar) or (i == 0 and row.method) or arg is row.variadic:
            return arg.name
        if form and arg in row.numbers:
            return f'whole[{row.numbers.index(arg)}]'
        return value(arg, self.name, bare=arg.name == row.scalar)

    def call(self, form):
        row = self.row
        values = ', '.join(self.argument(form, i, arg) for i, arg in enumerate(row.args))
        call = f'{raw(row, form + self.tail)}({values})'
        if row.is_list and not self.in_place:
            return f'tuple({call})'
        return f'_result({row.name!r})(*{call}[1:])' if row.outputs and not self.in_place else call

    def variadic(self):
        row = self.row
        if not row.variadic:
            return []
        rest = [a.name for a in row.args[row.args.index(row.variadic) + 1 :]]
        names = ', '.join([row.variadic.name, *rest]) + ('' if rest else ',')
        values = ', '.join([row.variadic.name, *rest])
        return [fill('ops.py.in', 'variadic', names=names, name=row.name, values=values)]

    def forms(self):
        """The form that is called for numbers."""
        row = self.row
        if row.numbers:
            numbers = ', '.join(a.name for a in row.numbers)
            convert = '_bounds' if any(a.is_bound for a in row.numbers) else '_integers'
            return [fill('ops.py.in', 'integers', convert=convert, numbers=numbers, call=self.call('_int'))]
        if len(row.forms) == 1:
            return []
        has_int = '_int' in row.forms
        whole = [fill('ops.py.in', 'whole', call=self.call('_int'))] if has_int else []
        return [fill('ops.py.in', 'scalar', scalar=row.scalar, first=row.args[0].name,
                     wanted='float' if has_int else 'not None', call=self.call('_scalar'), whole=whole)]

    def emit(self):
        row = self.row
        if row.method and len(row.args) == 1 and not row.returns_more:
            return f'op_{self.name} = {raw(row, self.tail)}\n'
        return fill(
            'ops.py.in', 'wrapper', local=f'op_{self.name}',
            params=', '.join(parameter(row, arg) for arg in row.args), doc=doc(row.doc),
            variadic=self.variadic(), forms=self.forms(), call=self.call(''), name=self.name,
        )

    def entries(self):
        row = self.row
        text = f"METHODS['{self.name}'] = op_{self.name}\n" if row.method else ''
        if not self.in_place and (not row.method or row.name not in WITHOUT_FUNCTION):
            text += f"FUNCTIONS['{self.name}'] = op_{self.name}\n"
        return text


def operator(row):
    """The methods that implement operators. numpy defers to tensors, even with an array on the
    left: these methods convert arrays."""
    if row.operator in UNARY:
        return f"METHODS['__{UNARY[row.operator][0]}__'] = op_{row.name}\n"
    is_binary = row.operator in BINARY
    special = BINARY[row.operator][0] if is_binary else COMPARE[row.operator]
    names = {'first': row.args[0].name, 'function': f'op_{row.name}'}
    test = 'isinstance(other, RawTensor)' + (' or _is_number(other)' if row.scalar else '')
    text = fill('ops.py.in', 'operator', special=f'__{special}__', test=test, **names)
    if is_binary:
        number = [fill('ops.py.in', 'number', **names)] if row.scalar else []
        text += fill('ops.py.in', 'reflected', special=f'__r{special}__', number=number, **names)
    if is_binary and row.inplace:
        names['function'] += '_'
        text += fill('ops.py.in', 'operator', special=f'__i{special}__', test=test, **names)
    return text


def emit(rows):
    text = ''
    for row in rows:
        for in_place in (False, True) if row.inplace else (False,):
            wrapper = Wrapper(row, in_place)
            text += wrapper.emit() + wrapper.entries()
        text += operator(row) if row.operator else ''
    first = [row.name for row in rows if row.number_first]
    others = [f'{row.name!r}: {row.others!r},' for row in rows if row.others]
    results = [f'{row.name!r}: {tuple(row.outputs)!r},' for row in rows if row.outputs]
    creators = [row.name for row in rows if row.creates]
    losses = [row.name for row in rows if any(arg.enum == 'Reduction' for arg in row.args)]
    return fill('ops.py.in', 'file', functions=text, first=', '.join(map(repr, first)), others=others,
                creators=', '.join(map(repr, creators)), losses=', '.join(map(repr, losses)), results=results,
                spaces=repr(spaces(rows)))
