#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes computed.json: what the cases of computed_cases.py give with PyTorch."""

import json
import pathlib
import warnings

import torch
import torch.nn.utils.prune

import computed_cases

FILE = pathlib.Path(__file__).resolve().parent / 'computed.json'


def short(value):
    if isinstance(value, list):
        return [short(one) for one in value]
    return float(f'{value:.11g}') if isinstance(value, float) else value


def main():
    warnings.simplefilter('ignore')  # the former norms are deprecated
    rows = [f'{json.dumps(name)}: {json.dumps(short(run(torch)))}' for name, run in computed_cases.CASES.items()]
    FILE.write_text('{\n' + ',\n'.join(rows) + '\n}\n', 'utf-8')


if __name__ == '__main__':
    main()
