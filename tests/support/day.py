# SPDX-License-Identifier: Apache-2.0
"""The hours of tests/day: what happens in each, what is measured, and what is right."""
import contextlib
import sys
import tempfile
import time

from . import ispday, tc
from .ispday import FIRST, FRAME, GREEDY, MBIT, NUMBERED, OFFERED, ONE, PAYLOAD, SETTLE, Box, Lists, Numbered, Service
from .served import PACKAGE
from .wait import until

RATE = 600                      # numbered packets a second, each way
PLAN, SITE = 3.0, 2.0           # % that a plan and a site may be off
STARTING = 1.5                  # seconds of a killed switch's next start in which the wire has no queue for what is new to it
INTERVAL = 10                   # seconds between samples of the history
# Of each hour: the method, and what is told of it
HOURS = (('rest', 'nothing happens'), ('churn', '12 customers leave, 15 come'), ('upgrade_service', 'ofqosd is upgraded'), ('plans', 'plans change'),
         ('hand_over', 'the switch is upgraded'), ('plans', 'plans change'), ('churn', '12 customers leave, 15 come'), ('moves', 'customers move to another mast'),
         ('kill_service', 'ofqosd is killed'), ('degrade', "Hill's link degrades to 6 and 3 Mbit/s"), ('plans', 'plans change'),
         ('churn', '12 customers leave, 15 come'), ('kill', 'the switch is killed'), ('plans', 'plans change'), ('repair', "Hill's link is repaired"),
         ('mistake', 'a list with a mistake'), ('plans', 'plans change'), ('hand_over', 'the switch is upgraded'), ('crowd', '100 customers come'),
         ('plans', 'plans change'), ('kill', 'the switch is killed'), ('moves', 'customers move to another mast'),
         ('kill_both', 'switch and ofqosd are killed'), ('churn', '12 customers leave, 15 come'))
STARTS = 'upgrade_service', 'hand_over', 'kill_service', 'kill', 'kill_both'         # then the history begins anew
STEADY = 'rest', 'upgrade_service', 'hand_over', 'kill_service', 'kill', 'kill_both', 'mistake', 'churn', 'crowd'


