# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The data for tests and bindings: samples in C, and the rows as JSON."""

from generator import c
from generator.ops import fill

SAMPLE_KEYS = {'shapes', 'low', 'high', 'dtype', 'positive', 'torch', 'grad', 'magnitudes'}


def sample_tensors(row, sample):
    """Yields (arg, list index or -1, shape or None) for each tensor of a sample."""
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
    """Returns the inputs with a dtype of their own; a plain string is the value of an argument
    named dtype."""
    value = sample.get('dtype', {})
    return value if isinstance(value, dict) else {}


def attr_value(row, sample, a):
    """Returns the C initialiser of one attribute of a sample."""
    value = sample.get(a.name)
    if isinstance(value, dict):
        value = None
    if a.kind == 'int[]':
        if value is None:
            text = '[]' if a.default in (None, 'none') else a.default
            value = [int(v) for v in text.strip('[]').split(',') if v.strip()]
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
        return f'{{ .i = {c.boolean(value)} }}'
    if a.kind in ('DType', 'enum'):
        return f'{{ .i = {c.constant(a.enum or "DType", value)} }}'
    if isinstance(value, float) and value in (float('inf'), float('-inf')):
        return f'{{ .d = {"-" if value < 0 else ""}INFINITY }}'
    return f'{{ .{a.member} = {value} }}'


def invoker_args(row):
    """Returns the arguments of an internal function, taken from those of an invoker."""
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
    """Returns a function with the same signature for every op, composites too, and its in-place form."""
    args, n = invoker_args(row), len(row.outputs)
    call = f'gtorch_op_{row.name} ({", ".join([*args, "error"])})'
    if row.returns_list:
        body = fill('samples.c.in', 'list', call=call)
    elif n == 1:
        body = fill('samples.c.in', 'one', call=call)
    else:
        addresses = [f'&r[{i}]' for i in range(n)]
        call = f'gtorch_op_{row.name} ({", ".join([*args, *addresses, "error"])})'
        body = fill('samples.c.in', 'several', n=str(n), call=call)
    text = fill('samples.c.in', 'invoker', name=row.name, body=[body])
    if row.inplace:
        call = f'gtorch_op_{row.name}_inplace ({", ".join([*args, "error"])})'
        body = fill('samples.c.in', 'in_place', call=call)
        text += fill('samples.c.in', 'invoker', name=f'{row.name}_inplace', body=[body])
    return text


def emit_tensor(a, shape, dtypes, positive):
    dims = ', '.join(map(str, shape)) if shape else '0'
    dtype = c.constant('DTYPE', dtypes[a.name]) if a.name in dtypes else '0'
    n, positive = len(shape) if shape is not None else -1, c.boolean(a.name in positive)
    return f'{{ "{a.name}", {n}, {{ {dims} }}, {dtype}, {positive} }},'


def emit_sample(row, n, sample):
    """Returns (definitions, the line of the table)."""
    for key in sample:
        if key not in SAMPLE_KEYS and key not in {a.name for a in row.args}:
            row.fail('sample', f'no argument {key}')
    tensors, name, text = sample_tensors(row, sample), f'{row.name}_{n}', ''
    if tensors:
        dtypes = fixed_dtypes(sample)
        lines = [emit_tensor(a, shape, dtypes, sample.get('positive', [])) for a, _, shape in tensors]
        text += fill('samples.c.in', 'tensors', name=name, tensors=lines)
    if row.attrs:
        values = ', '.join(attr_value(row, sample, a) for a in row.attrs)
        text += fill('samples.c.in', 'attrs', name=name, values=values)
    low, high = sample.get('low', -2.0), sample.get('high', 2.0)
    return text, (
        f'{{ {row.constant}, {n}, {len(tensors)}, {"tensors_" + name if tensors else "NULL"}, '
        f'{"attrs_" + name if row.attrs else "NULL"}, {low}, {high}, {c.boolean(sample.get("grad", True))}, '
        f'{c.boolean(sample.get("magnitudes", False))} }},'
    )


def emit(rows):
    text, table = '', []
    for row in rows:
        text += emit_invoker(row)
        for n, sample in enumerate(row.samples):
            definitions, line = emit_sample(row, n, sample)
            text += definitions
            table.append(line)
    return fill(
        'samples.c.in', 'file', rows=text.removesuffix('\n'), samples=table, last=rows[-1].constant,
        invokers=[f'[{row.constant}] = invoke_{row.name},' for row in rows],
        in_place=[f'[{row.constant}] = invoke_{row.name}_inplace,' for row in rows if row.inplace],
    )


def as_data(row, forms):
    """Returns the data for bindings and other tests."""
    args = [
        {'name': a.name, 'keyword': row.keywords.get(a.name, a.name), 'kind': a.kind, 'enum': a.enum,
         'default': a.default, 'optional': a.is_optional, 'items': a.has_items}
        for a in row.args
    ]
    returns = 'Tensor[]' if row.returns_list else 'Tensor' if len(row.outputs) == 1 else row.outputs
    return {
        'name': row.name, 'family': row.family, 'internal': row.internal, 'method': bool(row.is_method), 'args': args,
        'returns': returns, 'dtypes': row.dtypes, 'promote': row.promote, 'inplace': row.inplace, 'scalar': row.scalar,
        'forms': forms, 'operator': row.data.get('operator'), 'doc': row.data['doc'], 'torch': row.data.get('torch'),
        'samples': row.samples,
    }
