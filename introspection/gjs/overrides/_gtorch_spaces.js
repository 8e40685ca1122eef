// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// PyTorch's modules nn.functional, autograd and cuda, and constants.

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {operations} = imports.overrides._gtorch_ops;

let GTorch;

// The functions whose arguments have another order than the operations', or which have another name.
function functional() {
    const found = Object.keys(operations).filter(name => name !== 'unfold').map(name => [name, GTorch[name]]);
    const others = {
        embedding: (input, weight, ...rest) => GTorch.embedding(weight, input, ...rest),
        embedding_bag: (input, weight, ...rest) => GTorch.embedding_bag(weight, input, ...rest),
        unfold: GTorch.im2col,
        fold: GTorch.col2im,
    };
    for (const name of ['celu', 'elu', 'hardtanh', 'leaky_relu', 'relu', 'rrelu', 'selu', 'threshold'])
        others[`${name}_`] = (input, ...rest) => input.copy_(GTorch[name](input, ...rest));
    return Object.freeze({...Object.fromEntries(found), ...others});
}

function autograd() {
    return Object.freeze({
        Function: GTorch.Function,
        backward: GTorch.autograd_backward,
        detect_anomaly: GTorch.detect_anomaly,
        enable_grad: GTorch.enable_grad,
        grad: GTorch.autograd_grad,
        gradcheck: GTorch.gradcheck,
        gradgradcheck: GTorch.gradgradcheck,
        inference_mode: GTorch.inference_mode,
        no_grad: GTorch.no_grad,
        set_detect_anomaly: GTorch.set_detect_anomaly,
        set_grad_enabled: GTorch.set_grad_enabled,
    });
}

// A GPU that is named, or the one that is current.
function gpu(name, given) {
    const device = given === null ? GTorch.Device.new_from_string('cuda') : convert.device(name, given);
    if (!(device instanceof GTorch.Device) || device.get_device_type() !== GTorch.DeviceType.CUDA)
        throw new TypeError(`${name}: a GPU is wanted, not ${device}`);
    return device.resolve();
}

function cuda() {
    const onGPU = functions => Object.fromEntries(Object.entries(functions).map(([name, func]) => [name,
        (...given) => {
            const {device = null} = convert.bind(name, [{name: 'device'}], given);
            return func(gpu(name, device));
        }]));
    const allocator = device => device.get_allocator();
    const manager = GTorch.DeviceManager.get_default();
    return Object.freeze({
        CUDAGraph: GTorch.CUDAGraph,
        Event: GTorch.Event,
        MemoryPool: GTorch.MemoryPool,
        Stream: GTorch.Stream,
        Timer: GTorch.Timer,
        is_available: convert.counted('is_available', () => manager.is_available()),
        device_count: convert.counted('device_count', () => manager.get_device_count()),
        current_device: convert.counted('current_device', () => gpu('current_device', null).index),
        set_device: convert.counted('set_device', device => gpu('set_device', device).set_current(), 1),
        ...onGPU({
            current_stream: device => GTorch.Stream.get_current(device),
            default_stream: device => device.get_default_stream(),
            empty_cache: device => allocator(device).empty_cache(),
            get_device_capability: device => device.get_capability(),
            get_device_name: device => device.get_name(),
            mem_get_info: device => device.get_memory_info().slice(1),
            max_memory_allocated: device => allocator(device).peak_allocated,
            max_memory_reserved: device => allocator(device).peak_reserved,
            memory_allocated: device => allocator(device).allocated,
            memory_reserved: device => allocator(device).reserved,
            memory_summary: device => allocator(device).to_summary(false),
            reset_peak_memory_stats: device => allocator(device).reset_peak(),
            synchronize: device => device.synchronize(null),
        }),
    });
}

function constants() {
    const {DType} = GTorch;
    return {
        e: Math.E, inf: Infinity, nan: NaN, pi: Math.PI,
        cdouble: DType.COMPLEX128, cfloat: DType.COMPLEX64, double: DType.FLOAT64, float: DType.FLOAT32,
        half: DType.FLOAT16, int: DType.INT32, long: DType.INT64, short: DType.INT16,
    };
}

function setup(namespace) {
    GTorch = namespace;
    GTorch.nn.functional = functional();
    for (const [name, value] of Object.entries(constants()))
        Object.defineProperty(GTorch, name, {value});
    for (const [name, value] of Object.entries({autograd: autograd(), cuda: cuda()}))
        Object.defineProperty(GTorch, name, {value});
    convert.addMethods(GTorch, {
        is_tensor: value => value instanceof GTorch.Tensor,
        numel(input) {
            return input.get_numel();
        },
        // A tensor as it is; anything else becomes one.
        as_tensor(data, ...given) {
            const {dtype, device} = convert.lastOptions('as_tensor', given, {dtype: null, device: null});
            if (!(data instanceof GTorch.Tensor))
                return GTorch.tensor(data, {dtype, device});
            return dtype === null && device === null ? data : data.to({dtype, device});
        },
    });
}