class Day(contextlib.ExitStack):
    """`rows`: an hour each"""

    def __init__(self, circuits, rng):
        super().__init__()
        self.rng, self.rows, self.changes, self.next = rng, [], [], circuits
        self.lists, self.own, self.events = Lists(circuits), {}, []

    def __enter__(self):
        super().__enter__()
        try:
            net = self.enter_context(ispday.network())
            self.box = self.enter_context(Box(net, self.enter_context(tempfile.TemporaryDirectory())))
            self._service()
            self.numbered = [Numbered(net, down, RATE) for down in (True, False)]
            self.streams = ispday.streams(net, self.lists)
            for each in (*self.numbered, *self.streams.values()):
                self.callback(each.close)
                for thread in each.threads:
                    thread.start()
            time.sleep(SETTLE)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _service(self):
        if PACKAGE not in sys.path:
            sys.path.append(PACKAGE)
        from ofqos import users
        self.service = Service(self.box.switch, *users.made())
        self.service.write_lists(self.lists)
        self.service.start()
        self.callback(lambda: self.service.runs and self.service.kill())
        self.service.after(0)
        self.box.save()
        self.began = time.time()

    # ------------------------------------------------------------------ an hour

    def live(self, hour, seconds):
        end = time.monotonic() + seconds
        method, what = HOURS[hour]
        for each in self.numbered:
            each.hour = hour
        before = self._arrived()
        told = getattr(self, method)() or {}
        if method not in STEADY:
            time.sleep(SETTLE)
            before = self._arrived()
        time.sleep(max(2.0, end - time.monotonic()))
        after = self._arrived()
        self.box.save()
        left = self.service.api('POST', '/api/subscribers/apply', {'dry_run': True})
        self.rows.append({'hour': hour, 'what': what, 'method': method, 'seconds': after[0] - before[0], 'left': left['messages'], 'wrong': self._wrong(),
                          **{key: told.get(key, 0) for key in ('new', 'changed', 'gone', 'messages')}, **self._kept(before, after)})

    def _wrong(self):
        """Circuits whose class is not in the kernel as the lists and the API have it"""
        numbers, made = self.service.numbers(), []
        trees = self._trees()
        for n in self.lists.plans:
            has = {way: tree.get(numbers.get(f'circuit {n}')) for way, tree in trees.items()}
            if any(row is None or row['options']['ceil'] != self._ceiling(n, way) * MBIT for way, row in has.items()):
                made.append(n)
        return made

    def _arrived(self):
        """Bytes: of streams, and of sites as the kernel counts them, with all that passes there"""
        numbers, made = self.service.numbers(), {}
        for way, tree in self._trees().items():
            made.update({(site, way): tree[numbers[f'site {site}']]['bytes'] for site in self.lists.sites})
        return time.monotonic(), {**made, **{key: stream.arrived for key, stream in self.streams.items()}}

    def _trees(self):
        return {way: tc.classes(self.box.switch.topo.switch_ns, port) for way, port in (('down', 'p2'), ('up', 'p1'))}

    def _kept(self, before, after):
        """% off: of the plans, and of sites that are full"""
        took = after[0] - before[0]
        rates = {key: (after[1][key] - before[1][key]) * 8 / took / MBIT * (FRAME / PAYLOAD if key in self.streams else 1) for key in after[1]}
        plans, sites, short = [], [], []
        for way in 'down', 'up':
            for site, has in self.lists.sites.items():
                here = [n for n in GREEDY if (n, way) in rates and ispday.site_of(n) == site]
                wanted = sum(self._ceiling(n, way) for n in here)
                if wanted <= has[way]:
                    plans += [(rates[n, way] / self._ceiling(n, way) - 1) * 100 for n in here]
                    continue
                sites.append((rates[site, way] / has[way] - 1) * 100)
                short += [n for n in here if rates[n, way] < self.lists.plans[n][0 if way == 'down' else 2] * 0.97]
        return {'plan_off': max(plans, key=abs), 'plan_least': min(plans), 'site_off': max(sites, key=abs, default=None), 'below_guarantee': short}

    def _ceiling(self, n, way):
        own = self.own.get(n)
        return own[way] if own else self.lists.plans[n][1 if way == 'down' else 3]

    # ------------------------------------------------------------------ what happens

    def rest(self):
        pass

    def _apply(self):
        many = self.service.many()
        self.service.write_lists(self.lists)
        return self.service.after(many)

    def _others(self, many):
        return self.rng.sample([n for n in self.lists.plans if n >= FIRST], many)

    def churn(self, leave=12, come=15):
        for n in self._others(leave):
            self.lists.remove(n)
        for _ in range(come):
            self.lists.add(self.next)
            self.next += 1
        return self._apply()

    def crowd(self):
        return self.churn(0, 100)

    def plans(self):
        """Of ten in the list, of a greedy one in the list and of another over the API"""
        listed, asked = self.rng.sample([n for n in GREEDY if n not in self.own], 2)
        for n in self._others(10):
            self.lists.plans[n][1] += 5
        self.lists.plans[listed][1] = self.rng.choice((3, 3.5, 4.5, 5))
        told = self._apply()
        down, up = self.rng.choice((2.5, 3, 5)), self.rng.choice((1.5, 2.5))
        body = {'ceiling': {'down': f'{down}mbit', 'up': f'{up}mbit'}}
        done = self.service.api('PUT', f'/api/subscribers/{asked}', body)
        self.changes.append(('operator', f'PUT /api/subscribers/{asked}', 'done'))
        back = self.service.api('PUT', f'/api/subscribers/{asked}', {'as_listed': True}) if len(self.own) > 2 else None
        if back:
            self.changes.append(('operator', f'PUT /api/subscribers/{asked}', 'done'))
        else:
            self.own[asked] = {'down': down, 'up': up}
        self._offer()
        return {**told, 'changed': told['changed'] + 1 + bool(back), 'messages': told['messages'] + done['messages'] + (back['messages'] if back else 0)}

    def _offer(self):
        for (n, way), stream in self.streams.items():
            stream.rate = self._ceiling(n, way) * MBIT * OFFERED

    def moves(self):
        """Three whose packets are counted, and ten others"""
        for n in (*self.rng.sample(range(NUMBERED), 3), *self._others(10)):
            place, _, mast = self.lists.parents[n].partition(' mast ')
            self.lists.parents[n] = f'{place} mast {int(mast) % 3 + 1}'
        return self._apply()

    def degrade(self):
        self.lists.sites['Hill'] = {'down': 6, 'up': 3}
        return self._apply()

    def repair(self):
        self.lists.sites['Hill'] = {'down': 200, 'up': 100}
        return self._apply()

    def mistake(self):
        """It changes nothing"""
        kept, self.lists.plans[FIRST - 1][0] = self.lists.plans[FIRST - 1][0], 900
        many = self.service.many('subscribers not applied')
        self.service.write_lists(self.lists)
        self.service.after(many, 'subscribers not applied')
        self.lists.plans[FIRST - 1][0] = kept
        return self._apply()

    def upgrade_service(self):
        self.service.end()
        self.service.start()
        return self.service.after(0)

    def kill_service(self):
        self.service.kill()
        self.service.start()
        return self.service.after(0)

    def hand_over(self):
        many = self.service.many()
        self.box.hand_over()
        return self.service.after(many)

    def kill(self):
        many = self.service.many()
        self.box.kill()
        self.box.start()
        return self.service.after(many)

    def kill_both(self):
        self.service.kill()
        self.box.kill()
        self.box.start()
        self.service.start()
        return self.service.after(0)

    # ------------------------------------------------------------------ the end

    def ended(self):
        """What was found; the load has ended"""
        for each in self.numbered:
            each.over.set()
            each.threads[0].join()
        until(lambda: not any(each.lost(row['hour']) for each in self.numbered for row in self.rows) or not any(t.is_alive() for each in self.numbered
                                                                                                               for t in each.threads), 'the last packets')
        for row in self.rows:
            for way, each in zip(('down', 'up'), self.numbered):
                row.update({f'sent_{way}': each.sent.get(row['hour'], 0), f'lost_{way}': each.lost(row['hour']), f'twice_{way}': each.twice.get(row['hour'], 0)})
        log = [(line['user'], line['action'], line['outcome']) for line in self.service.log() if line['action'].startswith('PUT')]
        history = self._history()
        self.service.end()              # which has had no fault
        return {'hours': self.rows, 'log': log, 'changes': self.changes, 'history': history}

    def _history(self):
        """Of the greedy ones' queues: the longest gap, and what the samples count together beside what arrived"""
        numbers, most, samples = self.service.numbers(), 0.0, []
        for n in GREEDY:
            found = self.service.api('GET', f'/api/history?switch={ONE}&port=2&queue={numbers[f"circuit {n}"]}&of=hour')
            times = [at for at, bps in zip(found['time'], found['bps']) if bps is not None and at >= self.began - INTERVAL]
            samples.append(len(times))
            most = max([most, *(b - a for a, b in zip(times, times[1:]))])
        return {'samples': min(samples), 'longest_gap': most, 'seconds': time.time() - self.began}


