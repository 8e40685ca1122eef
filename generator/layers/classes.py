# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The C code of a layer's class."""

import re

from generator import c
from generator.layers import checks, fill, lazy
from generator.layers.fields import C_TYPES, called, fields_of, with_self
from generator.layers.inputs import (
    forward_parameters, form_of, input_names, number_check, public_forward,
)
from generator.layers.rows import Lazy
from generator.layers.tensors import table
from generator.text import sentence, starred, wrap

def comment(text, indent=''):
    """Returns the lines of a documentation comment; code blocks are not wrapped."""
    lines, is_code = [], False
    for paragraph in text.split('\n\n'):
        if lines:
            lines.append('')
        if '```' in paragraph:
            is_code = paragraph.count('```') % 2 == 1
            lines += paragraph.split('\n')
        elif is_code:
            lines += paragraph.split('\n')
        else:
            lines += wrap(paragraph, 100)
    return starred(lines, indent)


# -- construction ------------------------------------------------------------------------------------
def constructed(layer):
    rules, later = checks.lines(layer)
    lead = lazy.maker(layer, rules) if layer.data.get('lazy') else ''
    rules = [lazy.guarded(layer, line) for line in rules]
    prepare, end = '', ''
    for prop in layer.props:
        if prop.kind == 'size' and prop.default is not None and not prop.may_be_absent:
            if re.fullmatch(r'-?\d+', prop.default):
                prepare += f'  gtorch_layer_default_size (&self->{prop.field}, {prop.default});\n'
            else:
                prepare += (
                    f'  if (self->{prop.field} == NULL && self->{prop.default} != NULL)\n'
                    f'    self->{prop.field} = gtorch_size_ref (self->{prop.default});\n'
                )
    body = ''
    if layer.data.get('lazy'):
        prepare += f'  gtorch_lazy_begin (module, self->{layer.props[0].field});\n'
    if 'prepare' in layer.data:
        prepare += f'  {called(layer, layer.data["prepare"], "module")};\n'
    for prop in layer.props:
        if prop.kind == 'size' and prop.length and not prop.is_given:
            prepare += f'  gtorch_layer_expand_size (&self->{prop.field}, {prop.length});\n'
    if layer.tensors:
        if layer.data.get('lazy'):
            body += f'      gtorch_{layer.snake}_make (module, gtorch_layer_make_tensors, NULL);\n'
        else:
            body += table(layer)
            body += '      gtorch_layer_make_tensors (module, tensors, G_N_ELEMENTS (tensors), NULL);\n'
        if 'built' in layer.data:
            body += f'      {called(layer, layer.data["built"], "module")};\n'
    elif layer.make:
        body += f'      {called(layer, layer.make, "module")};\n'
    if layer.moves:
        end = '  gtorch_layer_move (module, self->device, self->dtype);\n  g_clear_object (&self->device);\n'
    if not rules and not prepare and not body:
        return ''
    if not body:
        body = '      return;\n'
    check = ''
    if later:
        check = fill('layer.c.in', 'check', snake=layer.snake, Name=layer.name, SNAKE=layer.snake.upper(),
                     checks='\n         && '.join(later))
    failure = '  GError *failure = NULL, **error = &failure;\n' if rules else ''
    failed = '  else\n    gtorch_module_set_error (module, failure);\n' if rules else ''
    return lead + check + fill(
        'layer.c.in', 'constructed', snake=layer.snake, Name=layer.name, SNAKE=layer.snake.upper(), prepare=prepare,
        checks='\n      && '.join(rules) or 'TRUE', body=body, end=end, failure=failure, failed=failed,
    )


def reset(layer):
    """Returns the function that gives the tensors their first values again."""
    if layer.make:
        return fill('layer.c.in', 'reset_network', snake=layer.snake, SNAKE=layer.snake.upper())
    if not layer.tensors:
        return ''
    built = ''
    if 'built' in layer.data:
        call = called(layer, layer.data['built'], 'module')
        built = f'\n         && ({call} || gtorch_module_is_usable (module, error))'
    made = table(layer)
    needs = 'self->' in made + built
    return fill(
        'layer.c.in', 'reset', snake=layer.snake, table=made, built=built,
        self=f'  GTorch{layer.name} *self = GTORCH_{layer.snake.upper()} (module);\n' if needs else '',
    )


