#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The output of the program gtorch-info with a driver, without one, and with missing libraries."""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))


def run(*arguments, **environment):
    environment = {**os.environ, 'LC_ALL': 'C.UTF-8', **environment}
    result = subprocess.run([PROGRAM, *arguments], env=environment, capture_output=True, check=False)
    out, err = (text.decode(errors='replace') for text in (result.stdout, result.stderr))
    return result.returncode, out.replace('\xa0', ' '), err


def has(pattern, text):
    assert re.search(pattern, text, re.M), f'no {pattern!r} in:\n{text}'


@tap.case
def devices_and_versions_are_listed():
    code, out, err = run('--need-cuda', GTORCH_FAKE_CUDA='devices=2')
    assert code == 0 and err == '', err
    has(r'^  version +\d+\.\d+\.\d+$', out)
    has(r'^  cuda-driver +13\.0$', out)
    has(r'^  cuda:0  Fake 0, 1\.0 GiB \(preferred\)$', out)
    has(r'^  cpu +\S.* GiB \(the default\)$', out)
    has(r'^  cuda:1  Fake 1, 1\.0 GiB$', out)
    has(r'^ +capability 9\.0, 4 multiprocessors of 2048 threads, L2 cache 4\.0 MiB$', out)
    has(r'^ +PCI 0000:02:00\.0, GPU-fafafafa-fafa-fafa-fafa-fafafafafa01$', out)
    has(r'^  cublasLt +13\.1\.2$', out)
    has(r'^  cufft +12\.0\.0$', out)
    has(r'^  nccl +2\.28\.9$', out)
    has(r'^  nvml +580\.65\.06$', out)


@tap.case
def output_that_cannot_be_written_is_a_failure():
    for arguments in ([], ['--json'], ['--version']):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            result = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
        assert result.returncode == 2, result
        has('^gtorch-info: .+: .+$', result.stderr.decode(errors='replace'))


