// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Exceptions on their way through C. A function in JavaScript that C calls can only fail with an error of
// GLib's, which gjs makes of any exception. noting() remembers the exception itself; restoring() is
// around the calls into C that may call such functions, and throws what was remembered: the same object.
//
// What C calls later, from a main loop (a handler of a signal, the progress of something asynchronous), has
// nobody to throw to: gjs logs its exceptions.

/* exported noting restore restoring withProgress */

const {Gio, GLib} = imports.gi;

const pending = []; // what was thrown and how its message begins; the last one is the innermost
let depth = 0;

// What gjs makes an error of GLib's with the message of. Of a value that is no error it would keep nothing.
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

// Calls func, for C.
function noting(func) {
    try {
        return func();
    } catch (thrown) {
        if (depth === 0)
            throw thrown;
        const error = carrier(thrown);
        pending.push({thrown, message: String(error.message)});
        throw error;
    }
}

// Names of types in messages of the library's: gjs puts its own in front of those of a program's classes.
function readable(error) {
    if (!(error instanceof GLib.Error) || !/\bGjs_/.test(error.message))
        return error;
    const message = error.message.replace(/\bGjs_/g, '');
    return Object.assign(new error.constructor({code: error.code, message}), {stack: error.stack});
}

// Calls into C.
function restoring(func) {
    const before = pending.length;
    depth++;
    try {
        return func();
    } catch (error) {
        // The message may have been added to on its way; then one of the library's says more.
        const found = pending.slice(before).reverse().find(one => error.message?.includes(one.message));
        if (found === undefined || found.thrown instanceof GLib.Error && found.message !== error.message)
            throw readable(error);
        throw found.thrown;
    } finally {
        depth--;
        pending.length = before;
    }
}

// The function of C with restoring() around it.
function restores(raw) {
    return function (...given) {
        return restoring(() => raw.apply(this, given));
    };
}

function restore(owner, ...names) {
    for (const name of names)
        owner[name] = restores(owner[name]);
}

// raw, which ends with what its function for progress throws. The cancellable comes before that.
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
