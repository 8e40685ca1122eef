# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Reads and checks the rows of layers. docs/writing-a-layer.md documents their keys."""

import copy
import pathlib
import re

from generator import c, rows
from generator.layers.fields import fields_of
from generator.layers.inputs import BASES
from generator.rows import RowError
from generator.signatures import parse_args

FACTORS = r'given:double\[\d?\]\?'
SIZES = r'int\[\]|(?:given:|rule:)?int\[\d\]|given:int\[\d?\]\?|given:int\?\[\d\]'
TYPES = (rf'(?:module|int|int\?|double|double\?|{FACTORS}|bool|bool\?|Tensor\?|{SIZES}|enum:\w+|reduction'
         r'|refused|processes)')
SPEC = re.compile(rf'({TYPES})(?:\s*=\s*([^:]+?))?:\s+(.*)', re.DOTALL)
INITS = ('kaiming', 'fan_in', 'normal', 'ones', 'zeros', 'count')


class Operation:
    """The parts of an operation that layers need: its arguments, and whether it has an in-place form."""

    def __init__(self, name, row):
        self.name = name
        self.args = parse_args(row['args'])
        self.inplace = row.get('inplace', False)
        self.checks = row.get('check', {})
        self.composite = row.get('family') == 'composite'


class Prop:
    """One argument of PyTorch's constructor, which is a property of the class unless it is refused or has none."""

    def __init__(self, layer, name, text):
        self.layer, self.name = layer, name
        match = SPEC.fullmatch(text)
        if match is None:
            arg = layer.op_args.get(name)
            if arg is None:
                layer.fail(f'props.{name}', 'is neither “type = default: text” nor an argument of the operation')
            kind = arg.kind if arg.kind != 'enum' else f'enum:{arg.enum}'
            if re.fullmatch(TYPES, kind) is None:
                layer.fail(f'props.{name}', f'no property can be of the kind {kind} of the operation')
            self.default, self.doc = arg.default, text
        else:
            kind, self.default, self.doc = match.groups()
        self.is_given = kind.startswith('given:')
        self.has_rule = kind.startswith('rule:')
        kind = kind.removeprefix('given:').removeprefix('rule:')
        self.has_nones = kind.startswith('int?[')  # each number may be None
        kind = kind.replace('int?[', 'int[')
        self.enum = kind.partition(':')[2] or None
        digit = re.fullmatch(r'(?:int|double)\[(\d)\]\??', kind)
        self.length = int(digit[1]) if digit else 0
        self.is_optional = kind in ('int?', 'double?')
        self.may_be_absent = '[' in kind and kind.endswith('?')
        self.is_unsaid = kind == 'bool?'  # None of PyTorch's is false
        if (self.may_be_absent or self.is_unsaid) and self.default != 'None':
            layer.fail(f'props.{name}', f'{kind} is absent by default: None')
        lists = {'int': 'size', 'double': 'factors'}
        self.kind = lists[kind.partition('[')[0]] if '[' in kind else kind.partition(':')[0].rstrip('?').lower()
        if self.kind == 'tensor':
            self.is_optional = True
        self.is_required = self.default is None
        if self.kind == 'enum' and self.default is None:
            layer.fail(f'props.{name}', 'an enumeration needs a default')

    @property
    def field(self):
        """The name in C, which differs where a parameter or a child has PyTorch's name."""
        if self.name in self.layer.fields:
            return self.layer.fields[self.name]
        return f'has_{self.name}' if self.name in self.layer.params else self.name

    @property
    def is_field(self):
        return self.kind not in ('refused', 'processes', 'reduction', 'tensor', 'module')

    @property
    def is_fixed(self):
        """True if it can only be set at construction."""
        if self.kind in ('size', 'device', 'dtype'):
            return True
        layer = self.layer
        texts = [part for tensor in layer.tensors for part in (tensor.shape, tensor.condition, tensor.value or '')]
        texts.append(layer.make or '')
        texts += [rule for rules in layer.check.values() for rule in rules if rule.startswith('% ')]
        return any(re.search(rf'\b{self.field}\b', text) for text in texts)

    @property
    def python_default(self):
        """Returns the default as a Python literal, or None for a required argument."""
        if self.default is None:
            return None
        if self.kind in ('enum', 'reduction') or (self.kind == 'module' and self.default != 'None'):
            return repr(self.default)
        if self.kind == 'size' and not re.fullmatch(r'-?\d+', self.default):
            return 'None'
        return {'true': 'True', 'false': 'False'}.get(self.default, self.default)


