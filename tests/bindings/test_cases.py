#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cases that all languages share (cases.json), in Python."""

import json
import math
import pathlib
import sys
from base64 import b64decode

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402


def same(got, expected):
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(same(g, e) for g, e in zip(got, expected))
        )
    return math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-7)


def look_up(value, names):
    if isinstance(value, list):
        return [look_up(v, names) for v in value]
    return names[value[1:]] if isinstance(value, str) and value.startswith('$') else value


def read_safetensors(base64):
    stream = Gio.MemoryInputStream.new_from_bytes(GLib.Bytes.new(b64decode(base64)))
    GTorch.safetensors_load(stream, None, None, None, None)


def run(case):
    names = {name: GTorch.tensor(data) for name, data in case['let'].items()}
    for name in case.get('grad', ()):
        names[name].requires_grad = True
    value = None
    for result, function, target, options in case['steps']:
        args = {key: look_up(v, names) for key, v in options.items()}
        if function == 'safetensors':
            read_safetensors(**args)
            continue
        method = getattr(GTorch if target is None else names[target], function)
        # functions without a Python wrapper take arguments by position only
        if function.endswith('_inplace') or function in ('get', 'set', 'set_requires_grad'):
            value = method(*args.values())
        else:
            sizes = [args.pop(key) for key in ('shape', 'dims', 'repeats') if key in args]
            if function == 'full':
                args['fill_value'] = args.pop('value')  # PyTorch's name
            value = method(*sizes, **args) if callable(method) else method
        names[result] = value
    return names[case['result']] if 'result' in case else value


def check(case):
    if 'error' not in case:
        got = run(case)
        if 'value' in case:
            assert got == case['value'], f'{got} instead of {case["value"]}'
            return
        assert got.dtype == getattr(GTorch.DType, case['dtype']), got.dtype
        assert same(got.tolist(), case['expect']), f'{got} instead of {case["expect"]}'
        return
    try:
        got = run(case)
        # reports errors that a GPU detects asynchronously
        GTorch.get_default_device().synchronize(None)
    except GLib.Error as error:
        codes = [getattr(GTorch.Error, code) for code in case['error'].split('|')]
        assert any(error.matches(GTorch.error_quark(), code) for code in codes), (
            f'{error.message}: code {error.code} instead of {case["error"]}'
        )
        for part in case['says']:
            assert any(p in error.message for p in part.split('|')), (
                f'{error.message!r} does not say {part!r}'
            )
    else:
        raise AssertionError(f'no error, but {got}')


for data in json.loads((HERE / 'cases.json').read_text('utf-8')):
    tap.add(data['name'], check, data)

if __name__ == '__main__':
    tap.main()
