#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Tests the generator of layers: its output for small rows against golden files, and its messages
for mistakes.

After an intended change of the output, and for a new layer, whose line in the manual's table it
writes: `test-layer-generator.py --update`, and read the diff.
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / 'style'))

import tap  # noqa: E402

GENERATOR = ROOT / 'generator'
GOLDEN = HERE / 'golden'
PAGE = ROOT / 'docs' / 'modules.md'
OPS = sorted((ROOT / 'gtorch' / 'ops').glob('*.toml'))
# used by the rows here
SOME_OPS = [path for path in OPS if path.stem in ('activation', 'loss', 'nn')]
FILES = ['gtorch-layers.h', 'gtorch-layers-golden-layers.c', 'gtorch-layer-samples.c', 'table.py', 'table.js']
GIVEN = 'sample = [{ new = "1", shape = "2", text = "" }]\n'
SAMPLE = 'sample = [{ shape = "2", text = "" }]\n'

# The lines of a row after its name, and the expected message.
MISTAKES = [
    ('op = "relu"\n', 'wrong.toml:A.doc: is missing'),
    ('doc = "x"\n' + SAMPLE, 'wrong.toml:A.op: is missing'),
    ('op = "rleu"\ndoc = "x"\n' + SAMPLE, 'wrong.toml:A.op: no such operation: rleu'),
    ('op = "relu"\ndoc = "x"\ncolour = 1\n' + SAMPLE, 'wrong.toml:A.colour: no such key'),
    ('op = "relu"\ndoc = "x"\n', 'wrong.toml:A.sample: is missing'),
    ('op = "relu"\ndoc = "x"\nprops.n = "a number"\n' + SAMPLE, 'wrong.toml:A.props.n: is neither'),
    ('op = "softmax"\ndoc = "x"\nprops.dtype = "a dtype"\n' + SAMPLE,
     'wrong.toml:A.props.dtype: no property can be of the kind DType'),
    ('op = "relu"\ndoc = "x"\nprops.n = "enum:Mode: a mode"\n' + SAMPLE,
     'wrong.toml:A.props.n: an enumeration needs a default'),
    ('op = "relu"\ndoc = "x"\nparams.w = ["n", "ones"]\n' + SAMPLE, 'wrong.toml:A.params.w: is a list'),
    ('op = "relu"\ndoc = "x"\nparams.w = ["n", "twos", "W."]\n' + SAMPLE, 'wrong.toml:A.params.w: begins as one of'),
    ('op = "relu"\ndoc = "x"\nrepr = "n"\n' + SAMPLE, 'wrong.toml:A.repr: no such argument: n'),
    ('op = "relu"\ndoc = "x"\ncheck.n = [">= 1"]\n' + SAMPLE, 'wrong.toml:A.check.n: no such argument'),
    ('op = "relu"\ndoc = "x"\nprops.n = "int: n"\ncheck.n = ["<> 1"]\n' + SAMPLE,
     'wrong.toml:A.check.n: no such rule: <> 1'),
    ('op = "relu"\ndoc = "x"\nargs.n = "1"\n' + SAMPLE, 'wrong.toml:A.args.n: no such argument'),
    ('op = "softmax"\ndoc = "x"\n' + SAMPLE, 'wrong.toml:A.op: nothing is known of the argument dim'),
    ('op = "softplus"\ndoc = "x"\nprops.inplace = "bool = false: in place"\n' + SAMPLE,
     'wrong.toml:A.props.inplace: softplus has no form in place'),
    ('op = "relu"\ndoc = "x"\nsample = [{ new = "1", shape = "2", text = "" }]\n',
     'wrong.toml:A.sample: there are no such arguments'),
    ('op = "relu"\ndoc = "x"\nsample = [{ new = "(", shape = "2", text = "" }]\n',
     'wrong.toml:A.sample: cannot read the arguments'),
    ('op = "prelu"\ndoc = "x"\n' + SAMPLE, 'wrong.toml:A.inputs: is missing: the operation takes the tensor weight'),
    ('op = "relu"\ndoc = "x"\ninputs.b = "b"\n' + SAMPLE, 'wrong.toml:A.inputs.b: no such argument'),
    ('forward = "f ()"\ndoc = "x"\ninputs.b = "b"\n' + SAMPLE, 'wrong.toml:A.inputs: names the tensors of a layer'),
    ('forward = "f ()"\ndoc = "x"\ninputs.b = "b"\ninputs.c = "c"\nsample = [{ shapes = ["2"], text = "" }]\n',
     'wrong.toml:A.sample: shapes must have 2 texts'),
    ('op = "relu"\ndoc = "x"\nsample = [{ shape = "2 negative", text = "" }]\n',
     'wrong.toml:A.sample: cannot read the input'),
    ('op = "relu"\ndoc = "x"\nlazy.n = [0, 1, 2]\nprops.n = "int = 1: n"\n' + SAMPLE,
     'wrong.toml:A.lazy: names the first argument, a number without a default: n'),
    ('op = "relu"\ndoc = "x"\nlazy.n = [0, 1]\nprops.n = "int: n"\n' + GIVEN,
     'wrong.toml:A.lazy.n: is a dimension of the input'),
    ('op = "relu"\ndoc = "x"\nlazy.n = [0, 1, 2]\nprops.n = "int: n"\n' + GIVEN.replace('1', 'n=1'),
     'wrong.toml:A.sample: gives the first argument of a layer with a lazy form by its position'),
    ('op = "relu"\ndoc = "x"\nlazy.n = [0, 1, 2]\nprops.n = "int: n"\n' + GIVEN,
     'wrong.toml:A.lazy.n: no shape of a tensor tells it'),
    ('like = "B"\n', 'wrong.toml:A.like: no such row: B'),
    ('doc = \n', 'wrong.toml: '),
]


