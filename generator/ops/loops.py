# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the CPU loops of pointwise and reduce rows, and the tables by which they are found."""

import pathlib
import re

from generator.signatures import KINDS, LOOP_TYPES

# Functions that libmvec has for vectors, directly or in a macro.
VECTOR_FUNCTIONS = re.compile(
    r'\b(a?(cos|sin|tan)h?|atan2|cbrt|erfc?|exp2?|expm1|hypot|log(10|1p|2)?|pow'
    r'|gt_(sigmoid|softplus|gelu_tanh_grad|gelu_tanh_second|sech2)) \('
)
# Functions that expressions may call: what has one name for all types there, by macros, and what C libraries have for
# doubles alone and rows want so.
MATH_HEADER = pathlib.Path(__file__).resolve().parents[2] / 'gtorch' / 'cpu' / 'gtorch-cpu-math.h'
MATH_FUNCTIONS = set(re.findall(r'^#define (\w+)\(', MATH_HEADER.read_text(), re.MULTILINE))
CALLED = re.compile(r'\b(?!sizeof\b)([A-Za-z_]\w*) *\(')
IN_DOUBLE = {'cabs'}


def unknown_calls(text):
    """The functions in an expression that C would take from <math.h>, and compute in double whatever the type is."""
    known = MATH_FUNCTIONS | IN_DOUBLE
    return [name for name in CALLED.findall(text) if name not in known and not name.startswith('gt_')]


def value_of(arg, dtype, i):
    """The declaration of an attribute; a number is an integer where that is computed in."""
    if arg.kind != 'number' or KINDS[dtype] != 'int':
        return f'{arg.c_type} {arg.name} = {arg.c_attr_get(f"attrs[{i}]")}'
    text = f'attrs[{i}].number.i'
    if dtype == 'int32':
        return f'gint32 {arg.name} = gt_clip_int32 ({text})'
    return f'gint64 {arg.name} = {text}'


def emit_loops(rows, header):
    out = [header, '#include "cpu/gtorch-cpu-loops.h"', '#include "cpu/gtorch-cpu-reduce-loops.h"', '']
    for row in rows:
        for dtype, texts in row.loops.items():
            suffix, ctype, real = LOOP_TYPES[dtype]
            name = f'GTORCH_ISA_SYMBOL (gtorch_loop_{row.name}_{suffix})'
            if row.family == 'reduce':
                combine = texts['combine'] or re.sub(r'\bx\b', 'other', texts['step'])
                out.append(
                    f'GTORCH_REDUCE_LOOP ({row.name}, {suffix}, {ctype}, ({texts["init"]}), '
                    f'({texts["step"]}), {int(bool(texts["quick"]))}, ({texts["quick"] or texts["step"]}), '
                    f'({combine}), ({texts["finish"] or "acc"}))'
                )
                out.append('')
                continue
            result = {'bool': 'guint8', 'real': real}.get(row.promote, ctype)
            out += [
                f'void {name} (char *const *data, const gint64 *strides, gint64 n,',
                '                   const GTorchAttr *attrs)',
                '{',
                f'  typedef {ctype} T G_GNUC_UNUSED;',
            ]
            for i, a in enumerate(row.attrs):
                if re.search(rf'\b{a.name}\b', texts['forward']):
                    out.append(f'  const {value_of(a, dtype, i)};')
            inputs = ', '.join(t.name for t in row.tensors)
            vector = KINDS[dtype] == 'float' and VECTOR_FUNCTIONS.search(texts['forward'])
            loop = 'GTORCH_VECTOR_LOOP' if vector and len(row.tensors) < 3 else 'GTORCH_LOOP'
            out.append(f'  {loop}_{len(row.tensors)} ({result}, {ctype}, {inputs},')
            out += [f'                 {texts["forward"]})', '}', '']
    return out


def emit_loop_table(rows, header):
    out = [header, '#include "cpu/gtorch-cpu-loops.h"', '#include "cpu/gtorch-cpu-reduce-loops.h"', '']
    for family, ctype, stem, address in (
        ('pointwise', 'GTorchLoop', 'gtorch_loop', ''),
        ('reduce', 'GTorchReduceLoop *const', 'gtorch_reduce', '&'),
    ):
        wanted = [r for r in rows if r.loop_index >= 0 and r.family == family]
        for row in wanted:
            for dtype in row.loops:
                name = f'GTORCH_ISA_SYMBOL ({stem}_{row.name}_{LOOP_TYPES[dtype][0]})'
                if family == 'reduce':
                    out.append(f'extern const GTorchReduceLoop {name};')
                else:
                    out.append(
                        f'void {name} (char *const *, const gint64 *, gint64, const GTorchAttr *);'
                    )
        table = f'GTORCH_ISA_SYMBOL ({stem}_table)'
        out += ['', f'const {ctype} {table}[][GTORCH_N_DTYPES] = {{']
        out += ['  [0] = { NULL },'] if not wanted else []
        for row in wanted:
            out.append(f'  [{row.loop_index}] = {{')
            for dtype in row.loops:
                out.append(
                    f'    [GTORCH_DTYPE_{dtype.upper()}] = '
                    f'{address}GTORCH_ISA_SYMBOL ({stem}_{row.name}_{LOOP_TYPES[dtype][0]}),'
                )
            out.append('  },')
        out += ['};', '']
    return out
