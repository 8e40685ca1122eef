# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The blocks of code of the manual's pages, and how each of them is run.

A *program* is a block that begins with its file name in a comment, such as `# first.py`. It is a file of that name
in a folder that all programs of the page share, and is run by itself. If a block `text` follows, that is its output;
`…` there stands for anything. A block in another language that begins with a file name is written to the
folder only, for programs and commands behind it.

Every other block is an *example*: those of a page in one language belong together. A block below the comment
`<!-- not run here: REASON -->` is left out.
"""

import collections
import re

import tree

Block = collections.namedtuple("Block", "language text line name reason output")

LANGUAGES = ("python", "c", "js", "vala")
_NAME = re.compile(r"^(?:#|//|/\*|<!--) ([\w.-]+\.\w+|meson\.build)(?: \*/| -->)?\n")
_REASON = re.compile(r"^<!-- not run here: (.+) -->$")


def paths():
    """Pages of the manual, without the list of unfinished work, and README.md."""
    found = [path for path in tree.files() if re.fullmatch(r"docs/[-\w]+\.md|README\.md", path)]
    return [path for path in found if path != "docs/plan.md"]


def path_of(page):
    return "README.md" if page == "README" else f"docs/{page}.md"


def read(page):
    """Returns the page's blocks in order, without the outputs of programs, which are in those."""
    found, language, body, start, reason = [], None, [], 0, None
    for number, line in enumerate(tree.lines(path_of(page)), 1):
        fence = re.match(r"^```(\S*)$", line)
        if fence and language is None:
            language, body, start = fence[1], [], number
        elif fence:
            _add(found, Block(language, "".join(body), start, None, reason, None))
            language, reason = None, None
        elif language is not None:
            body.append(line + "\n")
        elif _REASON.match(line):
            reason = _REASON.match(line)[1]
        elif line:
            reason = None
    assert language is None, f"{path_of(page)}:{start}: the block has no end"
    return found


def _add(found, block):
    name = _NAME.match(block.text)
    last = found[-1] if found else None
    if block.language == "text":
        if last is not None and last.output is None and last.reason is None and (last.name or last.language == "sh"):
            found[-1] = last._replace(output=block.text)
    else:
        found.append(block._replace(name=name and name[1]))


def examples(page, language):
    return [b.text for b in read(page) if b.language == language and not b.name and not b.reason]


def programs(page):
    """Blocks with a name, and commands."""
    return [block for block in read(page) if not block.reason and (block.name or block.language == "sh")]


def unknown(page):
    """Blocks that nothing runs and that do not say why."""
    known = (*LANGUAGES, "sh")
    return [b for b in read(page) if not b.reason and not b.name and b.language not in known]


def is_like(line, expected):
    """Compares a line with the expected one, where … matches anything.

    Numbers with a fraction may differ by a twentieth: other processors add in another order."""
    if "…" in expected:
        return bool(re.fullmatch(".*".join(map(re.escape, expected.split("…"))), line))
    numbers = re.compile(r"(?<![\w.])-?\d+\.\d+")
    pairs = zip(map(float, numbers.findall(line)), map(float, numbers.findall(expected)))
    return numbers.sub("", line) == numbers.sub("", expected) and all(abs(a - b) <= 0.05 * abs(b) for a, b in pairs)


def says(lines, expected):
    return len(lines) == len(expected) and all(map(is_like, lines, expected))
