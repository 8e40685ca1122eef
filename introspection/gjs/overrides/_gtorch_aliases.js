// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Further names that PyTorch has for operations, and forms in place that change the shape of a tensor.

/* exported setup */

const convert = imports.overrides._gtorch_convert;

const NAMES = {
    absolute: 'abs', arccos: 'acos', arccosh: 'acosh', arcsin: 'asin', arcsinh: 'asinh', arctan: 'atan',
    arctan2: 'atan2', arctanh: 'atanh', clip: 'clamp', divide: 'div', fix: 'trunc', greater: 'gt',
    greater_equal: 'ge', less: 'lt', less_equal: 'le', multiply: 'mul', negative: 'neg', not_equal: 'ne',
    subtract: 'sub',
};

function listOf(given) {
    return given.length === 1 && Array.isArray(given[0]) ? given[0] : given;
}

// The shape to which tensors of some shapes are broadcast.
function broadcastShapes(...given) {
    const shapes = given.map(shape => convert.integers('broadcast_shapes', 'a shape', shape).map(Number));
    const n = Math.max(0, ...shapes.map(shape => shape.length));
    const found = Array(n).fill(1);
    for (const shape of shapes) {
        shape.forEach((size, i) => {
            const place = n - shape.length + i;
            if (size < 0)
                throw new RangeError(`broadcast_shapes: a size is negative: ${size}`);
            if (size !== 1 && found[place] !== 1 && found[place] !== size) {
                const texts = shapes.map(one => `[${one.join(', ')}]`).join(', ');
                throw new RangeError(`broadcast_shapes: shapes ${texts} cannot be broadcast`);
            }
            found[place] = size === 1 ? found[place] : size;
        });
    }
    return found;
}

function setup(GTorch) {
    const {prototype} = GTorch.Tensor;
    for (const [alias, name] of Object.entries(NAMES)) {
        for (const ending of ['', '_']) {
            if (prototype[`${name}${ending}`] !== undefined)
                prototype[`${alias}${ending}`] = prototype[`${name}${ending}`];
        }
        Object.defineProperty(GTorch, alias, {value: GTorch[name]});
    }
    const {resize_inplace: resize, squeeze_inplace: squeeze, transpose_inplace: transpose} = prototype;
    const {unsqueeze_inplace: unsqueeze} = prototype;
    convert.addMethods(prototype, {
        unsqueeze_(dim) {
            return unsqueeze.call(this, dim);
        },
        squeeze_(...given) {
            return squeeze.call(this, listOf(given));
        },
        transpose_(dim0, dim1) {
            return transpose.call(this, dim0, dim1);
        },
        t_() {
            const n = this.shape.length;
            if (n > 2)
                throw new RangeError(`t_: the tensor has ${n} dimensions, and may have 2`);
            return n < 2 ? this : transpose.call(this, 0, 1);
        },
        resize_(...given) {
            return resize.call(this, listOf(given));
        },
        resize_as_(other) {
            if (!(other instanceof GTorch.Tensor))
                throw new TypeError(`resize_as_: a tensor is wanted, not ${convert.describe(other)}`);
            return resize.call(this, other.shape);
        },
    });
    prototype.swapaxes_ = prototype.swapdims_ = prototype.transpose_;
    Object.defineProperty(GTorch, 'broadcast_shapes', {value: broadcastShapes});
}
