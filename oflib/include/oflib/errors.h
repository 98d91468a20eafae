/* SPDX-License-Identifier: Apache-2.0 */
/* Error types and codes: X(constant, value, sentence).  dpctl prints the sentence: what is wrong and
 * what to do.  A new code is one row. */
#ifndef OFLIB_ERRORS_H
#define OFLIB_ERRORS_H

#ifndef OFLIB_OPENFLOW_H
#error "include oflib/openflow.h"
#endif

/* 7.4.4 */
#define OFPET_ROWS(X)                                                                              \
    X(OFPET_HELLO_FAILED, 0)                                                                       \
    X(OFPET_BAD_REQUEST, 1)                                                                        \
    X(OFPET_BAD_ACTION, 2)                                                                         \
    X(OFPET_BAD_INSTRUCTION, 3)                                                                    \
    X(OFPET_BAD_MATCH, 4)                                                                          \
    X(OFPET_FLOW_MOD_FAILED, 5)                                                                    \
    X(OFPET_GROUP_MOD_FAILED, 6)                                                                   \
    X(OFPET_PORT_MOD_FAILED, 7)                                                                    \
    X(OFPET_TABLE_MOD_FAILED, 8)                                                                   \
    X(OFPET_QUEUE_OP_FAILED, 9)                                                                    \
    X(OFPET_SWITCH_CONFIG_FAILED, 10)                                                              \
    X(OFPET_ROLE_REQUEST_FAILED, 11)                                                               \
    X(OFPET_METER_MOD_FAILED, 12)                                                                  \
    X(OFPET_TABLE_FEATURES_FAILED, 13)                                                             \
    X(OFPET_SCHED_FAILED, 14)                                                                      \
    X(OFPET_BUNDLE_FAILED, 17) /* OpenFlow 1.4's number, see OFPBFC_ROWS */                        \
    X(OFPET_EXPERIMENTER, 0xffff)
enum ofp_error_type { OFPET_ROWS(OF_ENUM_ROW) };

#define OFPHFC_ROWS(X)                                                                             \
    X(OFPHFC_INCOMPATIBLE, 0,                                                                      \
      "the peers share no OpenFlow version: does the switch speak 1.3 (--openflow)?")              \
    X(OFPHFC_EPERM, 1,                                                                             \
      "the peer refuses this connection: check its list of controllers and its certificates")
enum ofp_hello_failed_code { OFPHFC_ROWS(OF_ENUM_ROW) };

#define OFPBRC_ROWS(X)                                                                             \
    X(OFPBRC_BAD_VERSION, 0,                                                                       \
      "the message has another OpenFlow version than the hello exchange agreed on")                \
    X(OFPBRC_BAD_TYPE, 1,                                                                          \
      "the switch does not know this message type, or only a switch may send it")                  \
    X(OFPBRC_BAD_MULTIPART, 2,                                                                     \
      "the switch does not know this multipart type")                                              \
    X(OFPBRC_BAD_EXPERIMENTER, 3,                                                                  \
      "the switch does not know this experimenter id: is it an ofqos switch?")                     \
    X(OFPBRC_BAD_EXP_TYPE, 4,                                                                      \
      "the switch knows the experimenter, but not this message of it: it may be an older "         \
      "version")                                                                                   \
    X(OFPBRC_EPERM, 5,                                                                             \
      "this connection may not send this request")                                                 \
    X(OFPBRC_BAD_LEN, 6,                                                                           \
      "a length in the message does not match its contents")                                       \
    X(OFPBRC_BUFFER_EMPTY, 7,                                                                      \
      "the buffered packet has been used already: send the packet itself with data=")              \
    X(OFPBRC_BUFFER_UNKNOWN, 8,                                                                    \
      "the switch has no packet in this buffer: send the packet itself with data=")                \
    X(OFPBRC_BAD_TABLE_ID, 9,                                                                      \
      "the switch has no table with this number: table-features lists its tables")                 \
    X(OFPBRC_IS_SLAVE, 10,                                                                         \
      "this connection is a slave and may only read: change its role to master or equal "          \
      "(role)")                                                                                    \
    X(OFPBRC_BAD_PORT, 11,                                                                         \
      "the switch has no port with this number: port-desc lists its ports")                        \
    X(OFPBRC_BAD_PACKET, 12,                                                                       \
      "the data cannot be sent as a packet: it is too short or too long")                          \
    X(OFPBRC_MULTIPART_BUFFER_OVERFLOW, 13,                                                        \
      "the parts of the multipart request exceed the buffer: send less, or finish open "           \
      "requests")
