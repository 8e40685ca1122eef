# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes what the overrides need to know of the operations, from opgen.py's gtorch-ops.json.

    bindings python OPS.json OUTPUT.py    wrappers with defaults, scalar forms and operators
    bindings gjs OPS.json OUTPUT.js       a table for introspection/gjs/overrides/GTorch.js
    bindings mixin OPS.json OUTPUT.inc    the same wrappers in C for introspection/python/_gtorch.c

Introspection shows every function with all its arguments. What it cannot say is in the rows: which
arguments have a default, that a number may stand where a tensor is wanted, which names are operators.
"""

import json
import keyword
import pathlib
import sys

INT_MAX = 2**63 - 1

BINARY = {
    '+': 'add',
    '-': 'sub',
    '*': 'mul',
    '/': 'truediv',
    '//': 'floordiv',
    '%': 'mod',
    '**': 'pow',
    '@': 'matmul',
    '&': 'and',
    '|': 'or',
    '^': 'xor',
    '<<': 'lshift',
    '>>': 'rshift',
}
COMPARE = {'==': 'eq', '!=': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge'}
UNARY = {'neg': 'neg', '~': 'invert', 'abs': 'abs'}

# A method has the same name as the function, except where Python's idea of the name is another.
WITHOUT_FUNCTION = {'view', 'expand', 't', 'copy', 'contiguous', 'fill', 'zero', 'item'}


class Arg:
    """One argument of a row, as the bindings see it."""

    def __init__(self, data):
        self.c_name = data['name']
        self.name = self.c_name + ('_' if keyword.iskeyword(self.c_name) else '')
        self.kind = data['kind']
        self.enum = data['enum']
        self.default = data['default']

    @property
    def required(self):
        return self.default is None

    @property
    def number(self):
        """The default of an int or a double as a number."""
        named = {'max': INT_MAX, 'min': -INT_MAX - 1}
        if self.default in named:
            return named[self.default]
        value = float(self.default) if self.kind != 'int' else int(self.default)
        return int(value) if self.kind == 'number' and value.is_integer() else value


class Row:
    """One public operation."""

    def __init__(self, data):
        self.name = data['name']
        self.args = [Arg(a) for a in data['args']]
        self.method = data['method']
        self.returns = data['returns']
        self.inplace = data['inplace']
        self.scalar = data['scalar']
        self.forms = data['forms']
        self.operator = data['operator']
        self.doc = data['doc']

    @property
    def numbers(self):
        """The arguments that a form has for integers, which a float does not hold exactly."""
        return [a for a in self.args if a.kind == 'number']

    @property
    def is_list(self):
        return self.returns in ('Tensor[]', ['Tensor[]'])

    @property
    def returns_more(self):
        return self.is_list or bool(self.outputs)

    @property
    def outputs(self):
        return self.returns if isinstance(self.returns, list) and not self.is_list else []

    @property
    def variadic(self):
        """The argument that may be written without brackets, as in reshape(2, 3)."""
        args = self.args[1:] if self.method else self.args
        if not args or args[0].kind != 'int[]' or not args[0].required:
            return None
        rest = ('DType', 'Device?', 'Generator?')
        return args[0] if all(a.kind in rest for a in args[1:]) else None


def load(path):
    rows = [Row(d) for d in json.loads(pathlib.Path(path).read_text('utf-8')) if not d['internal']]
    return sorted(rows, key=lambda r: r.name)


# --- Python ---------------------------------------------------------------------------------------

PYTHON_HEAD = '''# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Written by bindgen.py: the operations with defaults, scalar forms and operators."""

from collections import namedtuple

from gi.overrides._gtorch_convert import (
    GTorch,
    RawTensor,
    convert_array as _array,
    convert_bool as _bool,
    convert_device as _device,
    convert_double as _double,
    convert_dtype as _dtype,
    convert_enum as _enum,
    convert_integers as _integers,
    convert_ints as _ints,
    convert_number as _number,
    convert_optional as _optional,
    convert_tensor as _tensor,
    convert_tensors as _tensors,
    convert_variadic as _variadic,
    convert_whole as _index,
    is_number as _is_number,
    number_tensor as _number_tensor,
)