# -- forward -----------------------------------------------------------------------------------------
def op_arguments(layer):
    """Returns the arguments of the operation, the names of members among them with the lines that reference them,
    and the tensors among them."""
    inputs = input_names(layer)
    params = [t.name for t in layer.tensors if not t.is_buffer]
    buffers = [prop.name for prop in layer.buffers] + [t.name for t in layer.tensors if t.is_buffer]
    given = layer.data.get('args', {})
    found, held, tensors = [], [], []
    for arg in layer.op.args:
        prop = layer.prop(arg.name)
        at = len(found)
        if arg.name in given:
            found.append(with_self(layer, given[arg.name]))
        elif arg.is_tensor and arg.name in params:
            found.append(arg.name)
            call = f'gtorch_module_take_parameter (module, {params.index(arg.name)}, &{arg.name}, error)'
            held.append((arg.name, f'  if (!{call})\n    return NULL;\n'))
        elif arg.is_tensor and arg.name in buffers:
            found.append(arg.name)
            call = f'gtorch_module_dup_buffer_impl (module, {buffers.index(arg.name)})'
            held.append((arg.name, f'  {arg.name} = {call};\n'))
        elif arg.kind == 'Tensor?' and arg.name in layer.inputs:
            found.append(f'gtorch_layer_input (inputs, n_inputs, {list(layer.inputs).index(arg.name)})')
        elif arg.is_tensor and arg.kind == 'Tensor':
            if not inputs:
                layer.fail('inputs', f'is missing: the operation takes the tensor {arg.name}, too')
            found.append(f'gtorch_tensor_unwrap ({inputs.pop(0)})')
        elif prop is not None and prop.kind == 'reduction':
            found.append(f'gtorch_loss_get_reduction ({"(GTorchLoss *) " if layer.inputs else ""}module)')
        elif prop is not None and prop.may_be_absent:
            is_given = f'self->{prop.field} != NULL'
            found.append(f'{is_given} ? gtorch_layer_numbers (self->{prop.field}) : NULL')
            found.append(f'{is_given} ? gtorch_size_get_length (self->{prop.field}) : 0')
        elif prop is not None and prop.kind == 'size':
            found += [f'gtorch_layer_numbers (self->{prop.field})', f'gtorch_size_get_length (self->{prop.field})']
        elif prop is not None and prop.is_optional:
            if arg.is_optional:
                found.append(f'self->{prop.field}')
            else:
                none = 'self->{0} == GTORCH_NONE' if prop.kind == 'int' else 'gtorch_is_none_double (self->{0})'
                found.append(f'{none.format(prop.field)} ? {arg.c_default()[0]} : self->{prop.field}')
        elif prop is not None:
            found.append(f'self->{prop.field}')
        elif arg.name == 'training':
            found.append('gtorch_module_get_training (GTORCH_MODULE (module))')
        elif arg.c_default() is not None:
            found += arg.c_default()
        else:
            layer.fail('op', f'nothing is known of the argument {arg.name}')
        tensors += found[at:] if arg.is_tensor else []
    return ', '.join([*found, 'error']), held, ', '.join(tensors)


