#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the functions and blocks of GTorch.cuda are given that makes no sense is refused by their own messages, not by
those of Python about what happened inside."""

import inspect
import math
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import gtorch as torch  # noqa: E402
from gi.repository import GLib  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

NONSENSE = [5, -1, 2**70, 1.5, math.nan, True, 'x', '', b'x', [], [None], {}, (), object(), torch.float32, int,
            torch.ones(2), lambda: 0]  # fmt: skip
ALLOWED = (TypeError, ValueError, RuntimeError, OverflowError, IndexError, NotImplementedError, OSError, GLib.Error)
# What Python and PyGObject say when a function went on with what it should have refused.
INSIDE = re.compile("has no attribute|is not iterable|not subscriptable|unsupported operand|object is not callable|"
                    'has no len|not supported between|argument self|vfunc|No module named')
# These wait, write files, change all that follows, or are classes whose arguments are those of others.
LEFT_OUT = {'init', '_dump_snapshot', '_set_allocator_settings', 'ipc_collect'}


def functions():
    for space in ('cuda', 'cuda.memory', 'cuda.nvtx', 'cuda.comm', 'cuda.random', 'cuda.amp', 'cpu', 'accelerator'):
        module = torch
        for part in space.split('.'):
            module = getattr(module, part, None)
        for name in sorted(vars(module) if module is not None else ()):
            value = getattr(module, name)
            own = getattr(value, '__module__', '') or ''
            if callable(value) and name not in LEFT_OUT and (not name.startswith('_') or name in ('_snapshot',)):
                if inspect.isclass(value) and not own.startswith('gi.'):
                    continue
                yield f'{space}.{name}', value


def attempt(name, function, arguments):
    """Returns what is wrong with the answer to the arguments."""
    try:
        found = function(*arguments)
        if hasattr(found, '__enter__') and not isinstance(found, (torch.Tensor, torch.Stream)):
            with found:
                pass
    except ALLOWED as error:
        text = str(error)
        if INSIDE.search(text):
            return f'{name}{arguments}: {type(error).__name__}: {text}'
    except Exception as error:
        return f'{name}{arguments}: {error!r}'
    return None


def check(name, function):
    before = torch.cuda.current_device()
    wrong = []
    for value in NONSENSE:
        wrong.append(attempt(name, function, (value,)))
        wrong.append(attempt(name, function, (None, value)))
        wrong.append(attempt(name, function, (torch.ones(2), value)))
        torch.cuda.set_device(before)
    wrong = [one for one in wrong if one]
    assert not wrong, '\n'.join(dict.fromkeys(wrong))


for function_name, one_function in functions():
    tap.add(f'{function_name.replace(".", "_")}_refuses_nonsense', check, function_name, one_function)


@tap.case
def streams_are_named():
    for call in (torch.cuda.stream, torch.cuda.set_stream, torch.cuda.StreamContext, torch.cpu.stream):
        raises(TypeError, lambda call=call: call(5), 'stream', 'Stream', 'int')
    raises(TypeError, lambda: torch.cuda.use_mem_pool(5), 'use_mem_pool()', 'pool')
    raises(TypeError, lambda: torch.cuda.graph(torch.cuda.CUDAGraph(), stream=5), 'graph()', 'stream', 'int')
    raises(TypeError, lambda: torch.cuda.Event().record(5), 'stream', 'int')
    raises(ValueError, lambda: torch.cuda.stream(torch.Stream('cpu')), 'GPU')


os.chdir(tempfile.mkdtemp(prefix='gtorch-'))
tap.main()
