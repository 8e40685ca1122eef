#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Installs GTorch below a user's prefix and below /usr/local, and uses it there as README.md
describes.

Arguments: the build folder, the Python that has gi.
"""

import atexit
import concurrent.futures
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import installation
import readme
import tap
import tree

BUILD, PYTHON = sys.argv[1:]
HERE = pathlib.Path(tempfile.mkdtemp(prefix="gtorch-install-"))
HOME = HERE / "home"
OWN = HOME / "gtorch"
STAGE = HERE / "stage"
LOCAL_COMMANDS, LOCAL_VARIABLES, OWN_COMMANDS, OWN_VARIABLES = readme.installing()
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])(gtorch/[^>"]*|[^>"]*)[>"]', re.MULTILINE)
OUTPUTS = {}

atexit.register(shutil.rmtree, HERE, ignore_errors=True)


@functools.cache
def own():
    """The installation below a user's prefix, made with the options of README.md."""
    HOME.mkdir()
    setup = next(line for line in OWN_COMMANDS.splitlines() if line.startswith("meson setup build"))
    setup = [word.replace("$HOME", str(HOME)) for word in shlex.split(setup)[3:]]
    assert f"--prefix={OWN}" in setup, setup
    options = [word for word in setup if not word.startswith(("--prefix", "--buildtype"))]
    installation.install(BUILD, HERE / "own", OWN, *options)
    return OWN


@functools.cache
def local():
    """The installation for /usr/local, in a folder of the test."""
    installation.install(BUILD, HERE / "local", "/usr/local", destdir=STAGE)
    return STAGE / "usr/local"


def shell(script, **options):
    """Runs a script with the variables of README.md for a user's prefix, and nothing else that helps."""
    own()
    return installation.run("sh", "-euc", f"{OWN_VARIABLES}\n{script}", cwd=HERE,
                            env=installation.pick_environment(HOME=str(HOME)), **options)


def in_usr_local(script):
    """Runs a script with the variables of README.md for /usr/local, in a mount namespace where
    GTorch is installed there."""
    local()
    private = HERE / "private"
    private.mkdir(exist_ok=True)
    overlay = (
        f"mount -t tmpfs tmpfs {private} && mkdir {private}/up {private}/work"
        f" && mount -t overlay overlay -o lowerdir={local()}:/usr/local /usr/local"
        f" && mount -t overlay overlay -o lowerdir=/etc,upperdir={private}/up,workdir={private}/work /etc"
        " && { [ ! -d /var/cache/ldconfig ] || mount -t tmpfs tmpfs /var/cache/ldconfig; }"
    )
    if subprocess.run(["unshare", "-rm", "sh", "-c", overlay], capture_output=True, check=False).returncode:
        raise tap.Skip("no file system can be put over /usr/local here (unshare, overlay)")
    commands = [line.removeprefix("sudo ") for line in LOCAL_COMMANDS.splitlines()]
    commands = "\n".join(line for line in commands if line and not line.startswith("meson "))
    return installation.run("unshare", "-rm", "sh", "-euc", f"{overlay}\n{commands}\n{LOCAL_VARIABLES}\n{script}",
                            cwd=HERE, env=installation.pick_environment(HOME=str(HERE / "nobody")))


def has(program):
    if not shutil.which(program):
        raise tap.Skip(f"{program} is not installed")


# --- Files ----------------------------------------------------------------------------------------


def headers():
    folder = own() / "include/gtorch-1"
    names = {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*")
             if path.is_file()}
    assert "gtorch/gtorch.h" in names, sorted(names)
    return names


