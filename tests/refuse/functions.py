#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes a table of all public C functions: the arguments of each, and the guarantees of its
documentation.

    functions.py OUTPUT HEADER FILE… [--with FILE…]     the header to include, the public headers, and the sources
                        with the documentation; headers behind --with have types of arguments only

Declarations that this script cannot parse are errors, so that no function can be missing from the
table.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from generator.text import write  # noqa: E402

NUMBERS = {
    'gint': ('G_MININT', 'G_MAXINT'),
    'int': ('G_MININT', 'G_MAXINT'),
    'guint': ('0', 'G_MAXUINT'),
    'gint64': ('G_MININT64', 'G_MAXINT64'),
    'guint64': ('0', 'G_MAXINT64'),
    'gsize': ('0', 'G_MAXINT64'),
}
# The kinds of list arguments, by element type; file descriptors are as good as truth values, which have their type.
LISTS = {'gint64': 'INTS', 'gdouble': 'DOUBLES', 'gfloat': 'FLOATS', 'gboolean': 'BOOLS', 'gint': 'BOOLS'}
# The foreign types, and the functions that free them.
FOREIGN = {
    'GApplication': 'g_object_unref',
    'GAsyncResult': 'g_object_unref',
    'GBytes': 'g_bytes_unref',
    'GCancellable': 'g_object_unref',
    'GError': 'g_error_free',
    'GFile': 'g_object_unref',
    'GHashTable': 'g_hash_table_unref',
    'GInputStream': 'g_object_unref',
    'GListModel': 'g_object_unref',
    'GObject': 'g_object_unref',
    'GOptionGroup': 'g_option_group_unref',
    'GOutputStream': 'g_object_unref',
    'GPtrArray': 'g_ptr_array_unref',
    'GSource': 'g_source_unref',
    'GValue': 'g_free',
    'GVariant': 'g_variant_unref',
    'GdkTexture': 'g_object_unref',
    'GtkWidget': 'g_object_unref',
    'cairo_t': 'cairo_destroy',
}
FUNCTIONS = {'GAsyncReadyCallback', 'GDestroyNotify', 'GFileProgressCallback'}


class Interface:
    def __init__(self):
        self.prototypes = []  # (header, returns, name, [(type, name)])
        self.get_types = {}  # maps GTorchTensor to gtorch_tensor_get_type
        self.enums = set()
        self.callbacks = set(FUNCTIONS)
        self.docs = {}  # maps a function to {parameter or '': annotations}
        self.nones = {}  # maps a function to the parameters whose documentation names the constants for none

    def read_header(self, path):
        text = re.sub(r'/\*.*?\*/', '', path.read_text(encoding='utf-8'), flags=re.S)
        text = re.sub(r'^#.*?[^\\]$', '', text, flags=re.S | re.M)
        self.enums |= set(re.findall(r'^\} (\w+);', text, flags=re.M))
        self.callbacks |= set(re.findall(r'^typedef [^;]*?\(\*(\w+)\)', text, flags=re.M))
        for cls, stem in re.findall(r'G_DECLARE_\w+_TYPE\s*\((\w+),\s*(\w+)', text):
            self.get_types[cls] = f'{stem}_get_type'
        marks = re.split(r'\bGTORCH_AVAILABLE_IN_\w+', text)[1:]
        for mark in marks:
            declaration = ' '.join(mark.split(';')[0].split())
            if declaration.startswith('G_DECLARE_'):
                stem = declaration.split(',')[1].strip()
                self.prototypes.append((path.name, 'GType', f'{stem}_get_type', []))
                continue
            declaration = re.sub(r'( G_GNUC_\w+)+$', '', declaration)
            if declaration.endswith(', ...)'):
                continue  # macros for C; their types are unknown
            match = re.fullmatch(r'(.+?[ *])(\w+) \((.*)\)', declaration)
            if match is None:
                sys.exit(f'{path.name}: cannot read “{declaration}”')
            params = [] if match[3] == 'void' else [p.strip() for p in match[3].split(',')]
            params = [re.fullmatch(r'(.+?[ *])(\w+)', p).groups() for p in params]
            returns = match[1].strip()
            self.prototypes.append((path.name, returns, match[2], [(t.strip(), n) for t, n in params]))
            if returns == 'GType':
                stem = match[2].removesuffix('_get_type').replace('_', '').lower()
                self.get_types[stem] = match[2]

    def read_docs(self, path):
        for block in re.findall(r'/\*\*\n(.*?)\*/', path.read_text(encoding='utf-8'), flags=re.S):
            lines = [line.strip().removeprefix('*').strip() for line in block.splitlines()]
            match = re.match(r'(gtorch_\w+):', lines[0])
            if match is None:
                continue
            doc = self.docs.setdefault(match[1], {})
            text = '\n'.join(lines[1:])
            self.nones[match[1]] = {
                arg[1]
                for arg in re.finditer(r'^@(\w+):((?:.|\n(?!@|\n))*)', text, flags=re.M)
                if 'NONE' in arg[2]
            }
            for name, notes in re.findall(
                r'^@(\w+):((?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))*)', text, flags=re.M
            ):
                doc[name] = notes
            match = re.search(r'^Returns:((?:\s*\([^()]*\))*)', text, flags=re.M)
            doc[''] = match[1] if match else ''

    def get_type(self, cls):
        return self.get_types.get(cls) or self.get_types.get(cls.lower()) or 'NULL'

    def drop(self, ctype):
        """Returns the function that frees a value of this type, or NULL if that depends on its GType."""
        base = ctype.removeprefix('const ').replace('*', '').strip()
        if ctype.count('*') == 2 and base == 'gchar':
            return 'g_strfreev'
        if base in FOREIGN:
            return FOREIGN[base]
        if base in OPAQUE:
            return OPAQUE[base]
        return 'NULL' if base.startswith('GTorch') else 'g_free'


