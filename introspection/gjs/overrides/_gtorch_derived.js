// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Classes that programs derive. A method of its name overrides a virtual function, forward(), or as
// everywhere in gjs by vfunc_forward(). Exceptions come out of the call into C, and no result may be a
// promise.

/* exported SUCCESS above asClass callableBySuper define derivable isProgramsOwn ownFunction setup */

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {noting, restoring} = imports.overrides._gtorch_errors;
const {classes, vfuncs} = imports.overrides._gtorch_calls_table;

let GTorch;

// The adaptor of a function that tells whether it was successful: one that gives nothing was.
var SUCCESS = {result: (what, value) => convert.flag(what, 'the result', value ?? true)};

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

// Returns the first class above all of the program's that define a method of this name: what super.name()
// means where no class of the program's has it.
function above(object, name) {
    let found = Object.getPrototypeOf(object);
    for (let one = found; isProgramsOwn(one.constructor); one = Object.getPrototypeOf(one)) {
        if (Object.hasOwn(one, name))
            found = Object.getPrototypeOf(one);
    }
    return found;
}

const BY_SUPER = Symbol('may be called with super');
const running = []; // the overrides that run, as objects and names

// Makes functions of C, which call the virtual function of the same name, call that of the parent where an
// override of it runs: what it calls with super. adapt() makes of its arguments those of C, and unpack() of
// what C gives what programs get.
function callableBySuper(prototype, names, adapt = given => given, unpack = value => value) {
    for (const name of names) {
        const raw = prototype[name];
        prototype[name] = function (...given) {
            const isSuper = running.some(([object, one]) => object === this && one === name);
            return unpack(isSuper
                ? restoring(() => above(this, name)[`vfunc_${name}`].apply(this, adapt(given)))
                : raw.apply(this, adapt(given)));
        };
        prototype[name][BY_SUPER] = true;
    }
}

// Returns the program's function of the name, which keeps note of its calls where it may call one with super.
function plainFunctionOf(prototype, name) {
    const func = ownFunction(prototype, name);
    if (func === null || !Object.getPrototypeOf(prototype)[name]?.[BY_SUPER])
        return func;
    const noted = function (...given) {
        running.push([this, name]);
        try {
            return func.apply(this, given);
        } finally {
            running.pop();
        }
    };
    noted[BY_SUPER] = true;
    define(prototype, name, noted);
    return noted;
}

// Makes a function that creates objects of a class stand for that class: instanceof and extends work.
// make(Class, given) gets the derived class where super() or new calls it.
function asClass(name, klass, make) {
    const func = function (...given) {
        const isDerived = new.target !== undefined && new.target !== func;
        return make(isDerived ? new.target : klass, given);
    };
    Object.defineProperty(func, 'name', {value: name});
    func.prototype = klass.prototype;
    return Object.setPrototypeOf(func, klass);
}

// Returns the function that C calls instead of func. Without call(self, func, values), func gets the values
// as they are.
function forC(klass, name, func, {call, result, pack}, isPlain) {
    return function (...given) {
        const what = `${convert.nameOf(klass)}: ${name}()`;
        return noting(() => {
            const value = isPlain && call ? call(this, func, given) : func.apply(this, given);
            convert.finished(what, value);
            const checked = result ? result(what, value, this, given) : value;
            return pack ? pack(checked) : checked;
        });
    };
}

// Lets programs override the virtual functions of Class and of what is derived from it. adaptors has, for
// some of them, call(), result(), and pack() and unpack() between the result and what C gives;
// prepare(klass) comes first.
function derivable(Class, adaptors = {}, prepare = () => {}) {
    Class._classInit = function (klass) {
        const own = klass.prototype;
        const called = [];
        prepare(klass);
        for (const name of namesOf(own)) {
            const direct = ownFunction(own, `vfunc_${name}`);
            const plain = plainFunctionOf(own, name);
            const func = direct ?? plain?.compute ?? plain;
            if (func === null)
                continue;
            const adaptor = adaptors[name] ?? {};
            define(own, `vfunc_${name}`, forC(klass, name, func, adaptor, direct === null));
            if (adaptor.pack)
                called.push([name, forC(klass, name, func, {...adaptor, pack: null}, direct === null)]);
        }
        const made = GObject.Object._classInit(klass);
        // What C calls is set up; classes that are derived from this one call these.
        for (const [name, func] of called)
            define(own, `vfunc_${name}`, func);
        return made;
    };
    for (const name of classes) {
        const {prototype} = GTorch[name];
        if (prototype !== Class.prototype && !(prototype instanceof Class))
            continue;
        for (const [vfunc, {unpack}] of Object.entries(adaptors).filter(([, one]) => one.unpack))
            unpackResult(prototype, `vfunc_${vfunc}`, unpack);
        for (const vfunc of vfuncs[name] ?? [])
            addPlain(prototype, vfunc);
    }
}

// Makes the library's own virtual function give what an override gives.
function unpackResult(prototype, name, unpack) {
    let raw;
    try {
        raw = prototype[name];
    } catch {
        return; // an abstract class has none
    }
    prototype[name] = function (...given) {
        return unpack(restoring(() => raw.apply(this, given)));
    };
}

// Adds the method that an override of this name calls with super.
function addPlain(prototype, name) {
    if (prototype[name] !== undefined)
        return;
    define(prototype, name, function (...given) {
        return restoring(() => above(this, name)[`vfunc_${name}`].apply(this, given));
    });
}

function setup(namespace) {
    GTorch = namespace;
    for (const name of Object.keys(vfuncs)) {
        const parent = Object.getPrototypeOf(GTorch[name].prototype);
        if (!classes.some(other => GTorch[other].prototype === parent))
            derivable(GTorch[name]);
    }
}
