#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""gtorch-run on one node: options, variables, output, failures, restarts, signals, and that no process stays."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import time

from launcher import PROGRAM, Run, are_gone, free_port, has, run

import tap

SHOW = 'import json\nprint(json.dumps(dict(os.environ)))\n'


def environments(*arguments, **environment):
    status, out, err = run(*arguments, script=SHOW, **environment)
    assert status == 0 and err == '', err
    return sorted((json.loads(line) for line in out.splitlines()), key=lambda one: int(one['RANK']))


# --- options ---

@tap.case
def workers_get_the_variables_of_torchrun():
    found = environments('-n', '3', '--role', 'trainer', '--rdzv-id', 'job7', '--max-restarts=2')
    assert len(found) == 3
    for rank, one in enumerate(found):
        expected = {'RANK': rank, 'LOCAL_RANK': rank, 'WORLD_SIZE': 3, 'LOCAL_WORLD_SIZE': 3, 'GROUP_RANK': 0,
                    'GROUP_WORLD_SIZE': 1, 'ROLE_RANK': rank, 'ROLE_WORLD_SIZE': 3, 'ROLE_NAME': 'trainer',
                    'MASTER_ADDR': '127.0.0.1', 'TORCHELASTIC_RESTART_COUNT': 0, 'TORCHELASTIC_MAX_RESTARTS': 2,
                    'TORCHELASTIC_RUN_ID': 'job7', 'OMP_NUM_THREADS': 1}
        wrong = {name: one.get(name) for name, value in expected.items() if one.get(name) != str(value)}
        assert not wrong, wrong
        assert 0 < int(one['MASTER_PORT']) < 65536 and one['MASTER_PORT'] == found[0]['MASTER_PORT']
        assert len(one['GTORCH_STORE_TOKEN']) > 30 and one['TORCHELASTIC_ERROR_FILE']


@tap.case
def threads_are_left_alone_if_something_is_said():
    assert environments('-n', '2', OMP_NUM_THREADS='3')[1]['OMP_NUM_THREADS'] == '3'
    assert 'OMP_NUM_THREADS' not in environments('-n1')[0]


@tap.case
def options_have_underscores_and_variables():
    assert len(environments('--nproc_per_node=2')) == 2
    assert len(environments('--nproc_per_node', '2')) == 2
    assert len(environments(PET_NPROC_PER_NODE='2')) == 2
    assert len(environments('-n1', PET_NPROC_PER_NODE='2')) == 1
    port = str(free_port())
    found = environments('--master-port', port, '--master-addr', 'localhost')[0]
    assert (found['MASTER_ADDR'], found['MASTER_PORT']) == ('localhost', port)
    found = environments('--standalone', '--device', 'cpu')[0]
    assert found['CUDA_VISIBLE_DEVICES'] == '' and len(found['TORCHELASTIC_RUN_ID']) == 36
    assert run('--standalone', PET_MODULE='maybe', script='')[0] == 2


@tap.case
def one_node_has_its_store_where_it_is_said():
    port = free_port()
    assert environments(f'--rdzv-endpoint=localhost:{port}')[0]['GTORCH_STORE_ADDRESS'] == f'localhost:{port}'
    assert environments('--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0')[0]['GTORCH_STORE_ADDRESS'][-2:] != ':0'
    status, _out, err = run('--rdzv-endpoint=192.0.2.77:0', script='')
    assert status == 1 and err == ('gtorch-run: --rdzv-endpoint is at “192.0.2.77”, which is no address of this host\n')
    status, _out, err = run(f'--rdzv-endpoint=localhost:{port}', script='', GTORCH_STORE_TOKEN='a')
    assert status == 0, err


@tap.case
def arguments_of_the_program_are_its_own():
    status, out, _err = run('-n1', '--', script='print(sys.argv[1:])\n')
    assert status == 0 and out == '[]\n', out
    with tempfile.NamedTemporaryFile('w', suffix='.py') as file:
        file.write('import sys; print(sys.argv[1:])')
        file.flush()
        assert run('-n1', file.name, '--nnodes', 'x_y', '--a_b=c', '-n')[1] == "['--nnodes', 'x_y', '--a_b=c', '-n']\n"


