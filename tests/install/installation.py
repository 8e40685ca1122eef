# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Creates installations from the files of a build folder, below any prefix and without compiling."""

import functools
import json
import os
import pathlib
import shutil
import subprocess

import tap

# Options that are disabled because their parts are not installed and would only take time.
NOT_WANTED = {"tests": "false", "examples": "false", "bench": "false"}


def run(*command, **options):
    """Returns the output of the command; if the command fails, so does the test."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def introspect(folder, what):
    return json.loads(run("meson", "introspect", folder, what))


@functools.cache
def user_options(build):
    """Returns the project options of the build folder."""
    options = {}
    for option in introspect(build, "--buildoptions"):
        if option["section"] == "user" or option["name"] in ("buildtype", "werror"):
            value = option["value"]
            value = ",".join(value) if isinstance(value, list) else str(value)
            options[option["name"]] = value.lower() if isinstance(option["value"], bool) else value
    return {**options, **NOT_WANTED}


def configure(build, folder, *arguments):
    """Creates a build folder beside the other one, with the same options except for @arguments."""
    given = [f"-D{name}={value}" for name, value in user_options(build).items()]
    run("meson", "setup", folder, tap.SOURCE_ROOT, *given, *arguments)
    return folder


def _bring(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def bring_outputs(build, folder):
    """Copies the outputs of the build folder into the other one, as if they had been built there."""
    for path in introspect(folder, "--install-plan").get("targets", {}):
        inside = pathlib.Path(path).relative_to(folder)
        assert (pathlib.Path(build) / inside).exists(), f"{inside} is not built: meson compile -C {build}"
        _bring(pathlib.Path(build) / inside, folder / inside)


def install(build, folder, prefix, *arguments, destdir=None):
    """Configures for the prefix, and installs there or, with a @destdir, below that."""
    configure(build, folder, f"--prefix={prefix}", *arguments)
    bring_outputs(build, folder)
    where = ["--destdir", destdir] if destdir else []
    run("meson", "install", "-C", folder, "--no-rebuild", "--quiet", *where)


def files_below(folder):
    """Returns all files and links, relative to the folder."""
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*")
                  if p.is_symlink() or not p.is_dir())


def pick_environment(**variables):
    """Returns the environment without variables through which GTorch could be found."""
    kept = ("PATH", "TMPDIR", "CC", "CXX")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "LC_ALL": "C.UTF-8", "G_DEBUG": "fatal-criticals", "OMP_NUM_THREADS": "2",
        "PYTHONDONTWRITEBYTECODE": "1", **variables,
    }
