# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Images with the names of torchvision.io and torchvision.datasets: GTorch.vision."""

import os

from gi.overrides import override
from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool

OVERRIDES = 'gi.overrides.GTorch'


class ImageReadMode:
    """Which channels an image is given."""

    UNCHANGED = GTorch.ImageMode.UNCHANGED
    GRAY = GTorch.ImageMode.GRAY
    GRAY_ALPHA = GTorch.ImageMode.GRAY_ALPHA
    RGB = GTorch.ImageMode.RGB
    RGB_ALPHA = GTorch.ImageMode.RGB_ALPHA


def _mode(mode):
    """A mode, or its name."""
    if not isinstance(mode, str):
        return mode
    name = {'RGBA': 'RGB_ALPHA', 'L': 'GRAY', 'LA': 'GRAY_ALPHA'}.get(mode.upper(), mode.upper())
    if name.startswith('_') or not hasattr(ImageReadMode, name):
        raise ValueError(f'no mode of images: {mode!r}')
    return getattr(ImageReadMode, name)


def read_image(path, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False, max_pixels=0):
    """Reads an image: a tensor of uint8, [channels, height, width]."""
    upright = convert_bool(apply_exif_orientation)
    return GTorch.image_load_file(path, _mode(mode), upright, max_pixels, None)


def decode_image(input, mode=ImageReadMode.UNCHANGED, apply_exif_orientation=False, max_pixels=0):
    """Decodes the content of a file: bytes, a tensor of uint8, or a path."""
    if isinstance(input, (str, os.PathLike)):
        return read_image(input, mode, apply_exif_orientation, max_pixels)
    upright = convert_bool(apply_exif_orientation)
    content = bytes(input.tolist()) if isinstance(input, RawTensor) else bytes(input)
    return GTorch.image_load_bytes(GLib.Bytes.new(content), _mode(mode), upright, max_pixels, None)


def encode_png(input):
    """The content of a PNG file, as bytes."""
    return GTorch.image_encode(input, 'png', 100).get_data()


def encode_jpeg(input, quality=75):
    """The content of a JPEG file, as bytes."""
    return GTorch.image_encode(input, 'jpeg', quality).get_data()


def write_png(input, filename):
    """Writes a PNG file."""
    GTorch.image_save_file(input, filename, 'png', 100, None)


def write_jpeg(input, filename, quality=75):
    """Writes a JPEG file."""
    GTorch.image_save_file(input, filename, 'jpeg', quality, None)


def make(_name, raw):
    """Creates the class from that of C."""

    class ImageFolder(raw):
        """Images in folders that are called like their classes; sample i is (image, class)."""

        __module__, __qualname__ = OVERRIDES, 'ImageFolder'

        def __new__(cls, root, transform=None, mode=ImageReadMode.RGB):
            from gi.overrides._gtorch_nn import as_module

            return raw.new(root, as_module('ImageFolder()', transform), _mode(mode), None)

        def __init__(self, root, transform=None, mode=ImageReadMode.RGB):
            pass  # made by __new__()

        @property
        def classes(self):
            return list(self.get_classes())

        @property
        def class_to_idx(self):
            return {name: i for i, name in enumerate(self.get_classes())}

        @property
        def targets(self):
            return [self.get_class(i) for i in range(self.get_length())]

        @property
        def samples(self):
            return [(self.get_file(i).get_path(), self.get_class(i)) for i in range(self.get_length())]

        imgs = samples

    return override(ImageFolder)
