#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every layer with the samples of its row, and with every argument of PyTorch's constructor."""

import copy
import json
import os
import pathlib
import pickle
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

nn = GTorch.nn
SIGNATURES = json.loads((HERE / 'layer-signatures.json').read_text('utf-8'))['layers']
TABLE = json.loads(pathlib.Path(os.environ['GTORCH_LAYERS']).read_text('utf-8'))
NAMES = {'nn': nn, 'nan': float('nan'), 'inf': float('inf'), 'tensor': lambda n: GTorch.ones(n)}


def samples(key='samples'):
    for name, row in TABLE.items():
        for sample in row[key]:
            yield name, sample


def made(name, sample):
    return eval(f'nn.{name}({sample["new"]})', NAMES)


def shape(text):
    return [int(n) for n in text.split(',') if n]


def waves(sizes):
    n = GTorch.ones(sizes).numel() if sizes else 1
    return GTorch.arange(1, n + 1, dtype=GTorch.float32).sin().reshape(sizes)


def integers(sizes, limit):
    n = GTorch.ones(sizes).numel()
    return GTorch.tensor([(5 * i + 2) % limit for i in range(n)]).reshape(sizes)


def run(layer, sample):
    limit = sample.get('integers', 0)
    sizes = shape(sample['shape'])
    if 'target' not in sample:
        return layer(integers(sizes, limit) if limit else waves(sizes) * 1)
    target = shape(sample['target'])
    return layer(waves(sizes), integers(target, limit) if limit else waves(target).abs())


def required(name):
    """Returns values for the arguments that have no default."""
    positional, named = TABLE[name]['samples'][0]['positional'], TABLE[name]['samples'][0]['named']
    keys = [arg[0] for arg in SIGNATURES[name]]
    values = {**dict(zip(keys, positional)), **named}
    return {arg[0]: values[arg[0]] for arg in SIGNATURES[name] if len(arg) == 1}


def plain(value):
    """Reduces (1, 1) to 1, and a default dtype or device to None."""
    if isinstance(value, tuple) and len(set(value)) == 1:
        return value[0]
    return value


@tap.case
def samples_print_as_in_pytorch():
    for name, sample in samples():
        assert repr(made(name, sample)) == sample['text'], (repr(made(name, sample)), sample['text'])


@tap.case
def samples_compute_and_carry_their_state():
    n = 0
    for name, sample in samples():
        one, other = made(name, sample), made(name, sample)
        run(one, sample)  # changes the running statistics
        other.load_state_dict(one.state_dict())
        one.eval(), other.eval()
        first, second = run(one, sample), run(other, sample)
        assert first.shape == second.shape and first.tolist() == second.tolist(), (name, sample)
        n += 1
    assert n > 45, n


@tap.case
def bad_arguments_raise_and_are_named():
    for name, sample in samples('refuse'):
        try:
            layer = made(name, sample)
        except (GLib.Error, TypeError, ValueError) as error:
            assert name in str(error), (name, sample['new'], error)
        else:
            raise AssertionError(f'{name}({sample["new"]}) gave {layer}')


@tap.case
def arguments_are_those_of_pytorch_in_its_order():
    assert list(SIGNATURES) == sorted(TABLE), set(SIGNATURES) ^ set(TABLE)
    for name, signature in SIGNATURES.items():
        assert [arg[0] for arg in signature] == [arg['name'] for arg in TABLE[name]['args']], name


@tap.case
def every_argument_may_be_given_by_name_and_by_position():
    n = 0
    for name, signature in SIGNATURES.items():
        cls, given = getattr(nn, name), required(name)
        everything = {arg[0]: given.get(arg[0], arg[-1]) for arg in signature}
        text = repr(cls(**given))
        for key, value in everything.items():
            assert repr(cls(**{**given, key: value})) == text, (name, key)
            n += 1
        assert repr(cls(*everything.values())) == text, name
        if not TABLE[name]['any']:
            for call in (lambda: cls(**given, no_such=1), lambda: cls(*everything.values(), 1)):
                try:
                    call()
                except TypeError:
                    continue
                raise AssertionError(name)
    assert n > 80, n


@tap.case
def arguments_have_the_defaults_of_pytorch():
    for name, signature in SIGNATURES.items():
        layer = getattr(nn, name)(**required(name))
        refused = {arg['name']: arg for arg in TABLE[name]['args'] if arg['kind'] == 'refused'}
        for key, default in (arg for arg in signature if len(arg) == 2):
            if key in ('device', 'dtype', 'bias'):
                continue
            if key in refused:
                assert refused[key]['default'] == default, (name, key)
            elif key == 'stride' and default is None:
                assert layer.stride == layer.kernel_size
            else:
                assert plain(getattr(layer, key)) == default, (name, key, getattr(layer, key))
        if 'bias' in dict((arg[0], 1) for arg in signature):
            assert layer.bias is not None and getattr(nn, name)(**required(name), bias=False).bias is None