enum ofp_bad_request_code { OFPBRC_ROWS(OF_ENUM_ROW) };

#define OFPBAC_ROWS(X)                                                                             \
    X(OFPBAC_BAD_TYPE, 0,                                                                          \
      "the switch does not know this action, or this table does not allow it: table- "             \
      "features lists the allowed ones")                                                           \
    X(OFPBAC_BAD_LEN, 1,                                                                           \
      "the length of an action does not match its type")                                           \
    X(OFPBAC_BAD_EXPERIMENTER, 2,                                                                  \
      "the switch does not know the experimenter id of an action")                                 \
    X(OFPBAC_BAD_EXP_TYPE, 3,                                                                      \
      "the switch does not know this action of the experimenter")                                  \
    X(OFPBAC_BAD_OUT_PORT, 4,                                                                      \
      "an output action names a port that cannot send: port-desc lists the ports")                 \
    X(OFPBAC_BAD_ARGUMENT, 5,                                                                      \
      "an action has an invalid value: check set_field, push and TTL values")                      \
    X(OFPBAC_EPERM, 6,                                                                             \
      "this connection may not use this action")                                                   \
    X(OFPBAC_TOO_MANY, 7,                                                                          \
      "the switch cannot run this many actions")                                                   \
    X(OFPBAC_BAD_QUEUE, 8,                                                                         \
      "set_queue takes a queue number from 1 to 65519: qos-show lists the queues")                 \
    X(OFPBAC_BAD_OUT_GROUP, 9,                                                                     \
      "the switch has no group with this number: group-desc lists its groups")                     \
    X(OFPBAC_MATCH_INCONSISTENT, 10,                                                               \
      "an action needs a field that the match does not require: set_field=tcp_dst needs "          \
      "ip_proto=6 in the match")                                                                   \
    X(OFPBAC_UNSUPPORTED_ORDER, 11,                                                                \
      "the switch cannot run the actions in this order")                                           \
    X(OFPBAC_BAD_TAG, 12,                                                                          \
      "push needs another EtherType: 0x8100 or 0x88a8 for VLAN, 0x8847 or 0x8848 for MPLS, "       \
      "0x88e7 for PBB")                                                                            \
    X(OFPBAC_BAD_SET_TYPE, 13,                                                                     \
      "this table cannot set the field: table-features lists the fields it can set")               \
    X(OFPBAC_BAD_SET_LEN, 14,                                                                      \
      "the value of set_field does not have the length of its field")                              \
    X(OFPBAC_BAD_SET_ARGUMENT, 15,                                                                 \
      "the value of set_field is outside the range of its field")
enum ofp_bad_action_code { OFPBAC_ROWS(OF_ENUM_ROW) };

#define OFPBIC_ROWS(X)                                                                             \
    X(OFPBIC_UNKNOWN_INST, 0,                                                                      \
      "the switch does not know this instruction")                                                 \
    X(OFPBIC_UNSUP_INST, 1,                                                                        \
      "the table does not allow this instruction: table-features lists the allowed ones")          \
    X(OFPBIC_BAD_TABLE_ID, 2,                                                                      \
      "goto must name an existing table with a higher number than this one")                       \
    X(OFPBIC_UNSUP_METADATA, 3,                                                                    \
      "the table cannot write these metadata bits: table-features lists the ones it can")          \
    X(OFPBIC_UNSUP_METADATA_MASK, 4,                                                               \
      "the table cannot write metadata with this mask: table-features lists the bits it can")      \
    X(OFPBIC_BAD_EXPERIMENTER, 5,                                                                  \
      "the switch does not know the experimenter id of an instruction")                            \
    X(OFPBIC_BAD_EXP_TYPE, 6,                                                                      \
      "the switch does not know this instruction of the experimenter")                             \
    X(OFPBIC_BAD_LEN, 7,                                                                           \
      "the length of an instruction does not match its type")                                      \
    X(OFPBIC_EPERM, 8,                                                                             \
      "this connection may not use this instruction")
