// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tells C the lines at which a program is.

/* exported place */

const {GLib} = imports.gi;

const MOST = 8;
const FRAME = /^(.*)@(.+?):(\d+)(?::\d+)?$/;
const OWN = FRAME.exec(new Error().stack.split('\n')[0])[2].replace(/[^/]*$/, '');

function pathOf(file) {
    return file.startsWith('file://') ? GLib.filename_from_uri(file)[0] : file;
}

// The innermost functions that are not of the library's JavaScript.
function place() {
    const found = [];
    for (const line of new Error().stack.split('\n')) {
        const [, name, file, number] = FRAME.exec(line) ?? [];
        if (file === undefined || file.startsWith('resource:///org/gnome/gjs/') || file.startsWith(OWN))
            continue;
        found.push(`${pathOf(file)}:${number}, in ${name || '<module>'}`);
        if (found.length === MOST)
            break;
    }
    return found.length > 0 ? found.join('\n') : null;
}