class Tensor:
    """A parameter, or a buffer that the layer creates."""

    def __init__(self, layer, table, name, spec):
        where = f'{table}.{name}'
        if not isinstance(spec, list) or len(spec) not in (3, 4):
            layer.fail(where, 'is a list of a shape, a beginning, a text and perhaps a condition')
        self.name, self.is_buffer = name, table == 'buffers'
        self.shape, self.init, self.doc = spec[:3]
        word, _, number = self.init.rpartition(' ')
        self.value = number if number in layer.data.get('props', {}) and word in ('', 'uniform') else None
        self.is_uniform = word == 'uniform'
        if self.init not in INITS and (self.value is None or self.is_buffer):
            layer.fail(where, f'begins as one of {", ".join(INITS)}, not as {self.init}')
        self.condition = spec[3] if len(spec) == 4 else f'has_{name}' if name in layer.data.get('props', {}) else ''


class Layer(rows.Row):
    """One row."""

    KEYS = {
        'op', 'base', 'like', 'doc', 'inputs', 'props', 'args', 'forward', 'params', 'buffers', 'check', 'prepare',
        'built', 'repr', 'new', 'any', 'sample', 'refuse', 'make', 'symbol', 'class', 'fields', 'lazy', 'lazy_defaults',
        'space', 'named',
    }
    NEEDED = ('doc',)

    def __init__(self, file, name, data, table):
        super().__init__(file, name, data)
        self.doc = data['doc'].strip()
        self.snake = data.get('symbol', c.snake(name))
        self.base = data.get('base', 'Module')
        if self.base not in BASES:
            self.fail('base', f'is one of {", ".join(BASES)}')
        self.make = data.get('make')
        self.space = data.get('space')
        self.by_hand = data.get('class') == 'hand'
        self.op = None
        if 'op' in data:
            self.op = table.get(data['op'])
            if self.op is None:
                self.fail('op', f'no such operation: {data["op"]}')
        elif 'forward' not in data and not self.by_hand:
            self.fail('op', 'is missing, and so is forward')
        self.op_args = {arg.name: arg for arg in self.op.args} if self.op else {}
        self.forward = data.get('forward')
        self.params, self.fields = data.get('params', {}), data.get('fields', {})
        ranges = self.op.checks if self.op else {}
        self.check = {name: [ranges[name]] for name in data.get('props', {}) if name in ranges} | data.get('check', {})
        self.tensors = [Tensor(self, t, k, v) for t in ('params', 'buffers') for k, v in data.get(t, {}).items()]
        self.read_inputs(data.get('inputs', {}))
        props = dict(data.get('props', {}))
        self.props = [Prop(self, key, text) for key, text in props.items()]
        self.any = data.get('any', False)
        self.new, self.named = data.get('new', []), data.get('named', [])
        self.samples = data.get('sample', [])
        self.refuse = data.get('refuse', [])
        self.read_repr()
        names = {prop.name for prop in self.props}
        tensors = {arg.name for arg in self.op.args if arg.is_tensor} if self.op else set(self.inputs)
        known_of = {
            'check': names, 'new': names, 'named': names, 'fields': names, 'args': set(self.op_args), 'inputs': tensors,
        }
        for key, known in known_of.items():
            for name_ in data.get(key, ()):
                if name_ not in known:
                    self.fail(f'{key}.{name_}', 'no such argument')
        if len(self.inputs) == 1:
            self.fail('inputs', 'names the tensors of a layer that takes several')
        if not self.samples and not self.by_hand:
            self.fail('sample', 'is missing')

    def read_inputs(self, texts):
        """Reads the texts of the tensors, which of them bindings make of lists of integers, and how many are needed."""
        kinds = {name: text.partition(': ')[0] for name, text in texts.items()}
        absent = ('Tensor?', 'int[]?')
        self.lists = [name for name, kind in kinds.items() if kind in ('int[]', 'int[]?')]
        self.n_needed = sum(kind not in absent for kind in kinds.values())
        if any(kind in absent for kind in list(kinds.values())[:self.n_needed]):
            self.fail('inputs', 'tensors that may be left out are the last ones')
        self.inputs = {name: re.sub(r'^(int\[\]\??|Tensor\?): ', '', text) for name, text in texts.items()}

    def read_repr(self):
        """The form of each argument in the text: * value only, ? only if not the default, ' in quotes."""
        text = self.data.get('repr')
        self.texts = {}
        words = text.split() if text is not None else [p.name for p in self.props if p.is_field]
        for word in words if self.base != 'Loss' else ():
            name = word.strip("*?'")
            if all(prop.name != name for prop in self.props):
                self.fail('repr', f'no such argument: {name}')
            form = word.replace(name, '')
            self.texts[name] = {'*': 'BARE', '?': 'CHANGED', "'": 'QUOTED', '': 'NAMED'}[form]

    def in_order_of_text(self, fields):
        """Returns the fields in an order in which those that the text shows are as the key repr has them."""
        order = list(self.texts)
        shown = [field for field in fields if field.text != 'HIDDEN']
        names = {field.name: field.name.removesuffix('_rule').removeprefix('has_') for field in shown}
        later = iter(sorted(shown, key=lambda f: order.index(f.name if f.name in order else names[f.name])))
        return [next(later) if field.text != 'HIDDEN' else field for field in fields]

    @property
    def moves(self):
        """True if the constructor has the arguments device and dtype."""
        return bool(self.tensors or self.make or (self.by_hand and self.base != 'Loss'))

    @property
    def required(self):
        """The arguments of the constructor in C."""
        return [p for p in self.props
                if (p.is_required and p.kind not in ('refused', 'processes')) or p.name in self.new]

    @property
    def can_fail(self):
        checked = any(prop.kind == 'size' or prop.name in self.check for prop in self.required)
        return self.moves or checked

    @property
    def buffers(self):
        """Arguments that are tensors, which the module registers as buffers."""
        return [prop for prop in self.props if prop.kind == 'tensor']

    def prop(self, name):
        return next((prop for prop in self.props if prop.name == name), None)


