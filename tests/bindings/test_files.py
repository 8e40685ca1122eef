#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files in Python: whatever takes a Gio.File takes a path, too. The functions are found in the typelib."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GObject, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

import gtorch as torch  # noqa: E402

OUT = 1  # GIDirection.OUT


def infos():
    """The functions of the typelib, each with the name of its class or None."""
    for info in gi.Repository.get_default().get_infos('GTorch'):
        if type(info).__name__ == 'FunctionInfo':
            yield None, info
        for method in getattr(info, 'get_methods', list)():
            yield info.get_name(), method


def with_files():
    """Those that take a file: the class, the name, the positions of files, and the number of arguments."""
    for owner, info in infos():
        arguments, hidden = info.get_arguments(), set()
        for argument in arguments:
            hidden |= {argument.get_closure(), argument.get_destroy(), argument.get_type().get_array_length()}
        shown = [a for i, a in enumerate(arguments) if i not in hidden and int(a.get_direction()) != OUT]
        kinds = [argument.get_type().get_interface() for argument in shown]
        places = [i + info.is_method() for i, kind in enumerate(kinds)
                  if kind is not None and (kind.get_namespace(), kind.get_name()) == ('Gio', 'File')]
        if places:
            yield owner, info.get_name(), places, len(shown) + info.is_method()


def raw(owner, name):
    """The function of C, as the overrides call it."""
    cls = getattr(GTorch, owner)
    found = next(vars(base)[name] for base in cls.__mro__ if '__info__' in vars(base) and name in vars(base))
    return found.__func__ if isinstance(found, staticmethod) else found


@tap.case
def whatever_takes_a_file_takes_a_path():
    found = list(with_files())
    assert len(found) > 30 and (None, 'memory_report_save', [0], 2) in found, found
    for owner, name, places, n in found:
        function = getattr(GTorch._introspection_module, name) if owner is None else raw(owner, name)
        for place in places:
            for wrong in (3, b'x', None, ['x']):
                arguments = [None] * n
                arguments[place] = wrong
                with raises(TypeError, 'must be a path or a Gio.File'):
                    function(*arguments)
            arguments[place] = 'a\0b'
            with raises(ValueError, 'has a NUL at 1'):
                function(*arguments)


@tap.case
def properties_take_paths():
    for cls in (torch.CSVLog, torch.JSONLog):
        assert cls(file='/tmp/x').file.get_path() == cls(file=pathlib.Path('/tmp/x')).file.get_path() == '/tmp/x'
        assert cls.new('/tmp/x').file.get_path() == '/tmp/x'
    kinds = [cls for cls in (getattr(GTorch, name, None) for name in dir(GTorch)) if isinstance(cls, type)]
    owners = {spec.owner_type.pytype: spec.name for cls in kinds if issubclass(cls, GObject.Object)
              for spec in GObject.list_properties(cls) if spec.value_type.name == 'GFile'}
    assert len(owners) >= 4, owners
    for cls, name in owners.items():
        needed = (torch.nn.Linear(2, 2), [torch.ones(2)]) if cls.__name__ == 'Trainer' else ()
        with raises(TypeError, 'must be a path or a Gio.File'):
            cls(*needed, **{name.replace('-', '_'): 3})
    with raises(ValueError, 'CSVLog.file has a NUL at 1'):
        torch.CSVLog(file='a\0')


@tap.case
def files_are_written_by_path():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for i, file in enumerate((str(place / '0'), place / '1', Gio.File.new_for_path(str(place / '2')))):
            assert torch.memory_report_save(file)
            assert (place / str(i)).read_text(encoding='utf-8').startswith('<!DOCTYPE html>')
        torch.memory_report_save(file=place / '3', cancellable=None)
        torch.memory_report_save(os.fsdecode(os.fsencode(folder) + b'/\xff'))  # no UTF-8
        assert len(os.listdir(os.fsencode(folder))) == 5
        torch.npy_save_file(torch.ones(2), place / 'a.npy', None)
        assert torch.npy_load_file(str(place / 'a.npy'), False, 0, None).tolist() == [1, 1]
        with raises(GLib.Error):
            torch.memory_report_save(place / 'none' / 'a')
        profiler = torch.Profiler()
        profiler.start()
        torch.ones(2).sum()
        profiler.stop()
        profiler.export_chrome_trace(place / 'trace.json')
        assert (place / 'trace.json').exists()
        try:
            profiler.export_sysprof(str(place / 'a.syscap'))
        except GLib.Error as error:
            assert error.code == GTorch.Error.NOT_SUPPORTED, error  # -Dsysprof=disabled
        assert profiler.key_averages().get_n_items() == profiler.key_averages(False, group_by_stack_n=0).get_n_items()


@tap.case
def reports_and_traces_name_the_script():
    program = '''import sys
import gtorch as torch
profiler = torch.Profiler()
profiler.start()
torch.ones(2).sum()
profiler.stop()
profiler.export_chrome_trace(sys.argv[1] + '/trace')
torch.memory_report_save(sys.argv[1] + '/report')
'''
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / 'my script.py').write_text(program, encoding='utf-8')
        for how in (['-u', '-X', 'utf8', place / 'my script.py'], ['-m', 'my script']):
            subprocess.run([sys.executable, *how, folder], check=True, cwd=folder)
            name = 'my script' if how[0] == '-m' else 'my script.py'
            assert f'<p>{name}, process' in (place / 'report').read_text(encoding='utf-8')
            assert f'{{"name": "{name}"}}' in (place / 'trace').read_text(encoding='utf-8')
        subprocess.run([sys.executable, '-c', program, folder], check=True)
        assert '<p>python' in (place / 'report').read_text(encoding='utf-8')


if __name__ == '__main__':
    tap.main()
