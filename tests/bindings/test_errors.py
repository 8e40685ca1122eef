#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors are exceptions of the kinds that PyTorch raises, and those of the library are GLib.Error, too."""

import errno
import os
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, F, optim, prune = GTorch.nn, GTorch.nn.functional, GTorch.optim, GTorch.nn.utils.prune
CODES = GTorch.Error


def both(kind, code, function, *texts):
    """Raised as @kind, and as the library's error with @code."""
    error = raises(kind, function, *texts)
    assert isinstance(error, GLib.Error) and isinstance(error, RuntimeError), type(error).__mro__
    assert error.matches(GTorch.error_quark(), code), error.code
    assert str(error) == error.message


@tap.case
def shapes_are_values_where_pytorch_says_so():
    shape, one, labels = CODES.SHAPE, GTorch.ones(3), GTorch.tensor([1, 2])
    both(ValueError, shape, lambda: nn.BatchNorm1d(3)(GTorch.ones(1, 3)), 'more than one element', '[1, 3]')
    both(ValueError, shape, lambda: F.batch_norm(GTorch.ones(1, 3), None, None, training=True), 'more than one')
    both(ValueError, shape, lambda: nn.InstanceNorm1d(3)(GTorch.ones(2, 3, 1)), 'no variance')
    both(ValueError, shape, lambda: nn.CrossEntropyLoss()(GTorch.ones(3, 4), labels), '[2]', '[3, 4]')
    both(ValueError, shape, lambda: F.nll_loss(GTorch.ones(3, 4), labels), '[2]')
    both(ValueError, shape, lambda: F.binary_cross_entropy(GTorch.rand(3), GTorch.rand(2)), '[2]')
    both(ValueError, shape, lambda: F.binary_cross_entropy_with_logits(GTorch.rand(3), GTorch.rand(2)), '[2]')
    for fill in ('xavier_uniform_', 'xavier_normal_', 'kaiming_normal_', 'orthogonal_', 'eye_', 'dirac_'):
        both(ValueError, shape, lambda: getattr(nn.init, fill)(one), 'dimensions', '[3]')
    both(ValueError, shape, lambda: int(GTorch.ones(2)), 'item', '[2]')
    assert not isinstance(raises(GLib.Error, lambda: F.mse_loss(one, GTorch.ones(2))), ValueError)


@tap.case
def dtypes_without_an_operation_are_not_implemented():
    whole, truth, missing = GTorch.tensor([[1, 2], [3, 4]]), GTorch.tensor([True]), NotImplementedError
    both(missing, CODES.DTYPE, whole.mean, 'mean: not defined for dtype int64')
    both(missing, CODES.DTYPE, lambda: -truth, 'neg: not defined for dtype bool')
    both(missing, CODES.DTYPE, lambda: truth - truth, 'sub: not defined for dtype bool')
    both(missing, CODES.DTYPE, lambda: GTorch.linalg.inv(whole), 'linalg_inv: not defined for dtype int64')
    both(TypeError, CODES.DTYPE, lambda: GTorch.set_default_dtype(GTorch.int32), 'int32')
    assert GTorch.get_default_dtype() == GTorch.float32
    wrong = lambda: nn.Embedding(3, 2)(GTorch.tensor([0.5]))  # noqa: E731
    assert not isinstance(raises(GLib.Error, wrong, 'integers'), NotImplementedError)


@tap.case
def matrices_without_a_result_are_linalg_errors():
    kind, zeros = GTorch.linalg.LinAlgError, GTorch.zeros(2, 2)
    both(kind, CODES.INVALID, lambda: GTorch.linalg.inv(zeros), 'singular')
    both(kind, CODES.INVALID, lambda: GTorch.linalg.solve(zeros, GTorch.ones(2)), 'singular')
    both(kind, CODES.INVALID, lambda: GTorch.linalg.cholesky(-GTorch.eye(2)), 'not positive-definite')
    both(kind, CODES.INVALID, lambda: GTorch.linalg.inv(GTorch.zeros(3, 2, 2)), 'of the batch is singular')
    assert kind is GTorch.LinAlgError
    assert not isinstance(raises(ValueError, lambda: GTorch.linalg.norm(zeros, 'x')), kind)


