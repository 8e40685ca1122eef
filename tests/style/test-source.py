#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of HACKING.md that a machine can check without building anything.

A rule is one case; violations are listed below its line. Exceptions are named here, each with its
reason, so that a new one is a reviewed change.
"""

import ast
import os
import re
import sys

import tap
import tree

LICENCE = "SPDX-License-Identifier: LGPL-2.1-or-later"

# The maximum length of a file of a kind, in lines. The first matching pattern decides.
CAPS = [
    (r"^meson\.build$", 250),
    (r"^HACKING\.md$", 400),
    (r"^generator/.*\.py$", 400),
    (r"^gtorch/ops/[^/]*\.c$", 600),
    (r"^(gtorch|examples)/.*\.c$", 1000),
    (r"^gtorch/.*-private\.h$", 400),
    (r"^gtorch/.*-(loops|simd|kernels)\.h$", 1000),
    (r"^gtorch/.*\.h$", 120),
    (r"\.(c|h)$", 1000),
    (r"\.(cu|cuh)$", 800),
    (r"\.toml$", 400),
    (r"\.(py|js|vala|in)$", 1000),
]

# The maximum length of a function of the generator, in lines.
FUNCTION_CAP = 60

# Path -> (cap, reason).
CAP_EXCEPTIONS = {
    "gtorch/gtorch.h": (170, "includes each header, a line for each"),
}

PYTHON_OUTSIDE_STDLIB = {
    # Reference values are made with PyTorch once and kept; these scripts do not run in the suite.
    r"^tests/.*reference\.py$": {"torch", "numpy", "safetensors", "tokenizers"},
    # PyTorch's own samples; see HACKING.md.
    r"^tests/peer/": {"torch", "gi", "gtorch", "perfetto", "tokenizers"},
    r"^bench/": {"torch", "numpy", "gi", "gtorch", "cairo", "torchvision"},
    # Like those of tests/bindings, these are run by the Python that has gi.
    r"^tests/monitor/": {"gi", "gtorch"},
    # The binding itself, run by the Python that has gi.
    r"^introspection/python/": {"gi", "gtorch", "numpy"},
    r"^tests/(gtk|plot)/": {"gi", "gtorch"},
    # It describes the package that has been built, by the same Python.
    r"^generator/stubs/": {"gi", "gtorch"},
}


def report(lines):
    """Fails with @lines, if there are any."""
    lines = list(lines)
    assert not lines, "\n".join(lines)


def sources():
    """Returns every file in a language that has comments."""
    for path in tree.files():
        if tree.is_source(path):
            yield path


# --- Text ------------------------------------------------------------------------------------


@tap.case
def every_text_file_is_utf8_with_unix_lines():
    def check(path):
        try:
            text = tree.read_bytes(path).decode("utf-8")
        except UnicodeDecodeError as error:
            return f"{path}: {error}"
        if "\r" in text:
            return f"{path}: carriage return"
        if text and not text.endswith("\n"):
            return f"{path}: no newline at the end"
        if text.endswith("\n\n"):
            return f"{path}: empty lines at the end"
        return None

    report(filter(None, map(check, filter(tree.is_text, tree.files()))))


@tap.case
def no_source_has_tabs_or_blanks_at_line_ends():
    report(
        f"{path}:{number}: {'tab' if chr(9) in line else 'blank at the end'}"
        for path in sources()
        for number, line in enumerate(tree.lines(path), 1)
        if "\t" in line or line != line.rstrip()
    )


@tap.case
def no_line_is_too_long():
    """The formatter limits code in C to 100; comments and strings may be slightly longer."""
    found = []
    for path in sources():
        if not path.endswith((".c", ".h", ".cu", ".cuh", ".py", ".py.in", ".js", ".js.in", ".vala")):
            continue
        is_table = False
        for number, line in enumerate(tree.lines(path), 1):
            if "clang-format o" in line:
                is_table = "clang-format off" in line
            cap = 120 if ".py" in path else 110
            if len(line) > cap and not is_table and "http" not in line:
                found.append(f"{path}:{number}: {len(line)} columns")
    report(found)


@tap.case
def every_source_begins_with_its_licence():
    report(
        f"{path}: the first three lines lack '{LICENCE}'"
        for path in sources()
        if not any(LICENCE in line for line in tree.lines(path)[:3])
    )


@tap.case
def every_file_keeps_below_its_cap():
    def check(path):
        for pattern, cap in CAPS:
            if re.search(pattern, path):
                cap, _why = CAP_EXCEPTIONS.get(path, (cap, None))
                n_lines = len(tree.lines(path))
                return f"{path}: {n_lines} lines, at most {cap}" if n_lines > cap else None
        return None

    report(filter(None, map(check, filter(tree.is_text, tree.files()))))


@tap.case
def exceptions_from_the_caps_are_still_needed():
    report(
        f"{path}: gone, or short enough by now"
        for path, (cap, _why) in CAP_EXCEPTIONS.items()
        if path not in tree.files() or len(tree.lines(path)) <= cap // 2
    )


@tap.case
def no_todo_without_an_issue():
    word = re.compile(r"\b(TODO|FIXME|XXX)\b(?!.*(#\d+|https?://))")
    report(
        f"{path}:{number}: {line.strip()}"
        for path in sources()
        if not path.startswith("tests/")
        for number, line in enumerate(tree.lines(path), 1)
        if word.search(line)
    )


@tap.case
def no_path_of_one_machine():
    word = re.compile(r"(?<![\w.$}>])/(work|home|root|Users)/")
    report(
        f"{path}:{number}: {line.strip()}"
        for path in filter(tree.is_text, tree.files())
        if not path.startswith("tests/style/")
        for number, line in enumerate(tree.lines(path), 1)
        if word.search(line)
    )


@tap.case
def no_file_is_empty():
    """A program that was run in this folder may have left it, and a commit of all files taken it along."""
    empty = (path for path in tree.files() if os.path.getsize(tree.full(path)) == 0)
    report(path for path in empty if not path.endswith("/py.typed"))


# --- C ---------------------------------------------------------------------------------------


def headers():
    return [path for path in tree.files() if re.match(r"(?:gtk|gtorch|plot)/.*\.h$", path)]


def public_headers():
    return [path for path in headers() if not tree.is_private_header(path)]


@tap.case
def every_header_is_included_once():
    report(f"{path}: no #pragma once" for path in headers() if "#pragma once" not in tree.read(path))


@tap.case
def public_headers_export_nothing_by_accident():
    """A prototype follows its availability macro, otherwise the symbol is hidden."""
    prototype = re.compile(r"^(?!typedef|static|#|struct|enum|union)\w[\w ]*[ *]+(gtorch_\w+) \(")
    found = []
    for path in public_headers():
        previous = ""
        for number, line in enumerate(tree.lines(path), 1):
            match = prototype.match(line)
            if match and "GTORCH_AVAILABLE_IN_" not in previous + line:
                found.append(f"{path}:{number}: {match[1]} has no GTORCH_AVAILABLE_IN_x_y")
            previous = line
    report(found)


@tap.case
def public_headers_have_no_struct_fields():
    """Class structs of derivable types are part of the interface; instances are not."""
    allowed = re.compile(r"struct _\w+(Class|Interface|Iface)\s*$")
    instance = re.compile(r"^struct (_GTorch\w+)\s*$")
    found = []
    for path in public_headers():
        lines = tree.lines(path)
        for number, line in enumerate(lines, 1):
            if instance.match(line) and not allowed.match(line):
                body = "".join(lines[number : number + 5])
                if not re.match(r"\{\s*\w+ parent_instance;\s*\}", body):
                    found.append(f"{path}:{number}: {line}")
    report(found)


@tap.case
def every_c_file_begins_with_config_h():
    found = []
    for path in tree.files():
        if re.match(r"gtorch/.*\.c$", path):
            includes = re.findall(r'^#\s*include\s+(["<][^">]+[">])', tree.read(path), re.MULTILINE)
            if includes and includes[0] != '"config.h"':
                found.append(f'{path}: {includes[0]} comes before "config.h"')
    report(found)


@tap.case
def core_knows_no_backend():
    word = re.compile(r"^\s*#\s*(?:el)?if.*CUDA")
    report(
        f"{path}:{number}: {line.strip()}"
        for path in tree.files()
        if re.match(r"gtorch/(?!cuda/).*\.[ch]$", path)
        for number, line in enumerate(tree.lines(path), 1)
        if word.match(line)
    )


@tap.case
def the_formatter_has_left_names_of_quarks_alone():
    """G_DEFINE_QUARK stringifies its argument; clang-format takes it for a subtraction."""
    report(
        f"{path}:{number}: {line}"
        for path in tree.files()
        if path.endswith(".c")
        for number, line in enumerate(tree.lines(path), 1)
        if re.match(r"G_DEFINE_QUARK \(.* - ", line)
    )


@tap.case
def nothing_a_user_passes_aborts():
    """The library must not call g_error() or abort(); g_assert() checks internal invariants only. A process that
    gtorch-run has made by fork() ends itself."""
    word = re.compile(r"(?<![\w>.])(g_error|abort|exit|_exit) \(")
    report(
        f"{path}:{number}: {line.strip()}"
        for path in tree.files()
        if re.match(r"(?:gtk|gtorch|plot|tools)/.*\.[ch]$", path)
        for number, line in enumerate(tree.lines(path), 1)
        if word.search(line) and not line.lstrip().startswith(("*", "/*"))
        and not (path.startswith("tools/gtorch-run-") and "_exit (" in line)
    )


@tap.case
def errors_are_lower_case_without_full_stop():
    """Checks only messages that are literals in the call, `op: values, rule`; names may be upper case."""
    call = re.compile(
        r'g_set_error(?:_literal)? \((?:[^;"]*?)_ ?\("((?:[^"\\]|\\.)*)"\s*\)', re.DOTALL
    )
    found = []
    for path in tree.files():
        if re.match(r"gtorch/.*\.c$", path):
            for message in call.findall(tree.read(path)):
                if re.match(r"[A-Z][a-z]", message) or message.endswith("."):
                    found.append(f"{path}: {message}")
    report(found)


def calls_outside(functions, home, folders):
    """Returns the places where @functions, a pattern of names, are called in C outside @home."""
    word = re.compile(rf"(?<![\w>.`])(?:{functions}) ?\(")
    return (
        f"{path}:{number}: {line.strip()}"
        for path in tree.files()
        if re.match(rf"({folders})/.*\.(c|h|inc|vala)$", path) and path != home
        for number, line in enumerate(tree.lines(path), 1)
        if word.search(line) and not line.lstrip().startswith(("*", "/*"))
    )


@tap.case
def the_environment_is_asked_in_one_place():
    """There the environment is ignored in a process with more rights than its user has. gtorch-run, which hands its own
    on to the programs that it starts, does not begin in such a process. gtorch-top asks what its terminal can do."""
    report(
        line
        for line in calls_outside(
            r"(?:g_|secure_|__secure_)?getenv|g_get_environ|g_environ_getenv|g_listenv",
            "gtorch/base/gtorch-environment.c", "gtorch|tools|introspection",
        )
        if not line.startswith(("tools/gtorch-run-", "tools/gtorch-top"))
    )


@tap.case
def generic_function_types_come_from_one_header():
    """The C library decides what <tgmath.h> expands to, and how slow that is."""
    found = (p for p in tree.files() if re.search(r"\.(c|h|cu|cuh|py|in)$", p))
    report(p for p in found if re.search(r"^\s*#\s*include\s*<tgmath\.h>", tree.read(p), re.MULTILINE))


@tap.case
def libraries_are_opened_in_one_place():
    report(
        line
        for line in calls_outside(
            r"dlm?open|g_module_open(?:_full)?", "gtorch/base/gtorch-environment.c",
            "gtorch|tools|introspection",
        )
        # by a path, as in the library, and not in a process with more rights than its user has
        if not line.startswith("tools/gtorch-run-pmix.c")
    )


@tap.case
def files_are_written_in_one_place():
    """There a failure, or a loss of power, leaves the former file unchanged. Other code may only
    open files for reading."""
    found = [
        line
        for line in calls_outside(
            r"f?open(?:at)?|g_f?open|g?_?creat|mkstemp|g_mkstemp(?:_full)?|fdopen|freopen|truncate|ftruncate"
            r"|g_file_(?:replace|create|append_to|set_contents|open_tmp|new_tmp|open_readwrite|copy|move)\w*",
            "gtorch/base/gtorch-file-save.c", "gtorch|tools|introspection",
        )
        # a store's file has changes one behind the other, under a lock, and is never replaced; what workers write is
        # appended to their logs; several processes write their rows to one file, which has a new name
        if "O_RDONLY" not in line and "gtorch/distributed/gtorch-file-store.c" not in line
        and "gtorch/distributed/gtorch-sharded-put.c" not in line
        and "tools/gtorch-run-worker.c" not in line
        and "gtorch/elements/gtorch-loan.c" not in line  # the end of a pipe
    ]
    writes = re.compile(r"""\bopen\([^)]*['"][rb+t]*[wax]|\.write_(?:text|bytes)\(|replace_contents|set_contents""")
    for path in tree.files():
        if re.match(r"introspection/(python|gjs)/.*\.(py|js)$", path):
            for number, line in enumerate(tree.lines(path), 1):
                # replace_contents() writes a new file and renames it
                if writes.search(line) and "file.replace_contents(whole" not in line:
                    found.append(f"{path}:{number}: {line.strip()}")
    report(found)


# --- Meson -----------------------------------------------------------------------------------


def build_files():
    return [path for path in tree.files() if os.path.basename(path) == "meson.build"]


@tap.case
def every_c_file_is_built():
    text = "\n".join(map(tree.read, build_files()))
    found = []
    for path in tree.files():
        # The generator lists these folders.
        listed = ("gtorch/ops/", "gtorch/cpu/ops/", "gtorch/cuda/ops/")
        if re.search(r"\.(c|vala)$", path) and not path.startswith(listed):
            stem = os.path.splitext(os.path.basename(path))[0]
            names = {stem, re.sub(r"^test-", "", stem)}
            if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
                found.append(f"{path}: no meson.build names it")
    report(found)


@tap.case
def every_folder_of_the_build_is_entered():
    found = []
    for path in build_files():
        folder = os.path.dirname(path)
        parent, name = os.path.split(folder)
        if name:
            above, up = ["meson.build"], parent
            while up:
                above.append(os.path.join(up, "meson.build"))
                up = os.path.dirname(up)
            text = "\n".join(tree.read(other) for other in above if other in tree.files())
            if not re.search(rf"subdir\s*\(\s*'(?:[\w/]*/)?{re.escape(name)}'", text):
                if f"'{name}'" not in text:
                    found.append(f"{path}: no subdir ('{name}') above it")
    report(found)


# --- Translations ----------------------------------------------------------------------------


def translated_files():
    word = re.compile(r'(?<![\w"])(?:_|N_|C_|NC_|ngettext) ?\("|translatable="yes"')
    return sorted(
        path
        for path in tree.files()
        if (re.match(r"(?:gtk|gtorch|plot|tools)/.*\.[ch]$", path) or re.match(r"apps/.*\.(?:vala|ui)$", path))
        and word.search(tree.read(path)) or re.match(r"apps/.*\.(?:desktop|metainfo\.xml)\.in$", path)
    )


def listed(name):
    return [line for line in tree.lines(name) if line and not line.startswith("#")]


def fix_potfiles():
    """Writes the list that potfiles_lists_every_translated_file() expects."""
    comments = [line for line in tree.lines("po/POTFILES.in") if line.startswith("#")]
    with open(tree.full("po/POTFILES.in"), "w", encoding="utf-8") as file:
        file.write("\n".join([*comments, *translated_files()]) + "\n")


@tap.case
def potfiles_lists_every_translated_file():
    have, want = set(listed("po/POTFILES.in")), set(translated_files())
    report(
        [f"po/POTFILES.in lacks {path}" for path in sorted(want - have)]
        + [f"po/POTFILES.in has {path}, which translates nothing" for path in sorted(have - want)]
    )


@tap.case
def potfiles_is_sorted():
    for name in ("po/POTFILES.in", "po/POTFILES.skip", "po/LINGUAS"):
        lines = listed(name)
        assert lines == sorted(set(lines)), f"{name} is not sorted, or has a line twice"


@tap.case
def generated_c_has_no_translatable_text():
    """xgettext reads files, not the generator's output."""
    paths = [path for path in tree.files() if re.search(r"^generator/.*\.(py|in)$", path)]
    assert paths, "there is no generator"
    report(
        f"{path}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(tree.lines(path), 1)
        if re.search(r"(?<!\w)N?_ ?\(\\?\"", line)
    )


# --- Python and shell ------------------------------------------------------------------------


@tap.case
def functions_of_the_generator_are_short():
    found = []
    for path in tree.files():
        if re.search(r"^generator/.*\.py$", path):
            for node in ast.walk(ast.parse(tree.read(path), path)):
                if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= FUNCTION_CAP:
                    found.append(f"{path}:{node.lineno}: {node.name} has more than {FUNCTION_CAP} lines")
    report(found)


@tap.case
def build_scripts_import_the_standard_library_only():
    found = []
    local = {os.path.basename(path)[:-3] for path in tree.files() if path.endswith(".py")}
    local |= {path.split("/")[0] for path in tree.files() if path.endswith("/__init__.py")}
    for path in tree.files():
        if not path.endswith(".py") or path.startswith(("docs/gallery/", "examples/", "tests/bindings/")):
            continue
        extra = set()
        for pattern, names in PYTHON_OUTSIDE_STDLIB.items():
            if re.search(pattern, path):
                extra |= names
        for node in ast.walk(ast.parse(tree.read(path), path)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names | local | extra:
                    found.append(f"{path}:{node.lineno}: imports {name}")
    report(found)


@tap.case
def programs_are_executable_and_name_their_interpreter():
    found = []
    for path in tree.files():
        if not tree.is_text(path):
            continue
        has_line = tree.read(path).startswith("#!")
        can_run = os.access(tree.full(path), os.X_OK)
        if has_line != can_run:
            found.append(f"{path}: {'not executable' if has_line else 'executable without #!'}")
    report(found)


# --- Documents -------------------------------------------------------------------------------


@tap.case
def the_readme_has_the_two_commands():
    text = tree.read("README.md")
    report(command for command in ("./bootstrap demo", "./bootstrap test") if command not in text)


@tap.case
def news_begins_with_the_version_of_the_build():
    version = re.search(r"^\s*version:\s*'([^']+)'", tree.read("meson.build"), re.MULTILINE)
    assert version, "meson.build has no version"
    heading = next(line for line in tree.lines("NEWS") if line.strip())
    assert version[1] in heading, f"NEWS begins with '{heading}', the version is {version[1]}"


@tap.case
def every_page_of_the_manual_is_in_its_contents():
    """Except for the plan, which is for the authors of GTorch."""
    text = tree.read("docs/meson.build")
    pages = [path for path in tree.files() if re.match(r"docs/(?!plan)[^/]*\.md$", path)]
    report(
        f"{path} is not in docs/meson.build" for path in pages if f"'{os.path.basename(path)}'" not in text
    )
    report(f"{path}: begins with no `Title: …`" for path in pages if not tree.read(path).startswith("Title: "))


@tap.case
def redrawn_lines_need_a_terminal():
    """In a pipe or a file, lines that use carriage returns become one long line."""
    report(
        f"{path}: moves the cursor, and does not ask whether there is a terminal"
        for path in tree.files()
        if tree.is_source(path) and re.match(r"(bench|docs|examples|tools|bootstrap)", path)
        and re.search(r"[\"'`]\\r(?!\\n)|\\(x1b|033|e)\[", tree.read(path))
        and not re.search(r"isatty|supports_color|-t 1", tree.read(path))
        and not os.path.basename(path).startswith("test-")
    )


@tap.case
def links_between_documents_lead_somewhere():
    link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
    found = []
    for path in tree.files():
        if path.endswith(".md"):
            text = re.sub(r"```.*?```", "", tree.read(path), flags=re.DOTALL)
            for target in link.findall(text):
                base = os.path.join(os.path.dirname(tree.full(path)), target)
                # The manual's pages refer to each other by their HTML names, and pictures are drawn by the build.
                drawn = path.startswith("docs/") and f"'{target}'" in tree.read("docs/meson.build")
                if not drawn and not any(os.path.exists(b) for b in (base, re.sub(r"\.html$", ".md", base))):
                    found.append(f"{path}: {target}")
    report(found)


if sys.argv[1:] == ["--fix"]:
    fix_potfiles()
else:
    tap.main()
