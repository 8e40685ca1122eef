#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes averages.json: the states of averages_cases.py with PyTorch."""

import json
import pathlib

import torch

import averages_cases

FILE = pathlib.Path(__file__).resolve().parent / 'averages.json'


def main():
    rows = []
    for case in averages_cases.CASES:
        for state in averages_cases.run(torch, *case):
            rows.append(json.dumps({key: [float(f'{one:.9g}') for one in value] for key, value in state.items()}))
    FILE.write_text('[\n' + ',\n'.join(rows) + '\n]\n', 'utf-8')


if __name__ == '__main__':
    main()
