# SPDX-License-Identifier: Apache-2.0
"""The tenant's own door (docs/how-to/tenants.md): an HTTP service in front of a switch, where a tenant divides its
own port's total into groups, puts its own connections into them, and can do nothing else.

    rights      what a tenant may do, and the tokens and certificates that carry it
    link        one OpenFlow connection to the switch
    model       from what a tenant wants to requests and flows, and back from what the switch has
    desk        carries it out: admission, transfers, one change at a time
    usage       the log that bills are made of
    limits      how much of the service anybody may take
    server      HTTP
    client      the other side
    command     `ofqos-tenant`

Only the standard library is needed.
"""
from .client import Client, Forbidden, ServiceError
from .rights import Denied, Rights, make_token, read_token

__all__ = ['Client', 'Denied', 'Forbidden', 'Rights', 'ServiceError', 'make_token', 'read_token']