@tap.case
def pruning_raises_as_pytorch_does():
    layer = nn.Linear(2, 2)
    both(ValueError, CODES.NOT_FOUND, lambda: prune.remove(layer, 'weight'), 'no mask')
    both(AttributeError, CODES.NOT_FOUND, lambda: prune.l1_unstructured(layer, 'foo', 0.5), "no parameter 'foo'")
    both(AttributeError, CODES.NOT_FOUND, lambda: prune.random_structured(layer, 'foo', 0.5, 0), "no parameter 'foo'")


@tap.case
def leaves_and_names_raise_as_pytorch_does():
    weight, module = nn.Parameter(GTorch.ones(2)), nn.Module()
    both(ValueError, CODES.AUTOGRAD, lambda: optim.SGD([weight * 2]), 'not a leaf')
    for register in (module.register_parameter, module.register_buffer, module.add_module):
        both(KeyError, CODES.INVALID, lambda: register('a.b', None), "'a.b'")
        both(KeyError, CODES.INVALID, lambda: register('', None), "''")
        raises(TypeError, lambda: register('a', 3), 'or None, not int')
        raises(TypeError, lambda: register(3, None), 'text, not int')
    assert not list(module.named_parameters()) and not list(module.named_buffers())


@tap.case
def duals_are_floating_point():
    whole, real = GTorch.tensor([1]), GTorch.ones(1)
    forward = GTorch.autograd.forward_ad
    with forward.dual_level():
        raises(ValueError, lambda: forward.make_dual(whole, whole), 'tensor is of int64')
        raises(ValueError, lambda: forward.make_dual(real, whole), 'tangent is of int64')
        forward.make_dual(real, real)


@tap.case
def modules_say_what_is_wrong_with_a_call():
    layer = nn.Linear(2, 2)
    for value in ([1, 2], (1, 2), 3, 'x', None, {}):
        raises(TypeError, lambda: layer(value), f'Linear: the input must be a tensor, not {type(value).__name__}')
    raises(TypeError, layer, 'Linear.forward() takes one input, 0 were given')
    raises(TypeError, lambda: layer(GTorch.ones(2), GTorch.ones(2)), '2 were given')
    raises(NotImplementedError, lambda: nn.Module()(1), 'no forward()')
    raises(NotImplementedError, lambda: nn.Module()(GTorch.ones(1)), 'forward')
    raises(TypeError, lambda: nn.MSELoss()(GTorch.ones(1)), 'takes 2 inputs', '1 were given')


class Forgetful(nn.Module):
    def __init__(self, member):
        self.member = member


@tap.case
def members_need_the_parent_constructor():
    for member in (nn.Linear(1, 1), nn.Parameter(GTorch.ones(1)), GTorch.ones(1)):
        raises(AttributeError, lambda: Forgetful(member), 'Forgetful: super().__init__()', "'member'")


@tap.case
def tensors_are_true_or_false_with_one_element():
    for tensor in (GTorch.ones(2), GTorch.ones(0), GTorch.ones(2, 2)):
        both(GLib.Error, CODES.SHAPE, lambda: bool(tensor), 'neither true nor false', f'{tensor.numel()} elements')
    assert bool(GTorch.ones(1)) and not bool(GTorch.zeros([]))


@tap.case
def numbers_that_are_too_large_are_values():
    for value in (2**64, 2**63, [2**64], -(2**63) - 1):
        raises(ValueError, lambda: GTorch.tensor(value), 'tensor()')
        raises(OverflowError, lambda: GTorch.tensor(value), 'not in range')