def forward(layer):
    form = form_of(layer)
    members = ''
    if layer.forward:
        text = f'  return {called(layer, layer.forward, "module", *input_names(layer))[:-1]}, error);\n'
    else:
        arguments, held, tensors = op_arguments(layer)
        text = ''.join(lines for _name, lines in held)
        members = ''.join(f'  g_autoptr (GTorchImpl) {name} = NULL;\n' for name, _lines in held)
        if layer.prop('inplace') is not None:
            if not layer.op.inplace:
                layer.fail('props.inplace', f'{layer.op.name} has no form in place')
            text = (
                f'  if (self->inplace)\n    return gtorch_op_{layer.op.name}_inplace ({arguments}) '
                '? g_object_ref (input) : NULL;\n'
            )
        call = f'gtorch_op_{layer.op.name} ({arguments})'
        if layer.op.composite:
            members += '  const GTorchOpClass *former;\n  GTorchImpl *output;\n'
            text += fill('layer.c.in', 'composite', OP=layer.op.name.upper(), call=call, tensors=tensors)
        else:
            text += f'  return gtorch_tensor_wrap ({call});\n'
    needs = 'self->' in text
    check = fill('layer.c.in', 'self', SNAKE=layer.snake.upper()) if needs or layer.inputs else ''
    check += number_check(layer)
    waits = fill('layer.c.in', 'waits', input=input_names(layer)[0]) if layer.data.get('lazy') else ''
    if layer.prop('return_indices') is not None:
        waits += '  if (self->return_indices)\n    return gtorch_layer_refuse_indices (module, error);\n'
    return fill(
        'layer.c.in', 'forward', snake=layer.snake, vfunc=form.vfunc, Base=form.base, returns=form.returns,
        inputs=form.declared, body=waits + text,
        declared=members + (f'  GTorch{layer.name} *self = (GTorch{layer.name} *) module;\n' if needs else ''),
        self=check,
    )


# -- the constructor ---------------------------------------------------------------------------------
def new_parameters(layer):
    found = []
    for prop in layer.required:
        if prop.kind == 'size':
            found += [f'const gint64 *{prop.name}', f'gsize n_{prop.name}']
        else:
            found.append(f'{C_TYPES[prop.kind]}{prop.name}')
    if layer.can_fail:
        found.append('GError **error')
    return found


def declared(layer):
    return ', '.join(new_parameters(layer)) or 'void'


def constructor(layer):
    params, locals_, values, checks, sizes = '', '', '', '', ''
    for prop in layer.required:
        value = prop.name
        if prop.kind == 'size':
            params += f' * @{prop.name}: (array length=n_{prop.name}): {prop.doc}\n'
            params += f' * @n_{prop.name}: the length of @{prop.name}\n'
            locals_ += f'  g_autoptr (GTorchSize) {prop.name}_size = NULL;\n'
            checks += f'  g_return_val_if_fail ({prop.name} != NULL || n_{prop.name} == 0, NULL);\n'
            # One element more than the maximum is enough to refuse them.
            sizes += f'  {prop.name}_size = gtorch_size_new ({prop.name}, MIN (n_{prop.name}, GTORCH_MAX_DIMS + 1));\n'
            value = f'{prop.name}_size'
        else:
            params += f' * @{prop.name}: {prop.doc}\n'
        values += f', "{c.dashed(prop.field)}", {value}'
    call = f'g_object_new (GTORCH_TYPE_{layer.snake.upper()}{values}, NULL)'
    failure = ''
    if layer.can_fail:
        params += ' * @error: return location for an error\n'
        call = f'gtorch_module_checked ({call}, error)'
        failure = ', or %NULL with @error set if an argument is\n *   out of its range'
    article = 'an' if layer.name[0] in 'AEIOU' else 'a'
    doc = f'Creates {article} [class@{layer.name}]. '
    rest = [p for p in layer.props if p.is_field and p not in layer.required]
    doc += 'Other settings are properties: see `gtorch_module_new ()`.' if rest else ''
    return fill(
        'layer.c.in', 'new', snake=layer.snake, Name=layer.name, params=params, doc=comment(doc.strip()),
        failure=failure,
        declared=declared(layer), locals=f'{locals_}\n{checks}{sizes}' if locals_ else '', call=call,
    )


