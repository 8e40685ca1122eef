// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Names of PyTorch's tensors that are no operations: conversions, questions, and operations in place that C
// does not have, whose result is copied to the tensor.

/* exported setup */

const convert = imports.overrides._gtorch_convert;

let GTorch;

const CONVERSIONS = {
    bfloat16: 'BFLOAT16', bool: 'BOOL', byte: 'UINT8', cdouble: 'COMPLEX128', cfloat: 'COMPLEX64',
    char: 'INT8', double: 'FLOAT64', float: 'FLOAT32', half: 'FLOAT16', int: 'INT32', long: 'INT64',
    short: 'INT16',
};
const COPIED = [
    'addbmm', 'addmm', 'addmv', 'addr', 'baddbmm', 'cumprod', 'cumsum', 'float_power', 'masked_scatter',
    'renorm',
];
// Integers are not made wider by them, as the tensor itself cannot be.
const KEEPING = ['cumprod', 'cumsum'];

function inPlace(name) {
    return function (...given) {
        const options = convert.isOptions(given.at(-1)) ? given.pop() : {};
        if (KEEPING.includes(name))
            options.dtype ??= this.get_dtype();
        const made = this[name](...given, ...Object.keys(options).length > 0 ? [options] : []);
        if (made.dtype !== this.dtype || String(made.shape) !== String(this.shape)) {
            const text = one => `${GTorch.DType.get_name(one.dtype)} [${one.shape.join(', ')}]`;
            throw new RangeError(`${name}_: the result is ${text(made)}, and the tensor ${text(this)}`);
        }
        return this.copy_(made);
    };
}

function sizeOf(tensor) {
    return GTorch.DType.get_size(tensor.get_dtype());
}

// Which device, of cuda() and cpu().
function toDevice(name, tensor, device) {
    if (device !== 'cpu' && device !== 'cuda') {
        const place = convert.device(name, device);
        if (place?.get_device_type() !== GTorch.DeviceType.CUDA)
            throw new TypeError(`${name}: a GPU is wanted, not ${place}`);
        return tensor.to({device: place});
    }
    return tensor.to({device});
}

function properties() {
    const isOn = type => function () {
        return this.get_device().get_device_type() === GTorch.DeviceType[type];
    };
    const found = {
        H() {
            if (this.get_n_dims() !== 2)
                throw new RangeError(`H: a tensor with 2 dimensions is wanted, not ${this.get_n_dims()}`);
            return this.adjoint();
        },
        is_cpu: isOn('CPU'),
        is_cuda: isOn('CUDA'),
        itemsize() {
            return sizeOf(this);
        },
        mH() {
            return this.adjoint();
        },
        mT() {
            return this.transpose(-2, -1);
        },
        nbytes() {
            return this.get_numel() * sizeOf(this);
        },
    };
    for (const [name, get] of Object.entries(found))
        Object.defineProperty(GTorch.Tensor.prototype, name, {configurable: true, get});
    Object.defineProperty(GTorch.Tensor.prototype, 'data', {
        configurable: true,
        get() {
            return this.detach();
        },
        set(value) {
            if (!(value instanceof GTorch.Tensor))
                throw new TypeError(`Tensor.data must be a Tensor, not ${convert.describe(value)}`);
            this.set_data(value);
        },
    });
}

function methods() {
    return {
        bernoulli_(...given) {
            const {p = 0.5, generator = null} =
                convert.bind('bernoulli_', [{name: 'p'}, {name: 'generator'}], given, 1);
            if (p instanceof GTorch.Tensor)
                return this.copy_(p.expand(this.shape).bernoulli({generator}));
            return this.copy_(this.detach().bernoulli_p(p, {generator}));
        },
        cpu() {
            return toDevice('cpu', this, 'cpu');
        },
        cuda(...given) {
            const {device = 'cuda'} = convert.bind('cuda', [{name: 'device'}], given);
            return toDevice('cuda', this, device);
        },
        data_ptr() {
            return this.get_data_ptr();
        },
        detach_() {
            return this.detach_inplace();
        },
        dim() {
            return this.get_n_dims();
        },
        element_size() {
            return sizeOf(this);
        },
        fill_diagonal_(value) {
            const n = this.get_n_dims();
            if (n !== 2)
                throw new RangeError(`fill_diagonal_: a matrix is wanted, not ${n} dimensions`);
            this.diagonal().fill_(value);
            return this;
        },
        is_complex() {
            return GTorch.DType.is_complex(this.get_dtype());
        },
        is_floating_point() {
            return GTorch.DType.is_floating_point(this.get_dtype());
        },
        is_nonzero() {
            return this.ne(0).item();
        },
        ndimension() {
            return this.get_n_dims();
        },
        nelement() {
            return this.get_numel();
        },
        new_tensor(data, ...given) {
            const {dtype, device, requires_grad: grad} = convert.lastOptions('new_tensor', given,
                {dtype: this.get_dtype(), device: this.get_device(), requires_grad: false});
            return GTorch.tensor(data, {dtype, device, requires_grad: grad});
        },
        size(...given) {
            const {dim = null} = convert.bind('size', [{name: 'dim'}], given);
            return dim === null ? this.get_shape() : this.get_size(dim);
        },
        storage_offset() {
            return this.get_storage_offset();
        },
        stride(...given) {
            const {dim = null} = convert.bind('stride', [{name: 'dim'}], given);
            const strides = this.get_strides();
            if (dim === null)
                return strides;
            this.get_size(dim); // throws if there is no such dimension
            return strides.at(dim);
        },
        // The values as nested arrays, as in Python.
        tolist() {
            return this.toArray();
        },
        true_divide_(other) {
            return this.div_(other);
        },
    };
}

function setup(namespace) {
    GTorch = namespace;
    const {prototype} = GTorch.Tensor;
    properties();
    const missing = Object.entries(methods()).filter(([name]) => prototype[name] === undefined);
    convert.addMethods(prototype, Object.fromEntries(missing));
    for (const [name, dtype] of Object.entries(CONVERSIONS)) {
        convert.addMethods(prototype, {
            [name]() {
                return this.to(GTorch.DType[dtype]);
            },
        });
    }
    for (const name of COPIED)
        prototype[`${name}_`] = inPlace(name);
}
