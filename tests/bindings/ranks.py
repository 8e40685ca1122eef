# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of several processes: a program starts itself by mpirun, and each process runs the functions of the program
whose names begin with rank_, in their order."""

import datetime
import shutil
import subprocess
import sys

import gtorch.distributed as dist
import tap

# Shared memory and sockets only, whatever the machine has; more ranks than processors.
MPIRUN = ['mpirun', '--oversubscribe', '--allow-run-as-root', '--mca', 'btl', 'self,vader,tcp', '--mca',
          'btl_vader_single_copy_mechanism', 'none']


def start(program, n, *arguments):
    """Runs the ranks; for a case of the program."""
    if not dist.is_mpi_available() or not shutil.which('mpirun'):
        raise tap.Skip('MPI is not installed')
    command = [*MPIRUN, '-n', str(n), sys.executable, program, '--rank', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(functions):
    """What a rank does."""
    dist.init_process_group('mpi', timeout=datetime.timedelta(seconds=60))
    for name, function in list(functions.items()):
        if name.startswith('rank_'):
            function()
            dist.barrier()
    dist.destroy_process_group()
