#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Differentiable functions written in Python."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402


class Cube(GTorch.Function):
    def forward(self, context, x):
        context.save_for_backward(x)
        return x * x * x

    def backward(self, context, grad):
        (x,) = context.saved_tensors
        return grad * 3 * x * x


class Wrong(Cube):
    def backward(self, context, grad):
        (x,) = context.saved_tensors
        return grad * 2 * x


class ScaledSum(GTorch.Function):
    """Two inputs and two outputs."""

    def forward(self, context, x, y):
        context.save_for_backward(x, y)
        return x * y, x + y

    def backward(self, context, product, total):
        x, y = context.saved_tensors
        assert context.needs_input_grad == (True, False), context.needs_input_grad
        return product * y + total, None


class Broken(Cube):
    def backward(self, context, grad):
        raise ValueError('from within')


class Detour(GTorch.Function):
    """A function whose first input gets no gradient, although it requires one."""

    def forward(self, context, x, y):
        return x + y

    def backward(self, context, grad):
        return None, grad * 3


class Nothing(Cube):
    def backward(self, context, grad):
        return None


class NoTensor(GTorch.Function):
    def forward(self, context, x):
        return 3

    def backward(self, context, grad):
        return grad


def leaf(*values):
    return GTorch.tensor(list(values), dtype=GTorch.float64).requires_grad_()


@tap.case
def no_gradient_is_none():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    Detour()(x, y).sum().backward()
    assert x.grad is None and y.grad.tolist() == [3, 3]
    Nothing()(x).sum().backward()
    assert x.grad is None
    inner = x * 2
    (Nothing()(inner) + inner).sum().backward()
    assert x.grad.tolist() == [2, 2]
    raises(GLib.Error, lambda: GTorch.gradcheck(Detour(), [x, y]), 'gradcheck')


@tap.case
def a_function_of_python_is_differentiated():
    x = leaf(1.0, -2.0)
    y = Cube()(x)
    assert y.tolist() == [1, -8] and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3, 12], x.grad


@tap.case
def functions_can_be_differentiated_twice():
    x = leaf(2.0)
    (first,) = GTorch.autograd.grad(Cube()(x).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [12], x.grad


@tap.case
def several_inputs_and_outputs():
    x, y = leaf(2.0), GTorch.tensor([5.0], dtype=GTorch.float64)
    product, total = ScaledSum()(x, y)
    (product + 10 * total).sum().backward()
    assert x.grad.tolist() == [15], x.grad


@tap.case
def gradcheck_sees_right_and_wrong():
    x = leaf(1.5, -0.5, 2.0)
    assert GTorch.gradcheck(Cube(), x)
    assert GTorch.gradgradcheck(Cube(), x)
    assert GTorch.gradcheck(lambda a, b: (a * b).tanh(), [x, leaf(0.5, 1.0, 2.0)])
    raises(GLib.Error, lambda: GTorch.gradcheck(Wrong(), x), 'gradcheck')


@tap.case
def exceptions_propagate_unchanged():
    raises(TypeError, lambda: NoTensor()(leaf(1.0)), 'not a tensor')
    y = Broken()(leaf(1.0)).sum()
    raises(Exception, y.backward, 'from within')


@tap.case
def without_gradients_nothing_is_recorded():
    x = leaf(1.0)
    with GTorch.no_grad():
        assert not Cube()(x).requires_grad


@tap.case
def autocast_is_a_block_and_a_decorator():
    device = GTorch.ones([2, 2]).device
    x = GTorch.ones([2, 2])
    with GTorch.autocast(device, dtype='bfloat16') as region:
        assert (x @ x).dtype == GTorch.bfloat16
        assert GTorch.is_autocast_enabled(device)
        with GTorch.autocast(device, enabled=False):
            assert (x @ x).dtype == GTorch.float32
            assert not GTorch.is_autocast_enabled(device)
        with region:
            assert GTorch.get_autocast_dtype(device) == GTorch.bfloat16
        assert (x @ x).dtype == GTorch.bfloat16
    assert (x @ x).dtype == GTorch.float32

    @GTorch.amp.autocast(device, dtype=GTorch.float16)
    def product():
        return x @ x

    assert product().dtype == GTorch.float16
    raises(ValueError, lambda: GTorch.autocast('tpu'), 'device_type must be')
    raises(GLib.Error, GTorch.autocast('cpu', dtype='float64').__enter__, 'not to float64')
    try:
        with GTorch.autocast(device):
            raise KeyError
    except KeyError:
        assert (x @ x).dtype == GTorch.float32


class Seen(GTorch.Function):
    def forward(self, context, x):
        self.forward_dtype = (x @ x).dtype
        return x * 2

    def backward(self, context, grad):
        self.backward_dtype = (grad.float() @ grad.float()).dtype
        return grad * 2


@tap.case
def functions_go_backward_in_the_autocast_of_forward():
    x = GTorch.ones([2, 2]).requires_grad_()
    function, exact = Seen(), Seen(cast_inputs=GTorch.float16)
    with GTorch.autocast(x.device, dtype='bfloat16'):
        loss = function(x).sum() + exact(x).sum()
    loss.backward()
    assert function.forward_dtype == function.backward_dtype == GTorch.bfloat16
    assert exact.forward_dtype == GTorch.float16 and exact.backward_dtype == GTorch.float32
    assert x.grad.dtype == GTorch.float32


@tap.case
def gradients_that_are_not_there_are_none():
    x, unused = GTorch.ones(2).requires_grad_(), GTorch.ones(3).requires_grad_()
    raises_text = None
    try:
        GTorch.autograd.grad((x * 2).sum(), [x, unused])
    except GLib.Error as error:
        raises_text = str(error)
    assert 'allow_unused' in raises_text
    used, none = GTorch.autograd.grad((x * 2).sum(), [x, unused], allow_unused=True)
    assert used.tolist() == [2, 2] and none is None
    used, zeros = GTorch.autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True)
    assert used.tolist() == [2, 2] and zeros.tolist() == [0, 0, 0]


