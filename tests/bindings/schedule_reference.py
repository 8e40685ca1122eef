#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes schedules.json: the learning rates and the momentum of schedule_cases.py with PyTorch."""

import json
import pathlib
import warnings

import torch

import schedule_cases

FILE = pathlib.Path(__file__).resolve().parent / 'schedules.json'


def main():
    warnings.simplefilter('ignore')  # steps of schedules without steps of the optimizer
    optim, found = torch.optim, []
    for name, function in schedule_cases.CASES.items():
        params = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
        rows = schedule_cases.run(function, optim, optim.lr_scheduler, optim.swa_utils, params)
        numbers = ',\n  '.join(json.dumps([float(f'{value:.13g}') for value in row]) for row in rows)
        found.append(f' {json.dumps(name)}: [\n  {numbers}\n ]')
    FILE.write_text('{\n' + ',\n'.join(found) + '\n}\n', 'utf-8')


if __name__ == '__main__':
    main()
