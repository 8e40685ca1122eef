# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The outputs of opgen that tests and bindings read: samples and the rows as JSON."""


from generator.signatures import enum_constant, enum_name

SAMPLE_KEYS = {'shapes', 'low', 'high', 'dtype', 'torch', 'grad'}


def sample_tensors(row, sample):
    """(arg, list index or -1, shape or None) for each tensor of a sample."""
    arguments = row.tensors + ([row.list] if row.list is not None else [])
    shapes = sample.get('shapes', [])
    order = [a for a in row.args if a.is_tensor]
    if len(shapes) != len(order):
        row.fail('sample', f'{len(order)} shapes are wanted, one for each tensor argument')
    given = dict(zip([a.name for a in order], shapes))
    out = []
    for a in arguments:
        texts = given[a.name]
        for i, text in enumerate(texts if isinstance(texts, list) else [texts]):
            shape = None if text == '-' else [int(n) for n in text.split(',') if n.strip()]
            out.append((a, i if isinstance(texts, list) else -1, shape))
    return out


def fixed_dtypes(sample):
    """Inputs that have a dtype of their own; a plain string is the value of an argument called dtype."""
    value = sample.get('dtype', {})
    return value if isinstance(value, dict) else {}


def attr_value(row, sample, a):
    """The C initialiser of one attribute of a sample."""
    value = sample.get(a.name)
    if isinstance(value, dict):
        value = None
    if a.kind == 'int[]':
        if value is None:
            value = [int(v) for v in (a.default or '[]').strip('[]').split(',') if v.strip()]
        if isinstance(value, int):
            value = [value]
        if not value:
            return '{ .list = { NULL, 0 } }'
        return (
            f'{{ .list = {{ (const gint64[]) {{ {", ".join(map(str, value))} }}, {len(value)} }} }}'
        )
    if a.member == 'p':
        return '{ .p = NULL }'
    if a.kind == 'number' and (value is not None or a.default is not None):
        real = float(a.default if value is None else value)
        whole = 'G_MAXINT64' if real > 0 else 'G_MININT64'
        text = f'{"-" if real < 0 else ""}G_MAXDOUBLE * 2'
        if real not in (float('inf'), -float('inf')):
            text, whole = repr(real), int(real)
        return f'{{ .number = {{ {text}, {whole}, FALSE }} }}'
    if value is None:
        default = a.c_default()
        if default is None:
            row.fail('sample', f'{a.name} has no value')
        return f'{{ .{a.member} = {default[0]} }}'
    if isinstance(value, bool):
        return f'{{ .i = {"TRUE" if value else "FALSE"} }}'
    if a.kind == 'DType':
        return f'{{ .i = GTORCH_DTYPE_{value.upper()} }}'
    if a.kind == 'enum':
        prefix = enum_name(a.enum)
        return f'{{ .i = {enum_constant(prefix, value)} }}'
    if isinstance(value, float) and value in (float('inf'), float('-inf')):
        return f'{{ .d = {"-" if value < 0 else ""}INFINITY }}'
    return f'{{ .{a.member} = {value} }}'


def invoker_args(row):
    """The arguments of an internal function, taken from those of an invoker."""
    args, index, attr = [], 0, 0
    for a in row.args:
        if a.kind in ('Tensor', 'Tensor?'):
            args.append(f'inputs[{index}]')
            index += 1
        elif a.kind == 'Tensor[]':
            args += [f'inputs + {len(row.tensors)}', f'n_inputs - {len(row.tensors)}']
        elif a.kind == 'int[]':
            args += [f'attrs[{attr}].list.data', f'attrs[{attr}].list.n']
            attr += 1
        else:
            args.append(f'attrs[{attr}].{a.member}')
            attr += 1
    return args