class Lazy(Layer):
    """The lazy form of a row: a subclass whose first argument the first input tells."""

    def __init__(self, layer):
        self.__dict__.update(layer.__dict__)
        spec = layer.data['lazy']
        first = layer.props[0]
        if list(spec) != [first.name] or first.kind != 'int' or not first.is_required:
            layer.fail('lazy', f'names the first argument, a number without a default: {first.name}')
        if len(spec[first.name]) != 3:
            layer.fail(f'lazy.{first.name}', 'is a dimension of the input, and its least and most dimensions')
        self.ordinary, self.sized, self.place = layer, first, spec[first.name]
        self.name, self.snake, self.base = f'Lazy{layer.name}', f'lazy_{layer.snake}', layer.name
        self.props, self.refuse = [self._default(prop) for prop in layer.props[1:]], []
        self.samples = [{**row, **self._sample(row)} for row in layer.samples]
        self.doc = (
            f'Is a [class@{layer.name}] whose `{c.dashed(first.name)}` is that of its first input.\n\n'
            'Its parameters have no elements before the first forward pass, or before a state is loaded, which tells '
            'the size as well; only then can an optimizer get them: [method@Module.has_uninitialized_params] tells '
            f'whether it has come to that. From then on the layer computes, is printed and is stored as a '
            f'[class@{layer.name}], of which its class is a subclass.'
        )

    def _default(self, prop):
        """Returns the argument, perhaps with another default than that of the ordinary layer."""
        given = self.ordinary.data.get('lazy_defaults', {})
        if prop.name not in given:
            return prop
        other = copy.copy(prop)
        other.default = given[prop.name]
        return other

    @property
    def overridden(self):
        """The fields whose defaults differ."""
        names = self.ordinary.data.get('lazy_defaults', {})
        return [field for field in fields_of(self) if field.name in names]

    def _sample(self, row):
        """Returns the arguments without the first one, and the text before the layer is used."""
        first, _, rest = row['new'].partition(', ')
        text = re.sub(r'^\w+\(((?:\w+=)?)\d+', rf'{self.name}(\g<1>0', row['text'])
        if not first.isdigit():
            self.ordinary.fail('sample', 'gives the first argument of a layer with a lazy form by its position')
        for name, default in self.ordinary.data.get('lazy_defaults', {}).items():
            if f'{name}=' not in rest:
                text = re.sub(rf'\b{name}=\w+', f'{name}={default.title()}', text)
        return {'new': rest, 'text': text}


def merged(file, name, row, everything):
    """Returns the row merged into the one that it is like, and that one into its own."""
    if 'like' not in row:
        return row
    if row['like'] not in everything:
        rows.Row(file, name, row).fail('like', f'no such row: {row["like"]}')
    others = {key: other for key, other in everything.items() if key != name}
    return {**merged(file, row['like'], everything[row['like']], others), **row}


def load(files, op_files):
    """Returns the layers of the files, by name."""
    table = {name: Operation(name, row) for file in op_files for name, row in rows.read(file).items()}
    found, layers = {pathlib.Path(file).name: rows.read(file) for file in files}, {}
    everything = {name: row for table in found.values() for name, row in table.items()}
    for file, own in found.items():
        for name, row in own.items():
            if name in layers:
                raise RowError(f'{file}:{name}: {layers[name].file} has a row of this name too')
            layers[name] = Layer(file, name, merged(file, name, row, everything), table)
            if layers[name].data.get('lazy'):
                layers[f'Lazy{name}'] = Lazy(layers[name])
    # a class stands before its subclass
    return dict(sorted(layers.items(), key=lambda item: (isinstance(item[1], Lazy), item[0])))
