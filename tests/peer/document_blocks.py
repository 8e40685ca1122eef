# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cuts the programs out of texts: pages that were saved as plain text, with the code between the paragraphs."""

import ast
import re
import textwrap
import types
import warnings

HEADER = re.compile(r'(async |@)?(with|for|while|if|elif|else|try|except|finally|class|def)\b.*:(\s*#.*)?$')
SHELL = re.compile(r'(export [A-Z_]+=|pip3? install|python3? -m |\.?[\w./]+\.sh\b)')
CXX = re.compile(r'\w+::\w+.*;$')
QUOTES = str.maketrans({'“': '"', '”': '"', '‘': "'", '’': "'", '…': '...', '\u00a0': ' ', '\u200b': None})
WORDS = {'use grads': 'use_grads()'}  # what a text asks the reader to write in this place
GLUED = (
    # buttons beside the code, and lines whose ends were lost
    (re.compile(r'^(\s*)pythonCopyEdit', re.M), r'\1'),
    (re.compile(r'(#[^\n]*?[a-z0-9])(def \w+\(self)'), r'\1\n\2'),
    (re.compile(r'^(\s*return \w)(?=[A-Z][a-z]+[’\'])', re.M), r'\1\n'),
    (re.compile(r'^(\s*)(\w+) =\s*$', re.M), r'\1\2 = \2'),
)
WRONG = re.compile(r'\b(unsafe|incorrect|no longer safe)\b', re.I)
SECTION = re.compile(r'(\s*)#\s*(safe|unsafe|correct|incorrect)\b', re.I)


def _parse(text):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about words that look like numbers
        return ast.parse(text).body


def _is_prose(node):
    """Tells whether a statement that can be parsed may as well be words of a text, as `Overview` or `Or, else`."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Call, ast.Await))
    return isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) > 3)


def _depth(line):
    """How many brackets a line opens more than it closes."""
    text = re.sub(r'"[^"]*"|\'[^\']*\'|#.*', '', line)
    return sum(text.count(c) for c in '([{') - sum(text.count(c) for c in ')]}')


def kind_of(line):
    """What a line is: 'python', 'comment', 'shell', 'c++', 'blank' or 'text'."""
    text = line.strip().translate(QUOTES)
    if not text:
        return 'blank'
    if text.startswith('#'):
        return 'comment'
    if SHELL.match(text):
        return 'shell'
    if CXX.match(text):
        return 'c++'
    if text in WORDS or HEADER.match(text):
        return 'python'
    if text.startswith('tensor(') or re.match(r'[\[(]', text):  # what a program prints
        return 'text'
    closed = text + ')' * max(_depth(text), 0)
    if _depth(text) > 0 and re.match(r'(with )?[\w.]+( = [\w.]+)?\(', text) and closed.count('"') % 2 == 0:
        return 'python'  # goes on in the next line
    try:
        found = _parse(re.sub(r'^return\b', 'raise', text))
    except SyntaxError:
        return 'text'
    return 'text' if not found or _is_prose(found[0]) else 'python'


def _groups(lines):
    """Yields (kind, first, last) for each run of lines of code, with blank lines and comments in it."""
    kind, first, last, depth = None, 0, 0, 0
    for i, line in enumerate(lines):
        own = kind_of(line)
        if depth > 0:
            own = kind
        if own in ('python', 'shell', 'c++', 'comment'):
            if kind is None or (own != kind and 'comment' not in (own, kind)):
                if kind is not None:
                    yield kind, first, last
                kind, first = own, i
            elif kind == 'comment':
                kind = own
            last = i
            depth = max(depth + _depth(line.translate(QUOTES)), 0) if own == 'python' else 0
        elif own == 'text' and kind is not None and not _is_output(line):
            yield kind, first, last
            kind, depth = None, 0
    if kind is not None:
        yield kind, first, last


def _is_output(line):
    """Tells whether a line in a program is what it prints, which belongs to no paragraph."""
    return bool(re.match(r'\s+(tensor\(|\[)', line))


def _indent_again(code):
    """Gives a program whose lines have lost their blanks those that Python needs. Functions go on to the next one, and
    the last branch of an `if` has one statement."""
    found, stack = [], []
    for line in code.splitlines():
        text = line.strip()
        if re.match(r'(def|class)\b', text):
            stack = stack[:1] if text.startswith('def') and stack[:1] == ['class'] else []
        elif re.match(r'(else|elif|except|finally)\b', text) and stack:
            stack.pop()
        found.append('    ' * len(stack) + text)
        if HEADER.match(text):
            stack.append(text.split()[0].rstrip(':'))
        elif stack[-1:] == ['else'] and not text.startswith('#'):
            stack.pop()
    return '\n'.join(found)


def _with_header(code):
    """Puts back the `with` that a block of a stream has lost: an indented line behind one that opens no block."""
    lines = code.splitlines()
    for i in range(1, len(lines)):
        before = next((one for one in reversed(lines[:i]) if one.strip()), '')
        deeper = len(lines[i]) - len(lines[i].lstrip()) > len(before) - len(before.lstrip())
        if lines[i].strip() and deeper and not HEADER.match(before.strip()) and _depth('\n'.join(lines[:i])) == 0:
            stream = re.search(r'^(\w+) = torch\.cuda\.Stream\(', code, re.M)
            if stream:
                lines.insert(i, f'with torch.cuda.stream({stream[1]}):')
                return '\n'.join(lines)
    return code


def _parses(code):
    try:
        _parse(code)
    except SyntaxError:
        return False
    return True


def mend(lines):
    """The program of these lines, as Python reads it, or as it stands if it cannot be read."""
    kept = [line for line in lines if not _is_output(line)]
    code = textwrap.dedent('\n'.join(kept).translate(QUOTES))
    code = re.sub(r'^(\s*)(\S.*\S)$', lambda m: m[1] + WORDS.get(m[2], m[2]), code, flags=re.M)
    code = re.sub(r'= \.\.\.', '= part()', code)
    for attempt in (code, _with_header(code), _indent_again(code)):
        if _parses(attempt):
            return attempt
    return code


def _sections(code):
    """Cuts a program in which comments say which part is right and which is not into these parts, each with the lines
    that open the block around it."""
    lines = code.splitlines()
    marks = [i for i, line in enumerate(lines) if SECTION.match(line)]
    if len(marks) < 2 or len({SECTION.match(lines[i])[1] for i in marks}) > 1:
        return [code]
    head = lines[: marks[0]]
    ends = [*marks[1:], len(lines)]
    return ['\n'.join([*head, *lines[first:last]]) for first, last in zip(marks, ends)]


def read(path):
    """Yields the blocks of a text: objects with `line`, `kind`, `code` and `wrong`, which tells whether the text says
    that the code is wrong."""
    text = path.read_text('utf-8')
    for pattern, instead in GLUED:
        text = pattern.sub(instead, text)
    lines = text.splitlines()
    for kind, first, last in _groups(lines):
        if kind == 'comment':
            continue
        code = mend(lines[first : last + 1]) if kind == 'python' else '\n'.join(lines[first : last + 1])
        around = [line for line in lines[:first] if line.strip()][-1:]
        around += [line for line in lines[last + 1 :] if line][:1]
        before = bool(around) and re.search(r'following code is incorrect', around[0])
        after = len(around) > 1 and re.match(r'was safe as long as', around[1])
        for part in _sections(code) if kind == 'python' else [code]:
            wrong = bool(before or after or any(WRONG.search(c) for c in re.findall(r'#.*', part)))
            yield types.SimpleNamespace(line=first + 1, kind=kind, code=part, wrong=wrong)