@tap.case
def lists_that_hold_themselves_are_refused():
    endless = []
    endless.append(endless)
    for function in (GTorch.tensor, GTorch.as_tensor):
        try:
            function(endless)
        except ValueError as error:
            assert 'dimensions' in str(error)
        else:
            raise AssertionError('an endless list was taken')


# Each method of a context, with the moments in which it is an error: 'forward', 'backward',
# 'between' the two, 'after' both, 'unrecorded' after a forward without gradients.
PAST = {'backward', 'between', 'after', 'unrecorded'}
MOMENTS = {
    'save_for_backward': (lambda c, x: c.save_for_backward(x), PAST),
    'mark_dirty': (lambda c, x: c.mark_dirty(x), PAST),
    'mark_non_differentiable': (lambda c, x: c.mark_non_differentiable(x), PAST),
    'get_saved_tensors': (lambda c, x: c.get_saved_tensors(), {'after', 'unrecorded'}),
    'get_needs_input_grad': (lambda c, x: c.get_needs_input_grad(7), set()),
    'get_n_inputs': (lambda c, x: c.get_n_inputs(), set()),
    'set_materialize_grads': (lambda c, x: c.set_materialize_grads(True), set()),
}


class Moments(GTorch.Function):
    """Calls all methods at every moment; adds those that fail to @found."""

    def __init__(self):
        super().__init__()
        self.found, self.contexts = {}, []

    def try_all(self, context, x, moment):
        for name, (call, _) in MOMENTS.items():
            try:
                call(context, x)
            except GLib.Error as error:
                assert error.matches(GTorch.error_quark(), GTorch.Error.AUTOGRAD), error
                assert 'forward' in error.message, error
                self.found.setdefault(name, set()).add(moment)

    def forward(self, context, x):
        self.contexts.append(context)
        y = x.clone()
        context.save_for_backward(x, y)
        for name in ('get_saved_tensors', 'get_needs_input_grad', 'get_n_inputs', 'set_materialize_grads'):
            MOMENTS[name][0](context, x)
        return y

    def backward(self, context, grad):
        self.try_all(context, grad, 'backward')
        assert len(context.saved_tensors) == 2  # nothing was added
        return grad


