// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Test cases as functions, reported in TAP, on the device that GTORCH_TEST_DEVICE names.

import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

export const device = GLib.getenv('GTORCH_TEST_DEVICE');
if (device) {
    try {
        GTorch.set_default_device(GTorch.Device.new_from_string(device));
        GTorch.get_default_device().set_current();
        GTorch.full([5], 2);
    } catch (error) {
        print(`1..0 # SKIP ${error.message}`);
        System.exit(0);
    }
}

const cases = [];

export function add(name, func) {
    cases.push([name, func]);
}

export function assert(condition, message) {
    if (!condition)
        throw new Error(message ?? 'the condition does not hold');
}

export function equal(got, expected) {
    const [a, b] = [got, expected].map(v => JSON.stringify(v) ?? String(v));
    assert(a === b, `${a} instead of ${b}`);
}

export function throws(func, test) {
    let result;
    try {
        result = func();
    } catch (error) {
        assert(test(error), `not this error: ${error.name} ${error.message}`);
        return;
    }
    throw new Error(`nothing was thrown, but ${result} returned`);
}

class Skip extends Error {}

export function skip(reason) {
    throw new Skip(reason);
}

export async function run() {
    let nFailed = 0;
    print(`1..${cases.length}`);
    for (const [i, [name, func]] of cases.entries()) {
        try {
            await func();
            print(`ok ${i + 1} - ${name}`);
        } catch (error) {
            if (error instanceof Skip) {
                print(`ok ${i + 1} - ${name} # SKIP ${error.message}`);
                continue;
            }
            nFailed++;
            print(`not ok ${i + 1} - ${name}`);
            `${error.name}: ${error.message}\n${error.stack}`.split('\n').forEach(line => print(`# ${line}`));
        }
    }
    System.exit(nFailed ? 1 : 0);
}