@tap.case
def seeds_are_whole_parts():
    for seed, is_seed in ((True, 1), (1.5, 1), (1.7e9, 1700000000), (-1.5, 2**64 - 1)):
        GTorch.manual_seed(seed)
        assert GTorch.initial_seed() == is_seed, seed
    raises(ValueError, lambda: GTorch.manual_seed(float('nan')), 'finite')
    raises(TypeError, lambda: GTorch.manual_seed(None), 'NoneType')
    raises(TypeError, lambda: GTorch.manual_seed('x'), 'str')


@tap.case
def none_is_no_dtype():
    for function in (GTorch.finfo, GTorch.iinfo):
        raises(TypeError, lambda: function(None), 'takes a dtype, not None')
    assert GTorch.finfo().dtype == 'float32' and GTorch.finfo(GTorch.float64).bits == 64
    raises(TypeError, lambda: GTorch.finfo(GTorch.float32, 1), 'one dtype')
    raises(TypeError, lambda: GTorch.promote_types(None, GTorch.float32), 'promote_types() takes a dtype')
    raises(TypeError, lambda: GTorch.promote_types(GTorch.float32, None), 'promote_types() takes a dtype')
    raises(TypeError, lambda: GTorch.can_cast(None, GTorch.float32), 'can_cast() takes a dtype')


@tap.case
def comparisons_tell_types_apart():
    close = GTorch.testing.assert_close
    raises(AssertionError, lambda: close(1.0, 1), 'float and int')
    raises(AssertionError, lambda: close(True, 1), 'bool and int')
    raises(AssertionError, lambda: close([1.0], [1]), '[0]', 'float and int')
    raises(AssertionError, lambda: close(None, GTorch.ones(1)), 'None is compared with')
    raises(AssertionError, lambda: close(GTorch.ones(1), None), 'None is compared with')
    close(None, None)
    close(1.0, 1, check_dtype=False)
    close(1.0, 1.0)


@tap.case
def missing_files_are_pythons_exceptions_too():
    file = Gio.File.new_for_path('/proc/nowhere/at all')
    module = nn.Linear(2, 2)
    trainer = GTorch.train.Trainer(module, [], nn.MSELoss(), optim.SGD(module.parameters(), lr=0.1))
    image = GTorch.zeros(3, 1, 1, dtype=GTorch.uint8)
    table = GTorch.Table.new()
    table.add('x', GTorch.zeros(1))
    for call in (
        lambda: GTorch.Tokenizer.load_file(file, None),
        lambda: GTorch.vision.read_image('/proc/nowhere/at all'),
        lambda: GTorch.vision.ImageFolder('/proc/nowhere/at all'),
        lambda: GTorch.image_load_file(file, GTorch.ImageMode.RGB, False, 0, None),
        lambda: trainer.load_checkpoint('/proc/nowhere/at all'),
        lambda: GTorch.utils.tensorboard.SummaryWriter('/proc/nowhere/at all').add_scalar('loss', 1.0, 1),
        lambda: GTorch.train.CSVLog.new(file).write(1, ['loss'], [1.0]),
        lambda: GTorch.safetensors_load_file(file, False, None, None, None),
        lambda: GTorch.CheckpointFile.load_file(file, False, 0, None),
        lambda: GTorch.npy_load_file(file, False, 0, None),
        lambda: GTorch.npz_load_file(file, False, 0, None),
        lambda: GTorch.npz_save_file(table, False, file, None),
        lambda: GTorch.CSVReader.new_for_file(file, None),
        lambda: GTorch.io.load_csv(file),
        lambda: GTorch.load('/proc/nowhere/at all'),
    ):
        error = raises(FileNotFoundError, call)
        assert error.errno == errno.ENOENT and error.strerror, error
    error = raises(FileNotFoundError, lambda: GTorch.npy_load_file(file, False, 0, None), 'No such file')
    assert isinstance(error, GLib.Error) and isinstance(error, RuntimeError)
    assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.NOT_FOUND) and str(error) == error.message
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error) and other.code == error.code and str(other) == str(error)


