# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the VAPI: what vapigen makes of the GIR, with the defaults of arguments that the rows have, and with
members that the GIR cannot express.

A default is written only where all arguments after it have one too, since Vala has no names of arguments.
"""

import json
import pathlib
import re
import subprocess
import tempfile

from generator import rows as shared
from generator.bindings import vapi_layers
from generator.bindings.defaults import Table
from generator.c import snake
from generator.bindings.rows import INT_MAX, load
from generator.text import write

OWNER = re.compile(r'\tpublic .*\b(?:class|struct|enum|interface) (\w+)')
CALLABLE = re.compile(r'(\t+public (?!delegate |signal ).*?)(@?[\w.]+) \((.*)\)((?: throws [\w., ]+)?;)')
PARAMETER = re.compile(r'((?:\[.*\] )?)((?:out|ref|owned|unowned|params) )?(\S+) (@?\w+)')


def split(text):
    """Splits arguments at the commas that are outside all brackets."""
    found, depth, begin = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in '([<{') - (char in ')]>}')
        if char == ',' and depth == 0:
            found.append(text[begin:i].strip())
            begin = i + 1
    return [*found, text[begin:].strip()] if text.strip() else []


def expression(arg, is_whole=False):
    """Returns the default of an argument of a row in Vala, or None; is_whole: it is a number of a form for integers."""
    if arg.required:
        return None
    if arg.none:
        return f'GTorch.{arg.none}'
    if arg.kind == 'int':
        return {INT_MAX: 'int64.MAX', -INT_MAX - 1: 'int64.MIN'}.get(arg.number, str(arg.number))
    if is_whole and arg.kind == 'number':
        return {'inf': 'int64.MAX', '-inf': 'int64.MIN'}.get(arg.default) or str(int(arg.number))
    if arg.kind in ('double', 'number'):
        return repr(float(arg.number)).replace('inf', 'double.INFINITY')
    if arg.kind == 'int[]':
        return f'{{ {", ".join(map(str, arg.list))} }}' if arg.list else 'null'
    if arg.kind == 'DType':
        return f'GTorch.DType.{arg.default.upper()}'
    if arg.kind == 'enum':
        return f'GTorch.{arg.enum}.{arg.default.upper()}'
    return arg.default if arg.kind == 'bool' else 'null'


def literal(value):
    return {True: 'true', False: 'false'}[value] if isinstance(value, bool) else repr(value)


class Defaults:
    """What is known of the defaults: of operations, of layers, of optimizers and schedules, and of all others."""

    def __init__(self, table):
        self.found, self.table = {}, table

    def add(self, ops, layers, steps):
        """Takes those of GTorch's rows."""
        for row in load(ops):
            for form in {'', *row.forms}:
                values = {arg.c_name: expression(arg, form == '_int') for arg in row.args}
                for tail in ('', '_inplace') if row.inplace else ('',):
                    self.found['Tensor' if row.method else None, f'{row.name}{form}{tail}'] = values
        for name, layer in json.loads(pathlib.Path(layers).read_text('utf-8')).items():
            values = {arg['name']: arg.get('default') for arg in layer['args']}
            self.found[name, 'new'] = {key: literal(v) for key, v in values.items() if isinstance(v, int | float)}
        for step in (s for kind in json.loads(pathlib.Path(steps).read_text('utf-8')).values() for s in kind):
            values = {'learning_rate' if key == 'lr' else key: v for key, v in step['numbers'].items()}
            self.found[step['name'], 'new'] = {
                key: literal(v) for key, v in values.items() if isinstance(v, int | float)
            }

    def of(self, owner, function, name, kind, mode):
        """Returns the default of an argument, or None."""
        if mode in ('out ', 'ref ', 'params '):
            return None
        row = self.found.get((owner, function))
        if row is not None and self.table.find(owner, function, name) is None:
            return row.get(name)
        return self.table.of(owner, function, name, kind.endswith('?'))


def name_of(match, owner):
    """Returns the name of a function; of a constructor, it is what the GIR calls it without new_."""
    name = match[2].removeprefix('@')
    return 'new' if name == owner else name.removeprefix(f'{owner}.')


def with_defaults(line, owner, defaults):
    match = CALLABLE.fullmatch(line)
    if match is None:
        return line
    head, function, given, tail = match.groups()
    name, texts = name_of(match, owner), split(given)
    may = True
    for i in reversed(range(len(texts))):
        parameter = PARAMETER.fullmatch(texts[i])
        if parameter is None:
            may = may and ' = ' in texts[i]
            continue
        _, mode, kind, arg = parameter.groups()
        value = defaults.of(owner, name, arg.removeprefix('@'), kind, mode)
        may = may and value is not None
        if may:
            texts[i] += f' = {value}'
    return f'{head}{function} ({", ".join(texts)}){tail}'


