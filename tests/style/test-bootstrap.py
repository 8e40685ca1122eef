#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests how bootstrap installs packages and NVIDIA's wheels, on simulated machines with a few
fake commands."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile

import readme
import tap

BOOTSTRAP = os.path.join(tap.SOURCE_ROOT, "bootstrap")
# Commands that bootstrap may use on a machine without any packages.
ESSENTIAL = ("cat", "dirname", "env", "grep", "id", "printf", "mkdir", "mv", "rm", "sed", "sh")

DPKG_QUERY = """
shift 2
for package; do
  case " $MISSING " in *" $package "*) ;; *) echo "installed $package" ;; esac
done
"""
LOG_CALL = 'echo "$(basename "$0") $*" >>"$LOG"\n'


@contextlib.contextmanager
def machine(**commands):
    """Creates a folder for PATH with the essentials and @commands, which are scripts by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (*ESSENTIAL, "basename"):
            os.symlink(shutil.which(name), os.path.join(folder, name))
        for name, script in commands.items():
            if script is None:  # the real command
                os.symlink(shutil.which(name), os.path.join(folder, name))
                continue
            path = os.path.join(folder, name.replace("_", "-"))
            if os.path.lexists(path):
                os.unlink(path)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
        yield folder


def deps(folder, *options, command="deps", **environment):
    """Runs `bootstrap deps` there; returns the result and the calls that were logged."""
    log = os.path.join(folder, "log")
    done = subprocess.run(
        ["/bin/sh", BOOTSTRAP, *options, command],
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
def missing_packages_are_installed_without_questions():
    with machine(dpkg_query=DPKG_QUERY, apt_get=LOG_CALL, id="echo 0\n") as folder:
        done, calls = deps(folder, MISSING="gjs python3")
    assert done.returncode == 0, done
    assert calls == [
        "apt-get update", "apt-get install -y --no-install-recommends python3 gjs"
    ], calls


@tap.case
def sudo_is_used_without_root():
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


# --- --cuda ---------------------------------------------------------------------------------------

# Creates the contents of the wheels in the named folder.
PIP = LOG_CALL + """
case "$*" in
  *--version*) [ -n "$PIP" ] && exit 0; exit 1 ;;
  *"pip install"*) ;;
  *) exit 0 ;;
esac
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/nvidia/cu13/bin" "$2/nvidia/cu13/lib" "$2/nvidia/cudnn/lib"
echo >"$2/nvidia/cudnn/lib/libcudnn.so.9"
[ "$PIP" = good ] || exit 1
printf '#!/bin/sh\\n' >"$2/nvidia/cu13/bin/nvcc"
/bin/chmod +x "$2/nvidia/cu13/bin/nvcc"
"""
GPU = {"nvidia_smi": "echo 'GPU 0: a fake one'\n", "id": "echo 0\n", "python3": PIP}


def cuda(folder, **environment):
    """Runs `bootstrap --cuda deps`; returns only those logged calls that are pip's installations."""
    settings = {"GTORCH_DEPS": "skip", "CUDA_HOME": "/nonexistent", "PIP": "good", "PYTHON": "python3",
                "GTORCH_BUILDDIR": os.path.join(folder, "b"), **environment}
    done, calls = deps(folder, "--cuda", **settings)
    return done, [call for call in calls if "pip install" in call], os.path.join(folder, "b-cuda")


@tap.case
def cuda_is_installed_once():
    with machine(**GPU) as folder:
        first, calls, tree = cuda(folder)
        assert first.returncode == 0 and len(calls) == 1, (first, calls)
        for wheel in ("nvidia-cuda-nvcc==", "nvidia-cublas==", "nvidia-cudnn-cu13=="):
            assert wheel in calls[0], calls
        assert "Brought" in first.stdout and tree in first.stdout, first.stdout
        assert os.access(os.path.join(tree, "nvidia/cu13/bin/nvcc"), os.X_OK)
        assert os.path.exists(os.path.join(tree, "nvidia/cu13/lib/libcudnn.so.9"))
        again, calls, _tree = cuda(folder)
        assert again.returncode == 0 and len(calls) == 1 and "are in" in again.stdout, (again, calls)


@tap.case
def nothing_is_installed_without_a_gpu():
    if os.path.exists("/dev/nvidia0"):
        raise tap.Skip("this machine has a GPU")
    with machine(**{**GPU, "nvidia_smi": "exit 9\n"}) as folder:
        done, calls, tree = cuda(folder)
        assert done.returncode == 0 and calls == [] and not os.path.exists(tree), (done, calls)
        assert "No NVIDIA GPU was found" in done.stdout, done.stdout


@tap.case
def a_toolkit_that_is_there_is_used():
    with machine(**GPU, nvcc="exit 0\n") as folder:
        done, calls, tree = cuda(folder)
        assert done.returncode == 0 and calls == [] and not os.path.exists(tree), (done, calls)
        assert f"toolkit of {folder}/nvcc is used" in done.stdout, done.stdout


@tap.case
def cuda_that_cannot_be_fetched_leaves_nothing():
    with machine(**GPU) as folder:
        for how, says in (("bad", "could not be fetched"), ("", "needs pip")):
            done, _calls, tree = cuda(folder, PIP=how)
            assert done.returncode == 1 and says in done.stderr, done
            assert not os.path.exists(tree) and not os.path.exists(tree + ".new")


