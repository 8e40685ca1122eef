#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the rules of HACKING.md for the GIR that the scanner does not know."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402

GIR, *HEADERS = sys.argv[1:]
CORE = '{http://www.gtk.org/introspection/core/1.0}'
C = '{http://www.gtk.org/introspection/c/1.0}'
FUNCTIONS = [CORE + kind for kind in ('function', 'method', 'constructor')]

root = ET.parse(GIR).getroot()
shown = {e.get(C + 'identifier'): e for e in root.iter() if e.tag in FUNCTIONS}


def report(lines):
    lines = sorted(lines)
    assert not lines, '\n'.join(lines)


def declared():
    """Public functions by the file that declares them."""
    for header in HEADERS:
        text = pathlib.Path(header).read_text('utf-8')
        for match in re.finditer(r'GTORCH_AVAILABLE_IN_0_1\n([^;{]*?)\b(gtorch_\w+) \(', text):
            yield match[2], header


@tap.case
def every_public_function_is_in_the_gir():
    report(
        f'{header}: {name}'
        for name, header in declared()
        if name not in shown and not name.endswith('_get_type')
    )


@tap.case
def unintrospectable_functions_are_marked():
    sources = {}
    for header in HEADERS:
        source = pathlib.Path(header).with_suffix('.c')
        if source.exists():
            sources[header] = source.read_text('utf-8')
    everything = '\n'.join(sources.values())
    report(
        name
        for name, element in shown.items()
        if element.get('introspectable') == '0'
        and not re.search(rf'\* {name}:.*\(skip\)', everything)
    )


@tap.case
def lists_in_arguments_have_their_length():
    """A pointer to numbers without (array) denotes a single number."""
    found = []
    for name, element in shown.items():
        if element.get('introspectable') == '0':
            continue
        for parameter in element.iter(CORE + 'parameter'):
            kind = parameter.find(CORE + 'type')
            ctype = kind.get(C + 'type', '') if kind is not None else ''
            plain = re.fullmatch(r'const g(int64|int|double|float|boolean|size)\*', ctype)
            if plain and parameter.get('direction', 'in') == 'in':
                found.append(f'{name}: {parameter.get("name")}')
    report(found)


@tap.case
def no_raw_pointer_is_shown():
    found = []
    for name, element in shown.items():
        if element.get('introspectable') == '0':
            continue
        for part in (*element.iter(CORE + 'parameter'), *element.iter(CORE + 'return-value')):
            kind = part.find(CORE + 'type')
            is_data = part.get('closure') is not None or 'data' in (part.get('name') or '')
            if kind is not None and kind.get('name') == 'gpointer' and not is_data:
                found.append(f'{name}: {part.get("name") or "result"}')
    report(found)


@tap.case
def lists_of_objects_are_returned_as_containers():
    """gjs 1.74 leaks or frees twice in the other forms."""
    found = []
    for name, element in shown.items():
        value = element.find(CORE + 'return-value')
        array = value.find(CORE + 'array') if value is not None else None
        if array is None or element.get('introspectable') == '0':
            continue
        inner = array.find(CORE + 'type')
        is_objects = inner is not None and inner.get('name') in ('Tensor', 'Module', 'Parameter')
        if is_objects and (
            array.get('name') != 'GLib.PtrArray' or value.get('transfer-ownership') != 'container'
        ):
            found.append(name)
    report(found)


@tap.case
def functions_that_can_fail_are_marked():
    report(
        name
        for name, element in shown.items()
        if any(p.get('name') == 'error' for p in element.iter(CORE + 'parameter'))
        and element.get('throws') != '1'
        # in variadic functions the error is not the last argument
        and element.get('introspectable') != '0'
    )


if __name__ == '__main__':
    tap.main()