def emit_invoker(row):
    """One signature for every op, composites too, and for its in-place form."""
    params = (
        '(GTorchImpl *const *inputs, guint n_inputs, '
        'const GTorchAttr *attrs, GPtrArray *results, GError **error)'
    )
    args, n = invoker_args(row), len(row.outputs)
    out = ['static gboolean', f'invoke_{row.name} {params}', '{']
    if row.returns_list:
        out += [
            f'  g_autoptr (GPtrArray) list = gtorch_op_{row.name} ({", ".join(args + ["error"])});',
            '  if (list == NULL)',
            '    return FALSE;',
            '  for (guint i = 0; i < list->len; i++)',
            '    g_ptr_array_add (results, gtorch_impl_ref (list->pdata[i]));',
        ]
    elif n == 1:
        out += [
            f'  GTorchImpl *result = gtorch_op_{row.name} ({", ".join(args + ["error"])});',
            '  if (result == NULL)',
            '    return FALSE;',
            '  g_ptr_array_add (results, result);',
        ]
    else:
        addresses = [f'&r[{i}]' for i in range(n)]
        out += [
            f'  GTorchImpl *r[{n}] = {{ NULL }};',
            f'  if (!gtorch_op_{row.name} ({", ".join(args + addresses + ["error"])}))',
            '    return FALSE;',
            f'  for (guint i = 0; i < {n}; i++)',
            '    g_ptr_array_add (results, r[i]);',
        ]
    out += ['  return TRUE;', '}', '']
    if row.inplace:
        out += [
            'static gboolean',
            f'invoke_{row.name}_inplace {params}',
            '{',
            f'  if (!gtorch_op_{row.name}_inplace ({", ".join(args + ["error"])}))',
            '    return FALSE;',
            '  g_ptr_array_add (results, gtorch_impl_ref (inputs[0]));',
            '  return TRUE;',
            '}',
            '',
        ]
    return out


def emit_samples(rows):
    out = [
        '#include <math.h>',
        '',
        '#include "gtorch-op-samples-private.h"',
        '#include "gtorch-ops-private.h"',
        '',
    ]
    table = []
    for row in rows:
        out += emit_invoker(row)
        for n, sample in enumerate(row.samples):
            names = {a.name for a in row.args}
            for key in sample:
                if key not in SAMPLE_KEYS and key not in names:
                    row.fail('sample', f'no argument {key}')
            tensors = sample_tensors(row, sample)
            ident = f'{row.name}_{n}'
            dtypes = fixed_dtypes(sample)
            if tensors:
                out.append(f'static const GTorchSampleTensor tensors_{ident}[] = {{')
                for a, _, shape in tensors:
                    dims = ', '.join(map(str, shape)) if shape else '0'
                    dtype = f'GTORCH_DTYPE_{dtypes[a.name].upper()}' if a.name in dtypes else '0'
                    n_dims = len(shape) if shape is not None else -1
                    out.append(
                        f'  {{ "{a.name}", {n_dims}, {{ {dims} }}, {dtype} }},'
                    )
                out += ['};', '']
            if row.attrs:
                values = ', '.join(attr_value(row, sample, a) for a in row.attrs)
                out += [f'static const GTorchAttr attrs_{ident}[] = {{ {values} }};', '']
            low, high = sample.get('low', -2.0), sample.get('high', 2.0)
            table.append(
                f'  {{ {enum_constant("OP", row.name)}, {n}, {len(tensors)}, '
                f'{"tensors_" + ident if tensors else "NULL"}, {"attrs_" + ident if row.attrs else "NULL"}, '
                f'{low}, {high}, {"TRUE" if sample.get("grad", True) else "FALSE"} }},'
            )
    out += ['const GTorchInvoker gtorch_op_invokers[] = {']
    out += [f'  [{enum_constant("OP", r.name)}] = invoke_{r.name},' for r in rows]
    out += ['};', '', 'const GTorchInvoker gtorch_op_in_place_invokers[] = {']
    out += [f'  [{enum_constant("OP", r.name)}] = invoke_{r.name}_inplace,' for r in rows if r.inplace]
    out += [f'  [{enum_constant("OP", rows[-1].name)} + 1] = NULL,']
    out += ['};', '', 'const GTorchSample gtorch_op_samples[] = {'] + table
    return out + [
        '};',
        '',
        'const guint gtorch_n_op_samples = G_N_ELEMENTS (gtorch_op_samples);',
        '',
    ]


def rows_as_json(rows, forms):
    out = []
    for r in rows:
        out.append(
            {
                'name': r.name,
                'family': r.family,
                'internal': r.internal,
                'method': bool(r.is_method),
                'args': [
                    {'name': a.name, 'kind': a.kind, 'enum': a.enum, 'default': a.default}
                    for a in r.args
                ],
                'returns': 'Tensor[]'
                if r.returns_list
                else ('Tensor' if len(r.outputs) == 1 else r.outputs),
                'dtypes': r.dtypes,
                'promote': r.promote,
                'inplace': r.inplace,
                'scalar': r.scalar,
                'forms': forms.get(r.name, []),
                'operator': r.data.get('operator'),
                'doc': r.data['doc'],
                'torch': r.data.get('torch'),
                'samples': r.samples,
            }
        )
    return out
