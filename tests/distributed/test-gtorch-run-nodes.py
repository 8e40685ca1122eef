#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several gtorch-run, each of which is a node, on this host: ranks, restarts, nodes that come and go."""

import os
import re
import signal
import time

from launcher import Run, are_gone, free_port, has, is_served, run

import tap

TOKEN = {'GTORCH_STORE_TOKEN': 'of the test'}
SHOW = ('E = os.environ\n'
        'print("pid", os.getpid(), "rank", RANK, "of", E["WORLD_SIZE"], "node", E["GROUP_RANK"], '
        'E["GROUP_WORLD_SIZE"], "restart", E["TORCHELASTIC_RESTART_COUNT"], '
        '"at", E["MASTER_ADDR"], E["MASTER_PORT"])\n')
TIMES = 'last_call_timeout=2,keep_alive_interval=0.3,keep_alive_max_attempt=3,join_timeout=20,close_timeout=5'
CONF = '--rdzv-conf=' + TIMES


def start(n, nodes, script, *arguments, each=()):
    port = free_port()
    common = [f'--nnodes={nodes}', '-n2', '--rdzv-backend=c10d', f'--rdzv-endpoint=localhost:{port}', CONF, *arguments]
    return [Run(*common, *(each[i] if each else ()), script=script, **TOKEN) for i in range(n)]


def host_and_other():
    """The options of two nodes of which the first serves the store."""
    return [['--rdzv-conf=is_host=1,' + TIMES], ['--rdzv-conf=is_host=0,' + TIMES]]


def ranks(jobs, n):
    """The ranks of rounds with so many workers."""
    return sorted(int(rank) for job in jobs for rank in re.findall(rf'rank (\d+) of {n} ', job.out))


@tap.case
def nodes_find_each_other():
    jobs = start(2, '2', SHOW)
    assert [job.wait() for job in jobs] == [0, 0], jobs[0].err + jobs[1].err
    assert ranks(jobs, 4) == [0, 1, 2, 3]
    places = {place for job in jobs for place in re.findall(r'at (\S+ \d+)', job.out)}
    assert len(places) == 1, places
    assert all(len(set(re.findall(r'node (\d) 2', job.out))) == 1 for job in jobs)


@tap.case
def a_static_rendezvous_has_places():
    port = free_port()
    common = ['--nnodes=2', '--master-addr=localhost', f'--master-port={port}', CONF]
    jobs = [Run(*common, f'--node-rank={i}', f'-n{i + 1}', script=SHOW, **TOKEN) for i in (1, 0)]
    assert [job.wait() for job in jobs] == [0, 0], jobs[0].err + jobs[1].err
    assert sorted(map(int, re.findall(r'rank (\d+) of 3', jobs[0].out))) == [1, 2] and 'rank 0 of 3' in jobs[1].out
    common[2] = f'--master-port={free_port()}'
    first = Run(*common, '--node-rank=0', script=SHOW + 'time.sleep(1000)\n', **TOKEN)
    second = Run(*common, '--node-rank=1', script=SHOW + 'time.sleep(1000)\n', **TOKEN)
    first.wait_for('rank 0 of 2')
    status, _out, err = run(*common, '--node-rank=1', script=SHOW, **TOKEN)
    assert status == 1 and err == 'gtorch-run: another node has --node-rank=1\n', err
    first.process.send_signal(signal.SIGTERM)
    assert [first.wait(), second.wait()] == [143, 143], second.err
    has('^gtorch-run: node .* was ended by SIGTERM$', second.err)


@tap.case
def a_failure_is_that_of_all_nodes():
    script = SHOW + 'if RANK == 3:\n    sys.exit(6)\ntime.sleep(1000)\n'
    jobs = start(2, '2', script, '--max-restarts=1')
    assert [job.wait() for job in jobs] == [6, 6], jobs[0].err + jobs[1].err
    for job in jobs:
        assert 'restart 2 ' not in job.out, job.out
        has(r'rank 3 \(local rank 1, pid \d+\) has ended with exit code 6; the workers are started again', job.err)
    # others may have been ended before they have written anything
    assert any('restart 1 ' in job.out for job in jobs), jobs[0].out + jobs[1].out
    assert sum('worker.py FAILED' in job.err for job in jobs) == 1
    are_gone(int(pid) for job in jobs for pid in re.findall(r'pid (\d+)', job.out))


@tap.case
def the_others_go_on_without_a_node_that_is_lost():
    script = SHOW + 'time.sleep(1000 if os.environ["WORLD_SIZE"] == "4" else 0)\n'
    jobs = start(2, '1:2', script, each=host_and_other())
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    os.kill(jobs[1].agent(), signal.SIGKILL)
    assert jobs[1].wait() == 137
    are_gone(map(int, re.findall(r'pid (\d+)', jobs[1].out)))
    assert jobs[0].wait() == 0, jobs[0].err
    assert ranks(jobs[:1], 2) == [0, 1], jobs[0].out
    has(r'node \S+ is lost; the workers are started again \(round 1, restart 0 of 0\)', jobs[0].err)


@tap.case
def a_node_that_is_lost_ends_a_job_of_fixed_size():
    jobs = start(2, '2', SHOW + 'time.sleep(1000)\n', each=host_and_other())
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    os.kill(jobs[1].agent(), signal.SIGKILL)
    assert jobs[0].wait() == 1
    has(r'^gtorch-run: node \S+ is lost$', jobs[0].err)