def plan():
    """Installation folders by purpose, with an installed file of each."""
    modules = installation.run(PYTHON, os.path.join(tap.SOURCE_ROOT, "introspection/python/find_paths.py"),
                               OWN).splitlines()
    expected = {
        "bin": "gtorch-info",
        "include/gtorch-1/gtorch": "gtorch.h",
        "lib": "libgtorch-1.so.0",
        "lib/girepository-1.0": "GTorch-1.typelib",
        "lib/pkgconfig": "gtorch-1.pc",
        f"{modules[0]}/gi/overrides": "GTorch.py",
        f"{modules[0]}/gtorch": "__init__.py",
        f"{modules[0]}/gtorch/array_api": "__init__.py",
        "share/bash-completion/completions": "gtorch-info",
        "share/dbus-1/interfaces": "org.gtorch.Program1.xml",
        "share/gir-1.0": "GTorch-1.gir",
        "share/gjs-1.0/overrides": "GTorch.js",
        "share/gtorch-1": "gtorch.d.ts",
        "share/man/man1": "gtorch-info.1",
    }
    if subprocess.run(["pkg-config", "--exists", "ompi-c"], check=False).returncode == 0:
        expected["lib/gtorch-1"] = "libgtorch-mpi-1.so"
    for name in "plot", "gtk":
        if os.path.exists(os.path.join(BUILD, f"libraries/libgtorch-{name}-1.so")):
            expected[f"include/gtorch-{name}-1/gtorch-{name}"] = f"gtorch-{name}.h"
    if os.path.exists(os.path.join(BUILD, "apps/monitor/gtorch-monitor")):
        expected["share/applications"] = "org.gtorch.Monitor.desktop"
        expected["share/icons/hicolor/scalable/apps"] = "org.gtorch.Monitor.svg"
        expected["share/icons/hicolor/symbolic/apps"] = "org.gtorch.Monitor-symbolic.svg"
        expected["share/metainfo"] = "org.gtorch.Monitor.metainfo.xml"
    options = installation.user_options(BUILD)
    if options["vapi"] == "true" and shutil.which("vapigen"):
        expected["share/vala/vapi"] = "gtorch-1.vapi"
    if options["docs"] == "true":
        expected["share/doc/GTorch-1"] = "index.html"
        for name in "Plot", "Gtk":
            if os.path.exists(os.path.join(BUILD, f"libraries/libgtorch-{name.lower()}-1.so")):
                expected[f"share/doc/GTorch{name}-1"] = "index.html"
    for language in tree.read("po/LINGUAS").splitlines():
        if language and not language.startswith("#"):
            expected[f"share/locale/{language}/LC_MESSAGES"] = "gtorch-1.mo"
    return expected


@tap.case
def everything_is_in_its_folder():
    files = installation.files_below(own())
    expected = plan()
    missing = [f"{folder}/{name}" for folder, name in expected.items() if f"{folder}/{name}" not in files]
    assert not missing, f"missing: {missing}\n" + "\n".join(files)
    stray = [name for name in files if os.path.dirname(name) not in expected
             and not name.startswith("include/gtorch-1/gtorch/")
             and not re.search(r"/gtorch/(\w+/)+\w+\.pyi$", name)]
    assert not stray, stray
    files = [os.path.join(OWN, name) for name in files]
    wrong = [name for name in files if not os.path.islink(name) and os.stat(name).st_mode & 0o7777
             != (0o755 if re.search(r"/bin/[^/]*$|\.so(\.[\d.]+)?$", name) else 0o644)]
    assert not wrong, wrong


@tap.case
def no_text_names_the_source_or_the_build():
    found = []
    for name in installation.files_below(own()):
        content = (OWN / name).read_bytes()
        # debugging information in machine code is allowed to
        if content[:4] != b"\x7fELF" and any(
                os.fsencode(folder) in content for folder in (BUILD, tap.SOURCE_ROOT, str(HERE / "own"))):
            found.append(name)
    assert not found, found


@tap.case
def machine_code_looks_for_libraries_in_no_folder_of_its_own():
    has("readelf")
    for name in ("bin/gtorch-info", "lib/libgtorch-1.so.0"):
        dynamic = installation.run("readelf", "--wide", "--dynamic", own() / name)
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic, dynamic


# --- Headers --------------------------------------------------------------------------------------


@tap.case
def included_headers_are_installed():
    names = headers()
    found = []
    for name, text in names.items():
        for kind, target in INCLUDE.findall(text):
            if kind == '"' or target.startswith("gtorch/") and target not in names:
                found.append(f"{name} includes {target}")
    assert not found, "\n".join(found)


