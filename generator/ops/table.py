# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The table of operations, and of the values that their gradients need."""

from generator import c
from generator.ops import autocast, fill, gradients
from generator.signatures import CLASSES


def emit_args(row):
    rows = []
    for a in row.args:
        default = 'NULL' if a.default is None else c.string(a.default)
        rows.append(f'{{ "{a.name}", {a.c_kind}, {default} }},')
    return fill('table.c.in', 'args', name=row.name, args=rows) if rows else ''


def flags_of(row):
    flags = [flag for flag in row.flags if flag != 'internal']
    flags += ['view'] if row.family == 'view' else []
    flags += ['inplace_ok'] if row.inplace and not row.composite else []
    flags += ['numbers', 'elementwise'] if row.family == 'pointwise' else []
    return ' | '.join(c.constant('OP_FLAG', flag) for flag in flags) or '0'


def dtype_mask(dtypes):
    return ' | '.join(f'GTORCH_DTYPES ({dtype.upper()})' for dtype in dtypes) or '0'


def emit_op(row):
    saved_inputs, saved_outputs = gradients.saved_masks(row, row.saved)
    return fill(
        'table.c.in', 'op', id=row.constant, name=row.name, flags=flags_of(row), n_args=str(len(row.args)),
        n_inputs=str(len(row.tensors)), n_attrs=str(len(row.attrs)),
        n_outputs='0' if row.returns_list else str(len(row.outputs)), promote=row.promote.upper(),
        loop=str(row.loop_index), dtypes=dtype_mask(CLASSES[row.dtypes]), plain=dtype_mask(row.plain_dtypes()),
        autocast=autocast.table_entry(row), saved_inputs=saved_inputs, saved_outputs=saved_outputs,
        args=f'args_{row.name}' if row.args else 'NULL', shape='NULL' if row.composite else row.shape_function(),
        writes=[f'.writes = gtorch_writes_{row.data["writes"]},'] if 'writes' in row.data else [], grad=row.grad_name,
    )


def emit(rows):
    saves, saved = gradients.emit_saves(rows)
    args = [text for text in map(emit_args, rows) if text]
    return fill('table.c.in', 'file', args=args, ops=list(map(emit_op, rows)), saves=saves, saved=saved)
