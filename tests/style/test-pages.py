#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every block of code of the manual's pages and of README.md runs, or says why not.

The head of pages.py says how blocks are written. Examples in Python and JavaScript run one after the other, as a
reader would type them; each in C or Vala is a separate function, or is placed outside of functions if it defines a
type or a function. What examples in Python, JavaScript and Vala print must be that in the comments behind it, and what
programs print the block below them.

Arguments: the build folder, the Python that has gi, and pages to run only those. GTORCH_TEST_DEVICE
names the default device of programs that compute on it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import pages
import tap
import tree

BUILD, PYTHON = os.path.realpath(sys.argv[1]), sys.argv[2]
ALL = not sys.argv[3:]
PAGES = sys.argv[3:] or [os.path.basename(path)[:-len(".md")] for path in pages.paths()]
DEVICE = os.environ.get("GTORCH_TEST_DEVICE", "")
ON_DEVICE = ["cuda-graphs"]
DATA = {"digits.csv.gz": "examples/data/digits.csv.gz"}    # what programs find in their folder
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
# Functions that fail without a GPU: the CPU has no pinned memory.
FAILS = ["gtorch_tensor_pin_memory"]
PYTHON_START = """import gtorch as torch
from gi.repository import Gio, GLib
"""
# Libraries that are not always built, by what the build then has, and the packages of pages about them. What shows
# windows gets a screen in memory.
LIBRARIES = {"plotting": ("libraries/GTorchPlot-1.typelib", ["cairo", "gtorch-plot-1"]),
             "desktop": ("libraries/GTorchGtk-1.typelib", ["gtk4", "gtorch-plot-1", "gtorch-gtk-1"])}
SCREEN = {"desktop": "GSK_RENDERER=cairo GTK_A11Y=none xvfb-run -a"}
NEEDS = {"c": "cc", "js": "gjs", "vala": "valac"}


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


def need(page):
    """Skips a page about what was not built, or that needs a screen where there is none."""
    made, _packages = LIBRARIES.get(page, (".", []))
    if not os.path.exists(os.path.join(BUILD, made)):
        raise tap.Skip(f"{os.path.basename(made)} was not built")
    if page in SCREEN and not shutil.which("xvfb-run"):
        raise tap.Skip("xvfb-run is not installed")


def environment(page):
    return f"{ENVIRONMENT.get(page, '')} G_DEBUG=fatal-criticals {SCREEN.get(page, '')}"


def packages(page):
    return " ".join(LIBRARIES.get(page, (None, []))[1])


def marked(line, number):
    """Lets a line that prints, and says in a comment what, print its number, too."""
    match = re.match(r"( *)print\((.*)\) +# (.*)$", line)
    return f"{match[1]}print('@{number}@', {match[2]}, end='@\\n')" if match else line


def check_python(page):
    need(page)
    device = "torch.set_default_device('{}')\n"
    program = PYTHON_START + choose_device(page, device) + "\n".join(pages.examples(page, "python"))
    lines = program.splitlines()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.py"), "w", encoding="utf-8") as file:
            file.write("\n".join(marked(line, number) for number, line in enumerate(lines)) + "\n")
        output = run_in(folder, f"{environment(page)} {PYTHON} page.py")
    for number, found in re.findall(r"^@(\d+)@ (.*?)@$", output, re.DOTALL | re.MULTILINE):
        line = lines[int(number)]
        # a dtype may have the name of the namespace or of the package, and a page may run on any device
        found, expected = (re.sub(r"\bG?[Tt]orch\.|, device='cuda:\d'", "", re.sub(r"\n *", " ", text))
                           for text in (found, line.rpartition("  # ")[2]))
        assert pages.is_like(found, expected), f"{line}\n{found}"


def c_program(page):
    outside, functions, start = [], [], ""
    for block in pages.examples(page, "c"):
        if block.startswith(C_COMMON):
            start = block
        elif block.startswith("static "):
            outside.append(block)
        elif block.startswith("#include "):
            outside.insert(0, block)
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
    need(page)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "page.c"), "w", encoding="utf-8") as file:
            file.write(c_program(page))
        run_in(folder, "cc -Wall -Werror -Wno-unused-variable -Wno-misleading-indentation page.c -o page "
                       f"$(pkg-config --cflags --libs gtorch-1 {packages(page)}) && {environment(page)} ./page")


def printed(page, language):
    """Returns the comments behind print(), and behind other statements that print."""
    lines = "\n".join(pages.examples(page, language)).splitlines()
    said = [re.search(r";\s*// (true|false|overflow|[-\d., ]+|add: .*)$", line) for line in lines]
    return [match.group(1) for match in said if match]


def check_output(page, language, name, program, command):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(program)
        output = run_in(folder, command)
    expected = printed(page, language)
    assert expected and pages.says(output.splitlines(), expected), f"{expected}\n{output}"


def check_js(page):
    if not shutil.which("gjs"):
        raise tap.Skip("gjs is not installed")
    device = "GTorch.set_default_device(GTorch.Device.new_from_string('{}'));\n"
    need(page)
    start = "import GTorch from 'gi://GTorch?version=1';\n"
    program = start + choose_device(page, device) + "\n".join(pages.examples(page, "js")).replace(start, "")
    command = f"{environment(page)} gjs -m page.js"
    check_output(page, "js", "page.js", program, command)