@tap.case
def headers_of_the_interface_are_installed_and_no_others():
    names = headers()
    private = [name for name in names if tree.is_private_header(name)]
    assert not private, private
    reached, new = set(), {"gtorch/gtorch.h"}
    while new:
        reached |= new
        new = {target for name in new for _kind, target in INCLUDE.findall(names[name])
               if target.startswith("gtorch/")} - reached
    assert reached == set(names), f"not reached from gtorch.h: {sorted(set(names) - reached)}"


def check_headers(compiler, names, *flags):
    """Returns the messages of the compiler for a file that includes these."""
    source = "".join(f"#include <{name}>\n" for name in names) + "int a_number;\n"
    flags = [*shell("pkg-config --cflags gtorch-1").split(), "-Wall", "-Wextra", "-pedantic", *flags]
    return subprocess.run([compiler, *flags, "-fsyntax-only", "-"], input=source, text=True, check=False,
                          capture_output=True).stderr


@tap.case
def each_header_is_complete():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = pool.map(lambda name: check_headers("cc", [name], "-std=gnu11", "-xc"), headers())
        found = [text for text in texts if text]
    assert not found, "\n".join(found)


@tap.case
def headers_are_right_in_cplusplus_too():
    has("c++")
    for standard in ("c++11", "c++20"):
        text = check_headers("c++", sorted(headers()), f"-std={standard}", "-xc++")
        assert not text, text


CPLUSPLUS = r"""
#include <gtorch/gtorch.h>
#include <cstdio>

int
main ()
{
  g_autoptr (GError) error = nullptr;
  g_autoptr (GTorchTensor) ones = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, nullptr, &error);
  g_autoptr (GTorchTensor) sum = ones ? gtorch_tensor_add (ones, ones, 1.5, &error) : nullptr;

  if (!sum || gtorch_tensor_get_numel (sum) != 6)
    return 1;
  std::printf ("%g\n", gtorch_tensor_get_n_dims (sum) + 0.5);
}
"""


@tap.case
def a_program_in_cplusplus_runs():
    has("c++")
    (HERE / "first.cc").write_text(CPLUSPLUS, "utf-8")
    done = shell("c++ -Wall -Wextra -pedantic -Werror first.cc -o first-cc $(pkg-config --cflags --libs gtorch-1)"
                 " && ./first-cc")
    assert done == "2.5\n", done


# --- README.md ------------------------------------------------------------------------------------


def first_program(language, where):
    if readme.NEEDS[language]:
        has(readme.NEEDS[language])
    folder = HERE / f"first-{language}-{where.__name__}"
    folder.mkdir()
    (folder / readme.FILES[language]).write_text(readme.programs()[language], "utf-8")
    output = where(f"cd {folder}\n{readme.command_for(language, PYTHON)}")
    assert output.strip(), "the program printed nothing"
    OUTPUTS[language, where] = output


def all_print_the_same():
    if len(OUTPUTS) < 2:
        raise tap.Skip("fewer than two programs ran")
    assert len(set(OUTPUTS.values())) == 1, OUTPUTS


for place, run_there in (("own_prefix", shell), ("usr_local", in_usr_local)):
    for program in readme.FILES:
        tap.add(f"the_first_program_in_{program}_runs_below_{place}", first_program, program, run_there)
tap.add("first_programs_print_the_same_everywhere", all_print_the_same)


