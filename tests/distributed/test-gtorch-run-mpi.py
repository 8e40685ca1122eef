#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of processes that gtorch-run has started: MPI on one node and on two, restarts, and the example.

test-gtorch-run-mpi.py GTORCH-RUN FOLDER-OF-EXAMPLES
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from launcher import Run, are_gone, free_port, has, run

import tap

EXAMPLES = sys.argv.pop(1)
DIGITS = os.path.join(os.path.abspath(EXAMPLES), 'python', 'digits_distributed.py')
SUM = '''
import gtorch as torch
import gtorch.distributed as dist
dist.init_process_group()
x = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(x)
store = dist.group.WORLD.get_store()
count = store.add('n', 1)
print('rank', dist.get_rank(), RANK, 'of', dist.get_world_size(), 'sum', x.item())
'''
# More ranks than processors, on one host.
QUIET = {'OMPI_MCA_btl': 'self,vader,tcp', 'OMPI_MCA_btl_vader_single_copy_mechanism': 'none',
         'OMPI_MCA_mpi_yield_when_idle': '1'}


def python(code, **variables):
    """Runs a program that gtorch-run has not started."""
    return subprocess.run([sys.executable, '-c', code], env={**os.environ, **variables}, capture_output=True, text=True,
                          check=False, timeout=60)


def needs_mpi():
    if python('import gtorch.distributed as dist; print(dist.is_mpi_available())').stdout != 'True\n':
        raise tap.Skip('the module for MPI is not installed')
    folder = os.environ.get('GTORCH_MODULE_PATH')
    if folder and not os.path.exists(os.path.join(folder, 'libgtorch-pmix-1.so')):
        raise tap.Skip('the module for PMIx is not there')


def check_sum(out, n):
    for rank in range(n):
        assert f'rank {rank} {rank} of {n} sum {n * (n + 1) / 2}' in out, out


@tap.case
def workers_are_a_group():
    needs_mpi()
    status, out, err = run('-n3', '--device=cpu', script=SUM, **QUIET)
    assert status == 0, err
    check_sum(out, 3)


@tap.case
def workers_of_two_nodes_are_a_group():
    needs_mpi()
    common = ['--nnodes=2', '-n2', '--rdzv-backend=c10d', f'--rdzv-endpoint=localhost:{free_port()}']
    jobs = [Run(*common, script=SUM, GTORCH_STORE_TOKEN='of the test', **QUIET) for _ in range(2)]
    assert [job.wait() for job in jobs] == [0, 0], jobs[0].err + jobs[1].err
    check_sum(jobs[0].out + jobs[1].out, 4)


@tap.case
def workers_in_javascript_are_a_group():
    needs_mpi()
    if shutil.which('gjs') is None:
        raise tap.Skip('gjs is not installed')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'sum.js')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('import GTorch from "gi://GTorch?version=1";\n'
                       'const group = GTorch.ProcessGroup.new_from_environment("mpi", 60, null);\n'
                       'const x = GTorch.tensor([group.rank + 1.5]);\n'
                       'group.all_reduce(x, GTorch.ReduceOp.SUM).wait(-1, null);\n'
                       'const count = group.store.add("n", 1, null);\n'
                       'print("rank", group.rank, "of", group.size, "sum", x.item(), count <= 2);\n')
        status, out, err = run('-n2', '-m', path, **QUIET)
    assert status == 0, err
    assert sorted(out.splitlines()) == [f'rank {rank} of 2 sum 4 true' for rank in range(2)], out


@tap.case
def a_group_is_made_again_after_a_failure():
    needs_mpi()
    script = SUM + ('if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":\n    if RANK == 1:\n'
                    '        os.kill(os.getpid(), signal.SIGKILL)\n    dist.barrier()\n')
    status, out, err = run('-n3', '--max-restarts=1', script=script, **QUIET)
    assert status == 0, err
    assert out.count('of 3 sum 6.0') >= 4, out
    has(r'was ended by signal 9 \(SIGKILL\); the workers are started again', err)


