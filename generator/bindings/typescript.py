# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the TypeScript definitions: the operations from their rows, layers and optimizers from their tables, the other
classes and functions from the GIR, and what the overrides add from a template."""

import json
import pathlib
import re

from generator.bindings import fill, typescript_gir
from generator.bindings.defaults import Table
from generator.bindings.rows import load, spaces
from generator.text import write

RESERVED = {'delete', 'export', 'function', 'import', 'in', 'new', 'null', 'return', 'this', 'typeof', 'var', 'void',
            'with'}
KINDS = {
    'Tensor': 'TensorLike',
    'Tensor?': 'TensorLike | null',
    'Tensor[]': 'readonly Tensor[]',
    'int': 'IntLike',
    'double': 'number',
    'number': 'IntLike',
    'bool': 'boolean',
    'int[]': 'Sizes',
    'DType': 'DTypeLike | null',
    'Device?': 'DeviceLike | null',
    'Generator?': 'Generator | null',
}
LAYER_KINDS = {
    'bool': 'boolean',
    'device': 'DeviceLike',
    'double': 'number',
    'dtype': 'DTypeLike',
    'factors': 'number | readonly number[]',
    'int': 'IntLike',
    'module': 'Module | string | ((...inputs: any[]) => Tensor)',
    'processes': 'ProcessGroup',
    'size': 'Sizes | readonly (IntLike | null)[]',
    'tensor': 'Tensor',
}


# Further names of operations, as PyTorch has them.
ALIASES = pathlib.Path(__file__).resolve().parents[2] / 'introspection' / 'gjs' / 'overrides' / '_gtorch_aliases.js'
# Operations that take a dimension, too, as those whose names have _dim.
ALONG = ('max', 'median', 'min', 'nanmedian')


def nullable(kind):
    return kind if kind.endswith(' | null') else f'{kind} | null'


def camel(name):
    return ''.join(part[:1].upper() + part[1:] for part in name.split('_'))


def overloads(parameters, n_required, options):
    """Returns the lists of parameters with which a function can be called: positions, then an object."""
    texts = [f'{name}: {kind}' for name, kind in parameters]
    found = [[*texts[:n], f'options?: {options}'] for n in range(n_required, len(texts) + 1)]
    for n in range(n_required):
        keys = ' | '.join(f"'{name.rstrip('_')}'" for name, _ in parameters[n:n_required])
        found.append([*texts[:n], f'options: Needs<{options}, {keys}>'])
    return found


class Operation:
    """An operation as a method and as a function."""

    def __init__(self, row):
        self.row = row
        self.args = [(a.c_name, self.kind(a), a.required) for a in row.args]
        self.own = self.args[1:] if row.method else self.args
        self.options = f'Options.{camel(row.name)}'

    @staticmethod
    def kind(arg):
        kind = f'{arg.enum}Like' if arg.kind == 'enum' else KINDS[arg.kind]
        return nullable(kind) if arg.is_optional else kind

    @property
    def result(self):
        if self.row.is_list:
            return 'Tensor[]'
        if not self.row.outputs:
            return 'Tensor'
        fields = ', '.join(f'readonly {name}: Tensor' for name in self.row.outputs)
        return f'[{", ".join("Tensor" for _ in self.row.outputs)}] & {{{fields}}}'

    def interface(self):
        row = self.row
        known = {name: kind for name, kind, _ in self.args}
        known |= {arg.name: known[arg.c_name] for arg in row.args}
        known |= {'input': 'TensorLike'} if row.method else {}
        others = {other: known[name] for other, name in row.others.items()}
        more = {'out': 'Tensor | readonly Tensor[] | null'}
        more |= {'inplace': 'boolean'} if row.inplace else {}
        more |= {'requires_grad': 'boolean'} if row.creates else {}
        lines = [f'    {name}?: {kind};' for name, kind in {**more, **others, **known}.items()]
        return [f'interface {camel(row.name)} {{', *lines, '}']

    def signatures(self, name, parameters, result):
        n_required = sum(required for _, _, required in parameters)
        plain = [(f'{key}_' if key in RESERVED else key, kind) for key, kind, _ in parameters]
        found = [f'{name}({", ".join(one)}): {result};' for one in overloads(plain, n_required, self.options)]
        if self.row.name == 'arange':
            found.append(f'{name}(end: IntLike, options?: {self.options}): {result};')
        if self.row.variadic and len(parameters) == len(self.own):
            found.append(f'{name}(...sizes: IntLike[]): {result};')
            found.append(f'{name}(...sizes: [...IntLike[], {self.options}]): {result};')
        return found

    def along(self, name):
        """The forms of max_dim() that are those of max(), too."""
        return self.signatures(name, self.own, self.result)

    def methods(self):
        if not self.row.method:
            return []
        found = self.signatures(self.row.name, self.own, self.result)
        return found + (self.signatures(f'{self.row.name}_', self.own, 'this') if self.row.inplace else [])

    def functions(self):
        if self.row.name in RESERVED:
            return []  # TypeScript has no way to declare them in a namespace
        parameters = self.args
        if self.row.method:
            parameters = [('input', 'TensorLike', True), *self.own]
        return [f'function {text}' for text in self.signatures(self.row.name, parameters, self.result)]


def aliases():
    """Returns the names that the overrides give operations, and those of the operations."""
    table = re.search(r'const NAMES = \{(.*?)\};', ALIASES.read_text('utf-8'), re.DOTALL)[1]
    return dict(re.findall(r"(\w+): '(\w+)'", table))


def renamed(lines, name, other):
    return [re.sub(rf'^{name}(?=_?\()', other, line) for line in lines]


def maker(parameters, n_required, options, result):
    """The type of a class that can be called as well."""
    tuples = [f'[{", ".join(one)}]' for one in overloads(parameters, n_required, options)]
    return f'Maker<{" | ".join(tuples)}, {result}>'


def layer_kind(arg):
    if arg['kind'] in ('enum', 'reduction'):
        return f'{arg["enum"]}Like'
    kind = LAYER_KINDS[arg['kind']]
    kind = f'{kind} | string' if 'rule' in arg else kind
    return kind if arg['required'] or arg.get('default', '') is not None else nullable(kind)


def layers(path):
    """Returns what makes the layers of nn and those of transforms, and the options of both."""
    found, interfaces = {'nn': [], 'transforms': []}, []
    for name, layer in json.loads(pathlib.Path(path).read_text('utf-8')).items():
        args = [(arg['name'], layer_kind(arg), arg['required']) for arg in layer['args'] if arg['kind'] != 'refused']
        interfaces += [f'interface {name} {{', *(f'    {key}?: {kind};' for key, kind, _ in args), '}']
        n_required = sum(required for _, _, required in args)
        named = {arg['name'] for arg in layer['args'] if 'named' in arg}
        plain = [(key, kind) for key, kind, _ in args if key not in named]
        made = maker(plain, n_required, f'LayerOptions.{name}', f'GTorch.{name}')
        found[layer.get('space', 'nn')].append(f'const {name}: {made};')
    return found['nn'], found['transforms'], interfaces


def steps(path):
    """Returns the optimizers, the schedules, and the options of both."""
    found, interfaces = [], []
    tables = json.loads(pathlib.Path(path).read_text('utf-8'))
    for key, first, kind in (('optimizers', 'params', 'Params'), ('schedules', 'optimizer', 'Optimizer')):
        lines = []
        for step in tables[key]:
            name = step['name']
            interfaces += [f'interface {name} {{', '    [name: string]: any;', '}']
            made = f'Maker<[{first}: {kind}, ...rest: any[]], GTorch.{name}>'
            lines.append(f'const {name}: {made};')
        found.append(lines)
    return found


def hand_written(text):
    """Returns the members that the template declares itself, by class."""
    found = {}
    for owner, body in re.findall(r'^    interface (\w+)(?: extends [\w<>, ]+)? \{\n(.*?)^    \}', text, re.M | re.S):
        found.setdefault(owner, set()).update(re.findall(r'^        (?:readonly )?([\w]+)[?(<:]', body, re.M))
    found[None] = set(re.findall(r'^    (?:function|const|namespace) (\w+)', text, re.M))
    return found


def emit(gir, defaults, ops, layer_table, step_table, file):
    operations = [Operation(row) for row in load(ops)]
    hand = hand_written(fill.sections('gtorch.d.ts.in')[''])
    made, transforms, layer_options = layers(layer_table)
    optimizers, schedules = steps(step_table)
    names = {operation.row.name for operation in operations}
    text = typescript_gir.Namespace(gir, hand, names, Table(defaults))
    shown = [o for o in operations if o.row.name not in hand[None]]
    methods = [m for o in operations if o.row.name not in hand['Tensor'] for m in o.methods()]
    methods += [m for o in operations for name in ALONG if o.row.name == f'{name}_dim' for m in o.along(name)]
    methods += [f'{name}(other: Tensor, options?: {{out?: Tensor | null}}): Tensor;' for name in ('max', 'min')]
    by_name = {operation.row.name: operation for operation in operations}
    others = aliases()
    methods += [m for other, name in others.items() for m in renamed(by_name[name].methods(), name, other)]
    functions = [f'const {other}: typeof GTorch.{name};' for other, name in others.items()]
    modules = {
        space.replace('.', '_'): [
            f'const {name}: typeof GTorch.{operation};' for name, operation in members.items()
            if name not in RESERVED and operation not in RESERVED
        ]
        for space, members in spaces(load(ops)).items()
    }
    functional = [f'const {o.row.name}: typeof GTorch.{o.row.name};' for o in operations
                  if o.row.name not in {*RESERVED, 'embedding', 'embedding_bag', 'unfold'}]
    classes = text.classes()
    write(file, fill(
        'gtorch.d.ts.in', properties=text.interfaces, gtype_name='$gtype', layers=made, transforms=transforms,
        layer_options=layer_options,
        optimizers=optimizers, schedules=schedules,
        options=[line for o in operations for line in o.interface()], methods=methods,
        functions=[*functions, *(line for o in shown for line in o.functions())], functional=functional,
        enums=text.enums(),
        classes=classes, rest=text.functions(), **modules,
    ))


def emit_library(defaults, file, *girs):
    """The definitions of a library beside this one, of the first GIR, which includes the others."""
    space = typescript_gir.kinds_of(girs[0])[0].get('name')
    text = typescript_gir.Namespace(girs[0], {}, set(), Table(defaults, space), girs[1:])
    classes = text.classes()
    write(file, fill('library.d.ts.in', space=space, properties=text.interfaces, enums=text.enums(), classes=classes,
                     rest=text.functions()))