@tap.case
def every_variable_of_the_readme_is_needed():
    """Without any one of them, something is not found."""
    # one for each program that would not be built or run
    checks = {
        "PKG_CONFIG_PATH": "pkg-config --exists gtorch-1",
        "LD_LIBRARY_PATH": f"{OWN}/bin/gtorch-info --version",
        "GI_TYPELIB_PATH": f"{PYTHON} -c 'import gi; gi.require_version(\"GTorch\", \"1\")'",
        "PYTHONPATH": f"{PYTHON} -c 'import gtorch'",
        "XDG_DATA_DIRS": "echo 'void main () {}' >empty.vala && valac -C --pkg gtorch-1 empty.vala",
        "PATH": "gtorch-info --version",
    }
    assert set(readme.variables(OWN_VARIABLES)) == set(checks), OWN_VARIABLES
    if not shutil.which("valac"):
        del checks["XDG_DATA_DIRS"]
    for name, check in checks.items():
        shell(check)
        done = subprocess.run(["sh", "-euc", f"{OWN_VARIABLES}\nunset {name}\n{check}"], cwd=HERE, check=False,
                              env=installation.pick_environment(HOME=str(HOME)), capture_output=True, text=True)
        assert done.returncode != 0, f"{name} is not needed for {check}"


@tap.case
def existing_variables_are_kept():
    names = [name for name in readme.variables(OWN_VARIABLES)]
    # pkg-config is still found in the former folders
    before = "\n".join(f'export {name}="{"$PATH:" if name == "PATH" else ""}/before/{name}"' for name in names)
    after = "\n".join(f'printf "%s\\n" "${name}"' for name in names)
    lines = shell(f"{before}\n{OWN_VARIABLES}\n{after}").splitlines()
    wrong = [line for name, line in zip(names, lines, strict=True) if not line.endswith(f":/before/{name}")]
    assert not wrong, wrong


@tap.case
def symbols_have_versions():
    has("readelf")
    symbols = installation.run("readelf", "--wide", "--dyn-syms", own() / "lib/libgtorch-1.so.0")
    names = re.findall(r" (?:FUNC|OBJECT) +GLOBAL +DEFAULT +\d+ (\S+)", symbols)
    assert len(names) > 2000, len(names)
    wrong = [name for name in names if not re.fullmatch(r"gtorch_\w+@@GTORCH_0_1|GTORCH_0_1", name)]
    assert not wrong, wrong[:20]


@tap.case
def the_manual_pages_list_all_options():
    for program in ("gtorch-info", "gtorch-run", "gtorch-top"):
        path = own() / f"share/man/man1/{program}.1"
        page = path.read_text("utf-8").replace("\\-", "-")
        completed = (own() / "share/bash-completion/completions" / program).read_text("utf-8")
        options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shell(f"{program} --help"), re.MULTILINE)
        assert len(options) > 3, options
        missing = [option for option in options if option not in page or option not in completed]
        assert not missing, missing
        if shutil.which("man"):
            text = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, check=True,
                                  env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
            assert not text.stderr, text.stderr


@tap.case
def the_programs_run():
    version = re.search(r"^\s*version:\s*'([^']+)'", tree.read("meson.build"), re.MULTILINE)[1]
    for program in ("gtorch-info", "gtorch-run", "gtorch-top"):
        assert shell(f"{program} --version") == f"{program} {version}\n"
        assert in_usr_local(f"{program} --version") == f"{program} {version}\n"


@tap.case
def installed_programs_speak_german():
    options = {option["name"]: option["value"] for option in installation.introspect(BUILD, "--buildoptions")}
    if (options["prefix"], options["localedir"]) != ("/usr/local", "share/locale"):
        raise tap.Skip("this build looks for translations elsewhere")
    # C.UTF-8, in which gettext translates nothing, does under another name
    locale = HERE / "locale"
    locale.mkdir()
    (locale / "en_US.UTF-8").symlink_to("/usr/lib/locale/C.utf8")
    program = ("import locale, gtorch\n"
               "try:\n    locale.setlocale(locale.LC_ALL, '')\nexcept locale.Error:\n    print('no locale')\n"
               "try:\n    gtorch.zeros(2) + gtorch.zeros(3)\nexcept Exception as error:\n    print(error)\n")
    text = in_usr_local(f"export LOCPATH={locale} LC_ALL=en_US.UTF-8 LANGUAGE=de\n"
                        f"gtorch-info --help\n{PYTHON} -c {shlex.quote(program)}")
    if "no locale" in text:
        raise tap.Skip("no locale in which messages are translated")
    assert "Zeigt, wie GTorch gebaut wurde" in text, text
    assert "--need-cuda" in text and "Fehlschlagen, wenn es keine verwendbare GPU gibt" in text, text
    assert "add: die Formen [2] und [3] sind nicht durch Broadcasting vereinbar" in text, text


