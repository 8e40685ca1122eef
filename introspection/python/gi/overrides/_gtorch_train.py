# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.train, whose classes are made when they are first named."""

import importlib

from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_properties import make_later, show_later

NAMES = (
    'Accuracy', 'CSVLog', 'ClassScore', 'ConfusionMatrix', 'EventWriter', 'F1Score', 'JSONLog', 'Log', 'MeanMetric',
    'MeanSquaredError', 'Metric', 'Perplexity', 'PrecisionScore', 'ProgressBar', 'RecallScore', 'ScoreAverage',
    'Trainer', 'TrainerInterval',
)  # fmt: skip


def _make(name, raw):
    return importlib.import_module('gi.overrides._gtorch_trainer').MAKERS[name](raw)


def install(submodule):
    make_later(('Log', 'Metric', 'Trainer'), _make)
    show_later(submodule('train', 'A trainer, metrics and logs.', {}), NAMES, GTorch)