@tap.case
def copies_print_like_the_original():
    n = 0
    for name, sample in samples():
        layer = made(name, sample)
        copies = [copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
        assert [repr(one) for one in copies] == [sample['text']] * 3, (sample['text'], copies)
        n += len(copies)
    assert n > 120, n


@tap.case
def sizes_are_read_as_they_were_given():
    n = 0
    for name, sample in samples():
        layer = made(name, sample)
        given = dict(zip((arg['name'] for arg in TABLE[name]['args']), sample['positional']))
        for arg in TABLE[name]['args']:
            if arg['kind'] != 'size' or 'rule' in arg:
                continue
            value = {**given, **sample['named']}.get(arg['name'], arg.get('default'))
            value = tuple(value) if isinstance(value, list) else value
            got = getattr(layer, arg['name'])
            # where PyTorch expands a number to a tuple at once
            spread = (value,) * max(arg.get('length', 0), 1)
            assert value is None or got == value or got == spread and 'Pool' not in name, (name, got, value)
            n += value is not None
    assert n > 20, n
    assert nn.MaxPool2d(2).stride == 2 and nn.MaxPool2d((2, 3)).stride == (2, 3)


@tap.case
def unsupported_arguments_raise_with_their_names():
    n = 0
    for name, row in TABLE.items():
        for arg in (arg for arg in row['args'] if arg['kind'] == 'refused'):
            value = not arg['default'] if isinstance(arg['default'], bool) else 3.0
            try:
                getattr(nn, name)(**required(name), **{arg['name']: value})
            except TypeError as error:
                assert arg['name'] in str(error) and arg['why'] in str(error), error
                n += 1
            else:
                raise AssertionError(f'{name}: {arg["name"]}')
    assert n > 10, n


@tap.case
def parameters_are_created_with_the_given_device_and_dtype():
    n = 0
    for name, signature in SIGNATURES.items():
        if not any(arg[0] == 'dtype' for arg in signature):
            continue
        layer = getattr(nn, name)(**required(name), device='cpu', dtype=GTorch.float64)
        assert {p.dtype for p in layer.parameters()} == {GTorch.float64}
        assert {p.device.type for p in layer.parameters()} == {'cpu'}
        n += 1
    assert n == 6, n


@tap.case
def the_same_seed_gives_the_same_numbers_in_every_dtype():
    for name in ('Linear', 'Conv2d', 'Embedding'):
        GTorch.manual_seed(3)
        one = getattr(nn, name)(**required(name))
        GTorch.manual_seed(3)
        other = getattr(nn, name)(**required(name), dtype=GTorch.float64)
        assert one.weight.double().tolist() == other.weight.tolist()


@tap.case
def strings_and_none_are_valid_settings():
    conv = nn.Conv2d(1, 1, 3, padding='same', padding_mode='circular')
    assert conv.padding == 'same' and conv.padding_mode == 'circular' and conv.kernel_size == (3, 3)
    assert conv(GTorch.ones(1, 5, 7)).shape == (1, 5, 7)
    conv.padding_mode = 'zeros'
    assert conv.padding_mode == 'zeros'
    norm = nn.BatchNorm1d(2, momentum=None)
    assert norm.momentum is None
    norm(GTorch.tensor([[1.0, 2], [3, 4]]))
    norm(GTorch.tensor([[5.0, 6], [7, 8]]))
    assert norm.running_mean.tolist() == [4, 5]
    norm.momentum = 0.5
    assert norm.momentum == 0.5
    table = nn.Embedding(3, 2)
    assert table.padding_idx is None
    table.padding_idx = 1
    assert table.padding_idx == 1
    soft = nn.Softmax()
    assert soft.dim is None and abs(soft(waves([2, 3])).sum(1)[0].item() - 1) < 1e-6
    assert nn.LayerNorm([3]).normalized_shape == (3,)


@tap.case
def names_of_places_are_free_for_derived_classes():
    class Mine(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.device, self.dtype = 'somewhere', 'something'

    assert Mine().device == 'somewhere' and Mine().dtype == 'something'
    assert not hasattr(nn.Linear(2, 2), 'device')


if __name__ == '__main__':
    tap.main()