enum ofp_bad_instruction_code { OFPBIC_ROWS(OF_ENUM_ROW) };

#define OFPBMC_ROWS(X)                                                                             \
    X(OFPBMC_BAD_TYPE, 0,                                                                          \
      "the match is not an OXM match, the only type of OpenFlow 1.3")                              \
    X(OFPBMC_BAD_LEN, 1,                                                                           \
      "a length in the match does not match its fields")                                           \
    X(OFPBMC_BAD_TAG, 2,                                                                           \
      "the match has a tag that the switch does not know")                                         \
    X(OFPBMC_BAD_DL_ADDR_MASK, 3,                                                                  \
      "the switch does not support this Ethernet address mask")                                    \
    X(OFPBMC_BAD_NW_ADDR_MASK, 4,                                                                  \
      "the switch does not support this IP address mask")                                          \
    X(OFPBMC_BAD_WILDCARDS, 5,                                                                     \
      "the match leaves out a field that this table requires: table-features lists them")          \
    X(OFPBMC_BAD_FIELD, 6,                                                                         \
      "the table cannot match this field: table-features lists the fields it can match")           \
    X(OFPBMC_BAD_VALUE, 7,                                                                         \
      "a value in the match is outside the range of its field")                                    \
    X(OFPBMC_BAD_MASK, 8,                                                                          \
      "a field of the match does not support its mask, or its value has bits outside the "         \
      "mask")                                                                                      \
    X(OFPBMC_BAD_PREREQ, 9,                                                                        \
      "a field lacks its prerequisite: tcp_dst needs ip_proto=6, ip_proto needs "                  \
      "eth_type=0x800")                                                                            \
    X(OFPBMC_DUP_FIELD, 10,                                                                        \
      "the match has the same field twice")                                                        \
    X(OFPBMC_EPERM, 11,                                                                            \
      "this connection may not use this match")
enum ofp_bad_match_code { OFPBMC_ROWS(OF_ENUM_ROW) };

#define OFPFMFC_ROWS(X)                                                                            \
    X(OFPFMFC_UNKNOWN, 0,                                                                          \
      "the flow entry was refused for a reason without a code of its own")                         \
    X(OFPFMFC_TABLE_FULL, 1,                                                                       \
      "the table is full: delete flow entries, or raise the switch's limit")                       \
    X(OFPFMFC_BAD_TABLE_ID, 2,                                                                     \
      "the switch has no table with this number: table-features lists its tables")                 \
    X(OFPFMFC_OVERLAP, 3,                                                                          \
      "check_overlap is set, and a flow entry of the same priority matches some of the same "      \
      "packets")                                                                                   \
    X(OFPFMFC_EPERM, 4,                                                                            \
      "this connection may not change flow entries like this")                                     \
    X(OFPFMFC_BAD_TIMEOUT, 5,                                                                      \
      "the switch does not support this timeout")                                                  \
    X(OFPFMFC_BAD_COMMAND, 6,                                                                      \
      "the flow command must be add, mod, mods (strict), del or dels (strict)")                    \
    X(OFPFMFC_BAD_FLAGS, 7,                                                                        \
      "a flow flag is unknown, or two flags exclude each other")
enum ofp_flow_mod_failed_code { OFPFMFC_ROWS(OF_ENUM_ROW) };

