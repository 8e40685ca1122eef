# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Reads and checks the rows of optimizers and of schedules."""

import math
import pathlib
import re

from generator import c, rows
from generator.rows import RowError, read
from generator.steps import expressions, schema
from generator.steps.expressions import ExpressionError

MAX_NUMBERS = 12  # GT_STEP_NUMBERS of kernels/gtorch-kernel-params.h
MAX_ONCE = 16  # GTORCH_STEP_MAX_ONCE
MAX_SETTINGS = 8  # GTORCH_SCHEDULE_MAX_NUMBERS
MAX_STATES = 3  # GT_STEP_KINDS less the parameter and its gradient
GROUP_ARGS = {'lr': 'GTORCH_SETTING_LR', 'weight_decay': 'GTORCH_SETTING_DECAY'}  # members of every group
FORMS = ('form', 'refused', 'base')


def snake(name):
    """Converts AdamW to adam_w, StepLR to step_lr, RMSprop to rmsprop."""
    return re.sub('([a-z0-9])([A-Z])', r'\1_\2', name).lower()


class Number:
    """One property: a number or a boolean. label: its name in the row and in PyTorch."""

    def __init__(self, name, default, data, doc, label):
        self.name, self.default, self.doc, self.label = name, default, doc, label
        self.kind = 'BOOL' if isinstance(default, bool) else 'DOUBLE'
        if data.get('type') is not None:
            self.kind = {'int': 'INT64', 'ints': 'SIZE'}[data['type']]
        self.is_bool, self.is_list = self.kind == 'BOOL', self.kind == 'SIZE'
        self.is_required = default is None
        self.is_open = 'above' in data  # the lower bound itself is refused
        self.least = float(data.get('above', data.get('least', 0 if self.kind == 'DOUBLE' else -math.inf)))
        self.most = float(data.get('most', math.inf))
        self.below = float(data.get('below', math.inf))

    @property
    def property_name(self):
        return c.dashed(self.name)

    @property
    def c_type(self):
        return {'BOOL': 'gboolean', 'INT64': 'gint64', 'DOUBLE': 'gdouble', 'SIZE': 'GTorchSize *'}[self.kind]

    @property
    def declaration(self):
        return f'{self.c_type}{"" if self.is_list else " "}{self.name}'

    @property
    def c_default(self):
        return '0' if self.default is None else str(int(self.default)) if self.is_bool else repr(self.default)


class Arg:
    """One argument of PyTorch's constructor, which may be two numbers."""

    def __init__(self, row, name, data):
        self.name, self.form, self.numbers = name, None, []
        if isinstance(data, str):
            if data not in FORMS:
                row.fail(f'args.{name}', f'must be a table or one of {", ".join(FORMS)}')
            self.form, self.default = data, None if data != 'base' else False
            return
        schema.check(data, schema.ARG, row.fail, f'args.{name}.')
        self.default = data.get('default')
        names = data.get('names', [name])
        defaults = self.default if isinstance(self.default, list) else [self.default]
        docs = data.get('doc', '')
        docs = docs if isinstance(docs, list) else [docs]
        if not len(names) == len(defaults) == len(docs):
            row.fail(f'args.{name}', 'names, defaults and docs must be as many')
        if data.get('type') == 'int' and any(one is not None and type(one) is not int for one in defaults):
            row.fail(f'args.{name}.default', 'must be a whole number')
        if data.get('type') == 'ints' and 'default' in data:
            row.fail(f'args.{name}.default', 'a list has no default')
        for text in docs:
            if not text.endswith('.'):
                row.fail(f'args.{name}.doc', 'must be a sentence')
        labels = names if len(names) > 1 else [name]
        bounds = [self.bounds(row, data, i, len(names)) for i in range(len(names))]
        self.numbers = [Number(*one) for one in zip(names, defaults, bounds, docs, labels)]

    def bounds(self, row, data, i, n):
        """Returns what is said of number i of n: each bound may be a list, with one for each number."""
        found = {'type': data.get('type')}
        for key in ('least', 'above', 'most', 'below'):
            value = data.get(key)
            if isinstance(value, list) and len(value) != n:
                row.fail(f'args.{self.name}.{key}', f'must be one number or {n}')
            if value is not None:
                found[key] = value[i] if isinstance(value, list) else value
        if 'least' in found and 'above' in found:
            row.fail(f'args.{self.name}', 'has two lower bounds, least and above')
        return found