def parameters(interface, name, params):
    """Returns (kind, name, C type, nullable, get_type, low, high, drop, takes_none) of each parameter
    except the GError."""
    notes = interface.docs.get(name, {})
    out = []
    lengths = set(re.findall(r'array[^)]*length=(\w+)', ' '.join(notes.values())))
    for ctype, arg in params:
        note = notes.get(arg, '')
        base = ctype.removeprefix('const ').rstrip('* ').removesuffix('*const').strip()
        stars = ctype.count('*')
        get_type, low, high, drop = 'NULL', '0', '0', 'NULL'
        # The introspection scanner treats these as nullable, too.
        nullable = bool(re.search(r'\((nullable|optional|allow-none)', note))
        nullable |= base in ('GAsyncReadyCallback', 'GCancellable', 'GDestroyNotify')
        out_param = re.search(r'\((out|inout)\b', note)
        if ctype == 'GError **':
            continue
        if stars and out_param:
            kind = 'OUT'
            get_type = interface.get_type(base)
            if stars > 1:
                drop = interface.drop(ctype[:-1])
                kind = 'OUT_FULL' if 'transfer none' not in note else 'OUT'
        elif arg in lengths and not stars:
            kind = 'LENGTH'
        elif stars == 2 and base == 'gchar':
            kind = 'STRINGS'
        elif stars == 2:
            kind, get_type = 'OBJECTS', interface.get_type(base)
        elif stars == 1 and base == 'gchar':
            kind = 'STRING'
        elif stars == 1 and base in LISTS:
            kind = LISTS[base]
        elif stars == 1 and base.startswith('GTorch'):
            kind, get_type = 'OBJECT', interface.get_type(base)
        elif stars == 1 and base in FOREIGN:
            kind = 'FOREIGN'
        elif base in interface.enums:
            kind, get_type = 'ENUM', interface.get_type(base)
        elif base in interface.callbacks:
            kind = 'FUNC'
        elif base == 'gpointer':
            kind, nullable = 'POINTER', True
        elif base == 'gdouble':
            kind = 'DOUBLE'
        elif base == 'gboolean':
            kind = 'BOOL'
        elif base in NUMBERS and not stars:
            kind = 'INT'
            low, high = NUMBERS[base]
        else:
            sys.exit(f'{name}: no kind of argument for “{ctype} {arg}”')
        if kind in ('OBJECT', 'OBJECTS') and get_type == 'NULL' and base not in OPAQUE:
            sys.exit(f'{name}: no GType for “{ctype} {arg}”')
        takes_none = base not in ('gint', 'gint64', 'gdouble')
        takes_none |= arg in interface.nones.get(name, ())
        out.append((kind, arg, base, nullable, get_type, low, high, drop, takes_none))
    for i, row in enumerate(out):
        following = next((kind for kind, *_ in out[i + 1:] if kind not in LISTS.values()), None)
        if row[0] in ('OBJECTS', *LISTS.values()) and following != 'LENGTH':
            sys.exit(f'{name}: {row[1]} is a list without a length')
    return out


