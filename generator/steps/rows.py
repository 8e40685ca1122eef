# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Rows of optimizers and of schedules: what they say, checked."""

import ast
import math
import pathlib
import re
import tomllib

from . import expressions
from .expressions import ExpressionError

MAX_NUMBERS = 12  # GT_STEP_NUMBERS of kernels/gtorch-kernel-params.h
MAX_STATES = 3  # GT_STEP_KINDS less the parameter and its gradient
GROUP_ARGS = ('lr', 'weight_decay')  # which each group of parameters has for itself
FORMS = ('form', 'refused', 'base')
STEP_KEYS = {'doc', 'source', 'extends', 'new', 'by_name', 'without', 'state', 'check', 'once', 'update', 'reference',
             'sample', 'args'}
SCHEDULE_KEYS = {'doc', 'source', 'lr', 'reference', 'sample', 'args'}
ARG_KEYS = {'default', 'names', 'least', 'most', 'below', 'doc', 'type'}


class RowError(Exception):
    """A mistake in a row."""


def snake(name):
    """AdamW is adam_w, StepLR step_lr, RMSprop rmsprop."""
    return re.sub('([a-z0-9])([A-Z])', r'\1_\2', name).lower()


class Number:
    """One property: a number or a truth value. label: what the row and PyTorch call it."""

    def __init__(self, name, default, data, doc, label):
        self.name, self.default, self.doc, self.label = name, default, doc, label
        self.kind = 'BOOL' if isinstance(default, bool) else 'DOUBLE'
        if data.get('type') == 'int':
            self.kind = 'INT'
        self.is_bool = self.kind == 'BOOL'
        self.is_required = default is None
        self.least = float(data.get('least', 0 if self.kind == 'DOUBLE' else -math.inf))
        self.most = float(data.get('most', math.inf))
        self.below = float(data.get('below', math.inf))

    @property
    def property_name(self):
        return self.name.replace('_', '-')

    @property
    def c_type(self):
        return {'BOOL': 'gboolean', 'INT': 'gint64', 'DOUBLE': 'gdouble'}[self.kind]

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
        for key in data:
            if key not in ARG_KEYS:
                row.fail(f'args.{name}.{key}', 'no such key')
        self.default = data.get('default')
        names = data.get('names', [name])
        defaults = self.default if isinstance(self.default, list) else [self.default]
        docs = data.get('doc', '')
        docs = docs if isinstance(docs, list) else [docs]
        if not len(names) == len(defaults) == len(docs):
            row.fail(f'args.{name}', 'names, defaults and docs must be as many')
        for text in docs:
            if not text.endswith('.'):
                row.fail(f'args.{name}.doc', 'must be a sentence')
        labels = names if len(names) > 1 else [name]
        self.numbers = [Number(*one[:2], data, *one[2:]) for one in zip(names, defaults, docs, labels)]


class Row:
    """What optimizers and schedules have in common."""

    def __init__(self, path, name, data, keys):
        self.path, self.name, self.data = path, name, data
        self.c_name = snake(name)
        for key in data:
            if key not in keys:
                self.fail(key, 'no such key')
        for key in ('doc', 'args'):
            if key not in data:
                self.fail(key, 'is missing')
        self.doc, self.source = data['doc'], data.get('source', '')
        self.args = [Arg(self, key, value) for key, value in data['args'].items()]
        self.reference = data.get('reference', '')
        self.samples = data.get('sample', [{}])

    def fail(self, key, message):
        raise RowError(f'{self.path}:{self.name}.{key}: {message}')

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
    """What is remembered of a parameter: a tensor like it, or the count of its steps."""

    def __init__(self, row, name, data):
        for key in data:
            if key not in ('when', 'begin', 'count'):
                row.fail(f'state.{name}.{key}', 'no such key')
        self.name, self.when, self.begin = name, data.get('when'), data.get('begin')
        self.count = data.get('count')
        if (self.count is not None) != (name == 'step') or self.count not in (None, 'always', 'needed'):
            row.fail(f'state.{name}', 'the count of steps, which is “always” there or if “needed”, is called step')


