// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Names of PyTorch's that are no operations: of tensors, of nn.functional, autograd and cuda; what new
// takes; and how objects are printed.

import Gio from 'gi://Gio';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import * as tap from './tap.js';

const {nn} = GTorch;
const F = nn.functional;
const matrix = () => GTorch.tensor([[1, 2], [3, 4]], {dtype: GTorch.float64});
const says = (type, part) => error => error instanceof type && error.message.includes(part);

tap.add('tensors_are_converted_by_name', () => {
    for (const [name, dtype] of Object.entries({
        bfloat16: 'bfloat16', bool: 'bool', byte: 'uint8', cdouble: 'complex128', cfloat: 'complex64',
        char: 'int8', double: 'float64', float: 'float32', half: 'float16', int: 'int32', long: 'int64',
        short: 'int16',
    }))
        tap.equal(GTorch.DType.get_name(GTorch.ones([1])[name]().dtype), dtype);
    tap.equal([GTorch.float, GTorch.double, GTorch.long], [GTorch.float32, GTorch.float64, GTorch.int64]);
    tap.throws(() => GTorch.ones([1]).long(1), says(TypeError, 'long'));
});

tap.add('tensors_tell_their_geometry', () => {
    const x = matrix().unsqueeze(0);
    tap.equal([x.size(), x.size(-1), x.size({dim: 0}), x.dim(), x.nelement()], [[1, 2, 2], 2, 1, 3, 4]);
    tap.equal([x.stride(-1), x.at(0).stride(), x.storage_offset(), x.at(0, 1).storage_offset()],
        [1, [2, 1], 0, 2]);
    tap.equal([x.itemsize, x.element_size(), x.nbytes], [8, 8, 32]);
    tap.equal([x.mT.shape, matrix().H.toArray()], [[1, 2, 2], [[1, 3], [2, 4]]]);
    tap.equal([x.is_floating_point(), x.is_complex(), x.cfloat().is_complex(), x.is_cuda === x.is_cpu],
        [true, false, true, false]);
    tap.throws(() => x.size(3), error => error.matches(GTorch.Error, GTorch.Error.INDEX));
    tap.throws(() => x.stride(-4), error => error.matches(GTorch.Error, GTorch.Error.INDEX));
    tap.throws(() => x.H, says(RangeError, 'H: a tensor with 2 dimensions'));
});

tap.add('operations_in_place_are_copied', () => {
    const x = matrix();
    tap.assert(x.addmm_(matrix(), matrix()) === x);
    tap.equal(x.tolist(), [[8, 12], [18, 26]]);
    tap.equal(GTorch.tensor([1, 2, 3]).cumsum_(0).tolist(), [1, 3, 6]);
    tap.equal(matrix().cumprod_({dim: 1}).tolist(), [[1, 2], [3, 12]]);
    tap.equal(matrix().fill_diagonal_(0).tolist(), [[0, 2], [3, 0]]);
    tap.equal(matrix().bernoulli_(1).tolist(), [[1, 1], [1, 1]]);
    tap.equal(matrix().bernoulli_(GTorch.zeros([2, 2])).tolist(), [[0, 0], [0, 0]]);
    tap.throws(() => GTorch.tensor([1, 2]).float_power_(2),
        says(RangeError, 'float_power_: the result is float64 [2], and the tensor int64 [2]'));
});

tap.add('data_is_the_tensor_without_its_history', () => {
    const x = matrix().requires_grad_();
    tap.assert(!x.data.requires_grad);
    x.data.fill_(5);
    tap.equal(x.at(0, 0).item(), 5);
    x.data = matrix();
    tap.equal(x.tolist(), [[1, 2], [3, 4]]);
    tap.throws(() => (x.data = 1), says(TypeError, 'Tensor.data must be a Tensor'));
});

tap.add('new_tensors_are_like_another', () => {
    const made = matrix().new_tensor([1, 2]);
    tap.equal([made.dtype, made.tolist()], [GTorch.float64, [1, 2]]);
    tap.assert(GTorch.as_tensor(made) === made && GTorch.is_tensor(made) && !GTorch.is_tensor([1]));
    tap.equal(GTorch.as_tensor([1, 2], {dtype: GTorch.float32}).dtype, GTorch.float32);
});

tap.add('typed_arrays_are_copied_once', () => {
    const array = new Float32Array([1, 2, 3, 4]);
    const x = GTorch.tensor(array, {shape: [2, 2]});
    array[0] = 9;
    tap.equal(x.tolist(), [[1, 2], [3, 4]]);
    tap.assert(x.device === GTorch.get_default_device());
    x.add_(1); // the memory is the tensor's own
    tap.throws(() => GTorch.tensor(array, {shape: [3]}),
        says(RangeError, 'shape [3] has 3 elements, and the array 4'));
});