@tap.case
def an_error_of_one_rank_ends_all():
    needs_mpi()
    script = SUM + 'if RANK == 1:\n    raise ValueError("no such thing")\ndist.barrier()\n'
    status, _out, err = run('-n3', script=script, **QUIET)
    assert status == 1, (status, err)
    has(r'rank      : 1 \(local_rank: 1\)', err)
    has(r'^  ValueError: no such thing', err)


@tap.case
def ranks_that_are_killed_at_once_while_they_wait_end():
    """Several that wait for one in PMIx, which then may go on with freed memory."""
    needs_mpi()
    script = SUM + 'if RANK == 1:\n    time.sleep(1000)\n'
    for _ in range(3):
        job = Run('-n4', script=script, **QUIET)
        job.wait_for('of 4 sum', 4)
        time.sleep(1)
        begin = time.monotonic()
        pids = [job.agent(), job.pmix()]
        job.process.send_signal(signal.SIGTERM)
        assert job.wait() == 143, job.err
        are_gone(pids)
        assert time.monotonic() - begin < 20, job.err


@tap.case
def a_rank_may_end_before_its_operations():
    needs_mpi()
    begin = 'import gtorch as torch\nimport gtorch.distributed as dist\ndist.init_process_group()\n'
    for _ in range(3):
        status, _out, err = run('-n2', script=begin + 'dist.all_reduce(torch.ones(2000000), async_op=True)\n', **QUIET)
        assert status == 0 and 'WARNING' not in err, (status, err)


@tap.case
def what_no_rank_answers_is_abandoned():
    needs_mpi()
    script = ('import gtorch as torch\nimport gtorch.distributed as dist\ndist.init_process_group()\n'
              'if RANK == 1:\n    work = dist.irecv(torch.ones(20000), 0)\n')
    status, _out, err = run('-n2', script=script, **QUIET)
    assert status == 0, (status, err)
    has(r'mpi: rank 1 ends, and has waited 5 seconds for other ranks in operations of groups \(1\)', err)


@tap.case
def ranks_that_nobody_has_joined_are_refused():
    needs_mpi()
    variables = {'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port())}
    code = ('import gtorch.distributed as dist\n'
            'try:\n    dist.init_process_group(timeout=1)\nexcept (dist.DistError, ValueError) as error:\n'
            '    print("refused:", error)\n')
    found = python(code, RANK='1', **variables)
    assert 'refused: tcp_store: no server is at 127.0.0.1' in found.stdout, found
    found = python(code, RANK='0', **variables)
    message = 'refused: mpi: this is rank 0 of 1, not 0 of 2; gtorch-run, with PMIx, and mpirun start processes'
    assert message in found.stdout, found


def last_line(out):
    return has(r'^digits: 4 processes, accuracy ([\d.]+) %, gradients differ by ([\d.e+-]+), weights ([0-9a-f, ]+)$',
               out)


@tap.case
def four_processes_learn_digits():
    needs_mpi()
    status, out, err = run('-n', '4', '--device', 'cpu', DIGITS, '--seed=3', **QUIET)
    assert status == 0, err
    accuracy, difference, weights = last_line(out).groups()
    assert float(accuracy) > 96 and re.fullmatch('[0-9a-f]{16}', weights), out
    # sums of some thousand numbers in another order
    assert float(difference) < 1e-5, out
    mpirun = shutil.which('mpirun')
    if mpirun is None:
        raise tap.Skip('mpirun is not installed')
    environment = {**os.environ, **QUIET, 'GTORCH_NUM_THREADS': '1', 'PMIX_MCA_gds': 'hash'}
    command = [mpirun, '-n', '4', '--oversubscribe', '--allow-run-as-root', sys.executable, DIGITS, '--seed=3']
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert found.returncode == 0, found
    assert last_line(found.stdout)[3] == weights, (found.stdout, weights)


tap.main()