@tap.case
def other_errors_of_files_have_their_kinds():
    folder = Gio.File.new_for_path('/usr')
    raises(IsADirectoryError, lambda: GTorch.npy_load_file(folder, False, 0, None))
    raises(NotADirectoryError, lambda: GTorch.vision.ImageFolder('/usr/bin/env'))
    for code, kind in ((Gio.IOErrorEnum.EXISTS, FileExistsError), (Gio.IOErrorEnum.PERMISSION_DENIED, PermissionError)):
        assert isinstance(GLib.Error('no', 'g-io-error-quark', int(code)), kind)
    plain = GLib.Error('no', 'g-io-error-quark', int(Gio.IOErrorEnum.CANCELLED))
    assert type(plain) is GLib.Error and not isinstance(plain, OSError)


@tap.case
def errors_of_indices_end_loops():
    """Loops over __getitem__() look in C for the kind of the exception."""
    x, net = GTorch.arange(2.0), nn.Sequential(nn.ReLU(), nn.ReLU())
    pairs, rows = GTorch.utils.data.TensorDataset(x), GTorch.ones(2, 2)
    places = [
        lambda i: x[i], lambda i: rows[i, :], lambda i: rows[..., i], lambda i: x[[i]], lambda i: x[GTorch.tensor(i)],
        lambda i: x.__setitem__(i, 1.0), lambda i: pairs[i], lambda i: net[i], lambda i: rows.shape[i],
        lambda i: GTorch.utils.data.Subset([1, 2], GTorch.tensor([0, 1]))[i],
    ]  # fmt: skip
    if not os.environ.get('GTORCH_NO_MIXIN'):
        places += [
            lambda i: x.select(0, i), lambda i: rows.size(i), lambda i: GTorch.take(x, GTorch.tensor(i)),
            lambda i: GTorch.index_select(x, 0, GTorch.tensor([i])), lambda i: x.narrow(0, i, 1),
        ]  # fmt: skip
    for place in places:

        class Row:
            def __getitem__(self, i):
                return place(i)  # noqa: B023

        assert len(list(Row())) == 2 and len(list(zip(Row(), range(9)))) == 2 and len([*Row()]) == 2
    assert len(list(pairs)) == 2 and 7 not in GTorch.utils.data.Subset(x, [0, 1])


@tap.case
def wrong_kinds_name_the_function_and_the_argument():
    x, several = GTorch.ones(2, 3), GTorch.ones(3)
    for call, text in (
        (lambda: x.sort(dim=2.5), "sort(): dim: 'float' object cannot be interpreted as an integer"),
        (lambda: x.sort(dim=several), 'sort(): dim: only a tensor of one integer'),
        (lambda: x.sort(dim=0, descending='yes'), "sort(): descending: True or False was expected, not 'yes'"),
        (lambda: x.cumsum(True), 'cumsum(): dim: a whole number was expected, not True'),
        (lambda: GTorch.zeros('x'), 'zeros(): '),
        (lambda: GTorch.zeros(2.5), 'zeros(): '),
        (lambda: GTorch.zeros(None), 'zeros(): '),
        (lambda: F.softplus(x, beta='x'), 'softplus(): beta: a number was expected, not str'),
        (lambda: x.fmax(None), 'fmax(): other must be a tensor or a number, not NoneType'),
        (lambda: GTorch.hstack([x, 5]), 'hstack(): element 1 of tensors must be a tensor, not int'),
        (lambda: GTorch.hstack(5), 'hstack(): tensors must be a list, not int'),
        (lambda: x.flip('x'), 'flip(): '),
        (lambda: x.cfloat(1), 'cfloat() takes 1 positional argument but 2 were given'),
        (lambda: x.polygamma_(1, 2), 'polygamma() takes'),
        (lambda: x.view_as(x, x), 'view_as()'),
        (lambda: F.layer_norm(x, 1.5), 'layer_norm(): '),
        (lambda: GTorch.roll(x, 1.5), 'roll(): '),
    ):
        raises(TypeError, call, text)


