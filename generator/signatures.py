# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The dtypes and the arguments of operations, and their forms in C."""

import re

from generator import c
from generator.rows import RowError

RANGE = re.compile(r'([\[(])(-?inf|-?\d+(?:\.\d+)?), (-?inf|-?\d+(?:\.\d+)?)([\])])')

# What says that an argument, or a property, of the kind is not given.
NONE = {'int': 'GTORCH_NONE', 'double': 'GTORCH_NONE_DOUBLE'}

FLOAT = ['float32', 'float64', 'float16', 'bfloat16']
INT = ['int8', 'uint8', 'int16', 'int32', 'int64']
COMPLEX = ['complex64', 'complex128']
CLASSES = {
    'float': FLOAT,
    'int': INT,
    'real': FLOAT + INT,
    'number': FLOAT + INT + COMPLEX,
    'floatl': FLOAT + ['int64'],
    'floatc': FLOAT + COMPLEX,
    'complex': COMPLEX,
    'wide': ['float32', 'float64'],
    'widec': ['float32', 'float64', *COMPLEX],
    'realb': FLOAT + INT + ['bool'],
    'intb': INT + ['bool'],
    'bool': ['bool'],
    'all': FLOAT + INT + COMPLEX + ['bool'],
}
# The dtypes for which loops are compiled; computations in others use one of these.
COMPUTE = ['float32', 'float64', 'int32', 'int64', 'bool', 'complex64', 'complex128']
KINDS = {
    'float32': 'float',
    'float64': 'float',
    'int32': 'int',
    'int64': 'int',
    'bool': 'bool',
    'complex64': 'complex',
    'complex128': 'complex',
}
# suffix, C type, C type of the real part
LOOP_TYPES = {
    'float32': ('f32', 'float', 'float'),
    'float64': ('f64', 'double', 'double'),
    'int32': ('i32', 'gint32', 'gint32'),
    'int64': ('i64', 'gint64', 'gint64'),
    'bool': ('bool', 'guint8', 'guint8'),
    'complex64': ('c64', 'GTorchComplex64', 'float'),
    'complex128': ('c128', 'GTorchComplex128', 'double'),
}