#define OFPGMFC_ROWS(X)                                                                            \
    X(OFPGMFC_GROUP_EXISTS, 0,                                                                     \
      "the group exists already: change it with cmd=mod, or delete it first")                      \
    X(OFPGMFC_INVALID_GROUP, 1,                                                                    \
      "the group is invalid: check its number, and its weights (above 0 in a select group, "       \
      "0 in others)")                                                                              \
    X(OFPGMFC_WEIGHT_UNSUPPORTED, 2,                                                               \
      "the switch does not support these weights")                                                 \
    X(OFPGMFC_OUT_OF_GROUPS, 3,                                                                    \
      "the switch has no room for another group: delete groups, or raise its limit")               \
    X(OFPGMFC_OUT_OF_BUCKETS, 4,                                                                   \
      "the group has more buckets than the switch supports")                                       \
    X(OFPGMFC_CHAINING_UNSUPPORTED, 5,                                                             \
      "the chain of groups would be too deep")                                                     \
    X(OFPGMFC_WATCH_UNSUPPORTED, 6,                                                                \
      "the switch cannot watch this port or group for the bucket")                                 \
    X(OFPGMFC_LOOP, 7,                                                                             \
      "the buckets of the group lead back to the group itself")                                    \
    X(OFPGMFC_UNKNOWN_GROUP, 8,                                                                    \
      "the switch has no group with this number: group-desc lists its groups")                     \
    X(OFPGMFC_CHAINED_GROUP, 9,                                                                    \
      "another group uses this one: change or delete that one first")                              \
    X(OFPGMFC_BAD_TYPE, 10,                                                                        \
      "the group type must be all, select, indirect or ff")                                        \
    X(OFPGMFC_BAD_COMMAND, 11,                                                                     \
      "the group command must be add, mod or del")                                                 \
    X(OFPGMFC_BAD_BUCKET, 12,                                                                      \
      "a bucket is invalid: check its length and its actions")                                     \
    X(OFPGMFC_BAD_WATCH, 13,                                                                       \
      "a bucket watches a port or group that does not exist; in an ff group each bucket "          \
      "must watch one")                                                                            \
    X(OFPGMFC_EPERM, 14,                                                                           \
      "this connection may not change groups like this")
enum ofp_group_mod_failed_code { OFPGMFC_ROWS(OF_ENUM_ROW) };

#define OFPPMFC_ROWS(X)                                                                            \
    X(OFPPMFC_BAD_PORT, 0,                                                                         \
      "the switch has no port with this number: port-desc lists its ports")                        \
    X(OFPPMFC_BAD_HW_ADDR, 1,                                                                      \
      "the address is not the port's: leave addr= out, and dpctl asks for it")                     \
    X(OFPPMFC_BAD_CONFIG, 2,                                                                       \
      "the port does not support this configuration")                                              \
    X(OFPPMFC_BAD_ADVERTISE, 3,                                                                    \
      "the port cannot advertise these speeds")                                                    \
    X(OFPPMFC_EPERM, 4,                                                                            \
      "the switch or its kernel does not permit this change of the port")
enum ofp_port_mod_failed_code { OFPPMFC_ROWS(OF_ENUM_ROW) };

#define OFPTMFC_ROWS(X)                                                                            \
    X(OFPTMFC_BAD_TABLE, 0,                                                                        \
      "the switch has no table with this number: table-features lists its tables")                 \
    X(OFPTMFC_BAD_CONFIG, 1,                                                                       \
      "tables have no configuration in OpenFlow 1.3: use conf=0")                                  \
    X(OFPTMFC_EPERM, 2,                                                                            \
      "this connection may not change tables like this")
enum ofp_table_mod_failed_code { OFPTMFC_ROWS(OF_ENUM_ROW) };

#define OFPQOFC_ROWS(X)                                                                            \
    X(OFPQOFC_BAD_PORT, 0,                                                                         \
      "the switch has no port with this number: port-desc lists its ports")                        \
    X(OFPQOFC_BAD_QUEUE, 1,                                                                        \
      "the port has no queue with this number: qos-show lists its queues")                         \
    X(OFPQOFC_EPERM, 2,                                                                            \
      "this connection may not make this queue request")
enum ofp_queue_op_failed_code { OFPQOFC_ROWS(OF_ENUM_ROW) };

#define OFPSCFC_ROWS(X)                                                                            \
    X(OFPSCFC_BAD_FLAGS, 0,                                                                        \
      "the switch does not support this fragment handling: get-config shows the current one")      \
    X(OFPSCFC_BAD_LEN, 1,                                                                          \
      "the switch cannot send this many bytes of a packet to a controller")                        \
    X(OFPSCFC_EPERM, 2,                                                                            \
      "this connection may not change the switch's configuration")
