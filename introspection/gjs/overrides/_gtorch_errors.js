// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Exceptions that pass through C. A JavaScript function that C calls can only fail with a GError, to
// which gjs converts any exception. noting() stores the exception itself; restoring() wraps the calls
// into C that may run such functions, and throws the stored exception: the same object.
//
// Functions that C calls later, from a main loop (a signal handler, the progress of an asynchronous
// operation), have no caller to throw to: gjs logs their exceptions.

/* exported failureOf hinted hints noting restore restoring withProgress */

const {Gio, GLib} = imports.gi;

const pending = []; // thrown values and the messages that C sees; the last one is the innermost
let depth = 0;

// Returns the error whose message gjs passes to C. A thrown value that is no error has no message.
function carrier(thrown) {
    if (thrown instanceof Error || thrown instanceof GLib.Error)
        return thrown;
    let text = typeof thrown;
    try {
        text += ` ${String(thrown)}`;
    } catch {
        // an object without a text
    }
    return new Error(`${text} was thrown`);
}

// Wraps func for calls from C.
function noting(func) {
    try {
        return func();
    } catch (thrown) {
        const error = carrier(thrown);
        if (depth === 0)
            throw error; // to the finish of an asynchronous call
        pending.push({thrown, message: String(error.message)});
        throw error;
    }
}

// What programs meet first: [1.0, 2.0] are whole numbers, since JavaScript has one kind of number.
const HINT = "; whole numbers make a tensor of int64, and tensor([1, 2], {dtype: 'float32'}) one of float32";
let DTYPE = null; // the code of errors about dtypes

// Adds that to an error of the library about int64.
function hinted(error) {
    DTYPE ??= imports.gi.GTorch.Error.DTYPE;
    if (!(error instanceof GLib.Error) || error.code !== DTYPE || !/\bint64\b/.test(error.message) ||
        !(error instanceof imports.gi.GTorch.Error) || error.message.endsWith(HINT))
        return error;
    const message = error.message + HINT;
    return Object.assign(new error.constructor({code: error.code, message}), {stack: error.stack});
}

// Wraps a C function so that its errors say so.
function hints(raw) {
    const func = function (...given) {
        try {
            return raw.apply(this, given);
        } catch (error) {
            throw hinted(error);
        }
    };
    Object.defineProperty(func, 'length', {value: raw.length, configurable: true});
    return func;
}

// Returns the error of GLib's that an exception becomes.
function failureOf(thrown, what) {
    const error = carrier(thrown);
    if (error instanceof GLib.Error)
        return error;
    const {GTorch} = imports.gi;
    const message = `${what}: ${error.name}: ${error.message}`;
    return new GLib.Error(GTorch.error_quark(), GTorch.Error.FAILED, message);
}

// Removes the prefix that gjs gives the types of a program's classes from the library's messages.
function readable(error) {
    if (!(error instanceof GLib.Error) || !/\bGjs_/.test(error.message))
        return error;
    const message = error.message.replace(/\bGjs_/g, '');
    return Object.assign(new error.constructor({code: error.code, message}), {stack: error.stack});
}

// Runs a call into C.
function restoring(func) {
    const before = pending.length;
    depth++;
    try {
        return func();
    } catch (error) {
        // The library may have added to the message; then its own error says more.
        const found = pending.slice(before).reverse().find(one => error.message?.includes(one.message));
        if (found === undefined || found.thrown instanceof GLib.Error && found.message !== error.message)
            throw hinted(readable(error));
        throw found.thrown;
    } finally {
        depth--;
        pending.length = before;
    }
}

// Wraps a C function in restoring().
function restores(raw) {
    return function (...given) {
        return restoring(() => raw.apply(this, given));
    };
}

function restore(owner, ...names) {
    for (const name of names)
        owner[name] = restores(owner[name]);
}

// Wraps raw, which ends when its progress function throws. The cancellable comes before that function.
function withProgress(raw, position) {
    return function (...given) {
        const progress = given[position] ?? null;
        if (progress === null)
            return raw.apply(this, given);
        const outer = given[position - 1];
        const inner = new Gio.Cancellable();
        const thrown = [];
        const report = (...values) => {
            if (thrown.length > 0)
                return;
            try {
                progress(...values);
            } catch (error) {
                thrown.push(error);
                inner.cancel();
            }
        };
        const handler = outer ? outer.connect(() => inner.cancel()) : 0;
        let result;
        try {
            result = raw.apply(this, [...given.slice(0, position - 1), inner, report]);
        } catch (error) {
            throw thrown.length > 0 ? thrown[0] : error;
        } finally {
            if (handler)
                outer.disconnect(handler);
        }
        if (thrown.length > 0)
            throw thrown[0];
        return result;
    };
}
