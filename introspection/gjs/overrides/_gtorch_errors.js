// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Exceptions that pass through C. A JavaScript function that C calls can only fail with a GError, to
// which gjs converts any exception. noting() stores the exception itself; restoring() wraps the calls
// into C that may run such functions, and throws the stored exception: the same object.
//
// Functions that C calls later, from a main loop (a signal handler, the progress of an asynchronous
// operation), have no caller to throw to: gjs logs their exceptions.

/* exported noteVfuncs noting restore restoring withProgress */

const {Gio, GLib} = imports.gi;

const pending = []; // the last one is the innermost
let depth = 0;

// Wraps func for calls from C.
function noting(func) {
    try {
        return func();
    } catch (error) {
        if (depth > 0)
            pending.push(error);
        throw error;
    }
}

// Runs a call into C.
function restoring(func) {
    const before = pending.length;
    let found = null;
    depth++;
    try {
        return func();
    } catch (error) {
        // The library may have added to the message; then its own error says more.
        found = pending.slice(before).reverse().find(one => error.message?.includes(one?.message ?? one));
        if (found instanceof GLib.Error && found.message !== error.message)
            found = null;
        throw found ?? error;
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

// Lets exceptions propagate from virtual functions that the class itself defines.
function noteVfuncs(prototype, ...names) {
    for (const name of names.map(one => `vfunc_${one}`)) {
        if (!Object.hasOwn(prototype, name))
            continue;
        const func = prototype[name];
        prototype[name] = function (...given) {
            return noting(() => func.apply(this, given));
        };
    }
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
