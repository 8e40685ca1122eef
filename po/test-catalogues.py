#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The translations against the messages of the sources: nearly all are translated, with the same placeholders."""

import ast
import functools
import re
import shutil
import subprocess

import tap
import template
import tree

LEAST = 95  # percent

# %s, %2$s, %08x, %.15g, %.*s, %<PRId64>, which stands for the macro
PLACEHOLDER = re.compile(r"%(?:(\d+)\$)?([-+ #0]*\d*(?:\.(?:\d+|\*))?(?:<PRI[a-zA-Z0-9]+>|(?:hh|h|ll|l|z)?[a-zA-Z%]))")
ENTRY = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr|msgstr\[\d\]) ((?:".*"\n?)+)', re.MULTILINE)


def languages():
    return [line for line in tree.read("po/LINGUAS").splitlines() if line and line[0] != "#"]


@functools.cache
def messages():
    if not shutil.which("xgettext"):
        raise tap.Skip("xgettext is not installed")
    return template.make_template(tap.SOURCE_ROOT)


@functools.cache
def entries(language):
    """The messages of the sources with their translations: lists of the originals and of the translations, which
    are several for plurals, and empty without a translation."""
    merged = template.run("msgmerge", "--quiet", "--no-fuzzy-matching", tree.full(f"po/{language}.po"), "-",
                          text=messages()).decode()
    found = []
    for block in merged.split("\n\n")[1:]:
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        parts = {key: "".join(ast.literal_eval(line) for line in text.splitlines())
                 for key, text in ENTRY.findall("\n".join(lines))}
        if not parts:
            continue  # what is no message of the sources any more
        originals = [text for key, text in parts.items() if key.startswith("msgid")]
        translations = [text for key, text in parts.items() if key.startswith("msgstr")]
        if "\n#, fuzzy" in "\n" + block:
            translations = [""]
        found.append((originals, translations))
    assert len(found) >= 1500, f"only {len(found)} messages were found"
    return found


def placeholders(text):
    """What stands for the arguments, in their order."""
    found = PLACEHOLDER.findall(text)
    if any(number for number, _ in found):
        assert all(number or kind == "%" for number, kind in found), f"numbered and not: {text}"
        found.sort(key=lambda item: int(item[0] or 0))
    return [kind for _, kind in found]


def nearly_all_is_translated(language):
    missing = [originals[0] for originals, translations in entries(language) if "" in translations]
    n_all = len(entries(language))
    n_done = n_all - len(missing)
    figure = f"{language}: {n_done} of {n_all} messages are translated, {100 * n_done / n_all:.1f} %"
    print(f"# {figure}")
    for text in missing[:40]:
        print(f"# missing: {text!r}")
    assert 100 * n_done >= LEAST * n_all, f"{figure}; at least {LEAST} % are wanted"


def placeholders_are_kept(language):
    wrong = [f"{original!r}\n  {translation!r}"
             for originals, translations in entries(language)
             for i, translation in enumerate(translations) if translation
             for original in [originals[min(i, len(originals) - 1)]]
             if placeholders(original) != placeholders(translation)]
    assert not wrong, "\n".join(wrong)


def spaces_at_the_ends_are_kept(language):
    """A message that ends in a space is put before another one."""
    def ends(text):
        return text[-1:].isspace(), text.endswith("\n"), text.startswith("          ")

    wrong = [translation for originals, translations in entries(language) for translation in translations
             if translation and ends(translation) != ends(originals[0])]
    assert not wrong, "\n".join(map(repr, wrong))


def the_catalogue_is_valid(language):
    result = subprocess.run(["msgfmt", "--check", "--output-file=/dev/null", tree.full(f"po/{language}.po")],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    header = tree.read(f"po/{language}.po")
    assert f'"Language: {language}\\n"' in header


@tap.case
def german_quotes_are_german():
    wrong = [text for _, translations in entries("de") for text in translations
             if text.count("„") != text.count("“") or "”" in text or re.search(r"\"|'%|»|«", text)
             and "Fixed" not in text]
    assert not wrong, "\n".join(wrong)


@tap.case
def no_message_is_cut_short():
    """xgettext ends a message at a macro that it does not know."""
    wrong = [line for line in messages().decode().splitlines() if re.search(r'%[-+ #0]*\d*"$', line)]
    assert not wrong, "\n".join(wrong)


for name in languages():
    for check in (nearly_all_is_translated, placeholders_are_kept, spaces_at_the_ends_are_kept,
                  the_catalogue_is_valid):
        tap.add(f"{check.__name__}_{name}", check, name)

tap.main()
