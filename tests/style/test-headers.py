#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compiles the public headers, and a use of each of their macros, in all standards of C and C++
without warnings.

    test-headers.py BUILD      the build folder, for the headers that are generated
"""

import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

import tap
import tree

BUILD = pathlib.Path(sys.argv.pop(1))
C = ('c99', 'c11', 'c17', 'c2x', 'gnu11')
CPLUSPLUS = ('c++11', 'c++14', 'c++17', 'c++20')
WARNINGS = ('-Wall', '-Wextra', '-Wpedantic', '-Wconversion', '-Wshadow', '-Wcast-qual', '-Werror')

# Uses of macros whose argument is not an object.
USES = {
    'GTORCH_PROFILE_RANGE': ['{ GTORCH_PROFILE_RANGE ("a range"); }'],
    'GTORCH_SHAPE': [
        'take_list (GTORCH_SHAPE (2));',
        'take_list (GTORCH_SHAPE (number, 3, number + 1));',
        'gtorch_tensor_unref (gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE, NULL, NULL));',
    ],
    'GTORCH_SIZE': ['take_size (GTORCH_SIZE (2));', 'take_size (GTORCH_SIZE (number, 3));'],
}
# Macros that are parts of declarations: the headers themselves use them.
DECLARATIVE = {'GTORCH_EXTERN', 'GTORCH_AVAILABLE_IN_0_1', '_GTORCH_DEFINE_GUARD_AUTOPTR'}


def headers():
    """Returns the text of each header, by its name in an #include."""
    found = {p: tree.read(p) for p in tree.files()
             if p.startswith('gtorch/') and p.endswith('.h') and not tree.is_private_header(p)}
    text = {name: found[name] for name in sorted(found)
            if re.search(r'GTORCH_AVAILABLE_IN|^#define GTORCH', found[name], re.M)
            and not name.startswith('gtorch/cpu/')}
    for path in sorted((BUILD / 'gtorch').glob('*.h')) + sorted((BUILD / 'gtorch').glob('*/*.h')):
        name = str(path.relative_to(BUILD))
        if 'GTORCH_AVAILABLE_IN' in path.read_text(encoding='utf-8') and not tree.is_private_header(name):
            text[name] = path.read_text(encoding='utf-8')
    assert len(text) > 60, f'only {len(text)} headers were found'
    return text


def uses():
    """Returns statements that use each macro that the headers define, including those of GLib's macros."""
    lines = []
    for name, text in headers().items():
        for macro, params in re.findall(r'^#define (\w+)(\([^)]*\))?', text, flags=re.M):
            if macro in DECLARATIVE:
                continue
            if macro in USES:
                lines += USES[macro]
            elif params and re.match(r'GTORCH_IS_', macro):
                lines.append(f'result += {macro} (object);')
            elif params == '(object)':
                lines.append(f'take ({macro} (object));')
            elif not params and re.match(r'GTORCH_(TYPE_|ERROR$)', macro):
                lines.append(f'result += {macro} != 0;')
            elif not params:
                lines.append(f'result += (int) {macro};')
            else:
                raise AssertionError(f'{name}: no use of {macro} is known')
        for of_glib in re.findall(r'G_DECLARE_\w+_TYPE \(\s*\w+,\s*\w+,\s*(\w+),\s*(\w+)', text):
            prefix, stem = of_glib
            lines += [f'take ({prefix}_{stem} (object));', f'result += {prefix}_IS_{stem} (object);']
    assert len(lines) > 150, f'only {len(lines)} uses were made'
    return lines


def program(lines):
    return '\n'.join([
        '#include <gtorch/gtorch.h>',
        'static void take (const void *pointer) { (void) pointer; }',
        'static void take_list (const gint64 *list, gsize n) { (void) list; (void) n; }',
        'static void take_size (GTorchSize *size) { (void) size; }',
        'int use (gpointer object, gint64 number);',
        'int', 'use (gpointer object, gint64 number)', '{', '  int result = 0;',
        *(f'  {line}' for line in lines),
        '  return result;', '}', ''])


def flags():
    text = subprocess.run(['pkg-config', '--cflags', 'gio-2.0'], check=True, capture_output=True, text=True).stdout
    out = [f'-I{tree.full("")}', f'-I{BUILD}']
    for flag in text.split():
        out += ['-isystem', flag[2:]] if flag.startswith('-I') else [flag]
    return out


def compile_all(text, compiler, language, standards):
    def one(standard):
        # GLib's macros repeat typedefs of another header; only clang warns about that
        own = ['-Wno-typedef-redefinition'] if 'clang' in compiler and standard == 'c99' else []
        command = [compiler, f'-std={standard}', *WARNINGS, *own, *flags(), '-fsyntax-only', f'-x{language}', '-']
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        return f'{compiler} -std={standard}:\n{done.stderr}' if done.returncode else ''

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [message for message in pool.map(one, standards) if message]
    assert not wrong, '\n'.join(wrong)


def check(compiler, language, standards):
    if shutil.which(compiler) is None:
        raise tap.Skip(f'there is no {compiler}')
    compile_all(program(uses()), compiler, language, standards)


for name, kind, all_standards in (('gcc', 'c', C), ('clang', 'c', C),
                                  ('g++', 'c++', CPLUSPLUS), ('clang++', 'c++', CPLUSPLUS)):
    tap.add(f'{name}_takes_every_macro_in_every_standard', check, name, kind, all_standards)


@tap.case
def lists_have_their_numbers_in_cplusplus():
    if shutil.which('g++') is None:
        raise tap.Skip('there is no g++')
    source = '''
#include <gtorch/base/gtorch-size.h>
static bool is_list (const gint64 *list, gsize n) { return n == 3 && list[0] == 5 && list[1] == -1 && list[2] == 7; }
static bool is_size (GTorchSize *size)
{
  const gint64 *raw = reinterpret_cast<const gint64 *> (size);
  return raw[0] == 2 && raw[1] == 3 && raw[2] == 4;
}
int main ()
{
  unsigned five = 5;
  short seven = 7;
  return is_list (GTORCH_SHAPE (five, -1, seven)) && is_size (GTORCH_SIZE (3, 4L)) ? 0 : 1;
}
'''
    where = BUILD / 'test-headers'
    subprocess.run(['g++', '-std=c++11', '-O2', *WARNINGS, *flags(), '-xc++', '-', '-o', where,
                    '-fsanitize=address'], input=source, text=True, check=True)
    assert subprocess.run([where], check=False).returncode == 0
    where.unlink()


if __name__ == '__main__':
    tap.main()
