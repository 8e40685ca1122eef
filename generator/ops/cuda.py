# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the CUDA kernels of pointwise and reduce rows, and the tables by which the host finds them."""

import re

from generator.signatures import CLASSES, KINDS, LOOP_TYPES

# compute dtype -> what is stored in memory when that is computed in: dtype, suffix, C++ type
MEMORY = {
    'float32': [
        ('float32', 'f32', 'float'),
        ('float16', 'f16', 'gt_f16'),
        ('bfloat16', 'bf16', 'gt_bf16'),
    ],
    'int32': [
        ('int8', 'i8', 'gint8'),
        ('uint8', 'u8', 'guint8'),
        ('int16', 'i16', 'gint16'),
        ('int32', 'i32', 'gint32'),
    ],
}


def memory_types(dtype):
    suffix, ctype, _ = LOOP_TYPES[dtype]
    return MEMORY.get(dtype, [(dtype, suffix, ctype)])


def emit_kernels(rows, header):
    out = [header, '#include "gtorch-pointwise.cuh"', '']
    for row in rows:
        if row.family != 'pointwise':
            continue
        n = len(row.tensors)
        for dtype, texts in row.loops.items():
            suffix, ctype, real = LOOP_TYPES[dtype]
            result = {'bool': 'guint8', 'real': real}.get(row.promote, ctype)
            inputs = ', '.join(f'C {t.name}' for t in row.tensors)
            out += [
                f'struct gt_op_{row.name}_{suffix}',
                '{',
                f'  typedef {ctype} C;',
                f'  typedef {result} O;',
                f'  static constexpr int N = {n};',
                f'  GT_DEVICE O run ({inputs}, const GtAttr *attrs)',
                '  {',
                '    typedef C T;',
            ]
            for i, a in enumerate(row.attrs):
                if re.search(rf'\b{a.name}\b', texts['forward']):
                    # the host passes a number as an integer where that is computed in
                    member = 'i' if a.kind == 'number' and KINDS[dtype] == 'int' else a.member
                    kind = {'i': 'int64_t', 'd': 'double'}[member]
                    text = f'attrs[{i}].{member}'
                    if a.kind == 'number' and dtype == 'int32':
                        kind, text = 'gint32', f'gt_clip_int32 ({text})'
                    out.append(f'    const {kind} {a.name} = {text};')
            out += [f'    return (O) ({texts["forward"]});', '  }', '};']
            for name, memory, mtype in memory_types(dtype):
                if name not in CLASSES[row.dtypes]:
                    continue
                stored = mtype if result == ctype else result
                what = f'({row.name}, {suffix}, {memory}, {mtype}, {stored})'
                out.append(f'GT_VECTOR_KERNELS {what}')
                if n > 1:
                    out.append(f'GT_ROW_KERNELS {what}')
            out += [f'GT_STRIDED_KERNEL ({row.name}, {suffix})', '']
    return out


def family_name(row):
    return f'{row.family}_{row.file[:-5].replace("-", "_")}'


def kernel_files(rows):
    """One image for the rows of each family in each file."""
    return sorted({family_name(r) for r in rows if r.loops})


def emit_kernel_table(rows, header):
    names = kernel_files(rows)
    out = [header, '#include "config.h"', '', '#include "cuda/gtorch-cuda-private.h"', '']
    out += [f'GTORCH_CUDA_IMAGE ({name})' for name in names]
    out += ['', 'static GTorchCudaFamily families[] = {']
    out += [f'  {{ .name = "{name}", .image = gtorch_fatbin_{name} }},' for name in names]
    out += ['};']
    for family in ('pointwise', 'reduce'):
        out += ['', f'const GTorchCudaLoop gtorch_cuda_{family}_kernels[] = {{']
        for row in rows:
            if row.loop_index >= 0 and row.family == family:
                index = names.index(family_name(row))
                out.append(f'  [{row.loop_index}] = {{ "{row.name}", &families[{index}] }},')
        out.append('};')
    return out + ['']


def emit_reduce_kernels(rows, header):
    out = [header, '#include "gtorch-reduce.cuh"', '']
    for row in rows:
        if row.family != 'reduce':
            continue
        for dtype, texts in row.loops.items():
            suffix, ctype, _ = LOOP_TYPES[dtype]
            combine = texts['combine'] or re.sub(r'\bx\b', 'other', texts['step'])
            out += [
                f'struct gt_op_{row.name}_{suffix}',
                '{',
                f'  typedef {ctype} C;',
                f'  typedef {ctype} T;',
                f'  GT_DEVICE C init () {{ return (C) ({texts["init"]}); }}',
                f'  GT_DEVICE C step (C acc, C x) {{ return (C) ({texts["step"]}); }}',
                f'  GT_DEVICE C combine (C acc, C other) {{ return (C) ({combine}); }}',
                f'  GT_DEVICE C finish (C acc, double n) {{ return (C) ({texts["finish"] or "acc"}); }}',
                '};',
            ]
            truth = row.promote == 'bool'
            for name, memory, mtype in memory_types(dtype):
                if name in CLASSES[row.dtypes]:
                    stored = 'guint8' if truth else mtype
                    what = f'{row.name}, {suffix}, {memory}, {mtype}, {stored}, {str(truth).lower()}'
                    out.append(f'GT_REDUCE_KERNELS ({what})')
            out.append('')
    return out


EMITTERS = {'pointwise': emit_kernels, 'reduce': emit_reduce_kernels}
