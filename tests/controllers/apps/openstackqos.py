# SPDX-License-Identifier: Apache-2.0
"""What OpenStack's Neutron agent does for a port's limit, by its own library: `openstackqos.py DATABASE PORT`.

Prints a line of JSON for each step."""
import json
import logging
import sys

from ovsdbapp.backend.ovs_idl import connection
from ovsdbapp.schema.open_vswitch import impl_idl

logging.disable(logging.CRITICAL)


def say(**what):
    print(json.dumps(what), flush=True)


def main(database, port):
    idl = connection.OvsdbIdl.from_server(database, 'Open_vSwitch')
    api = impl_idl.OvsdbIdl(connection.Connection(idl=idl, timeout=10))
    say(ports=sorted(api.list_ports(api.list_br().execute(check_error=True)[0]).execute(check_error=True)))
    with api.transaction(check_error=True) as txn:
        queue = txn.add(api.db_create('Queue', external_ids={'id': port, 'queue_type': '0'},
                                      other_config={'max-rate': '3000000', 'burst': '800000'}))
        qos = txn.add(api.db_create('QoS', external_ids={'id': port}, type='linux-htb', queues={0: queue}))
        txn.add(api.db_set('Port', port, ('qos', qos)))
    found, = api.db_find('Queue', ('external_ids', '=', {'id': port}), columns=['_uuid', 'other_config']).execute(
        check_error=True)
    say(limit=found['other_config'])
    sys.stdin.readline()
    api.db_set('Queue', found['_uuid'], ('other_config', {'max-rate': '4000000'})).execute(check_error=True)
    try:
        api.db_set('Queue', found['_uuid'], ('other_config', {'max-rate': 'many'})).execute(check_error=True)
    except RuntimeError as e:
        say(refused=str(e))
    sys.stdin.readline()
    row, = api.db_list('QoS', columns=['_uuid']).execute(check_error=True)
    with api.transaction(check_error=True) as txn:
        txn.add(api.db_clear('Port', port, 'qos'))
        txn.add(api.db_destroy('QoS', row['_uuid']))
        txn.add(api.db_destroy('Queue', found['_uuid']))
    say(left=len(api.db_list('QoS').execute(check_error=True)))


main(*sys.argv[1:])