@tap.case
def wrong_values_are_refused():
    cases = {
        ('--nnodes=0',): r'--nnodes is “0”; it is a number from 1 to 100000, or MIN:MAX',
        ('--nnodes=3:2',): r'--nnodes is “3:2”',
        ('--nnodes=1:2:3',): r'--nnodes is “1:2:3”',
        ('-n', 'many'): r'--nproc-per-node is “many”; it is a number from 1 to 65536, auto, cpu or gpu',
        ('-n', '0'): r'--nproc-per-node is “0”',
        ('--device=tpu',): r'--device is “tpu”; it is cpu or cuda',
        ('--device=cpu', '-n', 'gpu'): r'--nproc-per-node is gpu, but --device is cpu',
        ('--rdzv-backend=etcd',): r'--rdzv-backend is “etcd”; there are static and c10d',
        ('--rdzv-conf=join_timeout',): r'--rdzv-conf has “join_timeout”; it is KEY=VALUE',
        ('--rdzv-conf=join_timeout=-1',): r'--rdzv-conf has “join_timeout=-1”, which join_timeout cannot be',
        ('--rdzv-conf=a=1',): r'--rdzv-conf has “a=1”',
        ('--standalone', '--nnodes=2'): r'--standalone is for one node, and --nnodes is “2”',
        ('--nnodes=2',): r'a static rendezvous of 2 nodes needs --node-rank',
        ('--nnodes=2', '--node-rank=2', '--master-addr=a'): r'--node-rank is “2”; it is a number from 0 to 1',
        ('--node-rank=1',): r'--node-rank is “1”; it is a number from 0 to 0',
        ('--nnodes=2', '--rdzv-backend=c10d', '--rdzv-endpoint=a', '--node-rank=0'): r'are for a static rendezvous',
        ('--nnodes=2', '--node-rank=0', '--rdzv-endpoint=a', '--master-addr=a'): r'--rdzv-endpoint excludes',
        ('--standalone', '--rdzv-id=a'): r'--standalone excludes --rdzv-backend, --rdzv-endpoint and --rdzv-id',
        ('--nnodes=2', '--node-rank=0'): r'needs --master-addr, or --rdzv-endpoint',
        ('--nnodes=1:2',): r'a static rendezvous has a fixed number of nodes',
        ('--nnodes=2', '--rdzv-backend=c10d'): r'a rendezvous of several nodes needs --rdzv-endpoint',
        ('--nnodes=2', '--rdzv-backend=c10d', '--rdzv-endpoint=a:b'): r'--rdzv-endpoint is “a:b”; it is HOST:PORT',
        ('--max-restarts=-1',): r'--max-restarts is “-1”',
        ('--monitor-interval=0',): r'--monitor-interval is “0”; it is a number of seconds, more than 0',
        ('--shutdown-timeout=x',): r'--shutdown-timeout is “x”',
        ('-r', '4'): r'--redirects is “4”; it is 0 \(none\), 1 \(stdout\), 2 \(stderr\) or 3 \(both\)',
        ('-t', '0:1,1'): r'--tee is “0:1,1”',
        ('--local-ranks-filter=a',): r'--local-ranks-filter is “a”; it is a list of local ranks',
        ('--master-port=70000',): r'--master-port is “70000”; it is a number from 0 to 65535',
        ('--signals-to-handle=SIGKILL',): r'--signals-to-handle has “SIGKILL”',
        ('--start-method=fork',): r'--start-method is not supported: a worker is a program',
        ('--run-path',): r'--run-path is not supported',
        ('--numa-binding=node',): r'--numa-binding is not supported',
        ('--logs-specs=x',): r'--logs-specs, --duplicate-stdout-filters and --duplicate-stderr-filters are not',
        ('--event-log-handler=console',): r'--event-log-handler is “console”; there is null only',
        ('-m', '--no-python'): r'--module and --no-python exclude each other',
        ('--nonsense',): r'Unknown option --nonsense',
    }
    for arguments, message in cases.items():
        status, out, err = run(*arguments, script='print("started")\n')
        assert status == 2 and out == '', (arguments, status, out)
        has(f'^gtorch-run: .*{message}', err)
    status, _out, err = run('-n1')
    assert status == 2 and err == 'gtorch-run: there is no program to run\n', err