@tap.case
def pkg_config_has_the_same_values():
    out = run()[1]
    folder = pathlib.Path(PROGRAM).parent.parent / 'meson-uninstalled'
    for key in ('cuda-archs', 'cpu-levels'):
        text = subprocess.run(
            ['pkg-config', f'--variable={key.replace("-", "_")}', 'gtorch-1-uninstalled'],
            env={**os.environ, 'PKG_CONFIG_PATH': str(folder)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = re.search(rf'^  {key} +(.*)$', out, re.M)[1]
        found = [word.removeprefix('sm_') for word in re.split('[ ,;]+', found) if not word.startswith('compute_')]
        assert found == text.strip().replace('+ptx', '').split(','), (key, found, text)


@tap.case
def a_missing_driver_is_explained():
    code, out, err = run(GTORCH_CUDA_DRIVER='/nowhere/libcuda.so.1')
    assert code == 0 and err == '', err
    has(r'^  cuda-driver +none$', out)
    has(r'^  cpu +.*\(the default, and preferred\)$', out)
    has(r'CUDA driver was not found \(/nowhere/libcuda\.so\.1', out)
    assert run('--need-cuda', GTORCH_CUDA_DRIVER='/nowhere/libcuda.so.1')[0] == 1


@tap.case
def messages_of_the_driver_are_shown():
    has(r'CUDA_ERROR_NO_DEVICE', run(GTORCH_FAKE_CUDA='devices=0')[1])
    has(r'at least 12\.0 is needed', run(GTORCH_FAKE_CUDA='version=11080')[1])


@tap.case
def a_gpu_that_cannot_be_used_is_shown_and_passed_over():
    code, out, _ = run('--need-cuda', GTORCH_FAKE_CUDA='devices=1,mode=2')
    assert code == 1
    has(r'^  cuda:0  Fake 0, 1\.0 GiB$', out)
    has(r'^  cpu .*\(the default, and preferred\)$', out)
    has(r'^  the compute mode of cuda:0 prohibits its use$', out)


@tap.case
def a_missing_library_names_its_package():
    out = run(GTORCH_CUDA_LIBRARY_PATH='/nowhere', CUDA_HOME='/nowhere', LD_LIBRARY_PATH='')[1]
    for name, library, package in (
        ('cublas', 'libcublas', 'nvidia-cublas'),
        ('cublasLt', 'libcublasLt', 'nvidia-cublas'),
        ('cudnn', 'libcudnn', 'nvidia-cudnn-cu13'),
        ('cufft', 'libcufft', 'nvidia-cufft'),
        ('cupti', 'libcupti', 'nvidia-cuda-cupti'),
        ('cusolver', 'libcusolver', 'nvidia-cusolver'),
        ('nccl', 'libnccl', 'nvidia-nccl-cu13'),
        ('nvml', 'libnvidia-ml', 'libnvidia-ml1'),
    ):
        has(rf'^  {name} +(\d[\d.]+|.* was not found; tried /nowhere/{library}\.so.*{package}.*)$', out)


@tap.case
def versions_of_nccl_are_read_in_both_forms():
    has(r'^  nccl +2\.8\.4$', run(GTORCH_FAKE_NCCL='2804')[1])
    has(r'^  nccl +2\.9\.6$', run(GTORCH_FAKE_NCCL='20906')[1])
    has(r'^  nccl +cuda: ncclGetVersion failed with result 3$', run(GTORCH_FAKE_NCCL='0')[1])


@tap.case
def options_are_checked():
    code, out, _ = run('--version')
    assert code == 0
    has(r'^gtorch-info \d+\.\d+\.\d+$', out)
    code, _, err = run('--abacus')
    assert code == 2 and '--abacus' in err


@tap.case
def stray_arguments_are_refused():
    for arguments in (
        ['abacus'], ['--json', 'abacus'], ['abacus', '--version'], ['--', 'abacus'], ['--need-cuda', '', 'x']
    ):
        code, out, err = run(*arguments)
        stray = '' if '' in arguments else 'abacus'
        assert (code, out, err) == (2, '', f'gtorch-info: unexpected argument “{stray}”\n'), (arguments, code, out, err)
    assert run('--', GTORCH_CUDA_DRIVER='/nowhere')[0] == 0


def size(n):
    for unit in ('bytes', 'KiB', 'MiB', 'GiB', 'TiB'):
        if n < 1024:
            return f'{n} bytes' if unit == 'bytes' else f'{n:.1f} {unit}'
        n /= 1024
    raise AssertionError(n)


def as_text(report):
    """Converts the machine-readable report to the text for people."""
    lines = ['Build']
    lines += [f'  {key:20} {"none" if value is None else value}' for key, value in report['build'].items()]
    lines += ['', 'Devices']
    for device in report['devices']:
        notes = ['the default'] * device['is-default'] + ['preferred'] * device['is-preferred']
        default = f' ({", and ".join(notes)})' if notes else ''
        lines.append(f'  {device["device"]:7} {device["name"]}, {size(device["total-memory"])}{default}')
        if device['device'] == 'cpu':
            lines.append(f'          processors: {device["n-multiprocessors"]}, threads: {device["n-threads"]}')
            continue
        lines.append(
            f'          capability {device["capability"]}, {device["n-multiprocessors"]} multiprocessors of '
            f'{device["threads-per-multiprocessor"]} threads, L2 cache {size(device["l2-size"])}'
        )
        lines.append(f'          PCI {device["pci-id"]}, {device["uuid"]}')
    if report['reason'] is not None:
        lines.append(f'  {report["reason"]}')
    lines += ['', 'Libraries for GPUs, each loaded when it is first needed']
    for name, library in report['libraries'].items():
        assert (library['version'] is None) != (library['error'] is None), library
        lines.append(f'  {name:20} {library["version"] or library["error"]}')
    return '\n'.join(lines) + '\n'


@tap.case
def programs_get_the_same_facts_as_people():
    for environment in (
        {'GTORCH_FAKE_CUDA': 'devices=2'},
        {'GTORCH_FAKE_CUDA': 'devices=0'},
        {'GTORCH_FAKE_CUDA': 'devices=1,mode=2'},
        {'GTORCH_FAKE_NCCL': '0'},
        {'GTORCH_CUDA_DRIVER': '/nowhere/with "quotes", \\ and\tcontrol\x01characters\n\x7f'},
        {'GTORCH_CUDA_DRIVER': '/nowhere/not \udcff UTF-8'},
        {'GTORCH_CUDA_LIBRARY_PATH': '/nowhere', 'CUDA_HOME': '/nowhere', 'LD_LIBRARY_PATH': ''},
    ):
        for option in ([], ['--need-cuda']):
            text, json_text = run(*option, **environment), run('--json', *option, **environment)
            assert text[0] == json_text[0] and text[2] == json_text[2], (text, json_text)
            expected = as_text(json.loads(json_text[1]))
            if 'UTF-8' in environment.get('GTORCH_CUDA_DRIVER', ''):
                assert '\ufffd' in expected, expected
                continue
            assert text[1] == expected, f'{text[1]}\n{expected}'


if __name__ == '__main__':
    tap.main()
