#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Any program can open the shared library with dlopen (), and it exports only its interface.

Arguments: the library, one that uses half of the static TLS surplus, and the size of that in bytes.
"""

import platform
import re
import shutil
import subprocess
import sys

import tap

LIBRARY, CROWD = sys.argv[1:3]

# dlopen () takes the memory of initial-exec variables from a surplus: 1664 bytes in glibc 2.36.
# Half of it is for other libraries; this library's half includes that of libgomp, 136 bytes, which
# OpenBLAS loads.
STATIC_TLS_MAX = int(sys.argv[3])
LIBGOMP = 136

ALLOWED_LIBRARIES = re.compile(
    r"lib(glib|gobject|gio|gmodule)-2\.0\.so|lib(openblas|flexiblas|c?blas|lapack|m|mvec|c|pthread|dl|gcc_s|rt)\.so|"
    r"ld-linux|lib(a|ub|t)san\.so"
)


def readelf(*options):
    if not shutil.which("readelf"):
        raise tap.Skip("readelf is not installed")
    return subprocess.run(
        ["readelf", "--wide", *options, LIBRARY], capture_output=True, text=True, check=True
    ).stdout


@tap.case
def only_functions_of_the_interface_are_exported():
    names = []  # a version of the interface is a symbol as well, and absolute
    for line in readelf("--dyn-syms").splitlines():
        fields = line.split()
        if len(fields) > 7 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            names.append((fields[3], fields[7].split("@")[0]))
    assert names, "nothing is exported"
    extra = [name for kind, name in names if not name.startswith("gtorch_") or kind == "OBJECT"]
    assert not extra, "\n".join(sorted(extra))


@tap.case
def variables_of_threads_leave_static_memory_to_others():
    sizes = [int(line.split()[5], 16) for line in readelf("--segments").splitlines()
             if line.strip().startswith("TLS")]
    if "STATIC_TLS" in readelf("--dynamic"):
        total = sum(sizes) + LIBGOMP
        assert total <= STATIC_TLS_MAX, f"{total} bytes of static TLS"


@tap.case
def the_library_can_be_opened_late():
    """In a process where other libraries have taken their half already."""
    machine = re.search(r"Machine: *(.+)", readelf("--file-header"))[1]
    if platform.machine().replace("_", "-").lower() not in machine.lower():
        raise tap.Skip(f"it is for {machine}")
    if re.search(r"NEEDED.*lib(a|t|ub)san", readelf("--dynamic")):
        raise tap.Skip("a sanitizer must be loaded first")
    program = "import ctypes, sys; print(*[ctypes.CDLL(name)._name for name in sys.argv[1:]])"
    result = subprocess.run(
        [sys.executable, "-c", program, CROWD, LIBRARY], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0 and LIBRARY in result.stdout, result.stderr


@tap.case
def the_library_has_no_unneeded_dependencies():
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic"))
    extra = [name for name in needed if not ALLOWED_LIBRARIES.match(name)]
    assert not extra, f"linked with {extra}: what is NVIDIA's, or C++'s, is opened when it is needed"


tap.main()