@tap.case
def without_the_option_nothing_of_cuda_is_fetched():
    with machine(**GPU) as folder:
        done, calls = deps(folder, GTORCH_DEPS="skip", CUDA_HOME="/nonexistent", PIP="good")
    assert done.returncode == 0 and calls == [], (done, calls)


# A fake meson that logs its arguments.
MESON = LOG_CALL + "[ \"$1\" != setup ] || { mkdir -p \"$2\"; echo >\"$2/build.ninja\"; }\n"


@tap.case
def the_build_uses_the_wheels():
    for smi, option in (("case $1 in -L) ;; *) echo 9.0; echo 12.0 ;; esac\n", "-Dcuda-archs=120,90"),
                        ("[ $1 = -L ]\n", "-Dcuda-kernels=auto")):
        with machine(**{**GPU, "nvidia_smi": smi}, meson=MESON, tr=None, sort=None, paste=None) as folder:
            cuda(folder)
            done, calls = deps(folder, "--cuda", command="build", GTORCH_DEPS="skip",
                               CUDA_HOME="/nonexistent", PIP="good", PYTHON="python3",
                               GTORCH_BUILDDIR=os.path.join(folder, "b"))
            setup = [call for call in calls if call.startswith("meson setup")]
            assert done.returncode == 0 and len(setup) == 1, (done, calls)
            for part in (option, f"-Dnvcc={folder}/b-cuda/nvidia/cu13/bin/nvcc",
                         f"-Dcuda-library-path={folder}/b-cuda/nvidia/cu13/lib"):
                assert part in setup[0], (part, setup)


def installs(folder, *arguments):
    """Runs `bootstrap install` there; returns the result and the calls of meson."""
    done = subprocess.run(
        ["/bin/sh", BOOTSTRAP, "install", *arguments], capture_output=True, text=True, check=False,
        env={"PATH": folder, "LOG": os.path.join(folder, "log"), "GTORCH_DEPS": "skip", "PYTHON": "python3",
             "GTORCH_BUILDDIR": os.path.join(folder, "b")},
    )
    try:
        with open(os.path.join(folder, "log"), encoding="utf-8") as file:
            return done, [call for call in file.read().splitlines() if call.startswith("meson ")]
    except FileNotFoundError:
        return done, []


@tap.case
def an_installation_is_what_the_readme_says():
    local_commands, local_variables, own_commands, own_variables = readme.installing()
    for arguments, prefix, commands, variables in (
        ([], "/usr/local", local_commands, local_variables),
        (["/usr/local"], "/usr/local", local_commands, local_variables),
        (["/home/me/my gtorch"], "/home/me/my gtorch", own_commands, own_variables),
    ):
        with machine(**{**GPU, "nvidia_smi": "exit 9\n"}, meson=MESON, tr=None, sort=None, paste=None) as folder:
            done, calls = installs(folder, *arguments)
        assert done.returncode == 0, done
        assert [call.split()[1] for call in calls] == ["setup", "compile", "install"], calls
        setup = commands.splitlines()[0].replace('"', "").replace("$HOME/gtorch", prefix)
        options = re.findall(r"--\w+=(?:[^-]|-(?!-))+", setup.partition(" build ")[2])
        for option in options:
            option = option.strip().replace("--buildtype=", "-Dbuildtype=")
            assert option in calls[0], (option, calls)
        assert "ldconfig" in done.stdout or prefix != "/usr/local", done.stdout
        assert variables.replace("$HOME/gtorch", prefix) in done.stdout, (variables, done.stdout)


@tap.case
def a_prefix_that_depends_on_the_folder_is_refused():
    with machine(**GPU, meson=MESON) as folder:
        done, calls = installs(folder, "here")
    assert done.returncode == 1 and calls == [] and "here" in done.stderr, (done, calls)


@tap.case
def users_get_a_release():
    for command in ("build", "demo"):
        with machine(**{**GPU, "nvidia_smi": "exit 9\n"}, meson=MESON, tr=None, sort=None, paste=None) as folder:
            done, calls = deps(folder, command=command, GTORCH_DEPS="skip", PYTHON="python3",
                               CUDA_HOME="/nonexistent", GTORCH_BUILDDIR=os.path.join(folder, "b"))
        setup = [call for call in calls if call.startswith("meson setup")]
        assert done.returncode == 0 and len(setup) == 1 and "-Dbuildtype=release" in setup[0], (done, calls)


@tap.case
def the_manual_is_built_and_opened():
    for display in None, "DISPLAY", "WAYLAND_DISPLAY":
        with machine(**{**GPU, "nvidia_smi": "exit 9\n"}, meson=MESON, xdg_open=LOG_CALL,
                     tr=None, sort=None, paste=None) as folder:
            done, calls = deps(folder, command="docs", GTORCH_DEPS="skip", PYTHON="python3",
                               CUDA_HOME="/nonexistent", GTORCH_BUILDDIR=os.path.join(folder, "b"),
                               **({display: "x"} if display else {}))
            path = os.path.join(folder, "b/docs/GTorch-1/index.html")
        setup = [call for call in calls if call.startswith("meson setup")]
        assert done.returncode == 0 and len(setup) == 1, (done, calls)
        assert "-Ddocs=true" in setup[0].split("-Ddocs=false")[1], setup       # the last one counts
        assert path in done.stdout, done.stdout
        assert any(call.startswith("xdg-open") for call in calls) == bool(display), calls


@tap.case
def an_unknown_command_prints_the_usage():
    done = subprocess.run([BOOTSTRAP, "frobnicate"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Usage:" in done.stderr, done


tap.main()