@tap.case
def programs_of_all_kinds_are_run():
    assert run('--no-python', '-n1', 'echo', 'a', 'b')[1] == 'a b\n'
    assert run('-n1', '-m', 'this')[1].startswith('The Zen')
    status, _out, err = run('-n1', '--no-python', '/nonexistent/program')
    assert status == 1 and '/nonexistent/program' in err, err
    if shutil.which('gjs') is None:
        raise tap.Skip('gjs is not installed')
    with tempfile.TemporaryDirectory() as folder:
        for name, option, text in (('a.js', (), 'print (imports.gi.GLib.getenv ("RANK"), ARGV);'),
                                   ('d.js', (), '// a\nimport GLib from "gi://GLib"; print (GLib.getenv ("RANK"));'),
                                   ('b.js', ('-m',), 'import GLib from "gi://GLib"; print (GLib.getenv ("RANK"));'),
                                   ('c.mjs', (), 'import GLib from "gi://GLib"; print (GLib.getenv ("RANK"));')):
            path = os.path.join(folder, name)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
            status, out, err = run('-n2', *option, path)
            assert status == 0 and sorted(out.split()) == ['0', '1'], (name, out, err)


# --- output ---

LINES = 'for i in range(300): sys.stdout.write(f"{RANK}"); sys.stdout.flush(); sys.stdout.write("x" * 200 + "\\n")\n'


@tap.case
def lines_are_whole():
    status, out, _err = run('-n', '4', script=LINES)
    lines = out.splitlines()
    assert status == 0 and len(lines) == 1200
    assert all(re.fullmatch('[0-3]x{200}', line) for line in lines), [line for line in lines if len(line) != 201][:3]


@tap.case
def streams_go_to_files_and_have_prefixes():
    script = 'print(f"out {RANK}"); print(f"err {RANK}", file=sys.stderr); sys.stdout.write("no end")\n'
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = run('-n2', '--role=r', '--log-dir', folder, '-r', '1:1', '-t', '0:3', script=script)
        assert status == 0 and sorted(out.splitlines()) == ['[r0]:no end', '[r0]:out 0'], out
        assert re.search(r'^\[r0\]:err 0$', err, re.M) and re.search(r'^\[rank1\]: err 1$', err, re.M), err
        place = has(r'^gtorch-run: output is written to (.*/none_\w+)$', err)[1]
        paths = [path for path in pathlib.Path(place).rglob('*') if path.is_file()]
        found = {str(path.relative_to(place)): path.read_text(encoding='utf-8') for path in paths}
        assert found == {'attempt_0/0/stdout.log': 'out 0\nno end', 'attempt_0/0/stderr.log': 'err 0\n',
                         'attempt_0/1/stdout.log': 'out 1\nno end'}, found
        status, out, _err = run('-n2', '--log-dir', folder, '-t', '3', '--local-ranks-filter=1', script=script,
                                PET_LOG_LINE_PREFIX_TEMPLATE='${hostname}/${rank}/${local_rank}/${role_name} ')
        assert f'{socket.gethostname()}/1/1/default out 1\n' in out and 'out 0' not in out, out
        assert run('--log-dir', os.path.join(folder, 'a', 'b'), '-r3', script='')[0] == 0
        status, _out, err = run('--log-dir', '/proc/nowhere', '-r3', script='')
        assert status == 1 and '/proc/nowhere' in err, err


# --- failures ---

WAIT = 'time.sleep(1000)\n'