_inf = float('inf')
METHODS = {}
FUNCTIONS = {}
'''


def python_default(arg):
    if arg.kind in ('Tensor?', 'DType', 'Device?', 'Generator?'):
        return 'None'
    if arg.kind == 'int[]':
        values = arg.default.strip('[]').replace(' ', '')
        return '(' + ''.join(f'{v}, ' for v in values.split(',') if v).rstrip() + ')'
    if arg.kind == 'bool':
        return 'True' if arg.default == 'true' else 'False'
    if arg.kind == 'enum':
        return repr(arg.default)
    if arg.kind == 'Tensor':
        return arg.default
    return repr(arg.number).replace('inf', '_inf')


def python_value(arg, bare=False):
    """The expression that is handed to the introspected function."""
    name = arg.name
    return {
        'Tensor': name if bare else f"_tensor({name}, '{name}')",
        'Tensor?': f"_optional({name}, '{name}')",
        'Tensor[]': f"_tensors({name}, '{name}')",
        'int': f'_index({name})',
        'double': f'_double({name})',
        'number': f'_double({name})',
        'bool': f'_bool({name})',
        'int[]': f'_ints({name})',
        'DType': f'_dtype({name})',
        'Device?': f'_device({name})',
        'Generator?': name,
        'enum': f'_enum(GTorch.{arg.enum}, {name})',
    }[arg.kind]


def python_raw(row, suffix):
    owner = 'RawTensor' if row.method else 'GTorch'
    return f'{owner}.{row.name}{suffix}'


def python_result(row, call, in_place):
    if in_place:
        return call
    if row.is_list:
        return f'tuple({call})'
    if row.outputs:
        return f'{row.name}_result(*{call}[1:])'
    return call


def python_wrapper(row, in_place):
    tail = '_inplace' if in_place else ''
    name = f'{row.name}_' if in_place else row.name
    local = f'op_{name}'
    if row.method and len(row.args) == 1 and not row.returns_more:
        lines = [f'op_{name} = {python_raw(row, tail)}']
        return lines + python_entries(row, name, in_place)
    lines = []
    for form in row.forms:
        lines.append(f'_raw_{name}{form} = {python_raw(row, form + tail)}')
    params = []
    for arg in row.args:
        if arg is row.variadic:
            params.append(f'*{arg.name}')
        elif arg.required:
            params.append(arg.name)
        else:
            params.append(f'{arg.name}={python_default(arg)}')
    lines += ['', '', f'def {local}({", ".join(params)}):', f'    """{python_text(row.doc)}"""']

    def call(form):
        values = []
        for i, arg in enumerate(row.args):
            if form and arg.name == row.scalar:
                values.append(arg.name)
            elif i == 0 and row.method:
                values.append(arg.name)
            elif arg is row.variadic:
                values.append(arg.name)
            elif form and arg in row.numbers:
                values.append(f'whole[{row.numbers.index(arg)}]')
            else:
                values.append(python_value(arg, bare=arg.name == row.scalar))
        return python_result(row, f'_raw_{name}{form}({", ".join(values)})', in_place)

    if row.variadic:
        rest = [a.name for a in row.args[row.args.index(row.variadic) + 1 :]]
        names = ', '.join([row.variadic.name, *rest]) + ('' if rest else ',')
        values = ', '.join(['', *rest])
        lines.append(f"    {names} = _variadic('{row.name}', {row.variadic.name}{values})")

    if row.numbers:
        given = ', '.join(a.name for a in row.numbers)
        lines += [f'    whole = _integers({given})', '    if whole is not None:']
        lines += [f'        return {call("_int")}']
    elif len(row.forms) > 1:
        lines += [f'    if not isinstance({row.scalar}, RawTensor):']
        lines += [f'        kind, {row.scalar} = _number({row.scalar}, {row.args[0].name}, {row.scalar!r})']
        test = 'kind is float' if '_int' in row.forms else 'kind is not None'
        lines += [f'        if {test}:', f'            return {call("_scalar")}']
        if '_int' in row.forms:
            lines += ['        if kind is int:', f'            return {call("_int")}']
    lines.append(f'    return {call("")}')
    lines += ['', '']
    if row.outputs and not in_place:
        fields = ', '.join(repr(o) for o in row.outputs)
        lines += [f"{row.name}_result = namedtuple('{row.name}', [{fields}])"]
    lines.append(f"{local}.__name__ = '{name}'")
    return lines + python_entries(row, name, in_place)


def python_entries(row, name, in_place):
    lines = [f"METHODS['{name}'] = op_{name}"] if row.method else []
    if not in_place and (not row.method or row.name not in WITHOUT_FUNCTION):
        lines.append(f"FUNCTIONS['{name}'] = op_{name}")
    return lines


def python_text(text):
    text = text.replace('@', '').replace('\\', '\\\\').replace('"', "'")
    return text if text.endswith('.') else text + '.'


def python_operator(row):
    first = row.args[0].name
    lines = []
    if row.operator in UNARY:
        return [f"METHODS['__{UNARY[row.operator]}__'] = op_{row.name}"]
    table = COMPARE if row.operator in COMPARE else BINARY
    special = table[row.operator]
    scalar = row.scalar is not None
    test = 'isinstance(other, RawTensor)' + (' or _is_number(other)' if scalar else '')
    # numpy stands back from tensors, also with an array on the left: arrays are for these to take.
    array = ['    other = _array(other)', '    if other is None:', '        return NotImplemented']
    lines += [
        '',
        '',
        f'def __{special}__({first}, other):',
        f'    if {test}:',
        f'        return op_{row.name}({first}, other)',
        *array,
        f'    return op_{row.name}({first}, other)',
        '',
        '',
        f"METHODS['__{special}__'] = __{special}__",
    ]
    if table is BINARY:
        number = [
            '    if _is_number(other):',
            f'        return op_{row.name}(_number_tensor(other, {first}), {first})',
        ]
        lines += [
            '',
            '',
            f'def __r{special}__({first}, other):',
            *(number if scalar else ()),
            *array,
            f'    return op_{row.name}(other, {first})',
            '',
            '',
            f"METHODS['__r{special}__'] = __r{special}__",
        ]
    if table is BINARY and row.inplace:
        lines += [
            '',
            '',
            f'def __i{special}__({first}, other):',
            f'    if {test}:',
            f'        return op_{row.name}_({first}, other)',
            *array,
            f'    return op_{row.name}_({first}, other)',
            '',
            '',
            f"METHODS['__i{special}__'] = __i{special}__",
        ]
    return lines


def emit_python(rows):
    lines = [PYTHON_HEAD]
    for row in rows:
        lines += python_wrapper(row, False)
        if row.inplace:
            lines += python_wrapper(row, True)
        if row.operator:
            lines += python_operator(row)
    return lines


# --- gjs ------------------------------------------------------------------------------------------


def gjs_arg(arg):
    entry = [arg.c_name, arg.kind if arg.kind != 'enum' else f'enum:{arg.enum}']
    if arg.required:
        return entry
    if arg.kind in ('int', 'double', 'number'):
        value = arg.number
        if value in (float('inf'), -float('inf')):
            return [*entry, 'inf' if value > 0 else '-inf']
        return [*entry, str(value) if abs(value) > 2**53 else value]
    if arg.kind == 'bool':
        return [*entry, arg.default == 'true']
    if arg.kind == 'int[]':
        return [*entry, json.loads(arg.default)]
    if arg.kind == 'enum':
        return [*entry, arg.default]
    return [*entry, None]


def emit_gjs(rows):
    lines = [
        '// SPDX-FileCopyrightText: The GTorch authors',
        '// SPDX-License-Identifier: LGPL-2.1-or-later',
        '',
        '// Written by bindgen.py: [name, kind, default] of the arguments of every operation.',
        '/* exported operations */',
        'var operations = {',
    ]
    for row in rows:
        entry = {'args': [gjs_arg(a) for a in row.args]}
        if row.method:
            entry['method'] = True
        if row.inplace:
            entry['inplace'] = True
        if row.scalar:
            entry['scalar'] = row.scalar
        if row.scalar or row.numbers:
            entry['forms'] = [f for f in row.forms if f]
        if row.outputs:
            entry['outputs'] = row.outputs
        if row.variadic:
            entry['variadic'] = True
        lines.append(f'    {row.name}: {json.dumps(entry)},')
    return [*lines, '};', '']


def main(argv):
    if len(argv) != 4 or argv[1] not in ('python', 'gjs', 'mixin'):
        print(__doc__, file=sys.stderr)
        return 2
    rows = load(argv[2])
    if argv[1] == 'mixin':
        from generator.bindings.mixin import emit_mixin

        lines = emit_mixin(rows)
    else:
        lines = emit_python(rows) if argv[1] == 'python' else emit_gjs(rows)
    text = '\n'.join(lines).rstrip('\n') + '\n'
    path = pathlib.Path(argv[3])
    if not path.exists() or path.read_text('utf-8') != text:
        path.write_text(text, 'utf-8')
    return 0
