# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the CUDA kernels of element-wise and reduction rows, and the tables with which the host
finds them."""

from generator.ops import fill, loops
from generator.signatures import CLASSES, KINDS, LOOP_TYPES

# compute dtype -> the stored dtypes that use it: dtype, suffix, C++ type
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


def stored_in(row, dtype):
    """Returns (dtype, suffix, C++ type) of the row's dtypes with a compute dtype."""
    return [one for one in memory_types(dtype) if one[0] in CLASSES[row.dtypes]]


def attribute(arg, dtype, i):
    """The declaration of an attribute; the host passes a number as an integer if the compute
    dtype is one."""
    member = 'i' if arg.kind == 'number' and KINDS[dtype] == 'int' else arg.member
    kind, text = {'i': 'int64_t', 'd': 'double'}[member], f'attrs[{i}].{member}'
    if arg.kind == 'number' and dtype == 'int32':
        kind, text = 'gint32', f'gt_clip_int32 ({text})'
    return f'const {kind} {arg.name} = {text};'


def emit_pointwise(row, dtype, texts):
    suffix, ctype, _ = LOOP_TYPES[dtype]
    result = loops.result_type(row, dtype)
    lines = [fill(
        'kernels.cu.in', 'pointwise_op', name=f'{row.name}_{suffix}', type=ctype, result=result,
        n=str(len(row.tensors)), inputs=', '.join(f'C {t.name}' for t in row.tensors), forward=texts['forward'],
        attrs=[attribute(a, dtype, i) for i, a in enumerate(row.attrs) if loops.is_used(a, texts)],
    )]
    for _, memory, mtype in stored_in(row, dtype):
        what = f'({row.name}, {suffix}, {memory}, {mtype}, {mtype if result == ctype else result})'
        lines.append(f'GT_VECTOR_KERNELS {what}')
        if len(row.tensors) > 1:
            lines.append(f'GT_ROW_KERNELS {what}')
    return [*lines, f'GT_STRIDED_KERNEL ({row.name}, {suffix})', '']


def emit_reduce(row, dtype, texts):
    suffix, ctype, _ = LOOP_TYPES[dtype]
    name = f'{row.name}_{suffix}'
    lines = [fill('kernels.cu.in', 'reduce_op', name=name, type=ctype, **loops.reduction(texts))]
    truth = row.promote == 'bool'
    for _, memory, mtype in stored_in(row, dtype):
        stored = 'guint8' if truth else mtype
        lines.append(f'GT_REDUCE_KERNELS ({row.name}, {suffix}, {memory}, {mtype}, {stored}, {str(truth).lower()})')
    return [*lines, '']


EMITTERS = {'pointwise': emit_pointwise, 'reduce': emit_reduce}


def family_name(row):
    return f'{row.family}_{row.file[:-5].replace("-", "_")}'


def kernel_files(rows):
    """Returns one image for the rows of each family in each file."""
    return sorted({family_name(row) for row in rows if row.loops})


def emit_kernels(rows, name):
    """Returns the kernels of one image."""
    family = name.split('_')[0]
    wanted = [row for row in rows if row.loops and family_name(row) == name]
    lines = [line for row in wanted for dtype, texts in row.loops.items()
             for line in EMITTERS[family](row, dtype, texts)]
    return fill('kernels.cu.in', family, kernels=lines)


def emit_loops(rows, family, names):
    """The table of the kernels of a family, and as many places for them."""
    own = [row for row in rows if row.loop_index >= 0 and row.family == family]
    return fill(
        'kernels.cu.in', 'loops', family=family, n=str(len(own)),
        rows=[f'[{row.loop_index}] = {{ "{row.name}", &families[{names.index(family_name(row))}] }},' for row in own],
    )


def emit_table(rows):
    names = kernel_files(rows)
    pointwise = [row for row in rows if row.loop_index >= 0 and row.family == 'pointwise']
    return fill(
        'kernels.cu.in', 'table', n_operands=str(max((1 + len(row.tensors) for row in pointwise), default=0)),
        n_attrs=str(max((len(row.attrs) for row in pointwise), default=0)),
        images=[f'GTORCH_CUDA_IMAGE ({name})' for name in names],
        families=[f'{{ .name = "{name}", .image = gtorch_fatbin_{name} }},' for name in names],
        tables='\n'.join(emit_loops(rows, family, names) for family in EMITTERS).rstrip('\n'),
    )