@tap.case
def readme_describes_a_release_build():
    for block in (LOCAL_COMMANDS, OWN_COMMANDS):
        assert "--buildtype=release" in block, block


# --- pkg-config -----------------------------------------------------------------------------------


@tap.case
def flags_for_static_linking_are_right():
    """Only the shared library is installed, so the other libraries to link with are GLib's."""
    (HERE / "static.c").write_text(readme.programs()["c"], "utf-8")
    shell("cc static.c -o static $(pkg-config --cflags --libs --static gtorch-1) && ./static")
    plain, static = (shell(f"pkg-config {option} gtorch-1").split() for option in ("--libs", "--libs --static"))
    assert f"-L{OWN}/lib" in plain and "-lgtorch-1" in plain, plain
    assert set(plain) <= set(static), (plain, static)
    assert shell("pkg-config --variable=includedir gtorch-1").strip() == f"{OWN}/include"


@tap.case
def variables_of_pkg_config_name_folders():
    for name in ("girdir", "libdir", "pythondir", "typelibdir"):
        folder = shell(f"pkg-config --variable={name} gtorch-1").strip()
        assert os.path.isdir(folder), f"{name}: {folder}"


@tap.case
def a_tree_that_was_moved_is_used_where_it_is():
    folder = installation.configure(BUILD, HERE / "moved", f"--prefix={HERE}/nowhere", "--libdir=lib",
                                    "-Dpkgconfig.relocatable=true", "-Dintrospection=false", "-Ddocs=false")
    moved = HERE / "elsewhere/deep"
    shutil.copytree(own(), moved, symlinks=True)
    shutil.copy(folder / "meson-private/gtorch-1.pc", moved / "lib/pkgconfig/gtorch-1.pc")
    (HERE / "moved.c").write_text(readme.programs()["c"], "utf-8")
    environment = installation.pick_environment(PKG_CONFIG_PATH=str(moved / "lib/pkgconfig"),
                                                LD_LIBRARY_PATH=str(moved / "lib"))
    flags = installation.run("pkg-config", "--cflags", "--libs", "gtorch-1", env=environment)
    assert str(OWN) not in flags and "nowhere" not in flags, flags
    installation.run("sh", "-euc", f"cc moved.c -o moved-c {flags} && ./moved-c".replace("\n", " "),
                     cwd=HERE, env=environment)


# --- Installed tests -------------------------------------------------------------------------------


@tap.case
def installed_tests_pass():
    home = HERE / "tested"
    home.mkdir()
    installation.install(BUILD, HERE / "with-tests", home / "gtorch", "--libdir=lib", "-Dinstalled-tests=true",
                         "-Ddocs=false")
    found = sorted((home / "gtorch/share/installed-tests/gtorch-1").glob("*.test"))
    assert len(found) >= 4, found
    for path in found:
        lines = dict(line.split("=", 1) for line in path.read_text("utf-8").splitlines() if re.match(r"\w+=", line))
        assert lines["Type"] == "session" and lines["Output"] == "TAP", lines
        output = installation.run("sh", "-euc", f"{OWN_VARIABLES}\nexec {lines['Exec']}", cwd=home,
                                  env=installation.pick_environment(HOME=str(home)))
        assert re.search(r"^1\.\.[1-9]", output, re.MULTILINE) and "not ok" not in output, f"{path.name}: {output}"


# --- Removal --------------------------------------------------------------------------------------


@tap.case
def uninstalling_leaves_nothing():
    assert installation.files_below(own())
    installation.run("ninja", "-C", HERE / "own", "uninstall")
    left = [str(path) for path in OWN.rglob("*")] if OWN.exists() else []
    assert not left, left


tap.main()
