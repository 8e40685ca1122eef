#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Classes that Vala can derive from compile in C; valac refuses to derive from the others.

Derives a subclass from every class of the GIR: test-vala-classes.py GIR VAPI VALAC COMPILER."""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402

CORE = '{http://www.gtk.org/introspection/core/1.0}'
GLIB = '{http://www.gtk.org/introspection/glib/1.0}'
GIR, VAPI, VALAC, COMPILER = map(pathlib.Path, sys.argv[1:5])


def classes():
    """Returns the names of the classes, and whether C has their instance struct."""
    return {node.get('name'): is_derivable(node) for node in ET.parse(GIR).iter(f'{CORE}class')}


def is_derivable(node):
    return node.get(f'{GLIB}type-struct') is not None and node.find(f'{CORE}field') is not None


def translate(names, folder):
    source = pathlib.Path(folder) / 'own.vala'
    source.write_text(''.join(f'public abstract class Own{name} : GTorch.{name} {{}}\n' for name in names))
    command = [VALAC, '-C', '-d', folder, '--vapidir', VAPI.parent, '--pkg', VAPI.stem, '--pkg', 'gio-2.0', source]
    return subprocess.run(command, capture_output=True, text=True)


@tap.case
def others_are_sealed():
    # Parameter is a Tensor to Vala, so that one cannot be sealed
    names = [name for name, derivable in classes().items() if not derivable and name != 'Tensor']
    assert len(names) > 150, names
    with tempfile.TemporaryDirectory() as folder:
        done = translate(names, folder)
    assert done.returncode != 0
    for name in names:
        assert f"cannot inherit from sealed class `GTorch.{name}'" in done.stderr, name


@tap.case
def derivable_ones_compile():
    names = [name for name, derivable in classes().items() if derivable]
    derivable = {
        'Attention', 'ClassScore', 'ConvTranspose', 'Dataset', 'Decoder', 'Encoder', 'Fetcher', 'Function',
        'IndexSource', 'IterableDataset', 'LRScheduler', 'Log', 'Loss', 'MemorySource', 'Metric', 'Module', 'Optimizer',
        'RNNBase', 'SampleSource', 'Sampler', 'Store', 'Trainer',
    }
    assert derivable == set(names), names
    with tempfile.TemporaryDirectory() as folder:
        done = translate(names, folder)
        assert done.returncode == 0, done.stderr
        made = list(pathlib.Path(folder).glob('**/own.c'))
        assert len(made) == 1, made
        flags = subprocess.run(['pkg-config', '--cflags', 'gio-2.0'], capture_output=True, check=True, text=True).stdout
        folders = [f'-I{tap.SOURCE_ROOT}', f'-I{VAPI.parent.parent}']
        command = [COMPILER, '-w', '-fsyntax-only', *flags.split(), *folders, made[0]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# The types of containers in the GIR and in the VAPI, where metadata may replace them.
CONTAINERS = {'GLib.HashTable': 'HashTable', 'GLib.PtrArray': 'GenericArray'}


def containers(function):
    """Returns how many of each container the function takes and returns."""
    parts = [function.find(f'{CORE}return-value'), *function.iter(f'{CORE}parameter')]
    arrays = [part.find(f'{CORE}array') for part in parts]
    types = [part.find(f'{CORE}type') for part in parts]
    names = [found.get('name') for found in (*arrays, *types) if found is not None]
    return {vala: sum(name == gir for name in names) for gir, vala in CONTAINERS.items()}


def signatures():
    """Returns the declarations of the VAPI by their class, if they have one, and name."""
    found, owner = {}, None
    for line in VAPI.read_text().splitlines():
        head = re.match(r'\tpublic .*\b(?:class|struct|enum|interface) (\w+)', line)
        owner = head[1] if head else None if line == '\t}' else owner
        declared = re.match(r'\t+public .*?(\w+) \(', re.sub(r'\[CCode \(.*?\)\] ', '', line))
        if declared:
            found[owner, declared[1]] = line
    return found


@tap.case
def containers_are_those_of_the_interface():
    namespace = ET.parse(GIR).getroot().find(f'{CORE}namespace')
    declared, n = signatures(), 0
    for owner in (namespace, *namespace.findall(f'{CORE}class')):
        for function in (*owner.findall(f'{CORE}function'), *owner.findall(f'{CORE}method')):
            name = function.get('name')
            line = declared.get((None if owner is namespace else owner.get('name'), name))
            if line is None or ' async ' in line:  # what an asynchronous one returns is declared elsewhere
                continue
            found = {vala: line.count(f'{vala}<') for vala in CONTAINERS.values()}
            assert found == containers(function), line
            n += sum(found.values())
    assert n > 20, n


tap.main()