tap.add('arrays_share_the_memory_of_tensors', () => {
    const x = GTorch.zeros([4], {device: 'cpu'});
    const array = x.toTypedArray();
    array.set([1, 2, 3, 4]);
    tap.equal(x.tolist(), [1, 2, 3, 4]);
    x.mul_(2);
    tap.equal([...array], [2, 4, 6, 8]);
});

tap.add('bools_fill_tensors', () => {
    const x = GTorch.full([2], true);
    tap.equal([x.dtype, x.tolist()], [GTorch.bool, [true, true]]);
    tap.equal(GTorch.full([2], true, {dtype: GTorch.float32}).tolist(), [1, 1]);
});

tap.add('containers_say_what_they_take', () => {
    for (const given of [5, null]) {
        tap.throws(() => nn.ModuleList(given), says(TypeError, 'ModuleList: an array is wanted, not'));
        tap.throws(() => nn.ModuleDict(given), says(TypeError, 'ModuleDict: an object, a Map or pairs'));
    }
    tap.throws(() => nn.ParameterDict([undefined]), says(TypeError, 'ParameterDict: an object, a Map or'));
});

tap.add('bools_and_images_have_arrays', () => {
    const pixels = new Uint8ClampedArray([0, 300, -5]);
    tap.equal([GTorch.tensor(pixels).tolist(), GTorch.tensor(pixels).dtype], [[0, 255, 0], GTorch.uint8]);
    tap.equal([...GTorch.tensor([true, false]).toTypedArray()], [1, 0]);
});

tap.add('derivatives_take_their_vector_by_position', () => {
    const x = GTorch.tensor([1, 2], {dtype: GTorch.float64});
    const v = GTorch.tensor([1, 10], {dtype: GTorch.float64});
    const square = a => a.mul(a);
    for (const given of [[v], [{v}]]) {
        const [, [product]] = GTorch.autograd_vjp(square, x, ...given);
        tap.equal(product.tolist(), [2, 40]);
    }
    tap.throws(() => GTorch.autograd_jacobian(() => {}, x),
        says(TypeError, 'autograd_jacobian: the function gave undefined, not a tensor'));
});

tap.add('functions_of_layers_are_in_a_module', () => {
    const x = matrix();
    tap.equal(F.relu(x.neg()).tolist(), [[0, 0], [0, 0]]);
    tap.equal(F.softmax(x.mul(0), {dim: 0}).tolist(), [[0.5, 0.5], [0.5, 0.5]]);
    tap.equal(F.embedding(GTorch.tensor([1]), x).tolist(), [[3, 4]]);
    tap.equal(F.embedding_bag(GTorch.tensor([[0, 1]]), x, {mode: GTorch.BagMode.SUM}).tolist(), [[4, 6]]);
    const y = x.neg();
    tap.assert(F.relu_(y) === y && y.sum().item() === 0);
});

tap.add('gradients_are_in_a_module', () => {
    const x = matrix().requires_grad_();
    const [grad] = GTorch.autograd.grad([x.mul(x).sum()], [x]);
    tap.equal(grad.tolist(), [[2, 4], [6, 8]]);
    tap.assert(GTorch.autograd.Function === GTorch.Function);
});

tap.add('gpus_are_in_a_module', () => {
    const {cuda} = GTorch;
    tap.equal(cuda.is_available(), cuda.device_count() > 0);
    if (cuda.is_available()) {
        tap.equal(cuda.current_device(), GTorch.Device.get_current(GTorch.DeviceType.CUDA).index);
        cuda.synchronize();
        tap.assert(cuda.max_memory_allocated() >= cuda.memory_allocated({device: 0}));
        tap.equal(cuda.mem_get_info().length, 2);
    } else {
        tap.throws(() => cuda.current_device(), error => error.matches(GTorch.Error, GTorch.Error.DEVICE));
    }
    tap.throws(() => cuda.synchronize('cpu'), says(TypeError, 'synchronize: a GPU is wanted, not cpu'));
});

tap.add('new_takes_a_device_by_position', () => {
    tap.equal(new GTorch.Stream('cpu', {priority: -1}).priority, -1);
    tap.equal(new GTorch.Generator('cpu', {seed: 7}).seed, 7);
    for (const given of ['cpu', {device: 'cpu'}])
        tap.equal(new GTorch.MemoryPool(given).get_device().to_string(), 'cpu');
    tap.throws(() => new GTorch.Stream('cpu', {device: 'cpu'}), says(TypeError, 'by position and by name'));
    tap.throws(() => new GTorch.Timer('cpu'), says(TypeError, 'stream must be a GTorchStream'));
});

tap.add('events_take_their_purposes', () => {
    const {TIMING, BLOCKING} = GTorch.EventFlags;
    tap.equal(new GTorch.Event({enable_timing: true, blocking: true}).flags, TIMING | BLOCKING);
    tap.equal(new GTorch.Event({flags: TIMING}).flags, TIMING);
    tap.equal(new GTorch.Event().flags, 0);
    tap.throws(() => new GTorch.Event({enable_timing: 1}), says(TypeError, 'must be true or false'));
});