def layers(*args):
    return subprocess.run(
        [sys.executable, GENERATOR, 'layers', *map(str, args)], capture_output=True, text=True, check=False
    )


def generate(folder, rows):
    return layers('generate', folder, *SOME_OPS, '--', rows)


def generated():
    """Returns the folder with the output for the golden rows."""
    result = generate(OUT, HERE / 'golden-layers.toml')
    assert result.returncode == 0, result.stderr
    for language, name in (('python', 'table.py'), ('gjs', 'table.js')):
        result = layers(language, OUT / 'gtorch-layers.json', OUT / name)
        assert result.returncode == 0, result.stderr
    return OUT


@tap.case
def rows_are_accepted():
    generated()
    if '--update' in sys.argv:
        GOLDEN.mkdir(exist_ok=True)
        for name in FILES:
            (GOLDEN / f'{name}.txt').write_text((OUT / name).read_text('utf-8'), 'utf-8')


@tap.case
def output_is_as_kept():
    for name in FILES:
        assert (OUT / name).read_text('utf-8') == (GOLDEN / f'{name}.txt').read_text('utf-8'), name


@tap.case
def unchanged_files_are_not_written():
    before = {path: path.stat().st_mtime_ns for path in OUT.iterdir()}
    generated()
    assert before == {path: path.stat().st_mtime_ns for path in OUT.iterdir()}


@tap.case
def the_manual_has_the_table_of_layers():
    with tempfile.TemporaryDirectory() as folder:
        rows = sorted((ROOT / 'gtorch' / 'nn' / 'layers').glob('*.toml'))
        assert layers('generate', folder, *OPS, '--', *rows).returncode == 0
        table = pathlib.Path(folder) / 'manual.md'
        assert layers('manual', f'{folder}/gtorch-layers.json', table).returncode == 0
        text = table.read_text('utf-8')
    page = PAGE.read_text('utf-8')
    old = page[page.index('| layer | |') :].partition('\n\n')[0] + '\n'
    if '--update' in sys.argv:
        PAGE.write_text(page.replace(old, text), 'utf-8')
    else:
        assert old == text, 'docs/modules.md is to be updated'


@tap.case
def mistakes_are_named():
    wrong = OUT / 'wrong.toml'
    for text, message in MISTAKES:
        wrong.write_text(f'[A]\n{text}', 'utf-8')
        result = generate(OUT, wrong)
        assert result.returncode == 1 and message in result.stderr, f'{message!r} is not in {result.stderr!r}'


with tempfile.TemporaryDirectory() as folder:
    OUT = pathlib.Path(folder)
    tap.main()
