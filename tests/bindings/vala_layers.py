#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a Vala program that makes the layers of the rows' samples by create (), and compares their texts.

    vala_layers.py GTORCH-LAYERS.json OUTPUT.vala
"""

import json
import pathlib
import sys

HEAD = '''/* Written by vala_layers.py. */

using GTorch;

delegate GTorch.Module Maker () throws GLib.Error;

int n_cases = 0;
bool failed = false;

void check (string name, string text, Maker make) {
    n_cases++;
    try {
        var got = make ().to_string ();
        if (got == text) {
            print ("ok %d - %s\\n", n_cases, name);
            return;
        }
        print ("not ok %d - %s\\n# %s\\n", n_cases, name, got);
    } catch (GLib.Error error) {
        print ("not ok %d - %s\\n# %s\\n", n_cases, name, error.message);
    }
    failed = true;
}

'''


def literal(arg, value):
    """Returns a value in Vala, or None if the program has no way to say it."""
    kind = arg['kind']
    if value is None:
        return {'int': 'GTorch.NONE', 'double': 'GTorch.NONE_DOUBLE', 'size': 'null'}.get(kind)
    if kind == 'size' and not isinstance(value, str):
        values = value if isinstance(value, list) else [value]
        return f'{{ {", ".join("GTorch.NONE" if one is None else str(one) for one in values)} }}'
    if kind in ('enum', 'reduction'):
        return f'GTorch.{arg["enum"]}.{value.upper().replace("-", "_")}'
    if kind == 'bool':
        return 'true' if value else 'false'
    return repr(value) if kind in ('int', 'double') and not isinstance(value, str) else None


def default(arg):
    if arg['kind'] in ('device', 'factors', 'module', 'tensor'):
        return 'null'
    return 'GTorch.DType.NONE' if arg['kind'] == 'dtype' else literal(arg, arg.get('default'))


def call(args, sample):
    """Returns the arguments of create () for a sample, or None."""
    left_out = [arg['name'] for arg in args if arg['kind'] == 'refused'
                or arg['kind'] == 'bool' and arg.get('default', 0) is None
                or arg['kind'] == 'module' and arg.get('default') is not None]
    given = dict(zip((arg['name'] for arg in args), sample['positional'])) | sample['named']
    if set(given) & set(left_out):
        return None
    taken = [arg for arg in args if arg['name'] not in left_out]
    n = max((i + 1 for i, arg in enumerate(taken) if arg['name'] in given), default=0)
    found = [literal(arg, given[arg['name']]) if arg['name'] in given else default(arg) for arg in taken[:n]]
    return None if None in found else ', '.join(found)


def main(layers, output):
    lines = []
    for name, layer in json.loads(pathlib.Path(layers).read_text('utf-8')).items():
        taken = [arg for arg in layer['args'] if arg['kind'] != 'refused']
        if all(arg['required'] for arg in taken):
            continue
        for sample in layer['samples']:
            text = call(layer['args'], sample)
            if text is not None and 'text' in sample:
                what = json.dumps(f'{name}({sample["new"]})'.replace('%', '%%'))
                lines.append(f'    check ({what}, {json.dumps(sample["text"])}, () => {name}.create ({text}));')
    end = '    print ("1..%d\\n", n_cases);\n    return failed ? 1 : 0;\n}\n'
    pathlib.Path(output).write_text(f'{HEAD}int main () {{\n' + '\n'.join(lines) + '\n' + end, 'utf-8')


main(*sys.argv[1:])