class Row(rows.Row):
    """The common base of optimizers and schedules."""

    NEEDED = ('doc', 'args')

    def __init__(self, file, name, data, keys):
        self.file, self.name = file, name
        schema.check(data, keys, self.fail)
        super().__init__(file, name, data)
        self.c_name = snake(name)
        self.doc, self.source = data['doc'], data.get('source', '')
        self.args = [Arg(self, key, value) for key, value in data['args'].items()]
        self.reference = data.get('reference', data.get('next'))
        if self.reference is None:
            self.fail('reference', 'is missing')
        self.compile('reference', expressions.parse, self.reference.strip('\n').replace('\\\n', ''))
        self.samples = data.get('sample', [{}])

    def compile(self, key, function, *args):
        try:
            return function(*args)
        except ExpressionError as error:
            return self.fail(key, str(error))

    @property
    def type_name(self):
        return f'GTorch{self.name}'

    @property
    def macro(self):
        return self.c_name.upper()

    @property
    def numbers(self):
        return [number for arg in self.args for number in arg.numbers]

    def check_samples(self):
        known = {number.label for number in self.numbers}
        for sample in self.samples:
            for key in sample:
                if key not in known:
                    self.fail('sample', f'there is no argument {key}')


class State:
    """A state of a parameter: a tensor like it, the count of its steps, or another number."""

    def __init__(self, row, name, data):
        schema.check(data, schema.STATE, row.fail, f'state.{name}.')
        self.name, self.when, self.begin = name, data.get('when'), data.get('begin')
        self.count, self.number = data.get('count'), data.get('number')
        self.is_number = self.count is not None or self.number is not None
        if self.number is not None and (self.count is not None or self.when is not None):
            row.fail(f'state.{name}', 'a number is always there, and is no count')
        if (self.count is not None) != (name == 'step') or self.count not in (None, 'always', 'needed'):
            row.fail(f'state.{name}', 'the count of steps, which is “always” there or if “needed”, is called step')


