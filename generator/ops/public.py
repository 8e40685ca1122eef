# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The public functions of operations, with their documentation."""

from generator import c
from generator.ops import docs, fill
from generator.ops.rows import ERROR
from generator.signatures import CLASSES


# What tells that a number of the type is not given.
NONES = {'gint64': '{} == GTORCH_NONE', 'gdouble': 'gtorch_is_none_double ({})'}
BOUNDS = {'inf': 'G_MAXINT64', '-inf': 'G_MININT64'}  # what says to clamp_int () that there is no bound


class Form:
    """One public function of an operation; scalar: the tensor that a number replaces."""

    def __init__(self, row, suffix, scalar, number, in_place):
        self.row, self.suffix, self.scalar, self.number, self.in_place = row, suffix, scalar, number, in_place
        self.name = ('gtorch_tensor_' if row.is_method else 'gtorch_') + row.name + suffix
        self.whole = row.has_numbers and number == 'gint64'
        self.outs = [] if in_place or len(row.outputs) == 1 else row.outputs
        self.returns = 'GPtrArray *' if row.returns_list else ('gboolean' if self.outs else 'GTorchTensor *')
        self.failure = 'FALSE' if self.outs else 'NULL'
        self.params = row.c_args(True, scalar, number) + [('GTorchTensor **', o) for o in self.outs] + ERROR

    def locals(self):
        found = ['g_autoptr (GTorchImpl) number = NULL;'] if self.scalar else []
        if self.row.list is not None:
            found.append(f'g_autofree GTorchImpl **{self.row.list.name}_impls = NULL;')
        return found + [f'GTorchImpl *{o}_impl = NULL;' for o in self.outs]

    def held(self):
        """Returns the first declarations of a composite."""
        if not self.row.composite:
            return []
        found = [f'GTORCH_HOLD_TENSOR ({t.name});' for t in self.row.tensors if t.name != self.scalar]
        if self.row.list is not None:
            found.append(f'GTORCH_HOLD_TENSORS ({self.row.list.name}, {self.row.list.c_length});')
        made = 'gboolean ' if self.is_boolean else 'GPtrArray *' if self.row.returns_list else 'GTorchImpl *'
        return [*found, f'{made}made;', 'const GTorchOpClass *former;']

    @property
    def is_boolean(self):
        """True if the internal function returns only whether it succeeded."""
        return self.in_place or bool(self.outs)

    def checks(self):
        tests = {
            'Tensor': 'GTORCH_IS_TENSOR ({0})',
            'Tensor?': '{0} == NULL || GTORCH_IS_TENSOR ({0})',
            'Device?': '{0} == NULL || GTORCH_IS_DEVICE ({0})',
            'Generator?': '{0} == NULL || GTORCH_IS_GENERATOR ({0})',
            'Tensor[]': '{0} != NULL || {1} == 0',
            'int[]': '{0} != NULL || {1} == 0',
        }
        return [
            f'g_return_val_if_fail ({tests[a.kind].format(a.name, a.c_length)}, {self.failure});'
            for a in self.row.args
            if a.name != self.scalar and a.kind in tests
        ]

    def nones(self):
        """Returns what is done with numbers that are not given: they get their default, or are refused."""
        found = []
        for a in self.row.args:
            if a.has_items:
                items, n = a.c_default()
                found += [fill('public.c.in', 'list', name=a.name, length=a.c_length, n=n,
                               items=items.removeprefix('(const gint64[]) '))]
            is_element = a.name == self.scalar or a.kind == 'number'
            ctype = self.number if is_element else a.public.strip()
            on_none = 'REFUSED' if a.name == self.scalar else a.on_none()
            is_any = on_none == 'NUMBER' or is_element and ctype == 'gint64' and not a.is_bound
            if ctype not in NONES or is_any:
                continue
            test = NONES[ctype].format(a.name)
            if on_none == 'REFUSED':
                found.append(fill('public.c.in', 'refused', test=test, op=self.row.constant, name=a.name,
                                  failure=self.failure))
            elif a.is_bound and self.whole:
                found += [f'if ({test})', f'  {a.name} = {BOUNDS[a.default]};']
            elif a.is_optional and a.default != 'none':
                found += [f'if ({test})', f'  {a.name} = {a.c_default()[0]};']
        return found

    def prepare(self):
        found = []
        if self.scalar:
            kind = 'number' if self.number == 'gdouble' else 'int'
            found.append(f'number = gtorch_impl_new_{kind} ({self.scalar});')
        if self.row.list is not None:
            a = self.row.list
            found.append(f'{a.name}_impls = gtorch_tensors_unwrap ({a.name}, {a.c_length});')
        return found

    def argument(self, a):
        if a.name == self.scalar:
            return ['number']
        if a.kind == 'Tensor[]':
            return [f'{a.name}_impls', a.c_length]
        if a.is_tensor:
            unwrapped = f'gtorch_tensor_unwrap ({a.name})'
            return [f'{a.name} != NULL ? {unwrapped} : NULL' if a.kind == 'Tensor?' else unwrapped]
        return [name for _, name in a.c_declaration(True)]

    def call(self):
        args = [text for a in self.row.args for text in self.argument(a)]
        tail = ('_int' if self.whole else '') + ('_inplace' if self.in_place else '')
        passed = ', '.join([*args, *(f'&{o}_impl' for o in self.outs), 'error'])
        return f'gtorch_op_{self.row.name}{tail} ({passed})'

    def begin(self):
        """A composite passes on its name, since an error of a part names the part."""
        row = self.row
        if not row.composite:
            return []
        check = []
        if row.list is not None:
            check.append(fill('public.c.in', 'composite_list', op=row.constant, impls=f'{row.list.name}_impls',
                              n=row.list.c_length, failure=self.failure))
        made = 'made' if self.is_boolean else 'made != NULL'
        suffix, inputs = self.inputs()
        return [*check, fill('public.c.in', 'composite', op=row.constant, call=self.call(), made=made, list=suffix,
                             inputs=inputs)]

    def inputs(self):
        """Returns what observers are told of the tensors: the end of the function's name, and its arguments."""
        row = self.row
        tensors = [text for a in row.tensors for text in self.argument(a)]
        told = f'GTORCH_IMPLS ({", ".join(tensors)})' if tensors else 'NULL, 0'
        if row.list is None:
            return '', told
        items = f'{row.list.name}_impls, {row.list.c_length}'
        return ('_list', f'{told}, {items}') if tensors else ('', items)

    def result(self):
        call = 'made' if self.row.composite else self.call()
        if self.in_place:
            return f'return {call} ? {self.row.args[0].name} : NULL;'
        if not self.outs:
            return f'return gtorch_tensor{"s" if self.row.returns_list else ""}_wrap ({call});'
        return fill('public.c.in', 'outputs', call=call,
                    outputs=[fill('public.c.in', 'output', name=o) for o in self.outs])

    def emit(self):
        devices = [f'{a.name} = gtorch_device_resolved ({a.name});' for a in self.row.args if a.kind == 'Device?']
        head = c.declaration(self.returns, self.name, self.params)
        return fill(
            'public.c.in', 'function', doc=docs.emit(self), declaration=head, held=self.held(), locals=self.locals(),
            checks=self.checks(), devices=devices, nones=self.nones(), prepare=self.prepare(), begin=self.begin(),
            result=[self.result()],
        )

    def prototype(self):
        return f'GTORCH_AVAILABLE_IN_0_1\n{c.prototype(self.returns, self.name, self.params)}'


def variants(row):
    """Yields (suffix, scalar, type of numbers) of the public out-of-place functions."""
    if row.internal:
        return []
    found = [(form, None, number) for form, number in row.op_forms()]
    if row.scalar:
        found.append(('_scalar', row.scalar, 'gdouble'))
        if 'int64' in CLASSES[row.dtypes]:
            found.append(('_int', row.scalar, 'gint64'))
    return found


def forms(rows):
    for row in rows:
        for suffix, scalar, number in variants(row):
            yield Form(row, suffix, scalar, number, False)
            if row.inplace:
                yield Form(row, f'{suffix}_inplace', scalar, number, True)


def emit(rows):
    return fill('public.c.in', 'file', functions=''.join(form.emit() for form in forms(rows)))


def emit_header(rows):
    return fill('ops.h.in', 'public', declarations=[form.prototype() for form in forms(rows)])
