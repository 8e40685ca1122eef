#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The examples of the manual's pages run.

Those in Python run one after the other, as a reader would type them; each one in C is a function of
its own, or stands outside of functions if it defines a type.

Arguments: the build folder, the Python that has gi.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap
import tree

BUILD, PYTHON = os.path.realpath(sys.argv[1]), sys.argv[2]
PAGES = [
    "tensors", "autograd", "streams-and-backward", "modules", "optimizers",
    "mixed-precision", "cuda-graphs",
]
ENVIRONMENT = {"streams-and-backward": "GTORCH_CHECK=streams=fatal"}
PYTHON_START = """import gi
gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch
"""


def blocks(page, language):
    text = tree.read(f"docs/{page}.md")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_in(folder, command):
    done = subprocess.run(
        ["meson", "devenv", "-C", BUILD, "sh", "-c", f"cd {folder} && {command}"],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def check_python(page):
    program = PYTHON_START + "\n".join(blocks(page, "python"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.py"), "w", encoding="utf-8") as file:
            file.write(program)
        run_in(folder, f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals {PYTHON} page.py")


def c_program(page):
    outside, functions = [], []
    for block in blocks(page, "c"):
        if re.search(r"^G_DEFINE_", block, re.MULTILINE):
            outside.append(block)
            name = re.search(r"^#define (\w+_TYPE_\w+)", block, re.MULTILINE).group(1)
            functions.append(f"g_autoptr (GObject) made = g_object_new ({name}, NULL);\n")
        else:
            functions.append(block)
    body = "".join(
        f"static void\nexample_{i} (void)\n{{\n  g_autoptr (GError) error = NULL;\n{block}"
        f"  g_assert_no_error (error);\n}}\n" for i, block in enumerate(functions)
    )
    calls = "".join(f"  example_{i} ();\n" for i in range(len(functions)))
    start = "#include <gtorch/gtorch.h>\n" + "".join(outside)
    return start + body + f"int\nmain (void)\n{{\n{calls}  return 0;\n}}\n"


def check_c(page):
    if not shutil.which("cc"):
        raise tap.Skip("cc is not installed")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.c"), "w", encoding="utf-8") as file:
            file.write(c_program(page))
        run_in(folder, "cc -Wall -Werror -Wno-unused-variable page.c -o page "
                       "$(pkg-config --cflags --libs gtorch-1) && "
                       f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals ./page")


for name in PAGES:
    assert blocks(name, "python") and blocks(name, "c"), f"docs/{name}.md has no examples"
    tap.add(f"the_python_of_{name}_runs", check_python, name)
    tap.add(f"the_c_of_{name}_runs", check_c, name)
tap.main()