class Step(Row):
    """An optimizer."""

    NEEDED = (*Row.NEEDED, 'reference', 'new', 'update', 'state')

    def __init__(self, file, name, data, others):
        self.file, self.name, self.base = file, name, None
        schema.check(data, schema.STEP, self.fail)
        if 'extends' in data:
            self.base = others.get(data['extends'])
            if self.base is None:
                self.fail('extends', f'no such row above: {data["extends"]}')
            data = self.extended(data)
        super().__init__(file, name, data, schema.STEP)
        self.new, self.without = data['new'], data.get('without', [])
        self.states = [State(self, key, value) for key, value in data['state'].items()]
        self.once = self.compile('once', expressions.parse, data.get('once', ''))
        self.update = self.compile('update', expressions.parse, data['update'])
        self.checks = {key: self.compile('check', expressions.parse_value, rule)
                       for key, rule in data.get('check', {}).items()}
        by_name = data.get('by_name')
        names = [arg.name for arg in self.args]
        if by_name is not None and by_name not in names:
            self.fail('by_name', f'there is no argument {by_name}')
        self.n_positional = names.index(by_name) if by_name else len(names)
        self.check()

    def extended(self, data):
        """Returns the row, with missing values from the one that it extends."""
        base = self.base.data
        own = data.get('args', {})
        for key, value in own.items():
            if not isinstance(value, dict) or not isinstance(base['args'].get(key), dict):
                self.fail(f'args.{key}', 'is no property of the row that this one extends')
        args = {key: {**value, **own.get(key, {})} if isinstance(value, dict) else value
                for key, value in base['args'].items()}
        return {**base, **data, 'args': args}

    @property
    def root(self):
        """The row whose step this one uses."""
        return self.base.root if self.base else self

    @property
    def like(self):
        """The states that are like the parameter."""
        return [state for state in self.states if not state.is_number]

    @property
    def kept(self):
        """The numbers of a parameter besides the count of its steps."""
        return [state for state in self.states if state.number is not None]

    @property
    def conditional(self):
        return [state for state in self.like if state.when is not None]

    @property
    def has_count(self):
        return any(state.count for state in self.states)

    @property
    def members(self):
        """The properties that are fields of the instance."""
        return [number for number in self.numbers if number.name not in GROUP_ARGS]

    @property
    def own(self):
        """The properties that this class installs: all, or those whose default differs from its parent's."""
        if self.base is None:
            return self.members
        former = {number.name: number.default for number in self.base.members}
        return [number for number in self.members if former[number.name] != number.default]

    def check(self):
        names = [number.name for number in self.numbers]
        if len(set(names)) < len(names) or any(number.default is None for number in self.numbers):
            self.fail('args', 'each property wants a name of its own, and a default')
        if names[:1] != ['lr'] or len(names) > MAX_NUMBERS or len(self.like + self.kept) > MAX_STATES:
            self.fail('args', f'lr first, at most {MAX_NUMBERS} numbers and {MAX_STATES} states beside the count '
                      'are wanted')
        for name in self.new:
            if name not in names:
                self.fail('new', f'there is no argument {name}')
        for name in self.checks:
            if name not in names:
                self.fail('check', f'there is no argument {name}')
            if not self.is_bool(name):
                self.fail('check', f'{name} is not true or false')
        self.try_to_compile()
        if self.kept and not any(state.count == 'always' for state in self.states):
            self.fail('state', 'numbers need the count of steps')
        known = {*names, 't', 'first', *(state.name for state in self.kept)}
        self.check_names('once', expressions.names_in(self.once), known | set(expressions.assigned_in(self.once)))
        known -= {state.name for state in self.kept}
        known |= {'param', 'grad', *expressions.assigned_in(self.once), *expressions.assigned_in(self.update)}
        known |= {state.name for state in self.like}
        self.check_names('update', expressions.names_in(self.update), known)
        if 'param' not in expressions.assigned_in(self.update):
            self.fail('update', 'does not change param')
        if 't' in expressions.names_in(self.once + self.update) and not any(s.count == 'always' for s in self.states):
            self.fail('state', 't is the count of steps, which is not always there')
        if len(self.once_names) > MAX_ONCE:
            self.fail('once', f'at most {MAX_ONCE} numbers may be the same for all elements')
        if len(self.conditional) > 2:
            self.fail('state', 'at most two may be there under a condition')
        if 'weight_decay' in names and self.is_bool('weight_decay') or self.is_bool('lr'):
            self.fail('args', 'lr and weight_decay are numbers')
        self.check_samples()

    def try_to_compile(self):
        """Compiles the expressions as the other modules do, so that mistakes are reported with
        their location."""
        compiler = expressions.Compiler({number.name: number.name for number in self.numbers})
        for name, node in self.checks.items():
            self.compile('check', compiler.compile, node)
        for state in self.states:
            for value in (state.when, state.begin):
                if value is not None:
                    node = self.compile(f'state.{state.name}', expressions.parse_value, value)
                    self.compile(f'state.{state.name}', compiler.compile, node)
        known = [*compiler.names, 't', 'first', *(state.name for state in self.kept)]
        for state in self.kept:
            node = self.compile(f'state.{state.name}', expressions.parse_value, state.number)
            self.compile(f'state.{state.name}', expressions.Compiler({name: name for name in known}).compile, node)
        once = expressions.Compiler({name: name for name in known})
        self.compile('once', expressions.compile_statements, self.once, once, '', None, '')
        known += ['param', 'grad', *expressions.assigned_in(self.once), *(state.name for state in self.like)]
        update = expressions.Compiler({name: name for name in known})
        tests = {state.name: state.name for state in self.conditional}
        self.compile('update', expressions.compile_statements, self.update, update, '', tests.__getitem__, '')

    def check_names(self, key, used, known):
        for name in used:
            if name not in known:
                self.fail(key, f'no such name: {name}')

    @property
    def once_names(self):
        """The names with the same value for all elements that the update reads: arguments and
        results of `once`."""
        computed = expressions.assigned_in(self.once)
        read = expressions.names_in(self.update)
        inner = set(expressions.assigned_in(self.update)) - set(computed)
        taken = [n for n in read if n not in inner and n not in ('param', 'grad')]
        return [n for n in taken if n not in {state.name for state in self.states}]

    def is_bool(self, name):
        return name == 'first' or any(number.name == name and number.is_bool for number in self.numbers)


class Schedule(Row):
    """A schedule of the learning rate."""

    NEEDED = (*Row.NEEDED, 'lr')

    def __init__(self, file, name, data):
        super().__init__(file, name, data, schema.SCHEDULE)
        names = [number.name for number in self.numbers]
        if len(set(names)) < len(names) or len(names) > MAX_SETTINGS or any(number.is_bool for number in self.numbers):
            self.fail('args', f'at most {MAX_SETTINGS} numbers with names of their own are wanted')
        known = {number.label for number in self.numbers} | {'base', 't', 'pi'}
        self.lr = self.formula('lr', known)
        self.next = self.formula('next', known | {'lr'}) if 'next' in data else None
        self.check_samples()
        for sample in self.samples:
            for number in self.numbers:
                if number.is_required and number.label not in sample:
                    self.fail('sample', f'{number.label} has no value')

    def formula(self, key, known):
        node = self.compile(key, expressions.parse_value, self.data[key].strip('\n').replace('\\\n', ''))
        for used in expressions.names_in(node):
            if used not in known:
                self.fail(key, f'no such name: {used}')
        self.compile(key, expressions.Compiler({one: one for one in known}).compile, node)
        return node


def load_steps(*paths):
    found = {}
    for path in paths:
        for name, data in read(path).items():
            found[name] = Step(pathlib.Path(path).name, name, data, found)
    return list(found.values())


def load_schedules(path):
    name = pathlib.Path(path).name
    return [Schedule(name, key, data) for key, data in read(path).items()]
