# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The types of devices, and what each of them has of the operations."""

import pathlib
import tomllib

from generator.ops import fill

TYPES = tomllib.loads(
    (pathlib.Path(__file__).resolve().parents[2] / 'gtorch' / 'device' / 'types.toml').read_text('utf-8')
)
DEVICES = list(TYPES)  # in the order of GTorchDeviceType
DEVICE_TEXT = {name: row['text'] for name, row in TYPES.items()}


def declarations(rows):
    """The functions of operations, which several rows may share, and the tables of each type."""
    found = []
    for device in DEVICES:
        # Weak: an operation that such devices lack is an error where it is called.
        weak = '' if device == DEVICES[0] else ' __attribute__ ((weak))'
        names = sorted({row.run(device) for row in rows if row.has_runs()})
        found += [f'gboolean {name} (GTorchOpCall *call, GTorchQueue *queue, GError **error){weak};' for name in names]
        names = sorted({row.query(device) for row in rows if row.query(device)})
        found += [f'gboolean {name} (GTorchOpCall *call, gint64 *answers, GError **error){weak};' for name in names]
        found.append(f'extern const GTorchRun gtorch_{device}_runs[];')
        found.append(f'extern const GTorchQuery gtorch_{device}_queries[{len(rows)}];')
        found.append(f'extern const GTorchBackend gtorch_backend_{device};')
    return found


def emit(rows):
    """The list of backends, and for each of them the tables of its functions."""
    tables = [
        fill('backends.c.in', 'runs', device=device,
             n=str(len(rows)),
             entries=[f'[{row.constant}] = {row.run(device)},' for row in rows if row.has_runs()],
             queries=[f'[{row.constant}] = {row.query(device)},' for row in rows if row.query(device)])
        for device in DEVICES
    ]
    return fill(
        'backends.c.in', 'file', tables='\n'.join(tables),
        asserts=[f'G_STATIC_ASSERT (GTORCH_DEVICE_TYPE_{name.upper()} == {i});' for i, name in enumerate(DEVICES)],
        backends=[f'[GTORCH_DEVICE_TYPE_{name.upper()}] = &gtorch_backend_{name},' for name in DEVICES],
    )