def check_vala(page):
    if not shutil.which("valac"):
        raise tap.Skip("valac is not installed")
    need(page)
    functions = pages.examples(page, "vala")
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
        f"valac -X -w --vapidir={BUILD}/introspection --vapidir={BUILD}/libraries --pkg gio-2.0 "
        f"{' '.join('--pkg ' + name for name in ['gtorch-1', *packages(page).split()])} page.vala && "
        f"{environment(page)} ./page",
    )


if DEVICE:
    try:
        run_in(".", f'{PYTHON} -c "from gi.repository import GTorch; GTorch.Device.new_from_string({DEVICE!r})"')
    except AssertionError as error:
        print(f"1..0 # SKIP {str(error).splitlines()[-1]}")
        sys.exit()
def command_for(block):
    """Returns what builds and runs a program, or None for a file that is no program."""
    stem = block.name and block.name.rsplit(".", 1)[0]
    return {
        "python": f"{PYTHON} {block.name}",
        "c": f"cc -Wall -Werror {block.name} -o {stem} $(pkg-config --cflags --libs gtorch-1) && ./{stem}",
        "js": f"gjs -m {block.name}",
        "vala": f"valac -X -w --vapidir={BUILD}/introspection --pkg gio-2.0 --pkg gtorch-1 {block.name} && ./{stem}",
        "sh": f"sh -eu commands-{block.line}",
    }.get(block.language)


def missing(language):
    if language == "c" and not has_headers():
        return "GLib's headers"
    return NEEDS.get(language) if not shutil.which(NEEDS.get(language, "sh")) else None


def check_programs(page):
    skipped = set()
    with tempfile.TemporaryDirectory() as folder:
        for name, path in DATA.items():
            os.symlink(tree.full(path), os.path.join(folder, name))
        for block in pages.programs(page):
            where = f"{pages.path_of(page)}:{block.line}"
            with open(os.path.join(folder, block.name or f"commands-{block.line}"), "w", encoding="utf-8") as file:
                file.write(block.text)
            command = command_for(block)
            if command is None or missing(block.language):
                skipped.update([missing(block.language)] if command else [])
                continue
            assert block.language == "sh" or block.output is not None, f"{where}: the program has no output"
            output = run_in(folder, f"export {ENVIRONMENT.get(page, 'G_DEBUG=fatal-criticals')}; {command}")
            expected = (block.output or "").splitlines()
            assert block.output is None or pages.says(output.splitlines(), expected), f"{where}: {output}"
    if skipped:
        raise tap.Skip(f"not installed: {', '.join(sorted(skipped))}")


CHECKS = {"python": check_python, "c": check_c, "js": check_js, "vala": check_vala}
for name in PAGES:
    for language, check in CHECKS.items():
        if pages.examples(name, language):
            tap.add(f"the_{language}_of_{name}_runs", check, name)
    if pages.programs(name):
        tap.add(f"the_programs_of_{name}_run", check_programs, name)


def pictures_are_drawn():
    """By the programs of docs/gallery, as the build of the manual runs them."""
    need("plotting")
    arguments = {"digits.py": [tree.full("examples/data/digits.csv.gz"), "curve.svg", "digits.svg"],
                 "spirals.py": ["spirals.svg"], "memory.py": ["memory.svg"], "streams.py": ["streams.svg"],
                 "autoencoder.py": [tree.full("examples/models/vae.py"), tree.full("examples/data/digits.csv.gz"),
                                    "autoencoder.svg"]}
    programs = {os.path.basename(path) for path in tree.files() if re.fullmatch(r"docs/gallery/\w+\.py", path)}
    assert programs == set(arguments), programs ^ set(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for name, names in arguments.items():
            run_in(folder, f"PYTHONDONTWRITEBYTECODE=1 {PYTHON} {tree.full('docs/gallery/' + name)} {' '.join(names)}")
        for name in os.listdir(folder):
            picture = xml.etree.ElementTree.parse(os.path.join(folder, name)).getroot()
            n_parts = sum(1 for _part in picture.iter())
            assert picture.tag.endswith("svg") and n_parts > 10, f"{name}: {n_parts} parts"


if ALL:
    tap.case(pictures_are_drawn)


@tap.case
def every_block_is_run_or_says_why():
    """Blocks in other languages need a name or a reason."""
    found = [f"{pages.path_of(name)}:{block.line}: {block.language or 'no language'}"
             for name in PAGES for block in pages.unknown(name)]
    assert not found, "\n".join(found)


@tap.case
def every_page_is_in_the_manual():
    """The list of unfinished work is not: the manual says what there is."""
    listed = set(re.findall(r"^  '([-\w]+\.md)',$", tree.read("docs/meson.build"), re.MULTILINE))
    there = {os.path.basename(path) for path in pages.paths()} - {"README.md"}
    assert listed == there, f"{sorted(listed ^ there)}"
    linked = [path for path in pages.paths() if re.search(r"\]\([^)]*\bplan\.(md|html)", tree.read(path))]
    assert not linked, f"{linked} link docs/plan.md"


@tap.case
def every_block_names_its_language():
    """An indented line is no code: messages of errors, and commands that README.md names."""
    code = re.compile(r"^(import |from \w+ import|const |let |var |g_auto|#include|def |return )")
    for name in PAGES:
        inside = False
        for number, line in enumerate(tree.lines(pages.path_of(name)), 1):
            inside ^= line.startswith("```")
            bad = not inside and line.startswith("    ") and code.match(line.strip())
            assert not bad, f"{pages.path_of(name)}:{number}: {line}"


tap.main()
