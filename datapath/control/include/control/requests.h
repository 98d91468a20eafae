/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that the switch handles, one row each: R(type, name, access).  The channel checks
 * the access; the switch has a function handle_NAME for each row (datapath/requests/).
 *
 * READ: any role may send it.  WRITE: a slave may not (6.3.5); it also waits while a commit is
 * under way.  Experimenter and multipart requests read or write by their content. */
#ifndef CONTROL_REQUESTS_H
#define CONTROL_REQUESTS_H

#define CONTROL_REQUESTS(R)                                                                        \
    R(OFPT_EXPERIMENTER, experimenter, READ)                                                       \
    R(OFPT_FEATURES_REQUEST, features, READ)                                                       \
    R(OFPT_GET_CONFIG_REQUEST, get_config, READ)                                                   \
    R(OFPT_SET_CONFIG, set_config, WRITE)                                                          \
    R(OFPT_PACKET_OUT, packet_out, WRITE)                                                          \
    R(OFPT_FLOW_MOD, flow_mod, WRITE)                                                              \
    R(OFPT_GROUP_MOD, group_mod, WRITE)                                                            \
    R(OFPT_PORT_MOD, port_mod, WRITE)                                                              \
    R(OFPT_TABLE_MOD, table_mod, WRITE)                                                            \
    R(OFPT_MULTIPART_REQUEST, multipart, READ)                                                     \
    R(OFPT_BARRIER_REQUEST, barrier, READ)                                                         \
    R(OFPT_QUEUE_GET_CONFIG_REQUEST, queue_get_config, READ)                                       \
    R(OFPT_ROLE_REQUEST, role, READ)                                                               \
    R(OFPT_GET_ASYNC_REQUEST, get_async, READ)                                                     \
    R(OFPT_SET_ASYNC, set_async, READ) /* of the connection itself */                              \
    R(OFPT_METER_MOD, meter_mod, WRITE)                                                            \
    R(OFPT_QOS_QUEUEING_DISCIPLINE, qos, WRITE)

/* Experimenter messages of docs/extensions.md: R(exp_type, access, needs).  While a commit is under
 * way, those that need QUEUES (they read or change what it changes) wait. */
#define EXPERIMENTER_REQUESTS(R)                                                                   \
    R(OFP_QOS_EXP_REQUEST, WRITE, QUEUES)                                                          \
    R(OFP_EXP_PORT_ADD, WRITE, QUEUES)                                                             \
    R(OFP_EXP_PORT_DEL, WRITE, QUEUES)                                                             \
    R(OFP_EXP_SET_DESC, WRITE, QUEUES)                                                             \
    R(OFP_EXP_RELAY, WRITE, NOTHING)                                                               \
    R(OFP_EXP_MONITOR, READ, NOTHING) /* of the connection itself */                               \
    R(OFP_EXP_LOG_SET, WRITE, NOTHING)                                                             \
    R(OFP_EXP_RELOAD, WRITE, QUEUES)                                                               \
    R(OFP_EXP_CAPTURE, WRITE, NOTHING) /* reads others' traffic, so it is not for slaves */        \
    R(OFP_EXP_RESTART, WRITE, QUEUES)

#endif