@tap.case
def a_context_accepts_nothing_after_forward():
    raw = {name for name in dir(GTorch.FunctionContext.__base__) if name in vars(GTorch.FunctionContext.__base__)}
    methods = {n for n in raw if hasattr(vars(GTorch.FunctionContext.__base__)[n], 'get_arguments')} - {'new'}
    assert methods == set(MOMENTS), methods ^ set(MOMENTS)
    function = Moments()
    y = function(leaf(1.0, 2.0))
    function.try_all(function.contexts[0], leaf(1.0), 'between')
    y.sum().backward()
    del y
    function.try_all(function.contexts[0], leaf(1.0), 'after')
    with GTorch.no_grad():
        function(leaf(1.0))
    function.try_all(function.contexts[1], leaf(1.0), 'unrecorded')
    for name, (_, wanted) in MOMENTS.items():
        assert function.found.get(name, set()) == wanted, f'{name}: {function.found.get(name)}'


class Marks(GTorch.Function):
    """Doubles its first input in place, and declares how its second output is made."""

    def forward(self, context, x):
        x.mul_(2)
        sign = x.detach() > 0
        context.mark_dirty(x)
        rounded = x.detach().round()
        context.mark_non_differentiable(sign, rounded)
        return x, sign, rounded

    def backward(self, context, grad, _sign, _rounded):
        return grad * 2


@tap.case
def declarations_of_forward_are_separate_arguments():
    x = leaf(1.0, -2.0)
    y = x * 1
    doubled, sign, rounded = Marks()(y)
    assert doubled.requires_grad and not sign.requires_grad and not rounded.requires_grad
    doubled.sum().backward()
    assert x.grad.tolist() == [2, 2]


