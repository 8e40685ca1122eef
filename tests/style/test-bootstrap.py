#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bootstrap's dealings with packages, on machines made of a few fake commands."""

import contextlib
import os
import shutil
import subprocess
import tempfile

import tap

BOOTSTRAP = os.path.join(tap.SOURCE_ROOT, "bootstrap")
# What bootstrap may take for granted on a machine with nothing on it.
ESSENTIAL = ("cat", "dirname", "env", "grep", "id", "printf", "rm", "sed", "sh")

DPKG_QUERY = """
shift 2
for package; do
  case " $MISSING " in *" $package "*) ;; *) echo "installed $package" ;; esac
done
"""
LOG_CALL = 'echo "$(basename "$0") $*" >>"$LOG"\n'


@contextlib.contextmanager
def machine(**commands):
    """A folder for PATH with the essentials and @commands, which are scripts by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (*ESSENTIAL, "basename"):
            os.symlink(shutil.which(name), os.path.join(folder, name))
        for name, script in commands.items():
            path = os.path.join(folder, name.replace("_", "-"))
            if os.path.lexists(path):
                os.unlink(path)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
        yield folder


def deps(folder, **environment):
    """Runs `bootstrap deps` there; returns the result and the calls that were logged."""
    log = os.path.join(folder, "log")
    done = subprocess.run(
        ["/bin/sh", BOOTSTRAP, "deps"],
        env={"PATH": folder, "LOG": log, "MISSING": "", **environment},
        capture_output=True, text=True, check=False,
    )
    calls = []
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            calls = file.read().splitlines()
    return done, calls


@tap.case
def nothing_is_fetched_when_all_is_there():
    with machine(dpkg_query=DPKG_QUERY, apt_get=LOG_CALL, id="echo 0\n") as folder:
        done, calls = deps(folder)
    assert done.returncode == 0 and calls == [], (done, calls)


@tap.case
def what_is_missing_is_installed_without_questions():
    with machine(dpkg_query=DPKG_QUERY, apt_get=LOG_CALL, id="echo 0\n") as folder:
        done, calls = deps(folder, MISSING="gjs python3")
    assert done.returncode == 0, done
    assert calls == [
        "apt-get update", "apt-get install -y --no-install-recommends python3 gjs"
    ], calls


@tap.case
def sudo_is_used_by_those_who_are_not_root():
    sudo = LOG_CALL + 'exec "$@"\n'
    with machine(dpkg_query=DPKG_QUERY, apt_get=LOG_CALL, id="echo 1000\n", sudo=sudo) as folder:
        done, calls = deps(folder, MISSING="meson")
    assert done.returncode == 0, done
    assert calls[0] == "sudo apt-get update" and calls[-1].startswith("apt-get install"), calls


@tap.case
def without_root_and_sudo_the_packages_are_named():
    with machine(dpkg_query=DPKG_QUERY, apt_get=LOG_CALL, id="echo 1000\n") as folder:
        done, calls = deps(folder, MISSING="meson")
    assert done.returncode == 1 and calls == [], (done, calls)
    assert "  meson\n" in done.stderr and "  gjs\n" not in done.stderr, done.stderr


@tap.case
def other_systems_get_the_list_and_nothing_else():
    with machine(id="echo 0\n") as folder:
        done, calls = deps(folder)
    assert done.returncode == 1 and calls == [], (done, calls)
    for package in ("meson", "libglib2.0-dev", "clang-format"):
        assert f"  {package}\n" in done.stderr, done.stderr


@tap.case
def an_installation_that_fails_stops_with_the_names():
    apt_get = 'case $1 in install) exit 100 ;; esac\n'
    with machine(dpkg_query=DPKG_QUERY, apt_get=apt_get, id="echo 0\n") as folder:
        done, _calls = deps(folder, MISSING="gjs")
    assert done.returncode == 1 and "  gjs\n" in done.stderr, done


@tap.case
def packages_can_be_left_to_the_user():
    with machine(id="echo 0\n") as folder:
        done, _calls = deps(folder, GTORCH_DEPS="skip")
    assert done.returncode == 0, done


@tap.case
def an_unknown_command_prints_the_usage():
    done = subprocess.run([BOOTSTRAP, "frobnicate"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Usage:" in done.stderr, done


tap.main()
