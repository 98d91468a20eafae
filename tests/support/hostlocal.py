# SPDX-License-Identifier: Apache-2.0
"""An IPAM plugin as small as can be, for tests: addresses of ipam.subnet as files in ipam.dataDir.

What a test may ask of it in `ipam`: "fail": {COMMAND: MESSAGE}; "slow": SECONDS after an address was taken;
"answer": what it prints instead; "gateway": null for none."""
import fcntl
import ipaddress
import json
import os
import sys
import time


def fail(conf, code, msg):
    print(json.dumps({'cniVersion': conf['cniVersion'], 'code': code, 'msg': msg, 'details': 'of the fake'}))
    sys.exit(1)


def mine(directory, who):
    return [name for name in os.listdir(directory) if name != 'lock' and open(os.path.join(directory, name), encoding='ascii').read() == who]


def add(conf, ipam, directory, who):
    if mine(directory, who):
        fail(conf, 999, f'duplicate allocation: {who}')
    net = ipaddress.ip_network(ipam['subnet'])
    taken = set(os.listdir(directory))
    free = next(str(a) for a in list(net.hosts())[1:] if str(a) not in taken)
    with open(os.path.join(directory, free), 'w', encoding='ascii') as f:
        f.write(who)
    ip = {'address': f'{free}/{net.prefixlen}', 'gateway': ipam.get('gateway', str(net[1]))}
    if conf['cniVersion'] == '0.4.0':
        ip['version'] = str(net.version)
    if ip['gateway'] is None:
        del ip['gateway']
    return {'cniVersion': conf['cniVersion'], 'ips': [ip], 'routes': ipam.get('routes', []), 'dns': {'nameservers': ['192.0.2.53']}}


def main():
    conf = json.load(sys.stdin)
    ipam, command = conf['ipam'], os.environ['CNI_COMMAND']
    directory = ipam['dataDir']
    who = ' '.join(os.environ.get(name, '') for name in ('CNI_CONTAINERID', 'CNI_IFNAME'))
    if command in ipam.get('fail', {}):
        fail(conf, 11, ipam['fail'][command])
    with open(os.path.join(directory, 'lock'), 'a', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if command == 'ADD':
            answer = add(conf, ipam, directory, who)
        elif command == 'DEL':
            for name in mine(directory, who):
                os.unlink(os.path.join(directory, name))
        elif command == 'CHECK' and not mine(directory, who):
            fail(conf, 999, f'{who} has no address')
        elif command == 'GC':
            valid = {f'{a["containerID"]} {a["ifname"]}' for a in conf.get('cni.dev/valid-attachments') or []}
            for name in set(os.listdir(directory)) - {'lock'}:
                if open(os.path.join(directory, name), encoding='ascii').read() not in valid:
                    os.unlink(os.path.join(directory, name))
    if command == 'ADD':
        time.sleep(ipam.get('slow', 0))
        print(ipam.get('answer') or json.dumps(answer))


main()