@tap.case
def a_worker_that_fails_ends_the_others():
    job = Run('-n3', script='print("pid", os.getpid())\nif RANK == 1:\n    raise ValueError("no such thing")\n' + WAIT)
    status = job.wait()
    assert status == 1
    are_gone(map(int, re.findall(r'pid (\d+)', job.out)))
    has(r'^\[rank1\]: ValueError: no such thing$', job.err)
    has(r'worker\.py FAILED\n-+\nFailures:\n  <NO_OTHER_FAILURES>\n-+\nRoot Cause \(first observed failure\):\n\[0\]:\n'
        r'  time      : \d{4}-\d\d-\d\d_\d\d:\d\d:\d\d\n  host      : .*\n  rank      : 1 \(local_rank: 1\)\n'
        r'  exitcode  : 1 \(pid: \d+\)\n  log_file  : <N/A>\n  traceback : Traceback', job.err)
    has(r'^  ValueError: no such thing$', job.err)


@tap.case
def the_status_is_that_of_the_first_failure():
    status, _out, err = run('-n2', script='if RANK == 1:\n    sys.exit(42)\n' + WAIT)
    assert status == 42 and 'rank 1 (local rank 1, pid' in err and 'has ended with exit code 42' in err, err
    status, _out, err = run('-n2', script='if RANK == 0:\n    os.kill(os.getpid(), signal.SIGKILL)\n' + WAIT)
    assert status == 137, status
    has(r'exitcode  : -9 \(pid: (\d+)\)\n  log_file  : <N/A>\n'
        r'  traceback : Signal 9 \(SIGKILL\) received by PID \1$', err)


@tap.case
def the_file_of_errors_is_shown():
    script = 'open(os.environ["TORCHELASTIC_ERROR_FILE"], "w").write("lost the thread")\nsys.exit(3)\n'
    status, _out, err = run(script=script)
    assert status == 3
    has(r'^  traceback : lost the thread$', err)


@tap.case
def recorded_exceptions_are_shown():
    """In the form that PyTorch's record() writes; test_groups.py has our own."""
    write = 'import json\njson.dump({}, open(os.environ["TORCHELASTIC_ERROR_FILE"], "w"))\nsys.exit(3)\n'
    texts = {
        '{"message": {"message": "KeyError: 1", "extraInfo": {"py_callstack": "first\\nKeyError: é"}}}':
            r'^  traceback : first\n  KeyError: é$',
        '{"message": {"message": "KeyError: 1"}}': r'^  traceback : KeyError: 1$',
        '{"message": "gone"}': r'^  traceback : gone$',
        '{"other": [1]}': r'^  traceback : {"other": \[1\]}$',
    }
    for text, wanted in texts.items():
        status, _out, err = run(script=write.replace('{}', text, 1))
        assert status == 3
        has(wanted, err)


@tap.case
def a_worker_that_ignores_sigterm_is_killed():
    script = ('signal.signal(signal.SIGTERM, lambda *_: print("told", flush=True))\nprint("ready", flush=True)\n'
              'if RANK == 1:\n    time.sleep(0.5); sys.exit(5)\nwhile True:\n    time.sleep(1)\n')
    job = Run('-n2', '--shutdown-timeout=0.5', script=script)
    assert job.wait() == 5
    assert 'told' in job.out, job.out


@tap.case
def workers_are_started_again():
    script = ('count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])\nprint("try", count, os.environ["MASTER_PORT"])\n'
              'if RANK == 1 and count < 2:\n    time.sleep(0.5); sys.exit(9)\nif count < 2:\n    time.sleep(1000)\n')
    status, out, err = run('-n2', '--max-restarts=2', script=script)
    assert status == 0 and [out.count(f'try {i} ') for i in range(3)] == [2, 2, 2], (status, out, err)
    has(r'has ended with exit code 9; the workers are started again \(round 1, restart 1 of 2\)$', err)
    assert 'FAILED' not in err
    status, out, err = run('-n2', '--max-restarts=1', script=script)
    assert status == 9 and 'try 1 ' in out and 'try 2 ' not in out and 'worker.py FAILED' in err, (status, out, err)


# --- signals, and what stays ---

TREE = ('a = subprocess.Popen(["sleep", "1000"], start_new_session=True)\n'
        'b = subprocess.Popen(["sleep", "1000"])\nprint("pid", os.getpid(), "pid", a.pid, "pid", b.pid)\n')


PLACES = ('print("folder", os.path.dirname(os.environ["TORCHELASTIC_ERROR_FILE"]))\n'
          'print("folder", os.environ.get("OMPI_MCA_btl_vader_backing_directory", ""))\n')


