# SPDX-License-Identifier: Apache-2.0
"""What concerns the switch as a whole: its configuration is read again, another process takes over, it starts."""
import re
import signal
import socket
import subprocess
import time

from support import of13, qosmsg as q, tc
from support.topo import inside
from support.of13 import apply_actions, flow_mod, group_mod, match, meter_mod, output

import script

PATIENCE = 120
QUEUES = 'queues', 'kernel p3'
# What can't be done of a file is told in a line that names it, and the switch goes on without (docs/reference/configuration.md):
# a port, its queues, the rules, a connection.  Each is there as a whole or not at all.
TOLD = {re.compile(text): keys for text, keys in (
    (r'port p3: .*(not set by the configuration|everything stays as it was there)', QUEUES),
    (r'port p3 is not (added|there)', ('ports', *QUEUES)),
    (r'rules config: .*(not set by the configuration|everything stays as it was there)', ('flows',)),
    (r'punix:\S* is not added: ', ('second address',)), (r'tcp:\S* is not added: ', ('controllers',)))}


def left_out(said):
    """-> keys of the snapshot that may be as before, as the log says so"""
    return {key for text, keys in TOLD.items() if text.search(said) for key in keys}


def excused(said, now, before, after):
    """-> now, as if what was told had been done.  What was told is as it was before, or not there at all."""
    def is_out(key):
        return now[key] == before[key] or key in QUEUES or key == 'ports' and set(now[key]) < set(after[key])
    return {**now, **{key: after[key] for key in left_out(said) if is_out(key)}}


def reload(version):
    """By a request"""
    def do(stage):
        script.write_conf(stage, version)
        script.own(script.RELOAD)(stage)
    return do


FEW = 20                                        # lines of a kind that are written at once (daemon/log.c)


def hang_up(version):
    """By SIGHUP, which nobody answers.  It is over when two new connections are answered: the signal is before them.
    The log says whether it was done, unless that line is what fails, or is one of too many."""
    def do(stage):
        seen = stage.mark()
        script.write_conf(stage, version)
        stage.switch.process.send_signal(signal.SIGHUP)
        stage.again()
        stage.again()
        said = stage.said(seen)
        if f'{stage.conf}: read again' in said or not stage.faults.fired:
            return
        if re.search(stage.conf + ': (out of memory: )?not applied', said):
            raise script.Refused('as the log says')
        lost = stage.faults.where()[0] in ('write', 'send', 'sendmsg')
        many = max(map(stage.said(0).count, ('read again', 'not applied'))) >= FEW
        raise script.Unsaid('' if lost or many else 'the log says nothing')
    return do


def listen(stage):
    """A controller that speaks TLS"""
    if stage.controller:
        stage.controller.close()
    with inside(stage.topo.switch_ns):
        stage.controller = socket.create_server(script.BY_TLS)
    stage.by_tls = None


def by_tls(stage):
    """The switch connects to it: if the first handshake fails, by another one"""
    seen = stage.mark()
    reload(4)(stage)
    deadline = time.monotonic() + PATIENCE
    stage.controller.settimeout(0.5)
    while time.monotonic() < deadline and stage.alive():
        try:
            sock, _ = stage.controller.accept()
        except TimeoutError:
            if re.search(r'tls:\S* is not added: ', stage.said(seen)):
                return
            continue
        sock.settimeout(20)
        try:
            stage.by_tls = of13.Conn(stage.who.context(server=True).wrap_socket(sock, server_side=True), timeout=20)
            stage.by_tls.features()
            return
        except (OSError, of13.Closed, AssertionError):
            sock.close()
    if not stage.alive():
        raise script.Lost('it has died')
    raise TimeoutError('no message: the switch does not connect again')


def hung_up(stage):
    if stage.by_tls:
        stage.by_tls.close()
    stage.by_tls = None
    back(stage)


def deaf(stage):
    stage.controller.close()
    stage.controller = None


def back(stage):
    """What failed has to be possible now"""
    reload(1)(stage)


