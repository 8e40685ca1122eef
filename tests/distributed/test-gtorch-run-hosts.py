#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""gtorch-run on two hosts. Each is a network namespace of Linux with a name of its own; a pair of virtual interfaces is
the cable between them. Namespaces of an ordinary user are enough; where there are none, all is skipped."""

import os
import re
import shutil
import subprocess
import sys

INSIDE = 'GTORCH_TEST_INSIDE'  # set in the namespace of the test, where this user is root
HOSTS = {'north': '10.77.0.1', 'south': '10.77.0.2'}
TOKEN = {'GTORCH_STORE_TOKEN': 'of the test'}
CONF = ('--rdzv-conf=last_call_timeout=2,keep_alive_interval=0.3,keep_alive_max_attempt=3,join_timeout=20,'
        'close_timeout=5')
PORT = 29500
# All ranks send their numbers to rank 0, at the address that they are told, and get the sum.
EXCHANGE = """
import socket
size, place = int(os.environ['WORLD_SIZE']), (os.environ['MASTER_ADDR'], 29600)
if RANK == 0:
    server = socket.create_server(('', place[1]))
    ends = [server.accept()[0] for _ in range(size - 1)]
    total = sum(int(end.recv(64)) for end in ends)
    for end in ends:
        end.sendall(b'%d' % total)
else:
    while True:
        try:
            end = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.05)
    end.sendall(b'%d' % (RANK + 100))
    total = int(end.recv(64))
print('rank', RANK, 'of', size, 'on', socket.gethostname(), 'sum', total)
"""


def enter():
    """Runs this program in a namespace of its own; returns why that cannot be done."""
    missing = [name for name in ('unshare', 'nsenter', 'ip') if not shutil.which(name)]
    if missing:
        return f'there is no {missing[0]}'
    make = 'ip link add name a type veth peer name b'
    tried = subprocess.run(['unshare', '-rn', 'sh', '-c', make], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f'no network namespaces: {tried.stderr.strip()}'
    environment = {**os.environ, INSIDE: '1'}
    os.execvpe('unshare', ['unshare', '-rn', '--kill-child', sys.executable, *sys.argv], environment)


def command(*words):
    subprocess.run(words, check=True)


class Host:
    """A namespace, which a process that waits keeps."""

    def __init__(self, name):
        self.process = subprocess.Popen(['unshare', '-nu', 'sh', '-c', f'hostname {name}; echo ready; exec sleep 600'],
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b'ready\n'
        self.prefix = ['nsenter', '-t', str(self.process.pid), '-n', '-u']
        self.address = HOSTS[name]

    def do(self, *words):
        command(*self.prefix, *words)

    def connect(self, interface):
        """Gives it an end of the cable."""
        command('ip', 'link', 'set', interface, 'netns', str(self.process.pid))
        self.do('ip', 'link', 'set', 'lo', 'up')
        self.do('ip', 'address', 'add', f'{self.address}/24', 'dev', interface)
        self.do('ip', 'link', 'set', interface, 'up')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Hosts:
    """Two hosts and a cable."""

    def __enter__(self):
        command('ip', 'link', 'add', 'name', 'cable0', 'type', 'veth', 'peer', 'name', 'cable1')
        self.hosts = [Host(name) for name in HOSTS]
        for i, host in enumerate(self.hosts):
            host.connect(f'cable{i}')
        return self.hosts

    def __exit__(self, *_error):
        for host in self.hosts:
            host.end()


def start(hosts, nodes, script, *arguments, environment=TOKEN, endpoint=HOSTS['north']):
    common = [f'--nnodes={nodes}', '-n2', '--rdzv-backend=c10d', f'--rdzv-endpoint={endpoint}:{PORT}', CONF, *arguments]
    return [Run(*common, f'--local-addr={host.address}', script=script, prefix=host.prefix, **environment)
            for host in hosts]


def hosts_find_each_other():
    with Hosts() as hosts:
        jobs = start(hosts, '2', EXCHANGE)
        assert [job.wait() for job in jobs] == [0, 0], jobs[0].err + jobs[1].err
        found = sorted(line for job in jobs for line in re.findall(r'rank (\d) of 4 on (\w+) sum 306', job.out))
        assert [rank for rank, _name in found] == ['0', '1', '2', '3'], jobs[0].out + jobs[1].out
        # the two ranks of a host follow each other
        assert found[0][1] == found[1][1] != found[2][1] == found[3][1], found
        assert {name for _rank, name in found} == set(HOSTS)


def hosts_have_places():
    with Hosts() as hosts:
        jobs = [Run('--nnodes=2', '-n1', f'--node-rank={i}', f'--master-addr={HOSTS["north"]}', f'--master-port={PORT}',
                    CONF, script=EXCHANGE, prefix=host.prefix, **TOKEN) for i, host in enumerate(hosts)]
        assert [job.wait() for job in jobs] == [0, 0], jobs[0].err + jobs[1].err
        assert 'rank 0 of 2 on north sum 101' in jobs[0].out and 'rank 1 of 2 on south sum 101' in jobs[1].out


def the_others_go_on_when_a_cable_is_cut():
    script = 'print("rank", RANK, "of", os.environ["WORLD_SIZE"])\nsys.stdout.flush()\n' \
             'time.sleep(1000 if os.environ["WORLD_SIZE"] == "4" else 0)\n'
    with Hosts() as hosts:
        jobs = start(hosts, '1:2', script)
        for job in jobs:
            job.wait_for(r'rank \d of 4', 2)
        hosts[1].do('ip', 'link', 'set', 'cable1', 'down')
        assert jobs[0].wait() == 0, jobs[0].err
        assert re.findall(r'rank (\d) of 2', jobs[0].out) in (['0', '1'], ['1', '0']), jobs[0].out
        has(r'node \S+ is lost; the workers are started again', jobs[0].err)
        # the other host cannot reach the store, and ends its workers
        assert jobs[1].wait() != 0, jobs[1].out + jobs[1].err


def other_hosts_need_the_secret():
    with Hosts() as hosts:
        for environment in ({}, {'GTORCH_STORE_TOKEN': 'another one'}):
            first = start(hosts[:1], '2', EXCHANGE, environment=TOKEN)[0]
            second = start(hosts[1:], '2', EXCHANGE, environment=environment)[0]
            assert second.wait() != 0 and 'rank' not in second.out, second.out
            has(r'(?i)token|secret', second.err)
            first.process.terminate()
            first.wait()


CASES = (hosts_find_each_other, hosts_have_places, the_others_go_on_when_a_cable_is_cut, other_hosts_need_the_secret)

if __name__ == '__main__':
    reason = None if os.environ.pop(INSIDE, None) else enter()
    from launcher import Run, has

    import tap

    for case in CASES:
        def skipped():
            raise tap.Skip(reason)

        skipped.__name__ = case.__name__
        tap.case(skipped if reason else case)
    tap.main()