enum ofp_switch_config_failed_code { OFPSCFC_ROWS(OF_ENUM_ROW) };

#define OFPRRFC_ROWS(X)                                                                            \
    X(OFPRRFC_STALE, 0,                                                                            \
      "the generation id is older than the last one: a newer master has been elected")             \
    X(OFPRRFC_UNSUP, 1,                                                                            \
      "the switch does not support this role")                                                     \
    X(OFPRRFC_BAD_ROLE, 2,                                                                         \
      "the role must be nochange, equal, master or slave")
enum ofp_role_request_failed_code { OFPRRFC_ROWS(OF_ENUM_ROW) };

#define OFPMMFC_ROWS(X)                                                                            \
    X(OFPMMFC_UNKNOWN, 0,                                                                          \
      "the meter was refused for a reason without a code of its own")                              \
    X(OFPMMFC_METER_EXISTS, 1,                                                                     \
      "the meter exists already: change it with cmd=mod, or delete it first")                      \
    X(OFPMMFC_INVALID_METER, 2,                                                                    \
      "the meter number is invalid: use 1 to 4294901760")                                          \
    X(OFPMMFC_UNKNOWN_METER, 3,                                                                    \
      "the switch has no meter with this number: meter-config lists its meters")                   \
    X(OFPMMFC_BAD_COMMAND, 4,                                                                      \
      "the meter command must be add, mod or del")                                                 \
    X(OFPMMFC_BAD_FLAGS, 5,                                                                        \
      "the meter needs exactly one of the flags kbps and pktps")                                   \
    X(OFPMMFC_BAD_RATE, 6,                                                                         \
      "the rate of a band must be above 0")                                                        \
    X(OFPMMFC_BAD_BURST, 7,                                                                        \
      "the burst of a band is out of range")                                                       \
    X(OFPMMFC_BAD_BAND, 8,                                                                         \
      "the switch does not support this band type: meter-features lists the supported ones")       \
    X(OFPMMFC_BAD_BAND_VALUE, 9,                                                                   \
      "a band has an invalid value: prec_level belongs to dscp_remark and is at most 3")           \
    X(OFPMMFC_OUT_OF_METERS, 10,                                                                   \
      "the switch has no room for another meter: delete meters, or raise its limit")               \
    X(OFPMMFC_OUT_OF_BANDS, 11,                                                                    \
      "the meter has more bands than the switch supports: meter-features tells the limit")
enum ofp_meter_mod_failed_code { OFPMMFC_ROWS(OF_ENUM_ROW) };

#define OFPTFFC_ROWS(X)                                                                            \
    X(OFPTFFC_BAD_TABLE, 0,                                                                        \
      "the request names a table that does not exist, or one table twice")                         \
    X(OFPTFFC_BAD_METADATA, 1,                                                                     \
      "the table does not support these metadata bits")                                            \
    X(OFPTFFC_BAD_TYPE, 2,                                                                         \
      "the request has an unknown property")                                                       \
    X(OFPTFFC_BAD_LEN, 3,                                                                          \
      "the length of a property does not match its contents")                                      \
    X(OFPTFFC_BAD_ARGUMENT, 4,                                                                     \
      "a property asks for something the table cannot do: table-features lists what it can")       \
    X(OFPTFFC_EPERM, 5,                                                                            \
      "this connection may not change the switch's tables")
enum ofp_table_features_failed_code { OFPTFFC_ROWS(OF_ENUM_ROW) };

