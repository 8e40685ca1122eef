// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Functions whose first argument is a module.

/* exported define required setup */

const convert = imports.overrides._gtorch_convert;
const {restoring} = imports.overrides._gtorch_errors;

let GTorch;

function required(name) {
    return {name, required: true};
}

// Makes a function of PyTorch's arguments, the first of which is a module. It returns what call gives, or the
// module.
function define(name, args, call) {
    const all = [required('module'), ...args];
    const defaults = all.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    return (...given) => {
        const values = {...Object.fromEntries(defaults), ...convert.bind(name, all, given)};
        const {module} = values;
        if (!(module instanceof GTorch.Module))
            throw new TypeError(`${name}: module must be a Module, not ${convert.describe(module)}`);
        return restoring(() => call(values, module, name)) ?? module;
    };
}

function setup(namespace) {
    GTorch = namespace;
}