class Arg:
    """One argument of a row."""

    # kind: (constant, C type, internal C type, attribute member)
    TABLE = {
        'Tensor': ('TENSOR', 'GTorchTensor *', 'GTorchImpl *', None),
        'Tensor?': ('OPTIONAL_TENSOR', 'GTorchTensor *', 'GTorchImpl *', None),
        'Tensor[]': ('TENSORS', 'GTorchTensor **', 'GTorchImpl *const *', None),
        'int': ('INT', 'gint64 ', 'gint64 ', 'i'),
        'double': ('DOUBLE', 'gdouble ', 'gdouble ', 'd'),
        'number': ('NUMBER', 'gdouble ', 'gdouble ', 'd'),
        'bool': ('BOOL', 'gboolean ', 'gboolean ', 'i'),
        'int[]': ('INTS', 'const gint64 *', 'const gint64 *', 'list'),
        'DType': ('DTYPE', 'GTorchDType ', 'GTorchDType ', 'i'),
        'Device?': ('DEVICE', 'GTorchDevice *', 'GTorchDevice *', 'p'),
        'Generator?': ('GENERATOR', 'GTorchGenerator *', 'GTorchGenerator *', 'p'),
        'enum': ('ENUM', None, None, 'i'),
    }

    def __init__(self, text):
        match = re.fullmatch(r'(\S+)\s+(\w+)\s*(?:=\s*(.+))?', text.strip())
        if match is None:
            raise RowError(f'cannot read the argument “{text}”')
        self.kind, self.name, self.default = match.groups()
        self.enum = None
        # “int[]? dim = none” is an empty list in C, which bindings refuse as a value; “int? m = none” is
        # GTORCH_NONE and “double? scale = none” GTORCH_NONE_DOUBLE; None in a binding stands for the default
        self.is_optional = self.kind in ('int?', 'double?', 'int[]?')
        if self.is_optional and self.default is None:
            raise RowError(f'{self.name} may be left out and has no default')
        self.kind = self.kind.rstrip('?') if self.is_optional else self.kind
        if self.kind == 'int[]' and self.is_optional and self.default != 'none':
            raise RowError(f'{self.name} may be left out and must have the default none')
        if self.kind.startswith('enum:'):
            self.kind, self.enum = 'enum', self.kind[5:]
        if self.kind not in self.TABLE:
            raise RowError(f'no such kind of argument: {self.kind}')
        constant, public, internal, self.member = self.TABLE[self.kind]
        if self.enum:
            public = internal = f'GTorch{self.enum} '
        self.public, self.internal = public, internal
        self.c_kind = f'GTORCH_ARG_{constant}'
        self.is_tensor = self.kind.startswith('Tensor')
        self.c_type = internal.rstrip() if internal else None
        self.is_any_int = False  # set by the row's key any_int
        # a list that is not empty by default: C takes an empty one for the default
        self.has_items = self.kind == 'int[]' and self.default not in (None, 'none', '[]')
        # a bound that may be left out: infinite, or none in C, or an end of the range of int64
        self.is_bound = self.kind == 'number' and self.default in ('inf', '-inf')
        self.c_length = None
        if self.kind.endswith('[]'):
            self.c_length = 'n_dims' if self.name in ('shape', 'size') else f'n_{self.name}'

    def c_declaration(self, public, whole=False):
        ctype = self.public if public else self.internal
        out = [('gint64 ' if whole and self.kind == 'number' else ctype, self.name)]
        if self.c_length:
            out.append(('gsize ', self.c_length))
        return out

    def c_attr(self, whole=False):
        if self.kind == 'number':
            if self.is_bound and not whole:
                return f'gtorch_attr_real_bound ({self.name}, {self.c_default()[0]})'
            form = 'number' if not whole else ('bound' if self.is_bound else 'int')
            return f'gtorch_attr_{form} ({self.name})'
        if self.member == 'list':
            return f'{{ .list = {{ {self.name}, {self.c_length} }} }}'
        return f'{{ .{self.member} = {self.name} }}'

    def c_attr_get(self, attr):
        return f'{attr}.{self.member}'

    def c_default(self):
        """Returns the default as C expressions for c_declaration(), or None."""
        if self.default is None:
            return None
        text = self.default
        if self.kind == 'int[]':
            values = text.strip('[]').strip()
            if not values or values == 'none':
                return ['NULL', '0']
            return [f'(const gint64[]) {{ {values} }}', str(len(values.split(',')))]
        if self.kind == 'bool':
            return ['TRUE' if text.lower() == 'true' else 'FALSE']
        if self.kind == 'DType':
            return [c.constant('DTYPE', text)]
        if self.kind == 'enum':
            return [c.constant(self.enum, text)]
        if self.is_optional and text == 'none':
            return [NONE[self.kind]]
        if text in ('None', 'none'):
            return ['NULL']
        if text in ('inf', '-inf'):
            return [text.replace('inf', 'G_MAXDOUBLE * 2')]
        if self.kind == 'int' and text == 'max':
            return ['G_MAXINT64']
        return [text]

    def on_none(self):
        """Returns what C does with the constant for no number: REFUSED, DEFAULT, or NUMBER, of which it is one."""
        if self.is_optional or self.is_bound:
            return 'DEFAULT'
        return 'NUMBER' if self.is_any_int or self.kind not in (*NONE, 'number') else 'REFUSED'

    def doc(self):
        """Returns annotation and text for the documentation."""
        if self.kind == 'Tensor':
            return '', 'a tensor'
        if self.kind == 'Tensor?':
            return '(nullable)', 'a tensor, or %NULL'
        if self.kind == 'Tensor[]':
            return f'(array length={self.c_length})', 'tensors'
        if self.kind == 'int[]':
            text = 'sizes of the dimensions' if self.name in ('shape', 'size') else 'integers'
            if self.name in ('dim', 'dims'):
                text = 'dimensions; negative ones count from the end'
                text += '' if self.has_items else ', none means all'
            # what is never empty
            nullable = '' if self.name in ('kernel_size', 'output_size') and self.default is None else ' (nullable)'
            return f'(array length={self.c_length}){nullable}', text
        if self.kind in ('Device?', 'Generator?'):
            what = 'device' if self.kind == 'Device?' else 'generator'
            return '(nullable)', f'a {what}, or %NULL for the default'
        if self.is_optional and self.default == 'none':
            return '', f'{"an integer" if self.kind == "int" else "a number"}, or %{NONE[self.kind]} for none'
        if self.kind == 'int' and self.name.startswith('dim'):
            return '', 'a dimension; negative ones count from the end'
        return '', {
            'int': 'an integer',
            'double': 'a number',
            'number': 'a number',
            'bool': 'a boolean',
            'DType': 'a dtype, or %GTORCH_DTYPE_NONE for the default',
            'enum': 'a choice',
        }[self.kind]


def parse_args(text):
    depth, part, parts = 0, '', []
    for char in text:
        depth += {'[': 1, ']': -1}.get(char, 0)
        if char == ',' and depth == 0:
            parts.append(part)
            part = ''
        else:
            part += char
    if part.strip():
        parts.append(part)
    return [Arg(p) for p in parts]


def parse_returns(text):
    if text == 'Tensor':
        return ['']
    if text == 'Tensor[]':
        return ['[]']
    names = []
    for part in text.split(','):
        words = part.split()
        if len(words) != 2 or words[0] not in ('Tensor', 'Tensor?'):
            raise RowError(f'cannot read the result “{part.strip()}”')
        names.append(words[1])
    return names


def parse_nullable(text):
    """Returns the names of the results that may be NULL."""
    return [words[1] for words in map(str.split, text.split(',')) if words[0] == 'Tensor?']


def parse_range(text):
    """Parses [0, 1], (0, inf] or [0, inf) to C's lower and upper bound and whether the lower one
    is excluded."""
    match = RANGE.fullmatch(text)
    if match is None:
        raise RowError(f'no such range: {text}')
    opening, low, high, closing = match.groups()
    if closing == ')' and high != 'inf':
        raise RowError(f'{text}: only inf can be excluded above')
    if low == '-inf':
        raise RowError(f'{text}: a range begins with a number')
    bound = {'inf)': 'G_MAXDOUBLE', 'inf]': 'INFINITY'}.get(high + closing, high)
    return low, bound, c.boolean(opening == '(')


def constructor(args, positional=None):
    """The signature of the constructor of a class, as a text: of its arguments (name, whether it is required, default),
    of which the first @positional are not only given by name."""
    parts = ['$self']
    for i, (name, is_required, value) in enumerate(args):
        parts += ['*'] if i == positional else []
        parts.append(name if is_required else f'{name}={value!r}'.replace('=inf', '=1e999').replace('=-inf', '=-1e999'))
    return f'({", ".join(parts)})'
