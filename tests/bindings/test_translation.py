#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors arrive in the language of the user, here German, as exceptions of the same kinds."""

import atexit
import ctypes
import locale
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix='gtorch-german-'))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def is_entered():
    """Enters a locale in which messages are translated: not C.UTF-8, which does under another name."""
    (FOLDER / 'en_US.UTF-8').symlink_to('/usr/lib/locale/C.utf8')
    os.environ.update(LANGUAGE='de', LOCPATH=str(FOLDER))
    try:
        locale.setlocale(locale.LC_ALL, 'en_US.UTF-8')
    except locale.Error:
        return False
    return True


def speak_german():
    messages = FOLDER / 'de' / 'LC_MESSAGES'
    messages.mkdir(parents=True)
    subprocess.run(['msgfmt', '-o', messages / 'gtorch-1.mo', HERE.parents[2] / 'po' / 'de.po'], check=True)
    ctypes.CDLL(None).bindtextdomain(b'gtorch-1', os.fsencode(FOLDER))


@tap.case
def errors_are_in_german():
    raises(GLib.Error, lambda: GTorch.ones(2, 3) + GTorch.ones(4),
           'add: die Formen [2, 3] und [4] sind nicht durch Broadcasting vereinbar: Dimension -1 ist 3 und 4')
    raises(GLib.Error, lambda: GTorch.nn.GRU(3, 4)(GTorch.ones(5, 2, 3), GTorch.zeros(1, 3, 4)),
           'GRU: der verborgene Zustand ist [1, 3, 4], muss aber [1, 2, 4] sein')


@tap.case
def numbers_of_64_bits_are_in_german():
    raises(GLib.Error, lambda: GTorch.ones(2, 3)[5],
           'Index 5 liegt außerhalb des Bereichs der Dimension 0 der Form [2, 3]')


@tap.case
def words_within_messages_are_in_german():
    raises(GLib.Error, lambda: GTorch.normal(GTorch.ones(2), -GTorch.ones(2)), 'Standardabweichungen mit der Form [2]')
    x = GTorch.ones(3, requires_grad=True)

    def changed_in_place():
        y = x.exp()
        loss = y.sum()
        y.add_(1)
        loss.backward()

    raises(GLib.Error, changed_in_place, 'Ergebnis 0 mit dtype float32', 'an Ort und Stelle')


@tap.case
def kinds_of_exceptions_stay():
    singular = raises(ValueError, lambda: GTorch.linalg.inv(GTorch.zeros(2, 2)), 'die Matrix ist singulär')
    assert type(singular).__name__ == 'LinAlgError', type(singular)
    several = raises(ValueError, lambda: GTorch.linalg.inv(GTorch.zeros(5, 2, 2)), 'die Matrix bei [0] des Stapels')
    assert type(several).__name__ == 'LinAlgError', type(several)
    raises(NotImplementedError, lambda: GTorch.ones(2).to(GTorch.complex64).floor(),
           'für dtype complex64 nicht definiert')
    raises(IndexError, lambda: GTorch.ones(2)[2], 'Index 2')


if not shutil.which('msgfmt') or not is_entered():
    print('1..0 # SKIP no msgfmt, or no locale in which messages are translated')
    sys.exit()
speak_german()
tap.main()
