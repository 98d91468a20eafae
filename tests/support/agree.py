# SPDX-License-Identifier: Apache-2.0
"""Whether the switch's queues (QOS_DUMP) are the kernel's."""
from . import qosmsg as q, tc

OWN = (0xffff, 0xfffe)                          # classes of the switch's own


def told(conn, port):
    """What the switch says of outgoing queues -> classes {id: (parent, rate, ceil)}, leaves {id: kind}"""
    classes, leaves = {}, {}
    for e in q.dump(conn, port):
        if e['properties'].get('direction') or e['class_id'] in OWN:
            continue
        if e['object_type'] == q.CLASS and e['class_id']:
            classes[e['class_id']] = e['parent_id'], e['rate'], e['ceil']
        elif e['object_type'] == q.QDISC and e['class_id']:
            leaves[e['class_id']] = q.SCHEDS[e['sched_type']]
    return classes, leaves


def has(ns, dev):
    """The same of the kernel"""
    classes = {n: (r['parent'] & 0xffff, r['options']['rate'], r['options']['ceil'])
               for n, r in tc.classes(ns, dev).items() if n not in OWN and r['kind'] == 'htb'}
    leaves = {parent & 0xffff: r['kind'] for parent, r in tc.qdiscs(ns, dev).items()
              if parent >> 16 == 1 and parent & 0xffff not in OWN}
    return classes, leaves


def same(said, kernel):
    """The root class's own number is the switch's matter"""
    def plain(classes):
        return {n: (p if p in classes else 0, r, c) for n, (p, r, c) in classes.items()}
    return plain(said[0]) == plain(kernel[0]) and said[1] == kernel[1]


def differences(conn, ns, ports):
    """Of ports whose interfaces are p1, p2, ... -> sentences"""
    found = []
    for port in ports:
        said, kernel = told(conn, port), has(ns, f'p{port}')
        if not same(said, kernel):
            found.append(f'port {port}: the switch says {said}, the kernel has {kernel}')
    return found