@tap.case
def gradients_that_are_not_recorded_have_none():
    class Doubled(GTorch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @GTorch.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = GTorch.tensor([3.0], requires_grad=True)
    (slope,) = GTorch.autograd.grad(Doubled.apply(x).sum(), x, create_graph=True)
    assert slope.tolist() == [6] and not slope.requires_grad
    raises(TypeError, lambda: GTorch.autograd.function.once_differentiable(5), '5', 'cannot be called')


@tap.case
def modes_are_decorators_without_parentheses():
    x = GTorch.ones(1, requires_grad=True)

    @GTorch.no_grad
    def plain(x):
        """Doubles."""
        return x * 2

    @GTorch.enable_grad
    def recorded(x):
        return x * 2

    assert not plain(x).requires_grad and plain.__doc__ == 'Doubles.' and GTorch.is_grad_enabled()
    with GTorch.no_grad():
        assert recorded(x).requires_grad
    for mode in (GTorch.no_grad, GTorch.enable_grad):
        raises(TypeError, lambda mode=mode: mode(5), f'{mode.__name__}()', '5', 'cannot be called')


@tap.case
def decorated_generators_run_in_the_block_and_their_callers_do_not():
    blocks = (GTorch.no_grad, lambda: GTorch.set_grad_enabled(False), lambda: GTorch.autocast('cpu'))
    asks = (GTorch.is_grad_enabled, GTorch.is_grad_enabled, lambda: not GTorch.is_autocast_enabled('cpu'))
    for block, outside in zip(blocks, asks):
        ends = []

        @block()
        def steps(first, outside=outside, ends=ends):
            try:
                ends.append((yield outside()))
                try:
                    yield outside()
                except KeyError as error:
                    ends.append(error)
                yield outside()
            finally:
                ends.append(outside())
            return first

        assert outside() and not any(steps(3)) and outside()
        ends.clear()
        generator, error = steps(1), KeyError(1)
        found = [next(generator), outside(), generator.send('sent'), outside(), generator.throw(error), outside()]
        assert found == [False, True] * 3
        generator.close()
        assert ends == ['sent', error, False] and outside()

        def whole(steps=steps):
            return (yield from steps(7))

        generator = whole()
        assert [next(generator), next(generator)] == [False] * 2
        try:
            next(generator)
            next(generator)
        except StopIteration as end:
            assert end.value == 7
        assert outside()

        @block()
        async def awaits(outside=outside):
            before = outside()
            await asyncio.sleep(0)
            return before, outside()

        async def two(awaits=awaits, outside=outside):
            task = asyncio.ensure_future(awaits())
            await asyncio.sleep(0)
            return outside(), await task, outside()

        assert asyncio.run(two()) == (True, (False, False), True)


@tap.case
def a_block_that_was_not_begun_cannot_end():
    for block in (GTorch.no_grad(), GTorch.autocast('cpu'), GTorch.Stream('cpu'), GTorch.Device('cpu')):
        for _ in range(2):
            try:
                block.__exit__(None, None, None)
            except RuntimeError as error:
                assert 'never begun' in str(error)
            else:
                raise AssertionError(block)
            with block:
                pass


@tap.case
def functions_with_several_outputs_are_checked():
    x = GTorch.ones([3], dtype=GTorch.float64).requires_grad_()
    for check in (GTorch.gradcheck, GTorch.gradgradcheck):
        assert check(lambda x: (x * x, x.detach(), x.exp()), x) and check(lambda x: [x * x * x], [x])
    wrong = lambda x: (x * x, x * x.detach())  # noqa: E731
    try:
        GTorch.gradcheck(wrong, x)
    except GLib.Error:
        pass
    else:
        raise AssertionError('the second output is wrong')


@tap.case
def elements_are_replaced_by_data():
    layer = GTorch.nn.Linear(2, 3)
    weight, optimizer = layer.weight, GTorch.optim.SGD(layer.parameters(), lr=1)
    weight.data = GTorch.zeros(3, 2)
    weight.data.fill_(2)
    assert layer.weight is weight and weight.requires_grad and weight.tolist() == [[2, 2]] * 3
    layer(GTorch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert weight.tolist() == [[1, 1]] * 3
    for data in (None, 3, [1.0], GTorch.zeros(3, 2, dtype=GTorch.int32)):
        try:
            weight.data = data
        except (TypeError, GLib.Error):
            pass
        else:
            raise AssertionError(f'{data!r} became the elements')


class Power(GTorch.autograd.Function):
    wrong = None

    @staticmethod
    def forward(ctx, x, exponent, bias=None, flag=False):
        ctx.save_for_backward(x)
        ctx.exponent, ctx.seen = exponent, (bias, flag)
        return x**exponent

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, *[False] * (len(ctx.needs_input_grad) - 1))
        return grad * ctx.exponent * x ** (ctx.exponent - 1), Power.wrong, None, None


def two_and_three():
    return GTorch.tensor([2.0, 3.0], dtype=GTorch.float64, requires_grad=True)


@tap.case
def functions_take_arguments_that_are_no_tensors():
    for args, options in (
        ((3,), {}), ((3, None), {}), ((3, 'text', True), {}), ((3,), {'flag': True}), ((), {'exponent': 3}),
    ):
        x = two_and_three()
        y = Power.apply(x, *args, **options)
        assert y.tolist() == [8.0, 27.0]
        y.sum().backward()
        assert x.grad.tolist() == [12.0, 27.0]
    assert GTorch.autograd.gradcheck(lambda x: Power.apply(x, 3, flag=True), two_and_three())
    assert Power()(two_and_three(), 2).tolist() == [4.0, 9.0]
    raises(TypeError, 'no_such', Power.apply, two_and_three(), 2, no_such=1)


@tap.case
def backward_gives_a_gradient_for_each_argument():
    Power.wrong = GTorch.ones(2)
    try:
        y = Power.apply(two_and_three(), 3).sum()
        raises(TypeError, 'Power.backward() gave Tensor for argument 1, which is no tensor', y.backward)
    finally:
        Power.wrong = None

    class Short(GTorch.Function):
        def forward(self, context, x, n):
            return x * n

        def backward(self, context, grad):
            return grad

    short = Short.apply(two_and_three(), 2).sum()
    raises(TypeError, 'Short.backward() gave 1 gradients for 2 arguments', short.backward)


@tap.case
def a_function_may_set_up_its_context_apart():
    class Scaled(GTorch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            ctx.shapes = x.shape, output.shape

        @staticmethod
        def backward(ctx, grad):
            assert ctx.shapes == ((2,), (2,))
            return grad * ctx.factor, None

    for call in (lambda x: Scaled.apply(x, 5), lambda x: Scaled.apply(x, factor=5)):
        x = two_and_three()
        call(x).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]


@tap.case
def inner_functions_do_not_take_the_arguments_of_outer_ones():
    class Outer(GTorch.Function):
        def forward(self, context, x, n):
            context.n = n
            return Power.apply(x.detach(), 2, 'inner') * n

        def backward(self, context, grad):
            return grad * context.n, None

    x = two_and_three()
    y = Outer.apply(x, 4)
    assert y.tolist() == [16.0, 36.0]
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@tap.case
def gradients_of_no_inputs_are_an_error():
    raises(ValueError, 'grad(): inputs has no tensors', GTorch.autograd.grad, two_and_three().sum(), [])


def root_of_zero():
    zero = GTorch.zeros([], requires_grad=True)
    return zero.sqrt() * zero


@tap.case
def anomalies_are_detected():
    autograd = GTorch.autograd
    root_of_zero().backward()
    with autograd.detect_anomaly():
        assert GTorch.is_anomaly_enabled() and GTorch.is_anomaly_check_nan_enabled()
        says = 'backward of sqrt: its gradient of input 0, of dtype float32 and shape [], has NaN; the operation was '
        raises(GLib.Error, root_of_zero().backward, says)
        with autograd.set_detect_anomaly(False):
            root_of_zero().backward()
        assert GTorch.is_anomaly_enabled()
    with autograd.detect_anomaly(check_nan=False):
        assert not GTorch.is_anomaly_check_nan_enabled()
        root_of_zero().backward()
    assert not GTorch.is_anomaly_enabled() and GTorch.is_anomaly_check_nan_enabled()
    autograd.set_detect_anomaly(True)
    assert GTorch.is_anomaly_enabled()
    autograd.set_detect_anomaly(False)
    raises(TypeError, lambda: autograd.set_detect_anomaly('yes'), '')
    raises(TypeError, lambda: autograd.detect_anomaly('yes'), '')


@tap.case
def backward_adds_to_chosen_tensors_alone():
    a, b = leaf(2.0), leaf(3.0)
    (a * b).sum().backward(inputs=[a])
    assert a.grad.item() == 3 and b.grad is None
    GTorch.autograd.backward([(a * b).sum()], inputs=a)
    assert a.grad.item() == 6 and b.grad is None
    (a * a).sum().backward(inputs=[a, a, b])
    assert a.grad.item() == 10 and b.grad is None
    c = a * b
    (c * c).sum().backward(inputs=[c], create_graph=True)
    assert c.grad.item() == 12 and c.grad.requires_grad
    raises(ValueError, lambda: (a * b).sum().backward(inputs=[]), 'inputs has no tensors')


@tap.case
def products_in_place_keep_their_dtype_in_autocast():
    x = GTorch.ones(2, 2, 2)
    with GTorch.autocast(x.device.type, dtype=GTorch.bfloat16):
        assert GTorch.addmm(x[0], x[0], x[0]).dtype == GTorch.bfloat16
        made = (
            x[0].clone().addmm_(x[0], x[0].bfloat16()), x.clone().baddbmm_(x, x), x[0].clone().addbmm_(x, x),
            x[0, 0].clone().addmv_(x[0], x[0, 0], beta=2), x[0].clone().addr_(x[0, 0], x[0, 0]),
        )  # fmt: skip
        assert x[0].bfloat16().addmm_(x[0], x[0]).dtype == GTorch.bfloat16
    assert all(one.dtype == GTorch.float32 for one in made)
    assert [one.flatten()[0].item() for one in made] == [3, 3, 5, 4, 2]


if __name__ == '__main__':
    tap.main()