/* Bundles.  In 1.3 they go out as OFPET_EXPERIMENTER errors of ONF. */
#define OFPBFC_ROWS(X)                                                                             \
    X(OFPBFC_UNKNOWN, 0,                                                                           \
      "the bundle failed for a reason without a code of its own")                                  \
    X(OFPBFC_EPERM, 1,                                                                             \
      "this connection may not use bundles")                                                       \
    X(OFPBFC_BAD_ID, 2,                                                                            \
      "this connection has no bundle with this number: it was never opened, or has ended")         \
    X(OFPBFC_BUNDLE_EXIST, 3,                                                                      \
      "this connection has a bundle with this number already")                                     \
    X(OFPBFC_BUNDLE_CLOSED, 4,                                                                     \
      "the bundle is closed: it can only be committed or discarded")                               \
    X(OFPBFC_OUT_OF_BUNDLES, 5,                                                                    \
      "this connection has too many open bundles: commit or discard one")                          \
    X(OFPBFC_BAD_TYPE, 6,                                                                          \
      "the switch does not know this bundle request")                                              \
    X(OFPBFC_BAD_FLAGS, 7,                                                                         \
      "the flags are unknown, or differ from those that opened the bundle")                        \
    X(OFPBFC_MSG_BAD_LEN, 8,                                                                       \
      "the length of a message in the bundle does not match its contents")                         \
    X(OFPBFC_MSG_BAD_XID, 9,                                                                       \
      "a message in the bundle has another xid than the message that adds it")                     \
    X(OFPBFC_MSG_UNSUP, 10,                                                                        \
      "messages of this type cannot be part of a bundle")                                          \
    X(OFPBFC_MSG_CONFLICT, 11,                                                                     \
      "two messages of the bundle contradict each other")                                          \
    X(OFPBFC_MSG_TOO_MANY, 12,                                                                     \
      "the bundle has more messages than the switch supports: use several bundles")                \
    X(OFPBFC_MSG_FAILED, 13,                                                                       \
      "a message of the bundle was refused, and the bundle changed nothing: the error "            \
      "before this one says why")                                                                  \
    X(OFPBFC_TIMEOUT, 14,                                                                          \
      "the bundle was open for too long and was discarded: open it again")                         \
    X(OFPBFC_BUNDLE_IN_PROGRESS, 15,                                                               \
      "another bundle is being committed: try again")
enum ofp_bundle_failed_code { OFPBFC_ROWS(OF_ENUM_ROW) };

/* The QoS extension's own (docs/reference/qos-extension.md, "Errors"). */
#define OFPSFC_ROWS(X)                                                                             \
    X(OFPSFC_BAD_SCHED, 0,                                                                         \
      "the switch has no scheduler with this number: qos-show --kernel lists its schedulers")      \
    X(OFPSFC_BAD_OBJECT, 1,                                                                        \
      "this scheduler has no such object: only schedulers with classes have class objects")        \
    X(OFPSFC_BAD_ACTION, 2,                                                                        \
      "the queue command must be add, del, change or replace")                                     \
    X(OFPSFC_BAD_PORT, 3,                                                                          \
      "the switch has no port with this number, or the port cannot have queues: port-desc "        \
      "lists the ports")                                                                           \
    X(OFPSFC_BAD_CLASS, 4,                                                                         \
      "this class number is not allowed here: use 1 to 65519 for a queue, 0 for the root "         \
      "class")                                                                                     \
    X(OFPSFC_BAD_PARAM, 5,                                                                         \
      "a parameter of the scheduler is out of range")                                              \
    X(OFPSFC_BAD_PROPERTY, 6,                                                                      \
      "a property of the request is unknown, comes twice or has a wrong length")                   \
    X(OFPSFC_EXISTS, 7,                                                                            \
      "the object exists already: use cmd=change or cmd=replace")                                  \
    X(OFPSFC_NOT_FOUND, 8,                                                                         \
      "the object does not exist: qos-show lists what does")                                       \
    X(OFPSFC_BUSY, 9,                                                                              \
      "the object has others below it: delete those first, or add children=yes")                   \
    X(OFPSFC_UNSUPPORTED, 10,                                                                      \
      "the kernel lacks this scheduler or option: qos-show --kernel lists what it has")            \
    X(OFPSFC_PERM, 11,                                                                             \
      "the port's queues belong to another program, or the switch lacks CAP_NET_ADMIN")            \
    X(OFPSFC_KERNEL, 12,                                                                           \
      "the kernel refused the request")
enum ofp_sched_failed_code { OFPSFC_ROWS(OF_ENUM_ROW) };

#endif
