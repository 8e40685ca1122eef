#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Tests generator/ops: its output for small rows against golden files, and its messages for
mistakes.

After an intended change of the output: `test-op-rows.py --update`, and read the diff.
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GENERATOR = HERE.parent.parent / 'generator'
GOLDEN = HERE / 'golden'
FILES = ['gtorch-ops-private.h', 'gtorch-tensor-ops.h', 'gtorch-tensor-ops.c', 'gtorch-ops.c',
         'gtorch-op-grads.c', 'gtorch-op-table.c', 'gtorch-backends.c', 'gtorch-loops-golden.c',
         'gtorch-op-samples.c']

MISTAKES = [
    ('[a]\nargs = "Tensor self"\nfamily = "pointwise"\ndoc = "x"\n', 'wrong.toml:a.forward: is missing'),
    ('[a]\nargs = "Tensor self"\nfamily = "pointwise"\ndtypes = "float"\nforward = "round (self)"\ndoc = "x"\n',
     'wrong.toml:a.forward: no such function of all types: round'),
    ('[a]\nargs = "Tensor self"\nfamily = "reduce"\ndtypes = "float"\ninit = "0"\nstep = "acc + x"\n'
     'finish = "cbrtf (acc)"\ndoc = "x"\n', 'wrong.toml:a.finish: no such function of all types: cbrtf'),
    ('[a]\nargs = "Tensor self"\nfamily = "point"\ndoc = "x"\n', 'wrong.toml:a.family: must be one of'),
    ('[a]\nargs = "Tenser self"\nfamily = "view"\ndoc = "x"\n', 'no such kind of argument: Tenser'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\ncolour = 1\n',
     'wrong.toml:a.colour: no such key (line 5)'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\ngrad = "nothing"\n',
     'wrong.toml:a.grad: no such form: nothing'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\ngrad.self = "b(grad)"\n',
     'wrong.toml:a.grad.self: no such operation: b (line 5)'),
    ('[b]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\n[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\n'
     '[a.grad]\nself = "d(grad)"\n', 'wrong.toml:a.grad.self: no such operation: d (line 10)'),
    ('# forward\n\n[a]\nargs = "Tensor self"\nfamily = "pointwise"\ndoc = "x"\n',
     'wrong.toml:a.forward: is missing (line 3)'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\ngrad.self = "a(gr"\n', 'wrong.toml:a.grad.self:'),
    ('[a]\nargs = "Tensor self, int n"\nfamily = "view"\ndoc = "x"\ngrad.self = "a(grad)"\n', 'n is missing'),
    ('[a]\nargs = "Tensor self, int n"\nfamily = "view"\ndoc = "x"\nsample = [{ shapes = ["2"] }]\n',
     'wrong.toml:a.sample: n has no value'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\ndtypes = "flota"\n', 'wrong.toml:a.dtypes: must be'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\nautocast = "low"\n',
     'wrong.toml:a.autocast: must be one of'),
    ('[a]\nargs = "Tensor self"\nfamily = "view"\ndoc = "x"\nautocast = { gpu = "lower" }\n',
     'wrong.toml:a.autocast: no such device: gpu'),
    ('[a]\nargs = "Tensor self"\nfamily = "structured"\ndoc = "x"\nautocast = "dtype"\n',
     'wrong.toml:a.autocast: only an operation with an argument of kind DType'),
    ('[a]\nargs = "int n"\nfamily = "structured"\ndoc = "x"\nautocast = "lower"\n',
     'wrong.toml:a.autocast: there are no tensors'),
    ('[a]\nargs = "Tensor self, double low"\nfamily = "pointwise"\nforward = "self"\npromote = "bounds"\ndoc = "x"\n',
     'wrong.toml:a.promote: bounds are arguments of kind number'),
    ('[a]\nargs = "Tensor self, Tensor other, number n"\nfamily = "structured"\nscalar = "other"\ndoc = "x"\n',
     'wrong.toml:a.args: arguments of kind number are for'),
    ('[a]\nargs = "int n"\nfamily = "structured"\nflags = ["unread"]\ndoc = "x"\n',
     'wrong.toml:a.flags: there is no tensor to leave unread (line 4)'),
    ('[a]\nargs = "Tensor self, double n"\nfamily = "structured"\nany_int = ["n"]\ndoc = "x"\n',
     'wrong.toml:a.any_int: n is not an argument of kind int (line 4)'),
    ('[a]\nargs = "Tensor self, int n"\nfamily = "view"\ncheck.n = "[0, 1]"\ndoc = "x"\n',
     'wrong.toml:a.check.n: is not an argument of kind double (line 4)'),
    ('[a]\nargs = "Tensor self, double p"\nfamily = "view"\ncheck.p = "0 .. 1"\ndoc = "x"\n',
     'wrong.toml:a.check.p: no such range: 0 .. 1 (line 4)'),
    ('[a]\nargs = "Tensor self, double p"\nfamily = "view"\ncheck.p = "[0, 1)"\ndoc = "x"\n',
     'wrong.toml:a.check.p: [0, 1): only inf can be excluded above (line 4)'),
    ('[a\n', 'wrong.toml: '),
]


class Tap:
    """Counts and prints the results."""

    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, passed, text=''):
        self.count += 1
        self.failed += not passed
        print(f'{"ok" if passed else "not ok"} {self.count} - {name}')
        for line in text.splitlines() if not passed else []:
            print(f'# {line}')


def generator(*args):
    command = [sys.executable, GENERATOR, 'ops', *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        result = generator('generate', out, HERE / 'golden.toml')
        tap.check('rows_are_accepted', result.returncode == 0, result.stderr)
        if '--update' in sys.argv:
            GOLDEN.mkdir(exist_ok=True)
            for name in FILES:
                (GOLDEN / f'{name}.txt').write_text((out / name).read_text())
        for name in FILES:
            tap.check(f'{name}_is_as_kept', (out / name).read_text() == (GOLDEN / f'{name}.txt').read_text())
        before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
        generator('generate', out, HERE / 'golden.toml')
        after = {path: path.stat().st_mtime_ns for path in out.iterdir()}
        tap.check('unchanged_files_are_not_written', before == after)
        for number, (text, message) in enumerate(MISTAKES):
            wrong = out / 'wrong.toml'
            wrong.write_text(text)
            result = generator('generate', out, wrong)
            tap.check(f'mistake_{number}_is_named', result.returncode == 1 and message in result.stderr,
                      f'{message!r} is not in {result.stderr!r}')
    print(f'1..{tap.count}')
    return 1 if tap.failed else 0


if __name__ == '__main__':
    sys.exit(main())