@tap.case
def flags_name_the_function_and_the_argument():
    x, layer = GTorch.ones(3), nn.Linear(2, 2)
    functions = GTorch.autograd.profiler
    for call, place in (
        (lambda flag: functions.emit_nvtx(enabled=flag), 'emit_nvtx(): enabled'),
        (lambda flag: functions.emit_nvtx(True, flag), 'emit_nvtx(): record_shapes'),
        (lambda flag: functions.profile(use_cpu=flag), 'profile(): use_cpu'),
        (lambda flag: GTorch.profiler.profile(with_stack=flag), 'profile(): with_stack'),
        (lambda flag: GTorch.zeros(3, requires_grad=flag), 'zeros(): requires_grad'),
        (lambda flag: GTorch.tensor(1.0, requires_grad=flag), 'tensor(): requires_grad'),
        (lambda flag: x.requires_grad_(flag), 'requires_grad_(): requires_grad'),
        (lambda flag: setattr(x, 'requires_grad', flag), 'requires_grad'),
        (lambda flag: x.var(unbiased=flag), 'var(): unbiased'),
        (lambda flag: x.to('cpu', non_blocking=flag), 'to(): non_blocking'),
        (lambda flag: x.sum().backward(retain_graph=flag), 'backward(): retain_graph'),
        (lambda flag: GTorch.unique(x, return_inverse=flag), 'unique(): return_inverse'),
        (lambda flag: GTorch.nonzero(x, as_tuple=flag), 'nonzero(): as_tuple'),
        (lambda flag: F.max_pool1d(x[None], 1, return_indices=flag), 'max_pool1d(): return_indices'),
        (lambda flag: F.affine_grid(GTorch.ones(1, 2, 3), (1, 1, 2, 2), align_corners=flag),
         'affine_grid(): align_corners'),
        (lambda flag: layer.train(flag), 'train(): mode'),
        (lambda flag: layer.zero_grad(set_to_none=flag), 'zero_grad(): set_to_none'),
        (lambda flag: layer.load_state_dict({}, strict=flag), 'load_state_dict(): strict'),
        (lambda flag: layer.named_parameters('', flag), 'named_parameters(): recurse'),
        (lambda flag: nn.Linear(2, 2, bias=flag), 'Linear.bias'),
        (lambda flag: GTorch.optim.SGD([x], lr=1.0, nesterov=flag), 'SGD.nesterov'),
        (lambda flag: GTorch.set_grad_enabled(flag), 'set_grad_enabled(): mode'),
        (lambda flag: GTorch.use_deterministic_algorithms(flag), 'use_deterministic_algorithms(): mode'),
        (lambda flag: GTorch.io.load_npy(b'', mmap=flag), 'load_npy(): mmap'),
        (lambda flag: GTorch.io.load_npz(b'', mmap=flag), 'load_npz(): mmap'),
        (lambda flag: GTorch.io.save_npz({'x': x}, '/nowhere', compress=flag), 'save_npz(): compress'),
        (lambda flag: GTorch.io.load_csv(b'a', header=flag), 'load_csv(): header'),
        (lambda flag: GTorch.io.load_csv(b'a', as_tensor=flag), 'load_csv(): as_tensor'),
        (lambda flag: GTorch.io.iter_csv(b'a', 1, as_tensor=flag), 'iter_csv(): as_tensor'),
        (lambda flag: GTorch.load('/nowhere', mmap=flag), 'load(): mmap'),
        (lambda flag: GTorch.vision.read_image('/nowhere', apply_exif_orientation=flag),
         'read_image(): apply_exif_orientation'),
        (lambda flag: GTorch.vision.decode_image(b'', apply_exif_orientation=flag),
         'decode_image(): apply_exif_orientation'),
    ):
        raises(TypeError, lambda call=call: call('no way'), f"{place}: True or False was expected, not 'no way'")
        raises(TypeError, lambda call=call: call(2.5), f'{place}: True or False was expected, not 2.5')


tap.main()