class Step(Row):
    """An optimizer."""

    def __init__(self, path, name, data, others):
        self.base = None
        if 'extends' in data:
            self.base = others.get(data['extends'])
            if self.base is None:
                raise RowError(f'{path}:{name}.extends: no such row above: {data["extends"]}')
            data = self.extended(data)
        super().__init__(path, name, data, STEP_KEYS)
        for key in ('new', 'update', 'reference', 'state'):
            if key not in data:
                self.fail(key, 'is missing')
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
        """The row with what it leaves out taken from the one that it extends."""
        base = self.base.data
        args = {key: {**value, **data['args'].get(key, {})} if isinstance(value, dict) else value
                for key, value in base['args'].items()}
        return {**base, **data, 'args': args}

    @property
    def root(self):
        """The row whose step this one takes."""
        return self.base.root if self.base else self

    @property
    def like(self):
        """The states that are like the parameter."""
        return [state for state in self.states if state.count is None]

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
        """The properties that this class installs: all, or those with another default than its parent's."""
        if self.base is None:
            return self.members
        former = {number.name: number.default for number in self.base.members}
        return [number for number in self.members if former[number.name] != number.default]

    def check(self):
        names = [number.name for number in self.numbers]
        if 'lr' not in names or len(names) > MAX_NUMBERS or len(self.like) > MAX_STATES:
            self.fail('args', f'lr, at most {MAX_NUMBERS} numbers and {MAX_STATES} states like the parameter are wanted')
        for name in self.new:
            if name not in names:
                self.fail('new', f'there is no argument {name}')
        for name in self.data.get('check', {}):
            if name not in names:
                self.fail('check', f'there is no argument {name}')
        known = {*names, 't', 'first'}
        self.check_names('once', expressions.names_in(self.once), known | set(expressions.assigned_in(self.once)))
        known |= {'param', 'grad', *expressions.assigned_in(self.once), *expressions.assigned_in(self.update)}
        known |= {state.name for state in self.like}
        self.check_names('update', expressions.names_in(self.update), known)
        if 'param' not in expressions.assigned_in(self.update):
            self.fail('update', 'does not change param')
        if 't' in expressions.names_in(self.once + self.update) and not any(s.count == 'always' for s in self.states):
            self.fail('state', 't is the count of steps, which is not always there')
        self.check_samples()

    def check_names(self, key, used, known):
        for name in used:
            if name not in known:
                self.fail(key, f'no such name: {name}')

    @property
    def once_names(self):
        """What the update reads that is the same for all elements: arguments and what is computed once."""
        computed = expressions.assigned_in(self.once)
        read = expressions.names_in(self.update)
        inner = set(expressions.assigned_in(self.update)) - set(computed)
        taken = [n for n in read if n not in inner and n not in ('param', 'grad')]
        return [n for n in taken if n not in {state.name for state in self.states}]

    def is_bool(self, name):
        return name == 'first' or any(number.name == name and number.is_bool for number in self.numbers)


class Schedule(Row):
    """A schedule of the learning rate."""

    def __init__(self, path, name, data):
        super().__init__(path, name, data, SCHEDULE_KEYS)
        if 'lr' not in data or not self.reference:
            self.fail('lr', 'and the reference are wanted')
        self.lr = self.compile('lr', expressions.parse_value, data['lr'])
        known = {number.label for number in self.numbers} | {'base', 't', 'pi'}
        for used in expressions.names_in(self.lr):
            if used not in known:
                self.fail('lr', f'no such name: {used}')
        self.check_samples()
        for sample in self.samples:
            for number in self.numbers:
                if number.is_required and number.label not in sample:
                    self.fail('sample', f'{number.label} has no value')


def read(path):
    with open(path, 'rb') as file:
        try:
            return tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise RowError(f'{pathlib.Path(path).name}: {error}') from error


def load_steps(path):
    rows = {}
    for name, data in read(path).items():
        rows[name] = Step(pathlib.Path(path).name, name, data, rows)
    return list(rows.values())


def load_schedules(path):
    name = pathlib.Path(path).name
    return [Schedule(name, key, data) for key, data in read(path).items()]


def unparse(node):
    return ast.unparse(node)
