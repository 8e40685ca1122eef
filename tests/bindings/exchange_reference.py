#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes exchange.json: state dicts that PyTorch has made of optimizers and schedules after some steps, and what
further steps give there. Run on a machine with PyTorch."""

import json
import pathlib
from collections import Counter

import torch

import exchange_cases as cases


def plain(value):
    """A value of a state dict for JSON; what JSON does not tell apart gets a name."""
    if isinstance(value, torch.Tensor):
        return {'tensor': value.tolist(), 'dtype': str(value.dtype).removeprefix('torch.')}
    if isinstance(value, Counter):
        return {'counter': [[key, n] for key, n in value.items()]}
    if isinstance(value, tuple):
        return {'tuple': [plain(one) for one in value]}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {'dict': [[key, plain(one)] for key, one in value.items()]}
    return value


def main():
    torch.set_num_threads(1)
    found = {'torch': torch.__version__, 'optimizers': [], 'schedules': []}
    for name, settings, other in cases.OPTIMIZERS:
        optimizer, params = cases.make_optimizer(torch, name, settings, other)
        cases.advance(torch, optimizer, params, 0, 3)
        state = plain(optimizer.state_dict())
        begun = [param.detach().tolist() for param in params]
        cases.advance(torch, optimizer, params, 3, 6)
        after = [param.detach().tolist() for param in params]
        found['optimizers'].append({'name': name, 'state': state, 'begun': begun, 'after': after})
    for name, function in cases.schedules(torch.optim).items():
        optimizer, params = cases.make_optimizer(torch, 'SGD', {'momentum': 0.5}, {'momentum': 0.75})
        schedule = function(optimizer)
        cases.follow(schedule, optimizer, 4)
        state = [plain(optimizer.state_dict()), plain(schedule.state_dict())]
        after = cases.follow(schedule, optimizer, 4)
        found['schedules'].append({'name': name, 'state': state, 'after': after})
    text = json.dumps(found, indent=None, separators=(',', ':')).replace('{"name"', '\n{"name"')
    (pathlib.Path(__file__).parent / 'exchange.json').write_text(text + '\n', 'utf-8')


main()