# Types without a GType: only NULL can be told from a valid value. Maps them to the functions that
# free them.
OPAQUE = {
    'GTorchImpl': 'NULL',
    'GTorchReferences': 'gtorch_references_free',
}


def returned(interface, name, returns):
    """Returns (kind, drop, get_type) of the return value."""
    if returns == 'void':
        return 'VOID', 'NULL', 'NULL'
    if '*' not in returns and returns != 'gpointer':
        kind = {'gdouble': 'DOUBLE', 'gboolean': 'BOOL'}.get(returns, 'INT')
        return kind, 'NULL', 'NULL'
    notes = interface.docs.get(name, {}).get('', '')
    base = returns.removeprefix('const ').rstrip('* ').strip()
    owned = 'transfer full' in notes or 'transfer container' in notes
    if not owned and 'transfer none' not in notes:
        owned = not returns.startswith('const ') and '*' in returns
    return ('FULL' if owned else 'NONE'), interface.drop(returns), interface.get_type(base)


def argument(i, ctype, kind):
    if kind == 'DOUBLE':
        return f'a[{i}].d'
    if kind in ('INT', 'ENUM', 'BOOL', 'LENGTH'):
        return f'({ctype}) a[{i}].i'
    return f'(gpointer) a[{i}].p' if kind != 'FUNC' else f'({ctype}) a[{i}].p'


def emit(interface, header):
    out = [
        '/* Written by functions.py. */',
        '',
        f'#include <{header}>',
        '',
        '#include "refuse.h"',
        '',
    ]
    table = []
    for header, returns, name, params in interface.prototypes:
        if name not in interface.docs and not name.endswith(('_get_type', '_quark')):
            sys.exit(f'{name}: has no documentation')
        rows = parameters(interface, name, params)
        kind, drop, get_type = returned(interface, name, returns)
        throws = any(t == 'GError **' for t, _ in params)
        types = [t for t, _ in params if t != 'GError **']
        args = [argument(i, t, row[0]) for i, (t, row) in enumerate(zip(types, rows))]
        call = f'{name} ({", ".join(args + (["error"] if throws else []))})'
        member = {'VOID': '', 'DOUBLE': 'r->d = ', 'INT': 'r->i = ', 'BOOL': 'r->i = '}.get(
            kind, 'r->p = (gpointer) '
        )
        out += [
            'static void',
            f'call_{name} (const Value *a, Value *r, GError **error)',
            '{',
            f'  {member}{call};',
            '}',
            '',
        ]
        if rows:
            out.append(f'static const Param params_{name}[] = {{')
            for k, arg, ctype, nullable, gtype, low, high, pdrop, takes_none in rows:
                out.append(
                    f'  {{ PARAM_{k}, "{arg}", "{ctype}", {"TRUE" if nullable else "FALSE"}, {gtype}, '
                    f'{low}, {high}, (GDestroyNotify) {pdrop}, {"TRUE" if takes_none else "FALSE"} }},'
                )
            out += ['};', '']
        table.append(
            f'  {{ "{name}", "{header}", {len(rows)}, {"params_" + name if rows else "NULL"}, '
            f'RETURN_{kind}, (GDestroyNotify) {drop}, {get_type}, {"TRUE" if throws else "FALSE"}, '
            f'call_{name} }},'
        )
    out += ['const Function functions[] = {'] + table + ['};', '']
    return out + ['const guint n_functions = G_N_ELEMENTS (functions);', '']


def main(output, header, *files):
    interface = Interface()
    if '--with' in files:
        others = files[files.index('--with') + 1:]
        files = files[:files.index('--with')]
        for path in map(pathlib.Path, others):
            interface.read_header(path)
        interface.prototypes = []
    for path in map(pathlib.Path, files):
        if path.suffix == '.h':
            interface.read_header(path)
        interface.read_docs(path)
    write(output, '\n'.join(emit(interface, header)))


if __name__ == '__main__':
    main(*sys.argv[1:])
