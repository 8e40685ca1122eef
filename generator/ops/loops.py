# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the CPU loops of element-wise and reduction rows, and the tables with which they are found."""

import pathlib
import re

from generator.ops import fill
from generator.signatures import KINDS, LOOP_TYPES

# Functions for which libmvec has vector versions, directly or in a macro.
VECTOR_FUNCTIONS = re.compile(
    r'\b(a?(cos|sin|tan)h?|atan2|cbrt|erfc?|exp2?|expm1|hypot|log(10|1p|2)?|pow'
    r'|gt_(sigmoid|softplus|gelu_tanh_grad|gelu_tanh_second|sech2|erfcx|erfinv(?:_f32)?|i[01]e?_f32|log_ndtr|ndtri)) \('
)
# Functions with branches and loops, which no compiler makes vectors of: one form for all strides is enough. Others of
# that kind, as `gt_zeta`, would then be put into each loop, which takes more code than several forms that call them.
SCALAR_FUNCTIONS = re.compile(
    r'\bgt_(airy_ai|bessel_k[01]|igammac?|polygamma|sinc_derivative) \('
)
# Functions that expressions may call: those with one name for all types, through macros, and those
# that C libraries have for doubles only and rows use as such.
MATH_HEADER = pathlib.Path(__file__).resolve().parents[2] / 'gtorch' / 'cpu' / 'gtorch-cpu-math.h'
MATH_FUNCTIONS = set(re.findall(r'^#define (\w+)\(', MATH_HEADER.read_text(), re.MULTILINE))
CALLED = re.compile(r'\b(?!sizeof\b)([A-Za-z_]\w*) *\(')
IN_DOUBLE = {'cabs'}


def unknown_calls(text):
    """Returns the functions in an expression that C would take from <math.h>, and compute in
    double whatever the type is."""
    known = MATH_FUNCTIONS | IN_DOUBLE
    return [name for name in CALLED.findall(text) if name not in known and not name.startswith('gt_')]


def is_used(arg, texts):
    return re.search(rf'\b{arg.name}\b', texts['forward'])


def result_type(row, dtype):
    """Returns the C type of the result of an element-wise loop."""
    _, ctype, real = LOOP_TYPES[dtype]
    return {'bool': 'guint8', 'real': real}.get(row.promote, ctype)


def reduction(texts):
    """The expressions of a reduction, including the defaults of omitted ones."""
    combine = texts['combine'] or re.sub(r'\bx\b', 'other', texts['step'])
    return {'init': texts['init'], 'step': texts['step'], 'combine': combine, 'finish': texts['finish'] or 'acc'}


def value_of(arg, dtype, i):
    """The declaration of an attribute; a number is an integer if the compute dtype is one."""
    if arg.kind != 'number' or KINDS[dtype] != 'int':
        return f'{arg.c_type} {arg.name} = {arg.c_attr_get(f"attrs[{i}]")}'
    text = f'attrs[{i}].number.i'
    if dtype == 'int32':
        return f'gint32 {arg.name} = gt_clip_int32 ({text})'
    return f'gint64 {arg.name} = {text}'


def emit_loop(row, dtype, texts):
    suffix, ctype, _ = LOOP_TYPES[dtype]
    if row.family == 'reduce':
        return fill('loops.c.in', 'reduce', name=row.name, suffix=suffix, type=ctype,
                    has_quick=str(int(bool(texts['quick']))), quick=texts['quick'] or texts['step'],
                    **reduction(texts))
    common = {
        'name': f'{row.name}_{suffix}', 'type': ctype, 'forward': texts['forward'],
        'attrs': [f'const {value_of(a, dtype, i)};' for i, a in enumerate(row.attrs) if is_used(a, texts)],
        'result': result_type(row, dtype),
    }
    if SCALAR_FUNCTIONS.search(texts['forward']):
        loads = [f'const T {t.name} = GTORCH_LOAD (T, data[{k}], i_, strides[{k}]);'
                 for k, t in enumerate(row.tensors, 1)]
        return fill('loops.c.in', 'scalar', loads=loads, **common)
    common |= {'n': str(len(row.tensors)), 'inputs': ', '.join(t.name for t in row.tensors)}
    if texts['quick']:
        return fill('loops.c.in', 'quick', quick=texts['quick'], rare=texts['rare'], **common)
    vector = KINDS[dtype] == 'float' and VECTOR_FUNCTIONS.search(texts['forward'])
    loop = 'GTORCH_VECTOR_LOOP' if vector and row.tensors else 'GTORCH_LOOP'
    return fill('loops.c.in', 'pointwise', loop=loop, **common)


def emit(rows):
    text = ''.join(emit_loop(row, dtype, texts) for row in rows for dtype, texts in row.loops.items())
    return fill('loops.c.in', 'file', loops=text)


def emit_table_of(rows, family, ctype, stem, address):
    wanted = [row for row in rows if row.loop_index >= 0 and row.family == family]
    declared, loops = [], [] if wanted else ['[0] = { NULL },']
    for row in wanted:
        names = {dtype: f'GTORCH_ISA_SYMBOL ({stem}_{row.name}_{LOOP_TYPES[dtype][0]})' for dtype in row.loops}
        for name in names.values():
            if family == 'reduce':
                declared.append(f'extern const GTorchReduceLoop {name};')
            else:
                declared.append(f'void {name} (char *const *, const gint64 *, gint64, const GTorchAttr *);')
        dtypes = [f'[GTORCH_DTYPE_{dtype.upper()}] = {address}{name},' for dtype, name in names.items()]
        loops.append(fill('loops.c.in', 'row', index=str(row.loop_index), dtypes=dtypes))
    return fill('loops.c.in', 'table', declared=declared, type=ctype, stem=stem, loops=loops)


def emit_table(rows):
    text = emit_table_of(rows, 'pointwise', 'GTorchLoop', 'gtorch_loop', '')
    text += emit_table_of(rows, 'reduce', 'GTorchReduceLoop *const', 'gtorch_reduce', '&')
    return fill('loops.c.in', 'file', loops=text)
