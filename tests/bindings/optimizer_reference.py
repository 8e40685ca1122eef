#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes optimizers.json: the parameters of optimizer_cases.py with PyTorch."""

import json
import pathlib

import torch

import optimizer_cases

FILE = pathlib.Path(__file__).resolve().parent / 'optimizers.json'


def main():
    found = []
    for name, options in optimizer_cases.CASES:
        rows = [[float(f'{value:.9g}') for value in row] for row in optimizer_cases.run(torch, name, options)]
        found.append(',\n  '.join(map(json.dumps, rows)))
    FILE.write_text('[\n [\n  ' + '\n ],\n [\n  '.join(found) + '\n ]\n]\n', 'utf-8')


if __name__ == '__main__':
    main()