def sealed(text, names):
    """Divides each class into an abstract one, which its subclass here is derived from, too, and a sealed one."""
    for name in names:
        head = rf'((?:^\t\[[^\n]*\n)*)^\tpublic class {name} : ([^\n]*) \{{\n(.*?)\n\t\}}\n'
        match = re.search(head, text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise shared.RowError(f'vala.toml: no class {name} that is not sealed')
        marks, above, body = match.groups()
        making = re.compile(rf'(?:\t\t\[.*\n)*\t\tpublic {name}(?:\.\w+)? \(.*;\n?')
        same = f'cname = "GTorch{name}", lower_case_cprefix = "gtorch_{snake(name)}_", '
        base = marks.replace('[CCode (', f'[CCode ({same}', 1)
        made = ''.join(making.findall(f'{body}\n'))
        text = text[:match.start()] + (
            f'{base}\tpublic abstract class {name}Base : {above} {{\n\t\tprotected {name}Base ();\n'
            f'{making.sub("", body + chr(10))}\t}}\n'
            f'{marks}\tpublic sealed class {name} : GTorch.{name}Base {{\n{made}\t}}\n'
        ) + text[match.end():]
        text = re.sub(rf'(\tpublic sealed class \w+ : )GTorch\.{name}\b', rf'\1GTorch.{name}Base', text)
    return text


def changed(text, defaults, table, created):
    """Returns the lines of the VAPI with the defaults and the members of the table."""
    owner, lines, used = None, [], set()
    members, types = table.get('members', {}), table.get('types', {})
    for line in sealed(text, table.get('seal', ())).splitlines():
        if head := OWNER.match(line):
            owner = head[1]
            extra = members.get(owner, {})
            line = line.replace(' {', f', {extra["implements"]} {{') if 'implements' in extra else line
            lines += [line, *(f'\t\t{one}' for one in (*extra.get('add', ()), *created.get(owner, ())))]
            used.add(owner)
            continue
        owner = None if line == '\t}' else owner
        match = CALLABLE.fullmatch(line)
        name = f'{owner}.{name_of(match, owner)}' if match else None
        if match and name_of(match, owner) in members.get(owner, {}).get('remove', ()):
            while lines[-1].strip().startswith('['):
                lines.pop()
            continue
        if name in types:
            line = line.replace('GLib.ListModel', types[name], 1)
            used.add(name)
        lines.append(with_defaults(line, owner, defaults))
    lines = lines[:-1] + [f'\t{line}' for line in table.get('add', ())] + ['}']
    unused = {*members, *types} - used
    if unused:
        raise shared.RowError(f'vala.toml: nothing has the names {", ".join(sorted(unused))}')
    unused = set(defaults.table.values) - defaults.table.used
    if unused:
        raise shared.RowError(f'defaults.toml: nothing has the names {", ".join(sorted(unused))}')
    return '\n'.join(lines)


def generated(vapigen, library, packages, folders, gir):
    """Returns what vapigen makes of a GIR; @folders have files of metadata, and other GIRs and VAPIs."""
    with tempfile.TemporaryDirectory() as folder:
        options = [f'--{kind}={one}' for one in dict.fromkeys(folders) for kind in ('metadatadir', 'girdir', 'vapidir')]
        command = [vapigen, '--quiet', f'--library={library}', f'--directory={folder}',
                   *(f'--pkg={package}' for package in packages), *options, gir]
        subprocess.run(command, check=True)
        return (pathlib.Path(folder) / f'{library}.vapi').read_text('utf-8')


def emit(vapigen, gir, metadata, table, known, ops, layers, steps, output):
    """Runs vapigen, and writes what it made with what it lacks."""
    text = generated(vapigen, pathlib.Path(output).stem, ['gio-2.0'], [pathlib.Path(metadata).parent], gir)
    defaults = Defaults(Table(known))
    defaults.add(ops, layers, steps)
    write(output, changed(text, defaults, shared.read(table), vapi_layers.members(layers)))


def emit_library(vapigen, known, output, packages, *girs):
    """The same for a library beside this one, of the first GIR. The VAPIs of the others lie beside them."""
    folders = [pathlib.Path(gir).parent for gir in girs]
    text = generated(vapigen, pathlib.Path(output).stem, packages.split(','), folders, girs[0])
    space = re.search(r'^namespace (\w+) \{', text, re.MULTILINE)[1]
    write(output, changed(text, Defaults(Table(known, space)), {}, {}))
