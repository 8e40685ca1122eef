#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Models whose state PyTorch has saved compute, and learn, what they do there."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GTorch  # noqa: E402

import model_cases  # noqa: E402
import on_device  # noqa: E402, F401
import tap  # noqa: E402


def load(name):
    file = Gio.File.new_for_path(str(model_cases.FOLDER / f'{name}.safetensors'))
    return GTorch.safetensors_load_file(file, False, None)[0]


def compare(what, found, wanted):
    found, wanted = found.detach().cpu(), wanted.cpu()
    assert list(found.shape) == list(wanted.shape) and found.dtype == wanted.dtype, (what, found, wanted)
    error = (found.double() - wanted.double()).abs().max().item()
    assert error <= 1e-9 * (1 + wanted.double().abs().max().item()), (what, error)


def check(name, make):
    model, *rest = make(GTorch)
    model.double().train()
    state = load(name)
    assert set(model.state_dict()) == set(state), name
    assert not any(model.load_state_dict(state)), name
    output, loss = model_cases.train(model, *rest)
    expected = load(f'{name}-step')
    compare('output', output, expected.pop('output'))
    compare('loss', loss, expected.pop('loss'))
    after = model.state_dict()
    assert {f'after.{key}' for key in after} == set(expected), name
    for key, value in after.items():
        compare(key, value, expected[f'after.{key}'])


def check_step(name, make, step):
    model, *rest = make(GTorch)
    model.double().train()
    model.load_state_dict(load(name))
    model_cases.train(model, *rest[:-1], lambda p: model_cases.STEPS[step](GTorch, p))
    expected = json.loads((model_cases.FOLDER / 'steps.json').read_text('utf-8'))[name][step]
    found = model_cases.sums(GTorch, model.state_dict())
    assert found.keys() == expected.keys()
    for key, values in found.items():
        for one, wanted in zip(values, expected[key]):
            assert abs(one - wanted) <= 1e-9 * (1 + expected[key][1]), (key, one, wanted)


for name, make in model_cases.MODELS.items():
    tap.add(name, check, name, make)
    for step in model_cases.STEPS:
        tap.add(f'{name}_with_{step}', check_step, name, make, step)

if __name__ == '__main__':
    tap.main()