@tap.case
def the_others_are_told_of_one_that_is_killed():
    script = SHOW + 'time.sleep(1000 if os.environ["WORLD_SIZE"] == "4" else 0)\n'
    jobs = start(2, '1:2', script, each=host_and_other())
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    jobs[1].process.send_signal(signal.SIGKILL)
    assert jobs[0].wait() == 0, jobs[0].err
    has(r'node \S+ was ended: its gtorch-run was killed; the workers are started again', jobs[0].err)
    are_gone(map(int, re.findall(r'pid (\d+)', jobs[1].out)))


@tap.case
def nodes_that_come_later_are_let_in():
    script = SHOW + 'time.sleep(1000 if os.environ["GROUP_WORLD_SIZE"] == "1" else 0)\n'
    port = free_port()
    common = ['--nnodes=1:2', '-n2', '--rdzv-backend=c10d', f'--rdzv-endpoint=localhost:{port}', CONF]
    first = Run(*common, script=script, **TOKEN)
    first.wait_for(r'rank \d of 2', 2)
    second = Run(*common, script=script, **TOKEN)
    assert [first.wait(), second.wait()] == [0, 0], first.err + second.err
    assert ranks([first, second], 4) == [0, 1, 2, 3]
    assert ranks([first], 4) == [0, 1], 'a node keeps its place'
    has('a node has come; the workers are started again', first.err)


@tap.case
def a_node_that_is_told_to_end_leaves():
    script = SHOW + 'time.sleep(1000 if os.environ["GROUP_WORLD_SIZE"] == "2" else 0)\n'
    jobs = start(2, '1:2', script, each=host_and_other())
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    jobs[1].process.send_signal(signal.SIGTERM)
    assert jobs[1].wait() == 143 and jobs[0].wait() == 0, jobs[0].err
    has(r'node \S+ was ended by SIGTERM; the workers are started again', jobs[0].err)


def ends_soon(job, *signals, stopped=None):
    """Its status, if it ends in less time than that after which a store's answer is given up. stopped: the node that
    serves the store, which does not answer meanwhile."""
    agent = job.agent()
    if stopped is not None:
        os.kill(stopped.agent(), signal.SIGSTOP)
    try:
        begin = time.monotonic()
        for number in signals:
            job.process.send_signal(number)
            time.sleep(0.5)
        status = job.wait()
        are_gone([agent, *map(int, re.findall(r'pid (\d+)', job.out))])
        assert time.monotonic() - begin < 20, job.err
    finally:
        if stopped is not None:
            os.kill(stopped.agent(), signal.SIGKILL)
            assert stopped.wait() == 137
    return status


@tap.case
def a_second_signal_ends_a_node_whose_store_does_not_answer():
    jobs = start(2, '2', SHOW + 'time.sleep(1000)\n', each=host_and_other())
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    assert ends_soon(jobs[1], signal.SIGTERM, signal.SIGTERM, stopped=jobs[0]) == 137
    has('^gtorch-run: it still waits for something; it is ended$', jobs[1].err)


@tap.case
def a_node_that_is_killed_ends_when_its_store_does_not_answer():
    conf = '--rdzv-conf=' + TIMES.replace('close_timeout=5', 'close_timeout=1')
    jobs = start(2, '2', SHOW + 'time.sleep(1000)\n', each=[[conf + ',is_host=1'], [conf + ',is_host=0']])
    for job in jobs:
        job.wait_for(r'rank \d of 4', 2)
    assert ends_soon(jobs[1], signal.SIGKILL, stopped=jobs[0]) == -9


@tap.case
def a_signal_ends_the_wait_for_pmix():
    """It is stopped before the nodes have met, so that it does not take the job."""
    port = free_port()
    common = ['--nnodes=2', '-n2', '--rdzv-backend=c10d', f'--rdzv-endpoint=localhost:{port}', CONF]
    first = Run(*common, script=SHOW, **TOKEN)
    is_served(port)
    os.kill(first.pmix(), signal.SIGSTOP)
    second = Run(*common, script=SHOW + 'time.sleep(1000)\n', **TOKEN)
    second.wait_for(r'rank \d of 4', 2)
    assert ends_soon(first, signal.SIGTERM) == 143, first.err
    assert second.wait() == 143, second.err


@tap.case
def what_cannot_meet_says_so():
    port = free_port()
    common = ['--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=localhost:{port}']
    status, _out, err = run(*common, '--rdzv-conf=join_timeout=1', script=SHOW, **TOKEN)
    assert status == 1 and err == 'gtorch-run: 1 of at least 2 nodes have come in 1 seconds\n', err
    status, _out, err = run(*common, '--rdzv-conf=is_host=0,join_timeout=1', script=SHOW, **TOKEN)
    assert status == 1 and f'no server is at localhost:{port}' in err, err
    status, _out, err = run('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=0.0.0.0:{port}', script=SHOW)
    assert status == 1, err
    assert err.startswith('gtorch-run: GTORCH_STORE_TOKEN, a secret that all nodes know, is not set:'), err
    job = Run(*common, '--rdzv-conf=join_timeout=20', script=SHOW, **TOKEN)
    is_served(port)
    status, _out, err = run(*common, script=SHOW, GTORCH_STORE_TOKEN='another one')
    assert status == 1 and 'the token is not that of the store' in err, err
    job.process.send_signal(signal.SIGINT)
    assert job.wait() == 130, job.err


tap.main()
