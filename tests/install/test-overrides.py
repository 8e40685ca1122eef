#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python module is installed where its Python finds it, and reports if it was built for another
one.

Arguments: the build folder, the Python that has gi.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

BUILD, PYTHON = sys.argv[1:]
INTROSPECTION = pathlib.Path(BUILD) / "introspection"
FIND_PATHS = os.path.join(tap.SOURCE_ROOT, "introspection/python/find_paths.py")
PROGRAM = """
import gi
gi.require_version('GTorch', '1')
from gi.repository import GTorch
from gi.overrides import _gtorch_mixin
print(GTorch.zeros(3).add(1).sum().item(), getattr(_gtorch_mixin.mixin, '__file__', None))
"""


def ask(python, program, *arguments):
    done = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def find_paths(python, prefix):
    done = subprocess.run([python, FIND_PATHS, prefix], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


SITE = "import json, site, sys; print(json.dumps([sys.prefix, sys.base_prefix, site.getsitepackages()]))"


def is_found_below_its_own_prefixes(python):
    prefix, base, folders = ask(python, SITE)
    n_found = 0
    for below in {prefix, base, "/usr/local"}:
        if any(os.path.relpath(folder, below).startswith("lib") for folder in folders):
            modules = os.path.join(below, find_paths(python, below)[0])
            assert modules in folders, (below, modules, folders)
            n_found += 1
    assert n_found > 0, (prefix, folders)


@tap.case
def the_folder_is_one_where_its_python_looks():
    is_found_below_its_own_prefixes(PYTHON)


@tap.case
def the_python_of_the_build_finds_it():
    is_found_below_its_own_prefixes(sys.executable)


@tap.case
def a_virtual_environment_finds_it():
    with tempfile.TemporaryDirectory() as folder:
        venv = os.path.join(folder, "venv")
        done = subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", venv],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise tap.Skip("this Python has no module venv")
        python = os.path.join(venv, "bin/python")
        is_found_below_its_own_prefixes(python)
        # PyGObject searches for overrides there, too
        overrides = os.path.join(venv, find_paths(python, venv)[0], "gi/overrides")
        os.makedirs(overrides)
        found = ask(python, "import json, gi.overrides; print(json.dumps(list(gi.overrides.__path__)))")
        assert overrides in found, (overrides, found)


@tap.case
def overrides_are_beside_pygobject_where_the_prefix_is_the_same():
    folder = ask(PYTHON, "import gi, json, os; print(json.dumps(os.path.dirname(os.path.dirname(gi.__file__))))")
    prefix = folder[:folder.index("/lib")]
    if prefix.endswith("/local"):
        raise tap.Skip("PyGObject is not its distribution's")
    assert os.path.join(prefix, find_paths(PYTHON, prefix)[0]) == folder


@tap.case
def a_foreign_prefix_has_a_folder_for_each_python():
    modules = find_paths(PYTHON, "/opt/some where")[0]
    version = ask(PYTHON, "import json, sys; print(json.dumps(list(sys.version_info[:2])))")
    assert not os.path.isabs(modules) and f"python{version[0]}.{version[1]}/" in modules, modules


# --- the accelerator ------------------------------------------------------------------------------


class Copy:
    """A copy of the overrides of the build folder, for changes."""

    def __init__(self, folder):
        self.modules = pathlib.Path(folder) / "python"
        shutil.copytree(INTROSPECTION / "python", self.modules,
                        ignore=shutil.ignore_patterns("*.p", "__pycache__"))
        self.overrides = self.modules / "gi/overrides"
        self.suffix = find_paths(PYTHON, "/opt")[2]
        self.accelerator = self.overrides / f"_gtorch{self.suffix}"
        if not self.accelerator.exists():
            names = [path.name for path in self.overrides.glob("_gtorch*.so")]
            assert not names, f"{names}: without the tag of its Python, {self.suffix}"
            raise tap.Skip("the accelerator was not built")

    def run(self, **variables):
        environment = {name: value for name, value in os.environ.items() if name != "GTORCH_NO_MIXIN"}
        environment.update(LD_LIBRARY_PATH=os.path.join(BUILD, "gtorch"), GI_TYPELIB_PATH=str(INTROSPECTION),
                           PYTHONPATH=str(self.modules), PYTHONDONTWRITEBYTECODE="1", **variables)
        return subprocess.run([PYTHON, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)

    def prints(self, path, **variables):
        done = self.run(**variables)
        assert done.returncode == 0 and done.stdout == f"3.0 {path}\n", done


def on_a_copy(function):
    def case():
        with tempfile.TemporaryDirectory() as folder:
            function(Copy(folder))

    tap.add(function.__name__, case)
    return function


@on_a_copy
def the_accelerator_has_the_tag_of_its_python(copy):
    assert copy.suffix.count(".") == 2 and "cpython" in copy.suffix or "pypy" in copy.suffix, copy.suffix
    copy.prints(copy.accelerator)


@on_a_copy
def accelerators_of_other_pythons_coexist(copy):
    for tag in ("cpython-27-x86_64-linux-gnu", "cpython-399-x86_64-linux-gnu"):
        (copy.overrides / f"_gtorch.{tag}.so").write_bytes(b"not for this Python")
    copy.prints(copy.accelerator)


@on_a_copy
def an_accelerator_for_another_python_only_is_refused(copy):
    copy.accelerator.rename(copy.overrides / "_gtorch.cpython-399-x86_64-linux-gnu.so")
    done = copy.run()
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: GTorch is installed for another Python"), done
    for text in ("(_gtorch.cpython-399-x86_64-linux-gnu.so)", f"_gtorch{copy.suffix}", f"-Dpython={PYTHON}",
                 "GTORCH_NO_MIXIN=1"):
        assert text in last, (text, last)
    copy.prints(None, GTORCH_NO_MIXIN="1")


@on_a_copy
def without_an_accelerator_python_does_the_work(copy):
    copy.accelerator.unlink()
    copy.prints(None)


@on_a_copy
def a_broken_accelerator_is_an_error(copy):
    copy.accelerator.write_bytes(b"no library")
    done = copy.run()
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError") and str(copy.accelerator) in last, done
    copy.prints(None, GTORCH_NO_MIXIN="1")


tap.main()
