# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.utils.tensorboard.SummaryWriter, with PyTorch's methods, on the event writer of C."""

import datetime
import os
import socket

from gi.repository import Gio, GLib, GTorch

from gi.overrides._gtorch_convert import RawTensor
from gi.overrides._gtorch_create import as_shown

MISSING = {
    'add_figure': 'figures of matplotlib: give the pixels to add_image()',
    'add_video': 'videos',
    'add_audio': 'audio',
    'add_graph': 'graphs of models',
    'add_embedding': 'embeddings',
    'add_mesh': 'meshes',
    'add_onnx_graph': 'graphs of models',
    'add_tensor': 'tensors: give their histogram to add_histogram()',
    'add_pr_curve': 'precision-recall curves',
    'add_pr_curve_raw': 'precision-recall curves',
    'add_custom_scalars': 'layouts of charts',
    'add_custom_scalars_multilinechart': 'layouts of charts',
    'add_custom_scalars_marginchart': 'layouts of charts',
}


def _number(value):
    return float(value.item() if hasattr(value, 'item') else value)


def _tensor(value):
    return value if isinstance(value, RawTensor) else as_shown(value)


def _bounds(name, values, bins):
    """The bounds of buckets: TensorFlow's, those of a list, or a number of equal ones."""
    if bins == 'tensorflow':
        return None
    if isinstance(bins, str):
        text = f'{name}(): bins={bins!r} is not supported: give "tensorflow", a number or a list of bounds'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
    if isinstance(bins, int):
        low, high = float(values.min()), float(values.max())
        if low == high:
            low, high = low - 0.5, high + 0.5
        return [low + (high - low) * i / bins for i in range(bins)] + [high]
    return [float(bound) for bound in bins]


class SummaryWriter:
    """Writes events for TensorBoard into @log_dir, by default runs/ with the time, the computer and @comment. Events
    are written as they come: max_queue has no effect."""

    def __init__(self, log_dir=None, comment='', purge_step=None, max_queue=10, flush_secs=120, filename_suffix=''):
        if purge_step is not None:
            text = 'SummaryWriter(): purge_step is not supported: write into another folder'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
        if not log_dir:
            now = datetime.datetime.now().strftime('%b%d_%H-%M-%S')
            log_dir = os.path.join('runs', f'{now}_{socket.gethostname()}{comment}')
        self.log_dir = os.fspath(log_dir)
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self._writers = {}
        self._writer()

    def _writer(self, part=''):
        """The writer of the folder, or of one inside it."""
        if part not in self._writers:
            folder = Gio.File.new_for_path(os.path.join(self.log_dir, part))
            writer = GTorch.EventWriter.new(folder, self.filename_suffix or None)
            writer.set_property('flush-secs', int(self.flush_secs))
            self._writers[part] = writer
        return self._writers[part]

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def _place(self, global_step, walltime):
        step = GTorch.NONE if global_step is None else int(_number(global_step))
        return step, GTorch.NONE_DOUBLE if walltime is None else float(walltime)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """Adds a number, of which the file has a float32."""
        if double_precision or new_style:
            text = 'add_scalar(): new_style and double_precision are not supported: the file has numbers of float32'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
        self._writer().add_scalar(tag, _number(scalar_value), *self._place(global_step, walltime))

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Adds several numbers to one chart: each has a folder of its own, as in PyTorch."""
        for tag, value in tag_scalar_dict.items():
            part = f'{main_tag.replace("/", "_")}_{tag}'
            self._writer(part).add_scalar(main_tag, _number(value), *self._place(global_step, walltime))

    def add_histogram(self, tag, values, global_step=None, bins='tensorflow', walltime=None, max_bins=None):
        """Adds a histogram of the elements of a tensor."""
        if max_bins is not None:
            text = 'add_histogram(): max_bins is not supported: give the number of bins'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
        tensor = _tensor(values)
        bounds = _bounds('add_histogram', tensor, bins)
        self._writer().add_histogram(tag, tensor, bounds, *self._place(global_step, walltime))

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats='CHW'):
        """Adds a picture: uint8 from 0 to 255, or floating-point from 0 to 1."""
        self._writer().add_image(tag, _tensor(img_tensor), dataformats, *self._place(global_step, walltime))

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats='NCHW'):
        """Adds several pictures in rows of eight."""
        self._writer().add_image(tag, _tensor(img_tensor), dataformats, *self._place(global_step, walltime))

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Adds text, which TensorBoard reads as Markdown."""
        self._writer().add_text(tag, text_string, *self._place(global_step, walltime))

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Is not supported."""
        raise NotImplementedError('add_hparams(): hyperparameters are not supported: write them with add_text()')

    def flush(self):
        """Gives the events to the system."""
        for writer in self._writers.values():
            writer.flush()

    def close(self):
        """Writes what is left, and closes the files."""
        for writer in self._writers.values():
            writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()


def _missing(name, what):
    def method(self, *_args, **_options):
        raise NotImplementedError(f'{name}(): the file has no {what}')

    method.__name__ = method.__qualname__ = name
    method.__doc__ = 'Is not supported.'
    return method


for _name, _what in MISSING.items():
    setattr(SummaryWriter, _name, _missing(_name, _what))
