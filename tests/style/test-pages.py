#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The examples of the manual's pages run.

Examples in Python and JavaScript run one after the other, as a reader would type them; each in C or
Vala is a separate function, or is placed outside of functions if it defines a type or a function.
The output of programs in JavaScript and Vala must be that in the comments behind it.

Arguments: the build folder, the Python that has gi, and pages to run only those. GTORCH_TEST_DEVICE
names the default device of programs that compute on it.
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
LANGUAGES = {
    "bindings": ["python", "js", "vala"],
    "tensors": ["python", "c"],
    "autograd": ["python", "c"],
    "streams-and-backward": ["python", "c", "js", "vala"],
    "modules": ["python", "c"],
    "optimizers": ["python", "c"],
    "mixed-precision": ["python", "c", "js", "vala"],
    "cuda-graphs": ["python", "c", "js", "vala"],
    "devices-and-streams": ["python", "c", "js", "vala"],
    "errors": ["python", "c", "js", "vala"],
}
PAGES = sys.argv[3:] or list(LANGUAGES)
DEVICE = os.environ.get("GTORCH_TEST_DEVICE", "")
ON_DEVICE = ["cuda-graphs"]
C_COMMON = "/* at the beginning of each: */\n"
ENVIRONMENT = {
    "streams-and-backward": "GTORCH_CHECK=streams=fatal",
    "devices-and-streams": "CUDA_VISIBLE_DEVICES=",
}
C_START = "#include <gtorch/gtorch.h>\n"
# Declarations that the examples of a page assume.
C_GIVEN = {
    "devices-and-streams": """
static int argc = 1;
static char *program[] = { "page", NULL }, **argv = program;
static GOptionContext *context;
static GTorchDevice *device;
static GTorchStream *stream;
static GTorchDeviceMonitor *monitor;
static GTorchTensor *a, *b, *x, *y, *batch, *input, *cache, *product;

static void
temperature_changed (void)
{
}

__attribute__ ((constructor)) static void
give (void)
{
  context = g_option_context_new (NULL);
  device = gtorch_device_cpu ();
  stream = gtorch_stream_new (device, 0, NULL);
  a = gtorch_ones (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  b = gtorch_tensor_neg (a, NULL);
  batch = gtorch_tensor_neg (a, NULL);
  input = gtorch_tensor_neg (a, NULL);
}
""",
}
# Functions that fail without a GPU: the CPU has no sensors and no pinned memory.
FAILS = ["gtorch_device_monitor_new", "gtorch_tensor_pin_memory"]
PYTHON_START = """import gi
gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch
"""


def blocks(page, language):
    text = tree.read(f"docs/{page}.md")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def choose_device(page, how):
    """Returns the first lines of a program; `how` formats them for a device."""
    return how.format(DEVICE) if DEVICE and page in ON_DEVICE else ""


