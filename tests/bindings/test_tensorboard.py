#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of events, read by a reader of our own, and by TensorBoard's if it is installed."""

import glob
import os
import pathlib
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')

import on_device  # noqa: E402, F401
import tap  # noqa: E402

import gtorch as torch  # noqa: E402
from gtorch.utils.tensorboard import SummaryWriter  # noqa: E402


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = pathlib.Path(path).read_bytes()
    while data:
        (length,) = struct.unpack('<Q', data[:8])
        assert struct.unpack('<I', data[8:12])[0] == masked(data[:8])
        body = data[12 : 12 + length]
        assert struct.unpack('<I', data[12 + length : 16 + length])[0] == masked(body)
        yield body
        data = data[16 + length :]


def fields(message):
    """{field: [values]} of a message."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = message[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def values(folder):
    """[(step, value)] of all events in a folder."""
    found = []
    for path in glob.glob(os.path.join(folder, 'events.out.tfevents.*')):
        first, *rest = [fields(one) for one in records(path)]
        assert first[3] == [b'brain.Event:2'], first
        for event in rest:
            assert len(event[1][0]) == 8  # the time
            for value in fields(event[5][0])[1]:
                found.append((event.get(2, [None])[0], fields(value)))
    return found


def number(data):
    return struct.unpack('<f', data)[0]


@tap.case
def scalars_have_steps():
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            assert writer.get_logdir() == folder
            writer.add_scalar('loss', 0.5, 3)
            writer.add_scalar('loss', torch.tensor(0.25), 300, walltime=12.5)
            writer.add_scalar('alone', 1)
        found = values(folder)
    assert [(step, value[1], number(value[2][0])) for step, value in found] == [
        (3, [b'loss'], 0.5), (300, [b'loss'], 0.25), (None, [b'alone'], 1.0),
    ], found  # fmt: skip


@tap.case
def several_scalars_have_folders():
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_scalars('run/x', {'a': 1, 'b': 2}, 7)
        assert [number(v[2][0]) for _step, v in values(os.path.join(folder, 'run_x_a'))] == [1]
        assert [number(v[2][0]) for _step, v in values(os.path.join(folder, 'run_x_b'))] == [2]


@tap.case
def histograms_count():
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_histogram('h', torch.tensor([-1.0, 0.0, 2.0, 2.0]), 1)
            writer.add_histogram('h', torch.tensor([0.0, 1.0, 2.0, 3.0]), 2, bins=[0, 2, 4])
            writer.add_histogram('h', [0.0, 4.0, 4.0], 3, bins=2)
            writer.add_histogram('h', [1796043809.5, 1796043810.0], 4)  # between which float32 has no steps
        found = [fields(value[5][0]) for _step, value in values(folder)]
    doubles = [{k: struct.unpack(f'<{len(v[0]) // 8}d', v[0]) for k, v in one.items()} for one in found]
    assert doubles[0][1] == (-1,) and doubles[0][2] == (2,) and doubles[0][3] == (4,)
    assert doubles[0][4] == (3,) and doubles[0][5] == (9,)
    assert sum(doubles[0][7]) == 4 and doubles[0][7][0] == 0 and doubles[0][7][-1] == 2
    for lower, upper, count in zip(doubles[0][6], doubles[0][6][1:], doubles[0][7][1:]):
        assert sum(lower <= x < upper for x in (-1, 0, 2, 2)) == count
    assert doubles[1][6] == (0, 2, 4) and doubles[1][7] == (0, 2, 2), doubles[1]
    assert doubles[2][6] == (0, 2, 4) and doubles[2][7] == (0, 1, 2), doubles[2]
    assert doubles[3][1] == (1796043809.5,) and doubles[3][2] == (1796043810,), doubles[3]


def pixels(png):
    """The bytes of the lines of a PNG file without filters, and its width and height."""
    assert png[:8] == b'\x89PNG\r\n\x1a\n'
    at, body = 8, b''
    while at < len(png):
        (length,) = struct.unpack('>I', png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack('>I', png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + data)
        if kind == b'IHDR':
            width, height = struct.unpack('>II', data[:8])
        body += data if kind == b'IDAT' else b''
        at += 12 + length
    lines = zlib.decompress(body)
    size = len(lines) // height
    return [lines[i * size + 1 : (i + 1) * size] for i in range(height)], width, height


@tap.case
def images_are_pictures():
    image = torch.zeros(3, 2, 4)
    image[0, 0, 1] = 1.0
    image[2, 1, 3] = 0.5
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_image('i', image, 1)
            writer.add_image('i', image.permute(1, 2, 0), 2, dataformats='HWC')
            writer.add_images('i', torch.arange(9 * 4, dtype=torch.uint8).reshape(9, 1, 2, 2), 3)
        found = [fields(value[4][0]) for _step, value in values(folder)]
    lines, width, height = pixels(found[0][4][0])
    assert (width, height) == (4, 2) and found[0][1] == [2] and found[0][2] == [4] and found[0][3] == [3]
    assert lines[0] == bytes([0, 0, 0, 255, 0, 0, *[0] * 6]) and lines[1] == bytes([0] * 11 + [127])
    assert found[1][4] == found[0][4]
    lines, width, height = pixels(found[2][4][0])  # nine pictures in rows of eight
    assert (width, height) == (16, 4)
    assert lines[0][:4] == bytes([0, 1, 4, 5]) and lines[2][:4] == bytes([32, 33, 0, 0])


@tap.case
def text_is_text():
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_text('note', '**bold**', 5)
        ((step, value),) = values(folder)
    assert step == 5 and value[1] == [b'note/text_summary'] and fields(value[8][0])[8] == [b'**bold**']


@tap.case
def what_there_is_not_raises():
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        tap.raises(NotImplementedError, lambda: writer.add_video('v', None), 'videos')
        tap.raises(NotImplementedError, lambda: writer.add_hparams({}, {}), 'hyperparameters')
        tap.raises(NotImplementedError, lambda: writer.add_histogram('h', [1.0], bins='auto'), "bins='auto'")
        tap.raises(NotImplementedError, lambda: writer.add_scalar('s', 1, double_precision=True), 'float32')
        tap.raises(ValueError, lambda: writer.add_scalar('', 1), 'the tag is empty')
    tap.raises(ValueError, lambda: writer.add_scalar('s', 1), 'closed')


@tap.case
def tensorboard_reads_them():
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise tap.Skip('TensorBoard is not installed') from None
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step in range(3):
                writer.add_scalar('loss', 1 / (step + 1), step)
            writer.add_histogram('h', torch.arange(10.0), 1)
            writer.add_image('i', torch.rand(3, 4, 5), 1)
            writer.add_text('note', 'hello', 1)
        reader = EventAccumulator(folder)
        reader.Reload()
        assert [(e.step, round(e.value, 4)) for e in reader.Scalars('loss')] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
        (event,) = reader.Histograms('h')
        assert event.histogram_value.num == 10 and sum(event.histogram_value.bucket) == 10
        (event,) = reader.Images('i')
        assert (event.width, event.height) == (5, 4)
        (event,) = reader.Tensors('note/text_summary')
        assert event.tensor_proto.string_val[0] == b'hello'


tap.main()
