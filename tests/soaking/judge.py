# SPDX-License-Identifier: Apache-2.0
"""Whether memory stays flat, and which echoes the switch answered late."""
import statistics

WARM_UP = 0.25              # of the rests: tables, caches and rings fill
ENOUGH = 10                 # rests after it that tell a trend
GROWTH, LEAST = 0.03, 2_000_000        # of the memory, at least bytes: what may be added after the warm-up
QUEUE_SOCKETS = 128         # that a worker keeps: IO_SOCKETS of datapath/port/backend.h
CONNECTIONS = 8             # that may come after the first rest
LATE = 1.0                  # seconds


def slope(points):
    """Theil and Sen's: the median of the slopes between any two points"""
    found = [(b - a) / (y - x) for i, (x, a) in enumerate(points) for y, b in points[i + 1:] if y > x]
    return statistics.median(found) if found else 0.0


def growth(points):
    """[(time, value)] -> (what the trend adds after the warm-up, what it may add)"""
    kept = points[int(len(points) * WARM_UP):]
    if len(kept) < 3:
        return 0.0, LEAST
    return slope(kept) * (kept[-1][0] - kept[0][0]), max(LEAST, GROWTH * statistics.median(v for _, v in kept))


def enough(rests):
    """Whether they tell a trend"""
    return len(rests) * (1 - WARM_UP) >= ENOUGH


def memory(rests):
    """Of samples at rest -> ({what: (added, may)}, sentences)"""
    told, wrong = {}, []
    if not rests:
        return told, wrong
    for name in 'anon', 'rss', 'pss':
        added, may = growth([(r['at'], r[name]) for r in rests])
        told[name] = {'added': added, 'may': may}
        if added > may and enough(rests):
            wrong.append(f'{name} grows: {added / 1e6:.1f} MB after the warm-up, {may / 1e6:.1f} MB are allowed')
    for name, more in ('descriptors', QUEUE_SOCKETS * rests[0]['workers'] + CONNECTIONS), ('threads', 0):
        most, may = max(r[name] for r in rests), rests[0][name] + more
        told[name] = {'most': most, 'bound': may}
        if most > may:
            wrong.append(f'{name} grow: up to {most}, but {may} are all that there can be')
    return told, wrong


def echoes(late, pauses, grace):
    """late: {who: [(begun, took, of that its own)]} -> (those that the switch has to answer for, excused)

    Excused is what would have come within a second if the machine had not stood still meanwhile, or if the kernel
    had not let others wait as long for RCU or the lock of rtnetlink (grace.py)."""
    ours, excused = [], []
    for who, events in late.items():
        for begun, took, own in events:
            if took <= LATE:
                continue
            still = pauses.within(begun, begun + took)
            long = grace.within(begun, begun + took)
            row = {'who': who, 'begun': begun, 'took': took, 'own': own, 'machine': still, 'grace': long}
            (excused if took - max(still, own, long) <= LATE else ours).append(row)
    return ours, excused