def run_in(folder, command):
    done = subprocess.run(
        ["meson", "devenv", "-C", BUILD, "sh", "-c", f"cd {folder} && {command}"],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_python(page):
    device = "GTorch.set_default_device(GTorch.Device.new_from_string('{}'))\n"
    program = PYTHON_START + choose_device(page, device) + "\n".join(blocks(page, "python"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.py"), "w", encoding="utf-8") as file:
            file.write(program)
        run_in(folder, f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals {PYTHON} page.py")


def c_program(page):
    outside, functions, start = [], [], ""
    for block in blocks(page, "c"):
        if block.startswith(C_COMMON):
            start = block
        elif block.startswith("static "):
            outside.append(block)
        elif re.search(r"^G_DEFINE_", block, re.MULTILINE):
            outside.append(block)
            name = re.search(r"^#define (\w+_TYPE_\w+)", block, re.MULTILINE).group(1)
            functions.append(f"g_autoptr (GObject) made = g_object_new ({name}, NULL);\n")
        else:
            functions.append(start + block)
    body, calls = "", ""
    for i, block in enumerate(functions):
        declared = "" if "(GError) error" in block else "  g_autoptr (GError) error = NULL;\n"
        body += f"static gboolean\nexample_{i} (void)\n{{\n{declared}{block}"
        body += "  g_assert_no_error (error);\n  return TRUE;\n}\n"
        result = "false" if any(name in block for name in FAILS) else "true"
        calls += f"  g_assert_{result} (example_{i} ());\n"
    begin = C_START + C_GIVEN.get(page, "") + "".join(outside)
    device = '  gtorch_set_default_device (gtorch_device_new_from_string ("{}", NULL));\n'
    calls = choose_device(page, device) + calls
    return begin + body + f"int\nmain (void)\n{{\n{calls}  return 0;\n}}\n"


def has_headers():
    """Skipped where there is only the build folder."""
    command = ["pkg-config", "--exists", "gio-2.0"]
    return shutil.which(command[0]) and subprocess.run(command, check=False).returncode == 0


def check_c(page):
    if not shutil.which("cc") or not has_headers():
        raise tap.Skip("cc or GLib's headers are not installed")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.c"), "w", encoding="utf-8") as file:
            file.write(c_program(page))
        run_in(folder, "cc -Wall -Werror -Wno-unused-variable page.c -o page "
                       "$(pkg-config --cflags --libs gtorch-1) && "
                       f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals ./page")


def printed(page, language):
    """Returns the comments behind print(), and behind other statements that print."""
    lines = "\n".join(blocks(page, language)).splitlines()
    said = [re.search(r";\s*// (true|false|overflow|[-\d., ]+|add: .*)$", line) for line in lines]
    return [match.group(1) for match in said if match]


def says(lines, expected):
    """Compares lines with the expected ones, where … matches any rest of a line."""
    return len(lines) == len(expected) and all(
        line.startswith(text[:-1]) if text.endswith("…") else line == text
        for line, text in zip(lines, expected)
    )


def check_output(page, language, name, program, command):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(program)
        output = run_in(folder, command)
    expected = printed(page, language)
    assert expected and says(output.splitlines(), expected), f"{expected}\n{output}"


def check_js(page):
    if not shutil.which("gjs"):
        raise tap.Skip("gjs is not installed")
    device = "GTorch.set_default_device(GTorch.Device.new_from_string('{}'));\n"
    start = "import GTorch from 'gi://GTorch?version=1';\n"
    program = start + choose_device(page, device) + "\n".join(blocks(page, "js")).replace(start, "")
    command = f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals gjs -m page.js"
    check_output(page, "js", "page.js", program, command)


def check_vala(page):
    if not shutil.which("valac"):
        raise tap.Skip("valac is not installed")
    functions = blocks(page, "vala")
    program = "using GTorch;\n" + "".join(
        f"void example_{i} () throws GLib.Error {{\n{block}}}\n" for i, block in enumerate(functions)
    )
    device = '        set_default_device (new Device.from_string ("{}"));\n'
    calls = choose_device(page, device)
    calls += "".join(f"        example_{i} ();\n" for i in range(len(functions)))
    program += f"int main () {{\n    try {{\n{calls}        return 0;\n    }}"
    program += " catch (GLib.Error error) {\n        GLib.error (error.message);\n    }\n}\n"
    check_output(
        page, "vala", "page.vala", program,
        f"valac -X -w --vapidir={BUILD}/introspection --pkg gio-2.0 --pkg gtorch-1 page.vala && "
        f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals ./page",
    )


if DEVICE:
    try:
        run_in(".", f'{PYTHON} -c "from gi.repository import GTorch; GTorch.Device.new_from_string({DEVICE!r})"')
    except AssertionError as error:
        print(f"1..0 # SKIP {str(error).splitlines()[-1]}")
        sys.exit()
CHECKS = {"python": check_python, "c": check_c, "js": check_js, "vala": check_vala}
for name in PAGES:
    for language in LANGUAGES[name]:
        assert blocks(name, language), f"docs/{name}.md has no examples in {language}"
        tap.add(f"the_{language}_of_{name}_runs", CHECKS[language], name)


@tap.case
def every_page_is_run():
    """Except for pages about the internals of the library."""
    for path in tree.files():
        match = re.fullmatch(r"docs/([-\w]+)\.md", path)
        if match and match[1] not in ("writing-an-op", "writing-a-layer", "writing-an-optimizer", "writing-a-backend"):
            found = [name for name in CHECKS if blocks(match[1], name)]
            assert sorted(found) == sorted(LANGUAGES.get(match[1], [])), f"{path}: {found}"


tap.main()