def restart(stage):
    """Its answer is that the connection ends with the process"""
    try:
        script.own(script.RESTART)(stage)
    except (OSError, of13.Closed):
        try:
            stage.switch.process.wait(1 if stage.faults.fired else PATIENCE)
        except subprocess.TimeoutExpired as still:
            raise script.Lost('the old process goes on') from still
        return
    raise script.Refused('it has not restarted')


def fill(stage):
    """Some of everything that has to stay while another process takes over"""
    conn = stage.conn
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 7, of13.bucket(output(2))))
    conn.ok(of13.METER_MOD, meter_mod(0, 7, of13.band_drop(1000)))
    for i in range(3):
        conn.ok(of13.FLOW_MOD, flow_mod(match=match(in_port=i + 1), priority=i + 1,
                                        instructions=(apply_actions(output(2)),)))
    for direction in ({}, {'direction': 1}):
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 5 * script.MBIT, **direction))
    q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 10, 77))


def empty(stage):
    script.delete_flows(stage)
    stage.conn.ok(of13.GROUP_MOD, group_mod(2, 0, 7))
    stage.conn.ok(of13.METER_MOD, meter_mod(2, 7))
    for direction in ({}, {'direction': 1}):
        q.send(stage.conn, q.NATIVE, q.clear(2, **direction))


def steps():
    yield script.Step('configuration: reload', reload(2), back, always=True, told=True)
    yield script.Step('configuration: a port goes, another moves', reload(3), back, always=True, told=True)
    yield script.Step('configuration: SIGHUP', hang_up(2), back, always=True, told=True)
    yield script.Step('configuration: nothing new', reload(1), back, always=True)
    yield script.Step('controller: the switch connects by tls', by_tls, hung_up, prepare=listen, tidy=deaf, always=True,
                      told=True)
    yield script.Step('restart', restart, prepare=fill, tidy=empty)


# ------------------------------------------------------------------------------------ the start

def left(stage):
    """What is on the interfaces while nothing runs"""
    ns = stage.topo.switch_ns
    return {'interfaces': script.interfaces(ns),
            **{f'kernel {dev}': script.kernel(ns, dev) for dev in stage.topo.port_names()}}


def clean(stage):
    """Nothing is on the interfaces"""
    for name in stage.topo.port_names():
        tc.tc(stage.topo.switch_ns, 'qdisc', 'del', 'dev', name, 'root', check=False)
        tc.tc(stage.topo.switch_ns, 'qdisc', 'del', 'dev', name, 'clsact', check=False)


def clear(stage):
    """No queues, of a new switch: it knows what the one before has left"""
    for port in stage.conn.ports():
        for direction in ({}, {'direction': 1}):
            q.send(stage.conn, q.NATIVE, q.clear(port, **direction))


def begin(stage, options):
    """Starts it -> whether it answers; it ends by itself otherwise"""
    stage.switch = stage.new_switch(*options, wait=False)
    stage.second = stage.switch.directory + '/two.sock'
    script.write_conf(stage, 2)
    stage.switch.__enter__()
    deadline = time.monotonic() + PATIENCE
    while stage.alive() and time.monotonic() < deadline:
        try:
            stage.conn = stage.switch.connect(timeout=5)
            stage.conn.features()
            return True
        except (OSError, of13.Closed, of13.OfError):
            time.sleep(0.005)
    return False


def started(stage, good):
    """What is wrong with one that answers -> text"""
    stage.faults.disarm()
    try:
        stage.again()
        now = script.snapshot(stage)
    except (OSError, of13.Closed, of13.OfError) as error:
        return f'it does not answer a second time: {error!r}'
    told = left_out(stage.switch.output())
    differ = [key for key in good if now[key] != good[key] and key not in told]
    return '; '.join(f'it starts with {key} {now[key]}, which should be {good[key]}' for key in differ)


def ended(stage, bare):
    """What is wrong with one that does not start -> text"""
    stage.faults.disarm()
    status, said = stage.switch.process.poll(), stage.switch.output()
    if status is None:
        return 'it hangs'
    if status < 0 or status == 99 or 'Sanitizer' in said:
        return f'status {status}: {said[-2500:]}'
    if not status or not said.strip():
        return f'it ends with {status}, saying {said!r}'
    now = left(stage)
    return '; '.join(f'it leaves {key} {now[key]}' for key in bare if now[key] != bare[key])
