# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Reads and checks the rows of operations. docs/writing-an-op.md documents their keys."""

import pathlib

from generator import c, rows
from generator.ops import autocast, checks, fusion, loops
from generator.rows import RowError
from generator.signatures import CLASSES, COMPUTE, KINDS, parse_args, parse_nullable, parse_returns

FAMILIES = {'pointwise', 'reduce', 'view', 'structured', 'composite'}
FLAGS = ('random', 'sync', 'devices', 'numbers', 'factors', 'divides', 'powers', 'probability', 'overwrites',
         'unread', 'unset', 'chooses', 'linear')
PROMOTIONS = ('common', 'float', 'bool', 'sum', 'real', 'int', 'bounds', 'none')
PARTS = ('forward', 'init', 'step', 'quick', 'rare', 'combine', 'finish')  # the expressions of loops
ERROR = [('GError **', 'error')]
MAX_INPUTS, MAX_ATTRS = 3, 4  # GT_MAX_OPERANDS less the output, GT_MAX_ATTRS


class Row(rows.Row):
    """One operation."""

    KEYS = {
        'args', 'returns', 'family', 'dtypes', 'promote', *PARTS, 'composite', 'shape', 'run', 'query', 'autocast',
        'check', 'grad', 'saves', 'writes', 'inplace', 'scalar', 'flags', 'operator', 'method', 'doc', 'formula',
        'source', 'params', 'sample', 'torch', 'since', 'keywords', 'any_int', 'empty',
    }
    NEEDED = ('args', 'family', 'doc')

    def __init__(self, file, name, data):
        super().__init__(file, name, data)
        self.family = data['family']
        if self.family not in FAMILIES:
            self.fail('family', f'must be one of {", ".join(sorted(FAMILIES))}')
        self.composite = self.family == 'composite'
        self.inplace = data.get('inplace', False)
        self.read_arguments()
        self.read_rules()
        self.autocast = autocast.parse(self)
        self.checks = checks.parse(self)
        self.keywords = self.read_keywords()
        self.scalar = data.get('scalar')
        if self.scalar and self.scalar not in [t.name for t in self.tensors]:
            self.fail('scalar', f'{self.scalar} is not a tensor argument')
        if self.has_numbers and (self.scalar or self.composite):
            self.fail('args', 'arguments of kind number are for operations of their own without scalar')
        self.samples = data.get('sample', [])
        if isinstance(self.samples, dict):
            self.samples = [self.samples]
        self.loops = self.read_loops()
        self.loop_index = -1
        self.read_gradient()

    def read_keywords(self):
        """Returns the names that arguments have in Python, where PyTorch's are not those of C."""
        names = [a.name for a in self.args]
        for name, keyword in self.data.get('keywords', {}).items():
            if name not in names or keyword in names or not keyword.isidentifier():
                self.fail('keywords', f'“{name}” must be an argument, and “{keyword}” be another name')
        return self.data.get('keywords', {})

    def read_arguments(self):
        try:
            self.args = parse_args(self.data['args'])
            self.outputs = parse_returns(self.data.get('returns', 'Tensor'))
            self.nullable = parse_nullable(self.data.get('returns', 'Tensor'))
        except RowError as error:
            self.fail('args', str(error))
        self.returns_list = self.outputs == ['[]']
        self.tensors = [a for a in self.args if a.kind in ('Tensor', 'Tensor?')]
        self.list = next((a for a in self.args if a.kind == 'Tensor[]'), None)
        self.attrs = [a for a in self.args if not a.is_tensor]
        self.has_numbers = any(a.kind == 'number' for a in self.args)
        for name in self.data.get('any_int', []):
            arg = next((a for a in self.args if a.name == name and a.kind == 'int' and not a.is_optional), None)
            if arg is None:
                self.fail('any_int', f'{name} is not an argument of kind int')
            arg.is_any_int = True
        for name in self.data.get('empty', []):
            arg = next((a for a in self.args if a.name == name and a.has_items), None)
            if arg is None:
                self.fail('empty', f'{name} is not a list with a default that has items')
            arg.has_items = False
        self.is_method = self.data.get('method', True) and self.args and self.args[0].kind == 'Tensor'

    def read_rules(self):
        self.flags = list(self.data.get('flags', []))
        if self.family == 'pointwise' and any(a.kind in ('double', 'number') for a in self.attrs):
            self.flags.append('factors')
        self.internal = 'internal' in self.flags
        for flag in self.flags:
            if flag not in FLAGS and flag != 'internal':
                self.fail('flags', f'no such flag: {flag}')
        if 'unread' in self.flags and not any(a.is_tensor for a in self.args):
            self.fail('flags', 'there is no tensor to leave unread')
        self.promote = self.data.get('promote', 'common' if self.family in ('pointwise', 'reduce') else 'none')
        if self.promote not in PROMOTIONS:
            self.fail('promote', f'no such rule: {self.promote}')
        if self.promote == 'bounds' and any(a.kind != 'number' for a in self.attrs):
            self.fail('promote', 'bounds are arguments of kind number')
        self.dtypes = self.data.get('dtypes', 'all')
        if self.dtypes not in CLASSES:
            self.fail('dtypes', f'must be one of {", ".join(CLASSES)}')

    def read_gradient(self):
        grad = self.data.get('grad')
        if isinstance(grad, str) and grad not in ('function', 'none'):
            self.fail('grad', f'no such form: {grad}')
        self.grad_function = grad == 'function'
        has_tensors = any(a.is_tensor for a in self.args)
        self.grad_none = grad == 'none' or self.promote == 'bool' or not has_tensors
        self.grad = grad if isinstance(grad, dict) else {}
        if self.grad and self.composite:
            self.fail('grad', 'a composite is differentiated through its parts')
        for key in self.grad:
            if key not in [t.name for t in self.tensors]:
                self.fail(f'grad.{key}', 'is not a tensor argument')
        saves = self.data.get('saves', [])
        self.saved_by = {k: set(v) for k, v in saves.items()} if isinstance(saves, dict) else {}
        self.saved = set().union(*self.saved_by.values()) or set(saves)
        self.fused = {}  # see fusion.py

    def read_loops(self):
        """The loops of a pointwise or reduce row: compute dtype -> expression(s)."""
        if self.family not in ('pointwise', 'reduce') or 'run' in self.data:
            return {}
        main = 'forward' if self.family == 'pointwise' else 'step'
        if main not in self.data:
            self.fail(main, 'is missing')
        found = {}
        for dtype in COMPUTE:
            if dtype not in CLASSES[self.dtypes]:
                continue
            texts = {}
            for key in PARTS:
                value = self.data.get(key)
                if isinstance(value, dict):
                    value = value.get(dtype, value.get(KINDS[dtype], value.get('default')))
                texts[key] = value
                for name in loops.unknown_calls(value or ''):
                    self.fail(key, f'no such function of all types: {name}')
            if texts[main] is None:
                self.fail(main, f'has no form for {dtype}')
            if self.family == 'pointwise' and bool(texts['quick']) != bool(texts['rare']):
                self.fail('quick', 'must have a form of rare for each of its own')
            found[dtype] = texts
        return found

    def plain_dtypes(self):
        """The dtypes that the result has as well if all operands have one of them and the same shape."""
        if not self.loops or self.family != 'pointwise' or 'shape' in self.data or self.list is not None:
            return []
        if {'random', 'sync', 'devices'} & set(self.flags) or 'writes' in self.data or len(self.outputs) > 1:
            return []
        if self.promote not in ('common', 'float', 'bounds') or any(t.kind == 'Tensor?' for t in self.tensors):
            return []
        if len(self.tensors) > MAX_INPUTS or len(self.attrs) > MAX_ATTRS:
            return []
        takes_any = self.promote == 'common' and 'factors' not in self.flags
        return [d for d in CLASSES[self.dtypes] if takes_any or d in CLASSES['floatc']]

    # -- in C --------------------------------------------------------------------------------------
    @property
    def constant(self):
        return c.constant('OP', self.name)

    @property
    def op_class(self):
        return f'&gtorch_ops[{self.constant}]'

    @property
    def grad_name(self):
        """Without a gradient and an explanation, the backward pass gives an error."""
        if self.grad or self.grad_function:
            return f'gtorch_grad_{self.name}'
        return 'NULL' if self.composite or self.grad_none else 'gtorch_grad_undefined'

    def function(self, prefix, key):
        """The function that has the prefix, and the name that the row or the family gives it for the key."""
        shared = self.family if self.family in ('pointwise', 'reduce') else self.name
        return f'gtorch_{prefix}_{self.data.get(key, shared)}'

    def shape_function(self):
        """The function that makes the outputs."""
        return self.function('shape', 'shape')

    def has_runs(self):
        """Whether devices compute something: they do not for views, nor for composites, whose parts they run."""
        return not self.composite and self.family != 'view'

    def run(self, device):
        """The function that computes the values on a type of device."""
        return self.function(device, 'run')

    def query(self, device):
        """The function that answers what the host asks of such a device; None if it asks nothing."""
        return self.function(f'{device}_query', 'query') if 'query' in self.data else None

    def c_args(self, public=False, scalar=None, number='gdouble'):
        """Returns the parameters of a C function; number: the C type of numbers."""
        found = []
        for a in self.args:
            found += [(f'{number} ', a.name)] if a.name == scalar else a.c_declaration(public, number == 'gint64')
        return found

    def op_returns(self):
        if self.returns_list:
            return 'GPtrArray *'
        return 'GTorchImpl *' if len(self.outputs) == 1 else 'gboolean'

    def op_forms(self):
        """Returns the suffixes of the internal functions, and the C type of numbers in them."""
        whole = [('_int', 'gint64')] if self.has_numbers and not self.internal else []
        return [('', 'gdouble'), *whole]

    def op_params(self, number='gdouble'):
        outputs = [('GTorchImpl **', o) for o in self.outputs] if len(self.outputs) > 1 else []
        return self.c_args(number=number) + outputs + ERROR

    def in_place_params(self, number):
        return self.c_args(number=number) + ERROR

    def body_name(self):
        """Returns the C function that is written for a composite."""
        return ('gtorch_composite_' if self.is_wrapped() else 'gtorch_op_') + self.name

    def is_wrapped(self):
        return self.composite and (autocast.is_wrapped(self) or bool(self.checks))


def load(files):
    found = []
    for file in files:
        found += [Row(pathlib.Path(file).name, name, row) for name, row in rows.read(file).items()]
    found += fusion.fuse(found, Row)
    found.sort(key=lambda row: row.name)
    for one, other in zip(found, found[1:]):
        if one.name == other.name:
            one.fail('args', f'{other.file} has a row of this name too')
    index = {'pointwise': 0, 'reduce': 0}
    for row in found:
        if row.loops:
            row.loop_index = index[row.family]
            index[row.family] += 1
    return found