tap.add('json_has_values_of_tensors_and_the_text_of_objects', () => {
    const x = GTorch.tensor([[1, 2.5], [NaN, Infinity]]);
    tap.equal(JSON.parse(JSON.stringify({x, layer: nn.ReLU()})),
        {x: [[1, 2.5], ['NaN', 'Infinity']], layer: 'ReLU()'});
    tap.equal(JSON.parse(JSON.stringify(GTorch.Device.cpu())), 'cpu');
});

tap.add('the_console_shows_the_text_of_tensors', () => {
    const program = "import GTorch from 'gi://GTorch?version=1'; console.log({x: GTorch.ones([2])});";
    const [file, stream] = Gio.File.new_tmp('gtorch-XXXXXX.js');
    stream.get_output_stream().write_all(program, null);
    stream.close(null);
    const process = Gio.Subprocess.new(['gjs', '-m', file.get_path()],
        Gio.SubprocessFlags.STDERR_PIPE | Gio.SubprocessFlags.STDOUT_PIPE);
    const [, output, errors] = process.communicate_utf8(null, null);
    file.delete(null);
    tap.assert(`${output}${errors}`.includes('"x": "tensor([1., 1.])"'), `${output}${errors}`);
});

tap.add('many_numbers_are_those_that_few_are', () => {
    const many = one => Array(100).fill(one);
    const largest = 3.4028235677973366e38;
    for (const one of [1, 1.5, -0.25, 2 ** 53 - 1, 1e20, NaN, Infinity, largest, 1e300]) {
        for (const dtype of [null, 'float32', 'float64', 'int64', 'int8', 'float16']) {
            const made = data => {
                try {
                    const x = GTorch.tensor(data, {dtype}).reshape(-1).at(-1);
                    return [x.dtype, String(x.item())];
                } catch (error) {
                    return error.message.replace(/ at \d+/, '');
                }
            };
            tap.equal(made(many(one)), made([one]));
            tap.equal(made(many([one, 1])), made([[one, 1]]));
        }
    }
    tap.throws(() => GTorch.tensor([...many([1, 2]), [1]]), says(TypeError, 'depth 1 takes 2 items'));
    tap.throws(() => GTorch.tensor([...many(1), , 1]), // eslint-disable-line no-sparse-arrays
        says(TypeError, 'made of numbers, not of undefined'));
});

tap.add('brackets_say_what_to_write', () => {
    const x = GTorch.ones([3]);
    tap.throws(() => x[0], says(TypeError, 'x[0] is x.at(0)'));
    tap.throws(() => (x[1] = 5), says(TypeError, 'x[1] = value is x.put_at(1, value)'));
    tap.equal([x.length, x.name_that_is_not_there], [3, undefined]);
    tap.throws(() => GTorch.tensor(1).length, says(TypeError, 'without dimensions'));
    tap.throws(() => x + 1, says(TypeError, 'for its text'));
});

tap.add('parts_are_written_by_the_items_of_at', () => {
    const x = GTorch.zeros([3, 4]);
    x.put_at([1, 3], 5);
    x.put_at(0, [1, 3], 7);
    x.put_at(GTorch.tensor([true, false, false]), 0, 9);
    tap.equal(x.tolist(), [[9, 7, 7, 0], [5, 5, 5, 5], [5, 5, 5, 5]]);
});

tap.add('groups_of_optimizers_are_an_array', () => {
    const sgd = GTorch.optim.SGD(nn.Linear(1, 1).parameters(), {lr: 1});
    for (const group of sgd.param_groups)
        group.lr = 0.5;
    tap.equal([sgd.param_groups.length, sgd.param_groups[0].lr, sgd.lr], [1, 0.5, 0.5]);
    tap.throws(() => sgd.step(5), says(TypeError, 'step: a function is wanted'));
});

const Tripled = GObject.registerClass(class Tripled extends GTorch.Function {
    forward(context, x) {
        context.kept = [x.mul(3)];
        return x.mul(2);
    }

    backward(context, grad) {
        return grad.mul(context.kept[0]);
    }
});

tap.add('tidy_keeps_what_a_context_refers_to', () => {
    const x = GTorch.ones([1], {requires_grad: true});
    const y = GTorch.tidy(() => GTorch.tidy(() => Tripled.apply(x)));
    y.sum().backward();
    tap.equal(x.grad.tolist(), [3]);
});

tap.add('elements_are_repeated', () => {
    const x = GTorch.arange(3);
    const counts = GTorch.tensor([0, 2, 1]);
    for (const made of [x.repeat_interleave(counts), x.repeat_interleave(counts, null),
        GTorch.repeat_interleave(x, {repeats: counts})])
        tap.equal(made.tolist(), [1, 1, 2]);
});

tap.add('lists_of_devices_are_iterable', () => {
    const [first] = GTorch.DeviceManager.get_default();
    tap.equal(first.to_string(), 'cpu');
});

await tap.run();
