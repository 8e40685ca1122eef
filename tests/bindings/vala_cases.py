#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a Vala program that runs the cases that all languages share.

    vala_cases.py CASES.json GTORCH-OPS.json OUTPUT.vala

Vala has no keyword arguments: each case becomes a function that fills in the defaults of the rows
of operations.
"""

import json
import pathlib
import re
import sys

# Methods that are no operations: their arguments in order, and their result.
METHODS = {
    'get': ({'spec': 'string'}, 'Tensor'),
    'set': ({'spec': 'string', 'value': 'Tensor'}, None),
    'backward': ({}, None),
    'get_grad': ({}, 'Tensor'),
    'set_requires_grad': ({'requires_grad': 'bool'}, None),
    'release': ({}, None),
    'get_numel': ({}, 'int'),
    'item_double': ({}, 'double'),
}
KEYS = {'name', 'let', 'grad', 'steps', 'result', 'expect', 'dtype', 'value', 'error', 'says'}

HEAD = '''/* Written by vala_cases.py. */

using GTorch;

public delegate void Body () throws GLib.Error;

int n_cases = 0;
bool failed = false;

void fail (string name, string why) {
    failed = true;
    print ("not ok %d - %s\\n# %s\\n", n_cases, name, why);
}

void expect (string name, Body body) {
    n_cases++;
    try {
        body ();
        print ("ok %d - %s\\n", n_cases, name);
    } catch (GLib.Error error) {
        fail (name, error.message);
    }
}

void expect_error (string name, int[] codes, string[] says, Body body) {
    n_cases++;
    try {
        body ();
        get_default_device ().synchronize (null); // what a GPU finds out on the way
        fail (name, "no error");
    } catch (GLib.Error error) {
        bool right = false;
        foreach (var code in codes)
            right |= error.domain == GTorch.Error.quark () && error.code == code;
        foreach (var part in says) {
            bool said = false;
            foreach (var choice in part.split ("|"))
                said |= choice in error.message;
            right &= said;
        }
        if (right)
            print ("ok %d - %s\\n", n_cases, name);
        else
            fail (name, "not this error: %d %s".printf (error.code, error.message));
    }
}

void check (Tensor got, GTorch.DType dtype, int64[] shape, double[] values) throws GLib.Error {
    if (got.dtype != dtype)
        throw new IOError.FAILED ("dtype %s", got.dtype.to_string ());
    int64[] sizes = got.get_shape ();
    if (sizes.length != shape.length)
        throw new IOError.FAILED ("%d dimensions", sizes.length);
    for (int i = 0; i < shape.length; i++)
        if (sizes[i] != shape[i])
            throw new IOError.FAILED ("size %s of dimension %d", sizes[i].to_string (), i);
    double[] elements = got.to_doubles ();
    for (int i = 0; i < values.length; i++)
        if (!(Math.fabs (elements[i] - values[i]) <= 1e-6 * Math.fabs (values[i]) + 1e-7)) // NaN too
            throw new IOError.FAILED ("element %d is %g", i, elements[i]);
}

'''


def flatten(values):
    """Returns the elements in order, and the shape."""
    if not isinstance(values, list):
        return [values], []
    parts = [flatten(v) for v in values]
    return [e for flat, _ in parts for e in flat], [len(values)] + (parts[0][1] if parts else [])


def literal(value, kind):
    if kind in ('double', 'number'):
        return repr(float(value))
    if kind == 'bool':
        return 'true' if value else 'false'
    if kind == 'string':
        return json.dumps(value)
    if kind == 'int[]':
        return '{ ' + ', '.join(str(v) for v in value) + ' }'
    if kind.startswith('Tensor'):
        return value[1:]
    return str(value)


def default(arg, function):
    text = arg['default']
    if text is None:
        raise SystemExit(f'vala_cases.py: {function} needs {arg["name"]}')
    kind = arg['kind']
    if kind in ('Tensor?', 'Device?', 'Generator?'):
        return 'null'
    if kind == 'DType':
        return f'GTorch.DType.{text.upper()}'
    if kind == 'enum':
        return f'{arg["enum"]}.{text.upper()}'
    if kind == 'int[]':
        values = text.strip('[] ')
        return f'{{ {values} }}' if values not in ('', 'none') else 'null'
    if text == 'max':
        return 'int64.MAX'
    if text == 'none':
        return 'GTorch.NONE' if kind == 'int' else 'GTorch.NONE_DOUBLE'
    if text in ('inf', '-inf'):
        return text.replace('inf', 'double.INFINITY')
    return text


class Case:
    def __init__(self, data, ops):
        self.data, self.ops, self.lines = data, ops, []
        self.last = None

    def literal(self, value, kind):
        """Returns an argument; an array or an empty list of tensors gets its own variable."""
        text = literal(value, kind) if kind != 'Tensor[]' else ''
        if kind == 'Tensor[]':
            text = '{ ' + ', '.join(v[1:] for v in value) + ' }'
        if kind not in ('int[]', 'Tensor[]'):
            return text
        name = f'list{len(self.lines)}'
        self.lines.append(f'{"int64" if kind == "int[]" else "Tensor"}[] {name} = {text};')
        return name

    def tensor(self, name, values):
        flat, shape = flatten(values)
        kinds = {type(v) for v in flat}
        dtype = 'BOOL' if kinds == {bool} else ('INT64' if kinds == {int} else 'FLOAT32')
        ctype, maker = ('double', 'from_doubles') if dtype == 'FLOAT32' else ('int64', 'from_ints')
        kind = 'double' if dtype == 'FLOAT32' else 'int'
        elements = ', '.join(literal(int(v) if isinstance(v, bool) else v, kind) for v in flat)
        self.lines += [
            f'{ctype}[] {name}_elements = {{ {elements} }};',
            f'int64[] {name}_shape = {{ {", ".join(map(str, shape))} }};',
            f'var {name} = new Tensor.{maker} ({name}_elements, {name}_shape, GTorch.DType.{dtype}, null);',
        ]

    def operation(self, function, target, options):
        in_place = function.endswith('_inplace')
        if function.removesuffix('_inplace') not in self.ops:
            raise SystemExit(f'vala_cases.py: {self.data["name"]} calls {function}, which is no operation')
        row = self.ops[function.removesuffix('_inplace')]
        form, args = '', []
        for arg in row['args'][1 if target else 0 :]:
            kind = arg['kind']
            if arg['name'] not in options:
                args.append(default(arg, function))
                continue
            value = options[arg['name']]
            if kind == 'enum':
                args.append(f'{arg["enum"]}.{value.upper()}')
                continue
            if kind == 'Tensor' and not isinstance(value, str):
                form = '_int' if isinstance(value, int) and '_int' in row['forms'] else '_scalar'
                kind = 'int' if form == '_int' else 'double'
            args.append(self.literal(value, kind))
        unknown = set(options) - {a['name'] for a in row['args']}
        if unknown:
            raise SystemExit(f'vala_cases.py: {function} has no {unknown.pop()}')
        name = row['name'] + form + ('_inplace' if in_place else '')
        if isinstance(row['returns'], list):
            self.lines += [f'Tensor {part};' for part in row['returns']]
            args += [f'out {part}' for part in row['returns']]
        return f'{target or "GTorch"}.{name} ({", ".join(args)})'

    def step(self, result, function, target, options):
        if function == 'safetensors':
            text = json.dumps(options['base64'])
            self.lines += [
                f'var stream = new MemoryInputStream.from_data (Base64.decode ({text}));',
                'HashTable<string, string> metadata;',
                'safetensors_load (stream, null, out metadata, null, null);',
            ]
            return
        if function in METHODS:
            kinds, returns = METHODS[function]
            if set(options) != set(kinds):
                wants = ', '.join(kinds) or 'nothing'
                raise SystemExit(f'vala_cases.py: {self.data["name"]}: {function} takes {wants}')
            args = [self.literal(options[name], kind) for name, kind in kinds.items()]
            if function == 'backward':
                args = ['null', 'false', 'false']
            code = f'{target}.{function} ({", ".join(args)})'
        else:
            code = self.operation(function, target, options)
            returns = None if '(out ' in code or ', out ' in code else 'Tensor'
        if returns is None or result == '_':
            self.lines.append(f'{code};')
        else:
            self.lines.append(f'var {result} = {code};')
            self.last = result

    def emit(self):
        data = self.data
        if set(data) - KEYS:
            raise SystemExit(f'vala_cases.py: {data["name"]} has unknown {sorted(set(data) - KEYS)}')
        for name, values in data['let'].items():
            self.tensor(name, values)
        self.lines += [f'{name}.set_requires_grad (true);' for name in data.get('grad', ())]
        for step in data['steps']:
            self.step(*step)
        if 'error' not in data:
            self.result(data)
        if 'error' in data:
            codes = ', '.join(f'GTorch.Error.{c}' for c in data['error'].split('|'))
            says = ', '.join(json.dumps(s, ensure_ascii=False) for s in data['says'])
            call = f'expect_error ("{data["name"]}", {{ {codes} }}, {{ {says} }}, () => {{'
        else:
            call = f'expect ("{data["name"]}", () => {{'
        body = [f'        {line}' for line in self.used_only()]
        return [f'void {data["name"]} () {{', f'    {call}', *body, '    });', '}', '']

    def used_only(self):
        """Returns the lines without names for unused variables: valac warns about those."""
        for i, line in enumerate(self.lines):
            found = re.match(r'var (\w+) = ', line)
            if found and not re.search(rf'\b{found[1]}\b', '\n'.join(self.lines[i + 1 :])):
                line = line[found.end() :]
            yield line

    def result(self, data):
        name = data.get('result', self.last)
        if 'value' in data:
            value = data['value']
            self.lines.append(f'if ({name} != {value})')
            self.lines.append('    throw new IOError.FAILED ("another value");')
            return
        flat, shape = flatten(data['expect'])
        elements = ', '.join(repr(float(v)) for v in flat)
        self.lines += [
            f'double[] expected = {{ {elements} }};',
            f'int64[] expected_shape = {{ {", ".join(map(str, shape))} }};',
            f'check ({name}, GTorch.DType.{data["dtype"]}, expected_shape, expected);',
        ]


def main(cases, ops, output):
    table = {row['name']: row for row in json.loads(pathlib.Path(ops).read_text('utf-8'))}
    data = json.loads(pathlib.Path(cases).read_text('utf-8'))
    lines = []
    for case in data:
        lines += Case(case, table).emit()
    lines += ['int main () {', '    choose_device ();', f'    print ("1..{len(data)}\\n");']
    lines += [f'    {case["name"]} ();' for case in data]
    lines += ['    return failed ? 1 : 0;', '}', '']
    pathlib.Path(output).write_text(HEAD + '\n'.join(lines), 'utf-8')


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