@tap.case
def signals_are_handed_on():
    script = 'signal.signal(signal.SIGTERM, lambda *_: (print("told"), sys.exit(0)))\nprint("ready")\n' + WAIT
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        job = Run('-n2', script=script.replace('SIGTERM', signal.Signals(number).name))
        job.wait_for('ready', 2)
        job.process.send_signal(number)
        assert job.wait() == 128 + number and job.out.count('told') == 2, job.out
        assert 'FAILED' not in job.err, job.err
    job = Run('-n2', '--signals-to-handle=SIGUSR1', script=script.replace('SIGTERM', 'SIGUSR1'))
    job.wait_for('ready', 2)
    job.process.send_signal(signal.SIGUSR1)
    assert job.wait() == 128 + signal.SIGUSR1 and job.out.count('told') == 2


@tap.case
def nothing_is_left_by_workers_that_end():
    status, out, err = run('-n2', script=TREE)
    assert status == 0, err
    are_gone(map(int, re.findall(r'pid (\d+)', out)))


@tap.case
def nothing_is_left_when_gtorch_run_is_killed():
    for kill_agent in (False, True):
        job = Run('-n2', script=PLACES + TREE + WAIT)
        job.wait_for(r'pid \d+ pid \d+ pid (\d+)', 2)
        agent = job.agent()
        os.kill(agent if kill_agent else job.process.pid, signal.SIGKILL)
        status = job.wait()
        assert status == (137 if kill_agent else -9), status
        are_gone([agent, *map(int, re.findall(r'pid (\d+)', job.out))])
        assert len(re.findall(r'pid (\d+)', job.out)) == 6
        there = [place for place in re.findall(r'^folder (.*)$', job.out, re.M) if os.path.exists(place)]
        assert not there, there


@tap.case
def workers_end_when_both_processes_are_killed():
    """Nobody is left who could remove the folders, then."""
    job = Run('-n2', script=PLACES + 'print("pid", os.getpid())\n' + WAIT)
    pids = job.wait_for(r'pid (\d+)', 2)
    agent = job.agent()
    os.kill(agent, signal.SIGSTOP)
    os.kill(job.process.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    job.wait()
    are_gone(map(int, pids))
    for place in set(re.findall(r'^folder (.*gtorch-run-\w+)$', job.out, re.M)):
        shutil.rmtree(place, ignore_errors=True)


@tap.case
def pmix_that_does_not_answer_holds_up_nothing():
    """A job that ends, is told to end, or is killed, when the process that serves PMIx is stopped."""
    for end, wanted in ((None, 0), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        job = Run('-n2', script='print("pid", os.getpid(), flush=True)\n'
                                f'time.sleep({1 if end is None else 1000})\n')
        job.wait_for(r'pid (\d+)', 2)
        pids = [job.agent(), job.pmix(), *map(int, re.findall(r'pid (\d+)', job.out))]
        os.kill(pids[1], signal.SIGSTOP)
        begin = time.monotonic()
        if end is not None:
            job.process.send_signal(end)
        assert job.wait() == wanted, job.err
        are_gone(pids)
        assert time.monotonic() - begin < 15, job.err


@tap.case
def pmix_that_crashes_is_told():
    job = Run('-n2', '--max-restarts=1', script='print("pid", os.getpid(), flush=True)\n'
              'if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":\n    time.sleep(3)\n    sys.exit(4)\n')
    job.wait_for(r'pid (\d+)', 2)
    os.kill(job.pmix(), signal.SIGSEGV)
    assert job.wait() == 0, job.err
    has(r'^gtorch-run: the process that serves PMIx to the workers was ended by signal 11 \(SIGSEGV\)$', job.err)


@tap.case
def help_and_version_are_printed():
    status, out, err = run('--help')
    assert status == 0 and err == '' and '--nproc-per-node' in out
    assert re.fullmatch(r'gtorch-run \d+\.\d+\.\d+\n', run('--version')[1])
    assert os.path.basename(PROGRAM) == 'gtorch-run'


tap.main()
