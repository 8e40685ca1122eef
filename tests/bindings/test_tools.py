#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tools and checks are told of programs in Python and JavaScript, on the driver of tests/fake-cuda."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402

GJS = os.environ.get('GJS')
IMPORT = "import GLib from 'gi://GLib';\nimport GTorch from 'gi://GTorch?version=1';\n"


def run(name, program, **environment):
    """What a program in a file of the name writes."""
    if name.endswith('.js') and GJS is None:
        raise tap.Skip('gjs is not there')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.write_text(program)
        command = [GJS, '-m'] if name.endswith('.js') else [sys.executable]
        done = subprocess.run([*command, path], env={**os.environ, **environment}, capture_output=True, text=True,
                              check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def events(name, program):
    """What a tool is told of a program."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / 'log'
        run(name, program, NVTX_INJECTION64_PATH=os.environ['NVTX_TOOL'], NVTX_TOOL_LOG=str(log))
        return log.read_text()


# --- ranges for NVIDIA's tools ---


@tap.case
def operations_of_python_are_ranges():
    assert events('ranges.py', """
import gtorch as torch
x = torch.ones(2, 3)
with torch.autograd.profiler.emit_nvtx(record_shapes=True):
    with torch.cuda.nvtx.range('part {}', 1):
        y = torch.mul(x, x)
    try:
        with torch.autograd.profiler.emit_nvtx():
            raise AssertionError('it was nested')
    except RuntimeError as error:
        assert 'cannot be nested' in str(error)
    y += 1
with torch.autograd.profiler.emit_nvtx(enabled=False):
    y.exp()
with torch.autograd.profiler.emit_nvtx():
    y.exp()
y.exp()
""") == ('push(part 1) push(mul, sizes = [[2, 3], [2, 3]]) pop() pop() push(add_, sizes = [[2, 3], [], []]) pop() '
         'push(exp) pop() ')


@tap.case
def operations_of_javascript_are_ranges():
    assert events('ranges.js', IMPORT + """
const x = GTorch.ones([2, 3]);
const y = GTorch.emit_nvtx(() => x.mul(x), {record_shapes: true});
y.exp();
try {
    GTorch.emit_nvtx(() => { throw new Error('ends it'); });
} catch {
}
y.exp();
GTorch.set_emit_nvtx(true);
y.exp();
GTorch.set_emit_nvtx(false);
y.exp();
""") == 'push(mul, sizes = [[2, 3], [2, 3]]) pop() push(exp) pop() '


# --- waits in main loops ---

SLOW = """
from gi.repository import GLib
import gtorch as torch
x = torch.rand(1 << 20, device='cuda')
loop = GLib.MainLoop()


def on_click():
    loop.quit()
    x.sort()[0].sum().item()


GLib.idle_add(on_click)
loop.run()
"""
CHECK = {'GTORCH_CHECK': 'blocking', 'GTORCH_FAKE_CUDA': 'devices=1,seed=1,borrow=1,memory=256'}


@tap.case
def waits_in_callbacks_of_python_name_the_line():
    text = run('slow.py', SLOW, **CHECK)
    assert 'blocking: a main context waited ' in text and ' ms for cuda:0 in gtorch_tensor_item_double' in text, text
    assert 'slow.py:10, in on_click: x.sort()[0].sum().item())' in text, text
    assert run('slow.py', SLOW, **{**CHECK, 'GTORCH_CHECK': ''}) == ''


@tap.case
def programs_of_python_without_a_loop_may_wait():
    assert run('plain.py', SLOW.partition('GLib.idle_add')[0] + 'on_click()', **CHECK) == ''


@tap.case
def waits_in_callbacks_of_javascript_name_the_line():
    text = run('slow.js', IMPORT + """
const x = GTorch.rand([1 << 20], {device: 'cuda'});
const loop = new GLib.MainLoop(null, false);
function onClick() {
    loop.quit();
    x.sort()[0].sum().item();
    return GLib.SOURCE_REMOVE;
}
GLib.idle_add(GLib.PRIORITY_DEFAULT, onClick);
loop.run();
""", **CHECK)
    assert 'blocking: a main context waited ' in text and ' ms for cuda:0 in gtorch_tensor_item_double' in text, text
    assert 'slow.js:8, in onClick)' in text, text


if __name__ == '__main__':
    tap.main()
