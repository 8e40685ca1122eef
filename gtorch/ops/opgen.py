#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes C, JSON and Markdown from the operation rows in *.toml.

    opgen.py list FOLDER                  the row files and hand-written sources, one a line
    opgen.py generate OUTDIR FILE.toml…   all outputs; a file is written only when its text changed

docs/writing-an-op.md describes the rows. A mistake in one is reported as `file:row.key: message`.
"""

import json
import pathlib
import sys
import tomllib

import opgen_autocast
import opgen_checks
import opgen_cuda
import opgen_expr
import opgen_fuse
import opgen_loops
from opgen_common import (
    CLASSES,
    COMPUTE,
    KINDS,
    RowError,
    c_string,
    declare_function as declare,
    enum_constant,
    parse_args,
    parse_returns,
)

HEADER = '''/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Written by opgen.py: edit the rows in gtorch/ops instead. */
'''

KEYS = {
    'args',
    'returns',
    'family',
    'dtypes',
    'promote',
    'forward',
    'init',
    'step',
    'quick',
    'combine',
    'finish',
    'composite',
    'shape',
    'cpu',
    'autocast',
    'check',
    'grad',
    'saves',
    'writes',
    'inplace',
    'scalar',
    'flags',
    'operator',
    'method',
    'doc',
    'formula',
    'source',
    'params',
    'sample',
    'torch',
    'since',
}
FAMILIES = {'pointwise', 'reduce', 'view', 'structured', 'composite'}
FLAGS = {
    'random': 'GTORCH_OP_FLAG_RANDOM',
    'sync': 'GTORCH_OP_FLAG_SYNC',
    'devices': 'GTORCH_OP_FLAG_DEVICES',
    'numbers': 'GTORCH_OP_FLAG_NUMBERS',
    'factors': 'GTORCH_OP_FLAG_FACTORS',
    'divides': 'GTORCH_OP_FLAG_DIVIDES',
    'powers': 'GTORCH_OP_FLAG_POWERS',
    'probability': 'GTORCH_OP_FLAG_PROBABILITY',
    'chooses': 'GTORCH_OP_FLAG_CHOOSES',
}


class Row:
    """One operation, parsed and checked."""

    def __init__(self, file, name, data):
        self.file, self.name, self.data = file, name, data
        for key in data:
            if key not in KEYS:
                self.fail(key, 'no such key')
        for key in ('args', 'family', 'doc'):
            if key not in data:
                self.fail(key, 'is missing')
        self.family = data['family']
        if self.family not in FAMILIES:
            self.fail('family', f'must be one of {", ".join(sorted(FAMILIES))}')
        try:
            self.args = parse_args(data['args'])
            self.outputs = parse_returns(data.get('returns', 'Tensor'))
        except RowError as error:
            self.fail('args', str(error))
        self.returns_list = self.outputs == ['[]']
        self.tensors = [a for a in self.args if a.kind in ('Tensor', 'Tensor?')]
        self.list = next((a for a in self.args if a.kind == 'Tensor[]'), None)
        self.attrs = [a for a in self.args if not a.is_tensor]
        self.flags = list(data.get('flags', []))
        if self.family == 'pointwise' and any(a.kind in ('double', 'number') for a in self.attrs):
            self.flags.append('factors')
        self.internal = 'internal' in self.flags
        for flag in self.flags:
            if flag not in FLAGS and flag != 'internal':
                self.fail('flags', f'no such flag: {flag}')
        self.promote = data.get(
            'promote', 'common' if self.family in ('pointwise', 'reduce') else 'none'
        )
        if self.promote not in ('common', 'float', 'bool', 'sum', 'real', 'bounds', 'none'):
            self.fail('promote', f'no such rule: {self.promote}')
        if self.promote == 'bounds' and any(a.kind != 'number' for a in self.attrs):
            self.fail('promote', 'bounds are arguments of kind number')
        self.dtypes = data.get('dtypes', 'all')
        if self.dtypes not in CLASSES:
            self.fail('dtypes', f'must be one of {", ".join(CLASSES)}')
        self.inplace = data.get('inplace', False)
        self.composite = self.family == 'composite'
        self.autocast = opgen_autocast.parse(self)
        self.checks = opgen_checks.parse(self)
        self.scalar = data.get('scalar')
        if self.scalar and self.scalar not in [t.name for t in self.tensors]:
            self.fail('scalar', f'{self.scalar} is not a tensor argument')
        self.has_numbers = any(a.kind == 'number' for a in self.args)
        if self.has_numbers and (self.scalar or self.composite):
            self.fail('args', 'arguments of kind number are for operations of their own without scalar')
        self.is_method = data.get('method', True) and self.args and self.args[0].kind == 'Tensor'
        self.samples = data.get('sample', [])
        if isinstance(self.samples, dict):
            self.samples = [self.samples]
        self.loops = self.parse_loops()
        self.loop_index = -1
        grad = data.get('grad')
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
        saves = data.get('saves', [])
        self.saved_by = {k: set(v) for k, v in saves.items()} if isinstance(saves, dict) else {}
        self.saved = set().union(*self.saved_by.values()) or set(saves)
        self.fused = {}  # see opgen_fuse

    def fail(self, key, message):
        raise RowError(f'{self.file}:{self.name}.{key}: {message}')

    def parse_loops(self):
        """The loops of a pointwise or reduce row: compute dtype -> expression(s)."""
        if self.family not in ('pointwise', 'reduce') or 'cpu' in self.data:
            return {}
        main = 'forward' if self.family == 'pointwise' else 'step'
        if main not in self.data:
            self.fail(main, 'is missing')
        loops = {}
        for dtype in COMPUTE:
            if dtype not in CLASSES[self.dtypes]:
                continue
            texts = {}
            for key in ('forward', 'init', 'step', 'quick', 'combine', 'finish'):
                value = self.data.get(key)
                if isinstance(value, dict):
                    value = value.get(dtype, value.get(KINDS[dtype], value.get('default')))
                texts[key] = value
                for name in opgen_loops.unknown_calls(value or ''):
                    self.fail(key, f'no such function of all types: {name}')
            if texts[main] is None:
                self.fail(main, f'has no form for {dtype}')
            loops[dtype] = texts
        return loops

    def plain_dtypes(self):
        """The dtypes that the result has as well, if all operands have one of them and one shape."""
        if not self.loops or self.family != 'pointwise' or 'shape' in self.data or self.list is not None:
            return []
        if {'random', 'sync', 'devices'} & set(self.flags) or 'writes' in self.data or len(self.outputs) > 1:
            return []
        if self.promote not in ('common', 'float', 'bounds') or any(t.kind == 'Tensor?' for t in self.tensors):
            return []
        if len(self.tensors) > 3 or len(self.attrs) > 4:  # GT_MAX_OPERANDS with the output, GT_MAX_ATTRS
            return []
        takes_any = self.promote == 'common' and 'factors' not in self.flags
        return [d for d in CLASSES[self.dtypes] if takes_any or d in CLASSES['floatc']]

    def grad_name(self):
        """Without a gradient and a word about it, going backward is an error."""
        if self.grad or self.grad_function:
            return f'gtorch_grad_{self.name}'
        return 'NULL' if self.composite or self.grad_none else 'gtorch_grad_undefined'

    # -- C declarations ----------------------------------------------------------------------------
    def c_args(self, public, scalar=None, scalar_type='gdouble'):
        out = []
        for a in self.args:
            if a.name == scalar:
                out.append((scalar_type + ' ', a.name))
            else:
                out += a.c_declaration(public, scalar_type == 'gint64')
        return out

    def call_args(self, public, scalar=None):
        out = []
        for a in self.args:
            if a.name == scalar:
                out.append('number')
            elif not a.is_tensor:
                out += [name for _, name in a.c_declaration(public)]
            elif a.kind == 'Tensor[]':
                out += [f'{a.name}_impls', a.c_length]
            elif a.kind == 'Tensor?':
                out.append(f'{a.name} != NULL ? gtorch_tensor_unwrap ({a.name}) : NULL')
            else:
                out.append(f'gtorch_tensor_unwrap ({a.name})')
        return out

    def op_returns(self):
        if self.returns_list:
            return 'GPtrArray *'
        return 'GTorchImpl *' if len(self.outputs) == 1 else 'gboolean'

    def op_forms(self):
        """Suffixes of the internal functions, and the C type of numbers in them."""
        whole = [('_int', 'gint64')] if self.has_numbers and not self.internal else []
        return [('', 'gdouble'), *whole]

    def op_params(self, number='gdouble'):
        params = self.c_args(False, None, number)
        if len(self.outputs) > 1:
            params += [('GTorchImpl **', o) for o in self.outputs]
        return params + [('GError **', 'error')]

    def body_name(self):
        """The C function that is written for a composite."""
        return ('gtorch_composite_' if self.is_wrapped() else 'gtorch_op_') + self.name

    def is_wrapped(self):
        return self.composite and bool(self.autocast or self.checks)

    def public_name(self, suffix=''):
        return ('gtorch_tensor_' if self.is_method else 'gtorch_') + self.name + suffix


# -- internal functions and the table ----------------------------------------------------------------
def emit_op_function(row, form, number):
    name = f'gtorch_op_{row.name}{form}'
    lines = [declare(row.op_returns(), name, row.op_params(number)), '{']
    inputs, n_inputs = emit_inputs(row, lines)
    attrs = emit_attrs(row, lines, number)
    n = len(row.outputs)
    lines.append(f'  GTorchImpl *outputs[{n}] = {{ NULL }};')
    lines.append('')
    lines += opgen_checks.emit(row, 'NULL' if n == 1 else 'FALSE')
    emit_copy_of_list(row, lines)
    op = f'&gtorch_ops[{enum_constant("OP", row.name)}]'
    run = f'gtorch_op_run ({op}, {inputs}, {n_inputs}, {attrs}, outputs, error)'
    if n == 1:
        lines += [f'  {run};', '  return outputs[0];']
    else:
        lines += [f'  if (!{run})', '    return FALSE;']
        for i, name in enumerate(row.outputs):
            lines += [
                f'  if ({name} != NULL)',
                f'    *{name} = outputs[{i}];',
                '  else',
                f'    gtorch_impl_unref (outputs[{i}]);',
            ]
        lines.append('  return TRUE;')
    lines += ['}', '']
    if row.inplace:
        params = row.c_args(False, None, number) + [('GError **', 'error')]
        lines += [declare('gboolean', f'{name}_inplace', params), '{']
        inputs, n_inputs = emit_inputs(row, lines)
        attrs = emit_attrs(row, lines, number)
        lines += ['', *opgen_checks.emit(row, 'FALSE')]
        emit_copy_of_list(row, lines)
        lines += [
            f'  return gtorch_op_run_in_place (&gtorch_ops[{enum_constant("OP", row.name)}], {inputs}, '
            f'{n_inputs}, {attrs}, error);',
            '}',
            '',
        ]
    return lines


def emit_inputs(row, lines):
    fixed = [t.name for t in row.tensors]
    if row.list is None:
        if not fixed:
            return 'NULL', '0'
        lines.append(f'  GTorchImpl *inputs[] = {{ {", ".join(fixed)} }};')
        return 'inputs', str(len(fixed))
    if not fixed:
        return row.list.name, row.list.c_length
    length = row.list.c_length
    lines.append(
        f'  g_autofree GTorchImpl **inputs = g_new (GTorchImpl *, {length} + {len(fixed)});'
    )
    return 'inputs', f'{length} + {len(fixed)}'


def emit_copy_of_list(row, lines):
    """Fills what emit_inputs() declared for a list behind fixed tensors."""
    fixed = [t.name for t in row.tensors]
    if row.list is None or not fixed:
        return
    for i, name in enumerate(fixed):
        lines.append(f'  inputs[{i}] = {name};')
    lines.append(f'  for (gsize i = 0; i < {row.list.c_length}; i++)')
    lines.append(f'    inputs[i + {len(fixed)}] = {row.list.name}[i];')


def emit_attrs(row, lines, number):
    if not row.attrs:
        return 'NULL'
    values = ', '.join(a.c_attr(number == 'gint64') for a in row.attrs)
    lines.append(f'  const GTorchAttr attrs[] = {{ {values} }};')
    return 'attrs'


def emit_table(rows):
    out = []
    for row in rows:
        if row.args:
            out.append(f'static const GTorchArgSpec args_{row.name}[] = {{')
            for a in row.args:
                default = 'NULL' if a.default is None else c_string(a.default)
                out.append(f'  {{ "{a.name}", {a.c_kind}, {default} }},')
            out += ['};', '']
    out += ['const GTorchOpClass gtorch_ops[] = {']
    for row in rows:
        flags = [FLAGS[f] for f in row.flags if f in FLAGS]
        flags += ['GTORCH_OP_FLAG_VIEW'] if row.family == 'view' else []
        flags += ['GTORCH_OP_FLAG_INPLACE_OK'] if row.inplace and not row.composite else []
        flags += ['GTORCH_OP_FLAG_NUMBERS'] if row.family == 'pointwise' else []
        mask = ' | '.join(f'GTORCH_DTYPES ({d.upper()})' for d in CLASSES[row.dtypes])
        default_shape = {'pointwise': 'pointwise', 'reduce': 'reduce'}.get(row.family, row.name)
        shape = 'gtorch_shape_' + row.data.get('shape', default_shape)
        default_cpu = {'pointwise': 'pointwise', 'reduce': 'reduce'}.get(row.family, row.name)
        cpu = 'gtorch_cpu_' + row.data.get('cpu', default_cpu)
        if row.composite:
            shape = cpu = 'NULL'
        if row.family == 'view':
            cpu = 'NULL'
        cuda = cpu.replace('gtorch_cpu_', 'gtorch_cuda_')
        plain = ' | '.join(f'GTORCH_DTYPES ({d.upper()})' for d in row.plain_dtypes())
        saved_in, saved_out = opgen_expr.saved_masks(row, row.saved)
        out.append(f'  [{enum_constant("OP", row.name)}] = {{')
        out.append(f'    .name = "{row.name}",')
        out.append(f'    .id = {enum_constant("OP", row.name)},')
        out.append(f'    .flags = {" | ".join(flags) or 0},')
        out.append(f'    .n_args = {len(row.args)},')
        out.append(f'    .n_inputs = {len(row.tensors)},')
        out.append(f'    .n_attrs = {len(row.attrs)},')
        out.append(f'    .n_outputs = {0 if row.returns_list else len(row.outputs)},')
        out.append(f'    .promote = GTORCH_PROMOTE_{row.promote.upper()},')
        out.append(f'    .loop = {row.loop_index},')
        out.append(f'    .dtypes = {mask},')
        out.append(f'    .plain = {plain or 0},')
        out.append(f'    .autocast = {opgen_autocast.table_entry(row)},')
        out.append(f'    .saved_inputs = {saved_in},')
        out.append(f'    .saved_outputs = {saved_out},')
        out.append(f'    .args = {"args_" + row.name if row.args else "NULL"},')
        out.append(f'    .shape = {shape},')
        out.append(f'    .cpu = {cpu},')
        out.append(f'    .cuda = {cuda},')
        if 'writes' in row.data:
            out.append(f'    .writes = gtorch_writes_{row.data["writes"]},')
        out.append(f'    .grad = {row.grad_name()},')
        out.append('  },')
    out += ['};', '', 'const guint gtorch_n_ops = G_N_ELEMENTS (gtorch_ops);', '']
    return out


def emit_ops_header(rows):
    out = [
        HEADER,
        '#pragma once',
        '',
        '#include <gtorch/gtorch-enums.h>',
        '#include <gtorch/gtorch-op-private.h>',
        '',
        'G_BEGIN_DECLS',
        '',
        'enum',
        '{',
    ]
    out += [f'  {enum_constant("OP", r.name)},' for r in rows]
    out += ['};', '']
    functions = {'gtorch_cpu_pointwise'}
    for row in rows:
        for form, number in row.op_forms():
            name, params = f'gtorch_op_{row.name}{form}', row.op_params(number)
            out.append(declare(row.op_returns(), name, params, newline=' ') + ';')
            if row.inplace:
                params = row.c_args(False, None, number) + [('GError **', 'error')]
                out.append(declare('gboolean', f'{name}_inplace', params, newline=' ') + ';')
        if row.grad or row.grad_function:
            out.append(
                f'gboolean gtorch_grad_{row.name} (GTorchGradContext *context, GError **error);'
            )
        if row.is_wrapped():
            out.append(
                declare(row.op_returns(), row.body_name(), row.op_params(), newline=' ') + ';'
            )
        if row.composite:
            continue
        if row.family in ('view', 'structured') or 'shape' in row.data:
            functions.add('gtorch_shape_' + row.data.get('shape', row.name))
        if row.family == 'reduce':
            functions.add('gtorch_cpu_reduce')
        if row.family == 'structured' or 'cpu' in row.data:
            functions.add('gtorch_cpu_' + row.data.get('cpu', row.name))
    out.append('')
    written = sorted({r.data['writes'] for r in rows if 'writes' in r.data})
    out += [f'gboolean gtorch_writes_{w} (const GTorchOpCall *call, guint i);' for w in written]
    out += [f'gboolean {f} (GTorchOpCall *call, GError **error);' for f in sorted(functions)]
    # Weak: an operation that a GPU does not have says so when it is called there.
    out += [
        f'gboolean {f.replace("_cpu_", "_cuda_")} (GTorchOpCall *call, GTorchCudaLane *lane,\n'
        f'    GError **error) __attribute__ ((weak));'
        for f in sorted(functions)
        if '_cpu_' in f
    ]
    return out + ['', 'G_END_DECLS', '']


# -- public functions ------------------------------------------------------------------------------
def emit_public(row, header, source, forms):
    variants = [(form, None, number) for form, number in row.op_forms()]
    if row.scalar:
        variants.append(('_scalar', row.scalar, 'gdouble'))
        if any(d in CLASSES[row.dtypes] for d in ('int64',)):
            variants.append(('_int', row.scalar, 'gint64'))
    for suffix, scalar, ctype in variants:
        emit_form(row, header, source, suffix, scalar, ctype, False)
        if row.inplace:
            emit_form(row, header, source, suffix + '_inplace', scalar, ctype, True)
        forms.append(suffix)


def emit_form(row, header, source, suffix, scalar, ctype, in_place):
    name = row.public_name(suffix)
    params = row.c_args(True, scalar, ctype)
    outs = [] if in_place or len(row.outputs) == 1 else row.outputs
    params += [('GTorchTensor **', o) for o in outs] + [('GError **', 'error')]
    returns = 'GPtrArray *' if row.returns_list else ('gboolean' if outs else 'GTorchTensor *')
    fail = 'FALSE' if outs else 'NULL'
    header += ['GTORCH_AVAILABLE_IN_0_1', declare(returns, name, params, newline=' ') + ';']
    source += emit_doc(row, name, scalar, outs, in_place, row.has_numbers and ctype == 'gint64')
    source += [declare(returns, name, params), '{']
    if scalar:
        source.append('  g_autoptr (GTorchImpl) number = NULL;')
    if row.list is not None:
        source.append(f'  g_autofree GTorchImpl **{row.list.name}_impls = NULL;')
    for o in outs:
        source.append(f'  GTorchImpl *{o}_impl = NULL;')
    source.append('')
    for a in row.args:
        if a.name == scalar:
            continue
        if a.kind == 'Tensor':
            source.append(f'  g_return_val_if_fail (GTORCH_IS_TENSOR ({a.name}), {fail});')
        elif a.kind == 'Tensor?':
            source.append(
                f'  g_return_val_if_fail ({a.name} == NULL || GTORCH_IS_TENSOR ({a.name}), {fail});'
            )
        elif a.kind in ('Device?', 'Generator?'):
            check = f'GTORCH_IS_{a.kind[:-1].upper()} ({a.name})'
            source.append(f'  g_return_val_if_fail ({a.name} == NULL || {check}, {fail});')
        elif a.kind in ('Tensor[]', 'int[]'):
            source.append(
                f'  g_return_val_if_fail ({a.name} != NULL || {a.c_length} == 0, {fail});'
            )
    devices = [a.name for a in row.args if a.kind == 'Device?']
    source += [*(f'  {d} = gtorch_device_resolved ({d});' for d in devices), '']
    if scalar:
        source.append(
            f'  number = gtorch_impl_new_{"number" if ctype == "gdouble" else "int"} ({scalar});'
        )
    if row.list is not None:
        source.append(
            f'  {row.list.name}_impls = gtorch_tensors_unwrap ({row.list.name}, {row.list.c_length});'
        )
    args = row.call_args(True, scalar) + [f'&{o}_impl' for o in outs] + ['error']
    form = '_int' if row.has_numbers and ctype == 'gint64' else ''
    call = f'gtorch_op_{row.name}{form}{"_inplace" if in_place else ""} ({", ".join(args)})'
    if row.composite:
        # an error of a part names the part
        ctype = 'GPtrArray *' if row.returns_list else 'GTorchImpl *'
        ctype, ok = ('gboolean ', 'made') if in_place or outs else (ctype, 'made != NULL')
        at = max(i for i, line in enumerate(source) if line == '{')
        hold = [f'  GTORCH_HOLD_TENSOR ({a.name});' for a in row.tensors if a.name != scalar]
        if row.list is not None:
            hold.append(f'  GTORCH_HOLD_TENSORS ({row.list.name}, {row.list.c_length});')
        source[at + 1 : at + 1] = hold + [f'  {ctype}made;', '  const GTorchOpClass *former;']
        if row.list is not None:
            check = f'{enum_constant("OP", row.name)}, {row.list.name}_impls, {row.list.c_length}, error'
            source += [f'  if (!gtorch_composite_check_list ({check}))', f'    return {fail};']
        source += [
            f'  former = gtorch_composite_begin ({enum_constant("OP", row.name)});',
            f'  made = {call};',
            f'  gtorch_composite_end (former, {ok}, error);',
        ]
        call = 'made'
    if in_place:
        source.append(f'  return {call} ? {row.args[0].name} : NULL;')
    elif row.returns_list:
        source.append(f'  return gtorch_tensors_wrap ({call});')
    elif not outs:
        source.append(f'  return gtorch_tensor_wrap ({call});')
    else:
        source += [f'  if (!{call})', '    return FALSE;']
        for o in outs:
            source += [
                f'  if ({o} != NULL)',
                f'    *{o} = gtorch_tensor_wrap ({o}_impl);',
                '  else',
                f'    gtorch_impl_unref ({o}_impl);',
            ]
        source.append('  return TRUE;')
    source += ['}', '']


DTYPE_TEXT = {
    'float': 'floating-point dtypes',
    'int': 'integers',
    'real': 'integers and floating-point dtypes',
    'number': 'all dtypes but bool',
    'floatc': 'floating-point and complex dtypes',
    'complex': 'complex dtypes',
    'wide': 'float32 and float64',
    'realb': 'all dtypes but complex ones',
    'intb': 'integers and bool',
    'bool': 'bool',
    'all': 'all dtypes',
}
PROMOTE_TEXT = {
    'common': 'Inputs of different dtypes are promoted to their common dtype, which is also the result\'s.',
    'float': 'Integers and bool are computed in, and give, the default floating-point dtype.',
    'bool': 'Inputs are promoted to their common dtype; the result is of dtype bool.',
    'sum': 'Integers and bool give int64.',
    'real': 'A complex input gives its real dtype.',
    'bounds': 'Integers stay integers between whole bounds; a bound that is not whole gives the default '
    'floating-point dtype.',
    'none': '',
}


def wrap(text, prefix=' * ', width=100):
    words, line, lines = text.split(), '', []
    for word in words:
        if line and len(prefix) + len(line) + 1 + len(word) > width:
            lines.append(prefix + line)
            line = word
        else:
            line = f'{line} {word}' if line else word
    return lines + [prefix + line] if line else lines


def emit_doc(row, name, scalar, outs, in_place, whole):
    lines = ['/**', f' * {name}:']
    docs = row.data.get('params', {})
    for a in row.args:
        annotation, text = a.doc(row)
        text = docs.get(a.name, text)
        if a.name == scalar:
            annotation, text = '', 'a number'
        if a.default is not None and a.default not in ('None', '[]'):
            text += f'; {a.default} by default in the bindings'
        lines += wrap(f'@{a.name}: {annotation}{": " if annotation else ""}{text}')
        if a.c_length:
            lines.append(f' * @{a.c_length}: the length of @{a.name}')
    for o in outs:
        lines.append(f' * @{o}: (out) (transfer full): the {o.replace("_", " ")}')
    lines += [' * @error: return location for an error', ' *']
    text = row.data['doc']
    if in_place:
        text += ' The result is written to @self.'
    if scalar:
        text += f' Here @{scalar} is a number, which takes part in type promotion by its kind only.'
    if whole:
        text += ' Here numbers are integers of 64 bits, which a double may not have exactly.'
    lines += wrap(text)
    if 'formula' in row.data:
        lines += [' *', f' * Formula: `{row.data["formula"]}`']
    if 'source' in row.data:
        lines += [' *'] + wrap('Source: ' + row.data['source'])
    rules = f'Defined for {DTYPE_TEXT[row.dtypes]}. {PROMOTE_TEXT[row.promote]}'
    if row.family == 'pointwise' and len(row.tensors) > 1:
        rules += ' Shapes are broadcast.'
    if row.family == 'view':
        rules += ' The result shares the memory of @self.'
    if not (row.grad or row.grad_function or row.composite) and not row.internal:
        rules += ' Not differentiable.'
    rules += opgen_autocast.text(row) + opgen_checks.text(row)
    lines += [' *'] + wrap(rules) + [' *']
    if in_place:
        lines += [f' * Returns: (transfer none): @{row.args[0].name}, or %NULL with @error set']
    elif row.returns_list:
        lines += [
            ' * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with',
            ' *   @error set',
        ]
    elif outs:
        lines += [' * Returns: %TRUE, or %FALSE with @error set']
    else:
        lines += [' * Returns: (transfer full): the result, or %NULL with @error set']
    return lines + [' *', f' * Since: {row.data.get("since", "0.1")}', ' */']


# -- everything ------------------------------------------------------------------------------------
def load(files):
    rows = []
    for file in files:
        path = pathlib.Path(file)
        try:
            data = tomllib.loads(path.read_text(encoding='utf-8'))
        except tomllib.TOMLDecodeError as error:
            raise RowError(f'{path.name}: {error}') from None
        rows += [Row(path.name, name, row) for name, row in data.items()]
    rows += opgen_fuse.fuse(rows, Row)
    rows.sort(key=lambda r: r.name)
    for a, b in zip(rows, rows[1:]):
        if a.name == b.name:
            a.fail('args', f'{b.file} has a row of this name too')
    index = {'pointwise': 0, 'reduce': 0}
    for row in rows:
        if row.loops:
            row.loop_index = index[row.family]
            index[row.family] += 1
    return rows


def generate(folder, files):
    from opgen_tests import emit_samples, rows_as_json

    rows = load(files)
    by_name = {r.name: r for r in rows}
    grads = []
    for row in rows:
        if row.grad:
            grads += opgen_expr.emit_gradient(row, by_name)
    include = [
        '#include "config.h"',
        '',
        '#include <math.h>',
        '',
        '#include "gtorch-autocast-private.h"',
        '#include "gtorch-ops-private.h"',
        '#include "gtorch-range-private.h"',
        '#include "gtorch-tensor-private.h"',
        '',
    ]
    functions, header, source = [], [], []
    forms = {}
    for row in rows:
        if not row.composite:
            for form, number in row.op_forms():
                functions += emit_op_function(row, form, number)
        elif 'composite' in row.data:
            functions += opgen_expr.emit_composite(row, by_name)
        if row.is_wrapped():
            functions += (opgen_autocast if row.autocast else opgen_checks).emit_wrapper(row)
        if not row.internal:
            forms[row.name] = []
            emit_public(row, header, source, forms[row.name])
    outputs = {
        'gtorch-ops-private.h': emit_ops_header(rows),
        'gtorch-op-table.c': [HEADER]
        + include[:-1]
        + ['#include "autograd/gtorch-autograd-private.h"', '']
        + emit_table(rows)
        + opgen_expr.emit_saves(rows),
        'gtorch-ops.c': [HEADER] + include + functions,
        'gtorch-op-grads.c': [HEADER]
        + include[:-1]
        + ['#include "autograd/gtorch-grad-mode.h"', '']
        + grads,
        'gtorch-tensor-ops.h': [
            HEADER,
            '#pragma once',
            '',
            '#include <gtorch/gtorch-device.h>',
            '#include <gtorch/gtorch-enums.h>',
            '#include <gtorch/gtorch-generator.h>',
            '#include <gtorch/gtorch-tensor.h>',
            '',
            'G_BEGIN_DECLS',
            '',
        ]
        + header
        + ['', 'G_END_DECLS', ''],
        'gtorch-tensor-ops.c': [HEADER]
        + include[:-1]
        + ['#include "gtorch-hold-private.h"', '#include "gtorch-tensor-ops.h"', '']
        + source,
        'gtorch-loop-table.c': opgen_loops.emit_loop_table(rows, HEADER),
        'gtorch-op-samples.c': [HEADER] + emit_samples(rows),
        'gtorch-ops.json': [json.dumps(rows_as_json(rows, forms), indent=1), ''],
    }
    for file in files:
        stem = pathlib.Path(file).stem
        outputs[f'gtorch-loops-{stem}.c'] = opgen_loops.emit_loops(
            [r for r in rows if r.file == f'{stem}.toml' and r.loops], HEADER
        )
    for name in opgen_cuda.kernel_files(rows):
        emit = opgen_cuda.EMITTERS[name.split('_')[0]]
        outputs[f'gtorch-kernels-{name}.cu'] = emit(
            [r for r in rows if r.loops and opgen_cuda.family_name(r) == name], HEADER
        )
    outputs['gtorch-cuda-kernel-table.c'] = opgen_cuda.emit_kernel_table(rows, HEADER)
    for name, lines in outputs.items():
        path = pathlib.Path(folder) / name
        text = '\n'.join(lines)
        if not path.exists() or path.read_text(encoding='utf-8') != text:
            path.write_text(text, encoding='utf-8')


def main(argv):
    try:
        if len(argv) > 2 and argv[1] == 'kernels':
            print('\n'.join(opgen_cuda.kernel_files(load(argv[2:]))))
        elif len(argv) == 3 and argv[1] == 'list':
            folder = pathlib.Path(argv[2])
            for path in sorted(folder.glob('*.toml')) + sorted(folder.glob('*.c')):
                print(path.name)
        elif len(argv) > 3 and argv[1] == 'generate':
            generate(argv[2], argv[3:])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except RowError as error:
        print(f'opgen: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
