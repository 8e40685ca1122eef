# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The public operations as the bindings need them."""

import json
import keyword
import pathlib

INT_MAX = 2**63 - 1

# maps the operator to the name of Python's method, and of its slot in C
BINARY = {
    '+': ('add', 'add'),
    '-': ('sub', 'subtract'),
    '*': ('mul', 'multiply'),
    '/': ('truediv', 'true_divide'),
    '//': ('floordiv', 'floor_divide'),
    '%': ('mod', 'remainder'),
    '**': ('pow', 'power'),
    '@': ('matmul', 'matrix_multiply'),
    '&': ('and', 'and'),
    '|': ('or', 'or'),
    '^': ('xor', 'xor'),
    '<<': ('lshift', 'lshift'),
    '>>': ('rshift', 'rshift'),
}
UNARY = {'neg': ('neg', 'negative'), '~': ('invert', 'invert'), 'abs': ('abs', 'absolute')}
# PyTorch's modules of operations. Those of a module are named by it, as fft_rfft is; torch.special also has
# operations of other modules, some under other names.
SPACES = {
    'fft': {},
    'linalg': {},
    'masked': {},
    'signal.windows': {},
    'special': {
        **{
            name: name
            for name in (
                'digamma', 'erf', 'erfc', 'erfinv', 'exp2', 'expm1', 'i0', 'log1p', 'log_softmax', 'logit', 'logsumexp',
                'polygamma', 'round', 'sinc', 'softmax', 'xlogy',
            )
        },
        'expit': 'sigmoid',
        'gammainc': 'igamma',
        'gammaincc': 'igammac',
        'gammaln': 'lgamma',
        'multigammaln': 'mvlgamma',
        'psi': 'digamma',
    },
}
# Operations that are named as those of a module, and are methods alone.
METHODS_ONLY = {'masked_fill', 'masked_scatter', 'masked_select'}
# Further names of arguments, which PyTorch takes by a rule for all operations that have such an argument.
OTHERS = {
    'dim': ('axis',),
    'high': ('to',),
    'input': ('self', 'x', 'a', 'x1'),
    'keepdim': ('keepdims',),
    'low': ('from',),
    'other': ('x2',),
    'self': ('input', 'x', 'a', 'x1'),
    'training': ('train',),
}
# The operations beside those with an operator that take a number as the first argument, and a tensor after it.
POLYNOMIALS = (
    *(f'{shifted}chebyshev_polynomial_{kind}' for shifted in ('', 'shifted_') for kind in 'tuvw'),
    'hermite_polynomial_h',
    'hermite_polynomial_he',
    'laguerre_polynomial_l',
    'legendre_polynomial_p',
)
NUMBER_FIRST = (
    'bucketize',
    'float_power',
    'fmod',
    'special_xlog1py',
    'special_zeta',
    'xlogy',
    *(f'special_{name}' for name in POLYNOMIALS),
)
COMPARE = {'==': 'eq', '!=': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge'}


class Arg:
    """One argument of a row, as the bindings need it: `name` is the one that it has in Python."""

    def __init__(self, data):
        self.c_name = data['name']
        self.name = data['keyword'] + ('_' if keyword.iskeyword(data['keyword']) else '')
        self.kind = data['kind']
        self.enum = data['enum']
        self.default = data['default']
        self.is_optional = data['optional']
        self.has_items = data['items']  # C takes an empty list for the default, which the bindings refuse

    @property
    def required(self):
        return self.default is None

    @property
    def is_bound(self):
        """Is it a bound, for which C takes an integer of the value of NONE for none?"""
        return self.kind == 'number' and self.default in ('inf', '-inf')

    @property
    def none(self):
        """Returns the name of the constant that is the default, or None."""
        is_none = self.is_optional and self.default == 'none'
        return {'int': 'NONE', 'double': 'NONE_DOUBLE'}.get(self.kind) if is_none else None

    @property
    def list(self):
        """Returns the default of a list of integers."""
        return [] if self.default in (None, 'none') else json.loads(self.default)

    @property
    def number(self):
        """Returns the default of an int or a double as a number."""
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
        self.c_scalar = data['scalar']
        self.scalar = next((a.name for a in self.args if a.c_name == self.c_scalar), None)
        self.forms = data['forms']
        self.operator = data['operator']
        self.doc = data['doc']
        for arg in self.args if not self.method else ():
            if arg.name == 'self':  # of a method, which this is not
                arg.name = 'input'

    @property
    def creates(self):
        """Is the result a new tensor, of which a program may say more than its dtype and device?"""
        if self.method:
            return self.name.endswith('_like') or self.name.startswith('new_')
        return any(a.kind == 'Device?' for a in self.args)

    @property
    def numbers(self):
        """The arguments that have a form for integers, which a double may not represent exactly."""
        return [a for a in self.args if a.kind == 'number']

    @property
    def number_first(self):
        return self.method and (bool(self.scalar and self.operator) or self.name in NUMBER_FIRST)

    @property
    def others(self):
        """Maps further names of arguments to those of the row."""
        names = {a.name for a in self.args}
        return {other: a.name for a in self.args for other in OTHERS.get(a.name, ()) if other not in names}

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
    rows = [Row(row) for row in json.loads(pathlib.Path(path).read_text('utf-8')) if not row['internal']]
    return sorted(rows, key=lambda row: row.name)


def spaces(rows):
    """Returns for each module the operations by the names that they have there."""
    known = {row.name for row in rows}
    found = {}
    for space, others in SPACES.items():
        prefix = f"{space.replace('.', '_')}_"
        own = {name.removeprefix(prefix): name for name in known - METHODS_ONLY if name.startswith(prefix)}
        found[space] = dict(sorted({**{k: v for k, v in others.items() if v in known}, **own}.items()))
    return found
