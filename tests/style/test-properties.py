#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Properties are rows of tables (gtorch-field-private.h), which name the functions that belong to them."""

import os
import re

import tap
import tree

TEXT = {path: tree.read(path) for path in tree.files() if re.match(r"gtorch/.*\.c$", path)}

TABLE = re.compile(r"static const GTorchField (\w+)\[\] = \{\n(.*?)\n\};\n", re.S)
ROW = re.compile(r'^  \{ "([a-z0-9-]+)",\s*(.*?) \},$', re.S | re.M)
ACCESSORS = re.compile(r"GTORCH_PROPERTY_\w+ \((?:\w[\w ]*, \w+,)?\s*(\w+),\s*(\w+)\)")

# (class, property) -> the word that its functions have instead.
OTHER_NAMES = {
    ("GTorchDevice", "type"): "device_type",  # g_type_ and gtorch_device_get_type() are GObject's
}

# Where a property is notified whose row is in another file: file -> the file of the class.
CLASS_FILES = {
    "gtorch/nn/gtorch-graphed-make.c": "gtorch/nn/gtorch-graphed-module.c",
}


def rows(path):
    """(name of the property, text of its row) for each row in a file."""
    for table in TABLE.finditer(TEXT[path]):
        body = re.sub(r"  /\*\*.*?\*/\n", "", table[2], flags=re.S)
        found = ROW.findall(body)
        assert len(found) == len(re.findall(r"^  \{", body, re.M)), f"{path}: {table[1]} has rows of another form"
        yield from found


@tap.case
def only_tables_make_properties():
    found = [
        f"{path}: {call}" for path, text in TEXT.items() if path != "gtorch/base/gtorch-field.c"
        for call in re.findall(r"g_param_spec_(?!get_|set_)\w+|g_object_class_install_propert\w+", text)
    ]
    assert not found, "\n".join(found)


@tap.case
def rows_name_the_functions_of_their_property():
    n, wrong = 0, []
    for path in TEXT:
        owner = re.search(r"^typedef (\w+) Self;$", TEXT[path], re.M)
        for name, row in rows(path):
            if "GTORCH_PROPERTY_" not in row:
                continue
            getter, setter = ACCESSORS.search(row).groups()
            word = OTHER_NAMES.get((owner[1], name), name.replace("-", "_"))
            base = word.removeprefix("is_")
            if not re.search(rf"(^|_)(get|is)_{base}$", getter):
                wrong.append(f"{path}: {name} is read by {getter}")
            if setter != "NULL" and not re.search(rf"(^|_)set_{base}$", setter):
                wrong.append(f"{path}: {name} is written by {setter}")
            n += 1
    assert not wrong, "\n".join(wrong)
    assert n > 80, n


@tap.case
def members_have_the_name_of_their_property():
    n, wrong = 0, []
    for path in TEXT:
        for name, row in rows(path):
            member = re.search(r"GTORCH_FIELD \(\w+, (\w+)\)", row)
            if member is None:
                continue
            n += 1
            if member[1] != name.replace("-", "_"):
                wrong.append(f"{path}: {name} is {member[1]}")
    assert not wrong, "\n".join(wrong)
    assert n > 5, n


@tap.case
def what_is_notified_is_a_property():
    """g_object_notify() warns of a name that there is not only when it comes to it."""
    n, wrong = 0, []
    for path, text in TEXT.items():
        if path.startswith("gtorch/base/"):
            continue
        known = {name for name, _ in rows(CLASS_FILES.get(path, path))}
        for name in re.findall(r'(?:g_object_notify|set_choice|gtorch_property_refuse) \([^";]*"([^"]*)"', text):
            n += 1
            if name not in known:
                wrong.append(f"{path}: {name}")
    assert not wrong, "\n".join(wrong)
    assert n > 30, n


@tap.case
def each_row_has_documentation():
    wrong = []
    for path, text in TEXT.items():
        for table in TABLE.finditer(text):
            for name in re.findall(r'^  \{ "([a-z0-9-]+)"', table[2], re.M):
                if not re.search(rf"   \* \w+:{name}:(?: \([^\n]*)?\n(?:   \*[^\n]*\n)*   \*/\n"
                                 rf'  \{{ "{name}"', table[2]):
                    wrong.append(f"{os.path.basename(path)}: {name}")
    assert not wrong, "\n".join(wrong)


tap.main()
