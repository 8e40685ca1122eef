#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Trains a model of examples/models with GTorch or PyTorch, and writes the loss of every step as JSON.

    losses.py PACKAGE MODEL FOLDER [--device D] [--steps N] [--small] [--disturb]

The file FOLDER/MODEL.pt has the initial weights and the batches; GTorch, which must run first, writes it.
With --disturb each weight is multiplied by one plus at most a hundred-thousandth, and the name of the result has
“-disturbed”: that tells how far apart runs end that differ by no more than rounding.
"""

import argparse
import json
import pathlib

from sides import MODELS, load_example, open_package


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('package', choices=['gtorch', 'torch'])
    parser.add_argument('model', choices=list(MODELS))
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--small', action='store_true')
    parser.add_argument('--disturb', action='store_true')
    args = parser.parse_args()

    torch = open_package(args.package)
    device = torch.device(args.device)
    kind = MODELS[args.model]
    side = kind(torch, load_example(kind.file), args.small)
    torch.manual_seed(1)
    model = side.make_model().to('cpu')
    file = args.folder / f'{args.model}.pt'
    if args.package == 'gtorch':
        batches = {name: part.contiguous() for name, part in side.draw_batches(args.steps).items()}
        state = {f'model.{name}': tensor.detach() for name, tensor in model.state_dict().items()}
        torch.save({**state, **{f'batch.{name}': part for name, part in batches.items()}}, str(file))
    else:
        given = torch.load(str(file), map_location='cpu', weights_only=True)
        batches = {name.removeprefix('batch.'): part for name, part in given.items() if name.startswith('batch.')}
        model.load_state_dict(
            {name.removeprefix('model.'): part for name, part in given.items() if name.startswith('model.')}
        )
    if args.disturb:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + 1e-5 * (2 * torch.rand(parameter.shape) - 1))
    step = side.start(model.to(device), device)
    losses = []
    for i in range(args.steps):
        losses.append(step({name: part[i] for name, part in batches.items()}).item())
    name = args.package + ('-disturbed' if args.disturb else '')
    (args.folder / f'{args.model}-{name}.json').write_text(json.dumps(losses))


if __name__ == '__main__':
    main()
