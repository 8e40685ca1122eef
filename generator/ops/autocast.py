# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The autocast key of a row: how mixed precision casts the operation's inputs."""

from generator.ops.devices import DEVICE_TEXT, DEVICES

POLICIES = {
    'lower': 'computed in the dtype of the region',
    'float32': 'computed in float32',
    'dtype': 'computed in float32 unless @dtype says otherwise',
    'widest': 'computed in the widest dtype among its inputs',
    'plain': '',
    'parts': 'computed in float32',
    'refused': 'refused',
}


def parse(row):
    """Maps the device to the policy, for a row's value: one policy for all devices, or a table."""
    value = row.data.get('autocast', {})
    table = dict.fromkeys(DEVICES, value) if isinstance(value, str) else value
    for device, policy in table.items():
        if device not in DEVICES:
            row.fail('autocast', f'no such device: {device}')
        if policy not in POLICIES:
            row.fail('autocast', f'must be one of {", ".join(POLICIES)}')
        if policy in ('plain', 'parts') and not row.composite:
            row.fail('autocast', 'only a composite has parts')
        if policy == 'dtype' and (row.composite or not any(a.kind == 'DType' for a in row.args)):
            row.fail('autocast', 'only an operation with an argument of kind DType can have this')
    if table and not row.tensors and row.list is None:
        row.fail('autocast', 'there are no tensors to cast')
    if table and row.returns_list:
        row.fail('autocast', 'an operation that gives a list cannot have this')
    return table


def is_wrapped(row):
    """Tells whether the composite itself casts its tensors: “parts” leaves that to its parts."""
    return any(policy != 'parts' for policy in row.autocast.values())


def table_entry(row):
    parts = [
        f'GTORCH_AUTOCAST_POLICY ({device.upper()}, {row.autocast[device].upper()})'
        for device in DEVICES
        if row.autocast.get(device, 'parts') != 'parts'
    ]
    return ' | '.join(parts) or '0'


def text(row):
    """Returns a sentence for the documentation, or nothing."""
    devices = {}
    for device in reversed(DEVICES):
        if POLICIES.get(row.autocast.get(device)):
            devices.setdefault(row.autocast[device], []).append(DEVICE_TEXT[device])
    parts = [f'{POLICIES[policy]} on {" and ".join(where)}' for policy, where in devices.items()]
    return f' In a region of [struct@AutocastGuard] {", ".join(parts)}.' if parts else ''
