#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The TypeScript definitions are valid, and describe what gjs shows.

Arguments: gjs, the namespace, how many functions it has at least, a program, whose last line of output is “function”,
the definitions, and those that these need."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import tap  # noqa: E402

GJS, SPACE, LEAST, PROGRAM, DEFINITIONS, *OTHERS = sys.argv[1:]
FLAGS = ['--strict', '--target', 'es2022', '--module', 'es2022']


def tsc(*args):
    if shutil.which('tsc') is None:
        raise tap.Skip('tsc is not installed')
    return subprocess.run(['tsc', *FLAGS, *args], capture_output=True, text=True, check=False)


@tap.case
def a_program_is_accepted_and_runs():
    with tempfile.TemporaryDirectory() as folder:
        done = tsc('--outDir', folder, *OTHERS, DEFINITIONS, PROGRAM)
        assert done.returncode == 0, done.stdout
        made = pathlib.Path(folder) / f'{pathlib.Path(PROGRAM).stem}.js'
        ran = subprocess.run([GJS, '-m', made], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == 'function', ran.stdout + ran.stderr


# Looks up the names of the definitions in gjs.
LOOK = '''
import SPACE from 'gi://SPACE?version=1';
for (const name of ARGUMENTS) {
    const [space, owner, key] = name.split(' ');
    const place = space.split('.').reduce((object, part) => object[part], {SPACE});
    const found = owner === '-' ? place : owner.startsWith('static ') ? place[owner.slice(7)] : place[owner]?.prototype;
    if (found === undefined || !(key in found))
        print(name);
}
'''
# Names of signals, and members that objects have and prototypes do not.
OF_OBJECTS = {'length', 'context'}


def declared():
    """Returns the names of functions and of methods that the definitions declare."""
    spaces, owner, found = [], None, set()
    for line in pathlib.Path(DEFINITIONS).read_text('utf-8').splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        if match := re.match(r' *(?:declare )?namespace (\w+) \{', line):
            spaces = [*spaces[:depth], match[1]]
        elif match := re.match(r' *(?:class|interface) (\w+)', line):
            owner = match[1] if line.endswith('{') else None
        elif line.strip() == '}' and owner is not None:
            owner = None
        elif 'Options' in str(spaces[depth - 1:depth]) or owner in ('BaseObject', 'ListModel'):
            continue
        elif match := re.match(r' *(?:function|const|enum) (\w+)', line):
            found.add(f'{".".join(spaces[:depth])} - {match[1]}')
        elif owner and (match := re.match(r' *([a-z]\w*)[(<]', line)) and match[1] != 'constructor':
            found.add(f'{".".join(spaces[:1])} {owner} {match[1]}')
    return found


@tap.case
def what_is_declared_is_there():
    names = sorted(declared())
    assert len(names) > int(LEAST), len(names)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / 'look.js'
        program.write_text(LOOK.replace('SPACE', SPACE).replace('ARGUMENTS', repr(names)), 'utf-8')
        done = subprocess.run([GJS, '-m', program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    missing = done.stdout.splitlines()
    assert not missing, f'{len(missing)} of {len(names)}: {missing[:40]}'


# Prints the functions and classes that gjs shows and the definitions lack.
LIST = r'''
import SPACE from 'gi://SPACE?version=1';
import GLib from 'gi://GLib';
const text = new TextDecoder().decode(GLib.file_get_contents(FILE)[1]);
// forms of C and of gjs, and words of TypeScript
const isOther = name => /_inplace|_scalar|_int$|^_|^vfunc_|-/.test(name) ||
    ['constructor', 'delete', 'var', 'Error', 'toString', 'toJSON', 'set', 'ot'].includes(name);
function isFunction(owner, name) {
    return typeof Object.getOwnPropertyDescriptor(owner, name)?.value === 'function';
}
for (const name of Object.getOwnPropertyNames(SPACE).filter(one => !isOther(one))) {
    if (isFunction(SPACE, name) && !new RegExp(`^    (function|const|class|interface) ${name}\\b`, 'm').test(text))
        print(name);
    const {prototype} = SPACE[name] ?? {};
    if (typeof SPACE[name] !== 'function' || !prototype)
        continue;
    const bodies = text.match(new RegExp(`^    (class|interface) ${name}[ {][^]*?^    \\}`, 'gm')) ?? [];
    for (const method of Object.getOwnPropertyNames(prototype).filter(one => !isOther(one))) {
        const isDeclared = bodies.some(body => new RegExp(`^        ${method}[(<]`, 'm').test(body));
        const parent = Object.getPrototypeOf(prototype);
        if (isFunction(prototype, method) && !isDeclared && !(method in parent))
            print(`${name}.${method}`);
    }
}
'''


@tap.case
def what_is_there_is_declared():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / 'list.js'
        file = repr(str(pathlib.Path(DEFINITIONS).resolve()))
        program.write_text(LIST.replace('SPACE', SPACE).replace('FILE', file), 'utf-8')
        done = subprocess.run([GJS, '-m', program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and 'JS ERROR' not in done.stderr, done.stderr
    missing = done.stdout.splitlines()
    assert not missing, f'{len(missing)}: {missing[:60]}'


tap.main()