# ---------------------------------------------------------------------------------------- what is right

def verdicts(found, rates=True):
    """What does not hold; without `rates` these don't count"""
    made = []
    for row in found['hours']:
        where = f'{row["hour"]:02}:00, {row["what"]}: '
        for way in 'down', 'up':
            if row[f'lost_{way}'] or row[f'twice_{way}']:
                made.append(f'{where}{row[f"lost_{way}"]} packets {way} are lost, {row[f"twice_{way}"]} came twice')
        more = (OFFERED - 1) * 100 * STARTING / row['seconds'] if row['method'].startswith('kill') else 0
        if rates and (row['plan_least'] < -PLAN or row['plan_off'] > PLAN + more):
            made.append(f'{where}a plan is {row["plan_off"]:+.1f} % off')
        if rates and row['site_off'] is not None and abs(row['site_off']) > SITE + more:
            made.append(f'{where}a full site is {row["site_off"]:+.1f} % off')
        made += [f'{where}circuit {n} gets less than its guarantee' for n in row['below_guarantee'] if rates]
        if row['left'] or row['wrong']:
            made.append(f'{where}{row["left"]} messages are left to be sent; classes of circuits {row["wrong"][:10]} are wrong')
    if found['log'] != found['changes']:
        made.append(f'the log has {found["log"]}, and there were {found["changes"]}')
    history, starts = found['history'], sum(row['method'] in STARTS for row in found['hours'])
    if history['longest_gap'] > 3 * INTERVAL + 1 or history['samples'] < history['seconds'] / INTERVAL - 2 * starts - 2:
        made.append(f'the history has gaps: {history}')
    return made


def table(found):
    """For people"""
    lines = [f'{"hour":5} {"what happens":40} {"new":>4} {"chg":>4} {"gone":>4} {"msgs":>5} {"packets":>8} {"lost":>5} {"twice":>5} {"plan":>7} {"site":>7}']
    for row in found['hours']:
        sent, lost, twice = (row[f'{key}_down'] + row[f'{key}_up'] for key in ('sent', 'lost', 'twice'))
        site = '' if row['site_off'] is None else f'{row["site_off"]:+.1f} %'
        lines.append(f'{row["hour"]:02}:00 {row["what"]:40} {row["new"]:4} {row["changed"]:4} {row["gone"]:4} {row["messages"]:5} {sent:8,} {lost:5} {twice:5} '
                     f'{row["plan_off"]:+5.1f} % {site:>7}')
    lost = sum(row['lost_down'] + row['lost_up'] for row in found['hours'])
    sent = sum(row['sent_down'] + row['sent_up'] for row in found['hours'])
    history = found['history']
    lines.append(f'{lost} of {sent:,} packets are lost; the log has {len(found["log"])} of {len(found["changes"])} changes over the API; the history has '
                 f'{history["samples"]} samples of each greedy circuit in {history["seconds"]:.0f} s, the longest gap {history["longest_gap"]:.0f} s')
    return '\n'.join(lines)