# -- everything --------------------------------------------------------------------------------------
def class_init(layer, fields, has_constructed, has_finalize):
    has_check = bool(checks.lines(layer)[1])
    form = form_of(layer)
    base, name = c.snake(form.base).upper(), form.vfunc
    lines = ''
    if has_constructed:
        lines += f'  G_OBJECT_CLASS (klass)->constructed = gtorch_{layer.snake}_constructed;\n'
    if has_finalize:
        lines += f'  G_OBJECT_CLASS (klass)->finalize = gtorch_{layer.snake}_finalize;\n'
    lines += f'  GTORCH_{base}_CLASS (klass)->{name} = gtorch_{layer.snake}_{name};\n'
    if layer.make or layer.tensors:
        lines += f'  GTORCH_MODULE_CLASS (klass)->reset = gtorch_{layer.snake}_reset;\n'
    if has_check:
        lines += f'  GTORCH_MODULE_CLASS (klass)->check = gtorch_{layer.snake}_check;\n'
    if layer.texts:
        lines += f'  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_{layer.snake}_extra_repr;\n'
    docs = [(c.dashed(field.name), field.doc) for field in fields]
    docs += [(c.dashed(tensor.name), tensor.doc) for tensor in layer.tensors if tensor.doc]
    docs += [(c.dashed(prop.name), sentence(prop.doc)) for prop in layer.buffers]
    if docs:
        lines += '\n'
    for key, doc in docs:
        lines += fill('layer.c.in', 'property', Name=layer.name, property=key, doc=comment(doc, '  '))
    if docs:
        lines += f'  GTORCH_FIELDS (klass, gtorch_{layer.snake}_fields);\n'
    return lines


def source(layer):
    """Returns the C code of the class."""
    if isinstance(layer, Lazy):
        return lazy.source(layer, comment, constructor)
    fields = fields_of(layer)
    rows = ''.join(field.row(layer) for field in layer.in_order_of_text(fields))
    counts = {False: 0, True: 0}
    for i, prop in enumerate(layer.buffers):
        rows += f'  GTORCH_LAYER_SET_BUFFER ("{c.dashed(prop.name)}", {i}),\n'
    for tensor in layer.tensors:
        kind = 'BUFFER' if tensor.is_buffer else 'PARAMETER'
        if tensor.doc:
            rows += f'  GTORCH_LAYER_{kind} ("{c.dashed(tensor.name)}", {counts[tensor.is_buffer]}),\n'
        counts[tensor.is_buffer] += 1
    built = constructed(layer)
    finalize = ''
    if any(field.kind in ('size', 'factors', 'device') for field in fields):
        finalize = fill('layer.c.in', 'finalize', snake=layer.snake)
    functions = built + reset(layer) + finalize + forward(layer)
    if layer.texts:
        functions += fill('layer.c.in', 'extra_repr', snake=layer.snake, SNAKE=layer.snake.upper())
    init = checks.choices(layer) + ''.join(
        f'  gtorch_module_register_buffer (GTORCH_MODULE (self), "{prop.name}", NULL, TRUE, NULL);\n'
        for prop in layer.buffers
    )
    return fill(
        'layer.c.in', 'class', Name=layer.name, snake=layer.snake, Base=layer.base,
        BASE=c.snake(layer.base).upper(), doc=comment(layer.doc),
        members=''.join(f'  {C_TYPES[field.kind]}{field.name};\n' for field in fields),
        table=fill('layer.c.in', 'table', snake=layer.snake, rows=rows) if rows else '',
        functions=functions.rstrip('\n') + '\n',
        class_init=class_init(layer, fields, bool(built), bool(finalize)), init=init,
        constructor=constructor(layer) + public_forward(layer),
    )


def emit_header(layers):
    declarations = [
        fill('layers.h.in', 'declaration', Name=layer.name, snake=layer.snake, SNAKE=layer.snake.upper(),
             Base=layer.base, declared=declared(layer),
             forward=fill('layers.h.in', 'forward', snake=layer.snake, declared=forward_parameters(layer))
             if layer.inputs else '')
        for layer in layers
    ]
    return fill('layers.h.in', 'header', declarations=''.join(declarations))
