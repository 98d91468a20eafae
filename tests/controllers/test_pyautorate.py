# SPDX-License-Identifier: Apache-2.0
"""The Python package's autorate: the law beside the switch's own, the reflectors on this host."""
import contextlib
import json
import os
import socket
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(REPOSITORY, 'controllers/python'), os.path.join(REPOSITORY, 'tests')]

from ofqos.autorate import Bounds, Law, Reflectors, follow, median  # noqa: E402
from support import tc, topo  # noqa: E402
from support.reflector import Reflector  # noqa: E402
from support.wait import until  # noqa: E402

VECTORS = os.path.join(REPOSITORY, 'tests/unit/dpctl/autorate.txt')


def test_law_is_dpctls():
    law, turns = None, 0
    with open(VECTORS) as f:
        for line in f:
            words = line.split()
            if words[0] == 'bounds':
                law = Law(Bounds(*map(int, words[1:])))
            elif words[0] != '#':
                at, sent, delay, state, rate = words
                assert law.step(int(at), int(sent), int(delay)) == state
                assert law.rate == int(rate)
                turns += 1
    assert turns == 1200


def test_baselines_and_medians():
    assert follow(0, 20_000) == 20_000
    assert follow(20_000, 12_000) == 12_000
    assert follow(12_000, 52_000) == 12_040
    assert follow(12_000, 5_000_000) == 12_100
    assert median([]) == -1
    assert median([9, 1, 5, 7]) == 5


@contextlib.contextmanager
def echo(family, address):
    """Sends back what it gets -> its port, and a set: what is in it isn't sent back"""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind((address, 0))
        s.settimeout(0.05)
        silent, over = set(), threading.Event()

        def run():
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    data, peer = s.recvfrom(2048)
                    if not silent:
                        s.sendto(data, peer)
        thread = threading.Thread(target=run)
        thread.start()
        yield s.getsockname()[1], silent
        over.set()
        thread.join(10)


def heard(reflectors):
    """A probe to each, and all have answered it"""
    reflectors.send()
    until(lambda: len(reflectors.delays()) == len(reflectors.every)
          and all(r.heard == r.number for r in reflectors.every))


@pytest.mark.parametrize('family, address, text', [
    (socket.AF_INET, '127.0.0.1', 'udp:127.0.0.1:{}'), (socket.AF_INET6, '::1', 'udp:[::1]:{}')])
def test_reflectors(family, address, text):
    with echo(family, address) as (port, silent), \
            Reflectors([text.format(port), text.format(port)]) as reflectors:
        assert reflectors.delay() == -1
        for _ in range(3):
            heard(reflectors)
        one, _ = reflectors.every
        assert 0 < one.baseline <= one.rtt + 1 and reflectors.delay() >= 0
        silent.add('now')               # what is not answered counts for as long as it waits
        reflectors.send()
        until(lambda: reflectors.delay() > 50_000)
        silent.clear()
        heard(reflectors)
        assert not one.sent
        # What was answered in between is nobody's
        one._take(b'', 0)
        one._take(bytes(30), 0)
        assert one.heard == one.number


def test_icmp():
    try:
        reflectors = Reflectors(['127.0.0.1'])
    except PermissionError:
        pytest.skip('needs root')
    with reflectors:
        heard(reflectors)
        heard(reflectors)
        assert reflectors.delay() >= 0


@pytest.mark.parametrize('text', ['', 'www.example.org', 'udp:127.0.0.1', 'udp:127.0.0.1:x'])
def test_what_is_no_reflector(text):
    with pytest.raises(ValueError, match='a reflector is'):
        Reflectors([text])


def test_how_many_reflectors():
    for texts in ([], ['127.0.0.1'] * 9):
        with pytest.raises(ValueError, match='1 to 8'):
            Reflectors(texts)


# ------------------------------------------------------------------------------- the application

@pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
def test_application(framework, tmp_path):
    """Falls with the delay, has the safe rate while it is silent and at the end; what is waited for comes
    by itself."""
    path = tmp_path / 'autorate.json'
    path.write_text(json.dumps([{'port': 2, 'min': '2mbit', 'base': '3mbit', 'max': '8mbit',
                                 'safe': '2500kbit', 'limit_ms': 40, 'interval': 0.05,
                                 'reflectors': ['udp:10.0.0.2:7']}]))
    with topo.Topology(2, ip=True) as t, Reflector(t, 2) as reflector:
        # The controller's machine reaches host 2 by the switch's own port, as an uplink's router would
        topo.sh('ip', '-n', t.switch_ns, 'link', 'add', 'c0', 'type', 'veth', 'peer', 'name', 'c1')
        for name in 'c0', 'c1':
            topo.sh('ip', '-n', t.switch_ns, 'link', 'set', name, 'up')
        topo.sh('ip', '-n', t.switch_ns, 'address', 'add', '10.0.0.9/24', 'dev', 'c0')

        def rate():
            found = tc.classes(t.switch_ns, 'p2').get(0xffff) if tc.root(t.switch_ns, 'p2') else None
            return found and found['options']['rate']
        with framework.run(t.switch_ns, 'autorate', OFQOS_AUTORATE=str(path)) as it:
            it.wait_listening()
            with topo.Switch(t, 'tcp:127.0.0.1', interfaces=['p1', 'p2', 'c1']):
                until(rate, wanted=lambda r: r == 3_000_000)
                it.said_until('"look"')
                reflector.delay = 0.2
                until(rate, wanted=lambda r: r == 2_000_000)
                reflector.delay = 0.0
                until(rate, wanted=lambda r: r == 3_000_000)
                reflector.delay = None
                it.said_until('"silent"')
                assert rate() == 2_500_000
                reflector.delay = 0.0
                it.said_until('"answers"')
                until(rate, wanted=lambda r: r == 3_000_000)
                it.process.terminate()
                assert '"end"' in it.said_until('"end"')
                assert it.process.wait(20) == 0
                assert rate() == 2_500_000


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
@pytest.mark.parametrize('text', ['{}', '[]', '[{}]', '[{"port": 1}]', '[{"port": 1, "colour": 2}]',
                                  '[{"port":1,"min":"9mbit","max":"2mbit","reflectors":["::1"]}]'])
def test_settings_that_are_wrong(framework, tmp_path, text):
    path = tmp_path / 'autorate.json'
    path.write_text(text)
    with topo.Topology(1) as t, \
            framework.run(t.switch_ns, 'autorate', OFQOS_AUTORATE=str(path)) as it:
        assert it.process.wait(30)
        assert 'OFQOS_AUTORATE' in it.errors()
