// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Stores. What C gives beside a success is the result here: store.add('n', 1) is the sum.

/* exported setup */

function last(owner, name) {
    const raw = owner[name];
    const func = function (...given) {
        return raw.apply(this, given).at(-1);
    };
    Object.defineProperty(func, 'length', {value: raw.length, configurable: true});
    owner[name] = func;
}

function setup(GTorch) {
    // add_async() calls add_finish()
    for (const name of ['add', 'check', 'count_keys', 'delete_key'])
        [name, `${name}_finish`].forEach(one => last(GTorch.Store.prototype, one));
}
