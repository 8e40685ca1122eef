// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Classes that programs derive. A method of its name overrides a virtual function, forward(), or as
// everywhere in gjs by vfunc_forward(). Exceptions come out of the call into C, and no result may be a
// promise.

/* exported define derivable isProgramsOwn ownFunction setup */

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {noting} = imports.overrides._gtorch_errors;
const {classes, vfuncs} = imports.overrides._gtorch_calls_table;

let GTorch;

// Tells whether a program derived the class. Some of the library's classes are not in the typelib.
function isProgramsOwn(klass) {
    return !GObject.type_name(klass.$gtype).startsWith('GTorch');
}

function namesOf(prototype) {
    const found = Object.keys(vfuncs).filter(name => prototype instanceof GTorch[name]);
    return new Set(found.flatMap(name => vfuncs[name]));
}

function ownFunction(prototype, name) {
    const value = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    return typeof value === 'function' ? value : null;
}

// Defines a member. An assignment would look up the parent's virtual function, which may not exist.
function define(prototype, name, value) {
    Object.defineProperty(prototype, name, {value, configurable: true, enumerable: false, writable: true});
}

// Returns the function that C calls instead of func. Without call(self, func, values), func gets the values
// as they are.
function forC(klass, name, func, {call, result}, isPlain) {
    const what = `${klass.name}: ${name}()`;
    return function (...given) {
        return noting(() => {
            const value = isPlain && call ? call(this, func, given) : func.apply(this, given);
            convert.finished(what, value);
            return result ? result(what, value, this, given) : value;
        });
    };
}

// Lets programs override the virtual functions of Class and of what is derived from it. adaptors has, for
// some of them, call() and result(); prepare(klass) comes first.
function derivable(Class, adaptors = {}, prepare = () => {}) {
    Class._classInit = function (klass) {
        const own = klass.prototype;
        prepare(klass);
        for (const name of namesOf(own)) {
            const direct = ownFunction(own, `vfunc_${name}`);
            const plain = ownFunction(own, name);
            const func = direct ?? plain?.compute ?? plain;
            if (func !== null)
                define(own, `vfunc_${name}`, forC(klass, name, func, adaptors[name] ?? {}, direct === null));
        }
        return GObject.Object._classInit(klass);
    };
}

function setup(namespace) {
    GTorch = namespace;
    for (const name of Object.keys(vfuncs)) {
        const parent = Object.getPrototypeOf(GTorch[name].prototype);
        if (!classes.some(other => GTorch[other].prototype === parent))
            derivable(GTorch[name]);
    }
}
