#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes data.json: what the cases of data_cases.py give with PyTorch."""

import json
import pathlib

import torch
import torch.utils.data

import data_cases

FILE = pathlib.Path(__file__).resolve().parent / 'data.json'


def main():
    rows = [f'{json.dumps(name)}: {json.dumps(data_cases.run(torch, name))}' for name in data_cases.CASES]
    FILE.write_text('{\n' + ',\n'.join(rows) + '\n}\n', 'utf-8')


if __name__ == '__main__':
    main()
