/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: each type's codes, X(constant, value, what it means and what to check).  The sentence
 * is what people read (dpctl); it stands beside its code, so that a new code has one place. */
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
      "the two sides share no version of OpenFlow: this one speaks 1.3 only")                      \
    X(OFPHFC_EPERM, 1,                                                                             \
      "the other side does not let this one in: check its lists of controllers and "               \
      "certificates")
enum ofp_hello_failed_code { OFPHFC_ROWS(OF_ENUM_ROW) };

#define OFPBRC_ROWS(X)                                                                             \
    X(OFPBRC_BAD_VERSION, 0,                                                                       \
      "the message is of another version of OpenFlow than the hello agreed on")                    \
    X(OFPBRC_BAD_TYPE, 1,                                                                          \
      "the switch does not know this type of message, or only a switch sends it")                  \
    X(OFPBRC_BAD_MULTIPART, 2,                                                                     \
      "the switch does not know this type of multipart request")                                   \
    X(OFPBRC_BAD_EXPERIMENTER, 3,                                                                  \
      "the switch does not know the maker whose extension this is: is it an ofqos "                \
      "switch?")                                                                                   \
    X(OFPBRC_BAD_EXP_TYPE, 4,                                                                      \
      "the switch knows the extension, but not this message of it: it may be an older "            \
      "version")                                                                                   \
    X(OFPBRC_EPERM, 5,                                                                             \
      "the switch does not allow this request to this connection")                                 \
    X(OFPBRC_BAD_LEN, 6,                                                                           \
      "a length in the message does not fit what it holds")                                        \
    X(OFPBRC_BUFFER_EMPTY, 7,                                                                      \
      "the buffered packet has been used already: give the packet itself with data=")              \
    X(OFPBRC_BUFFER_UNKNOWN, 8,                                                                    \
      "the switch has no packet in this buffer (any more): give the packet itself with "           \
      "data=")                                                                                     \
    X(OFPBRC_BAD_TABLE_ID, 9,                                                                      \
      "the switch has no table of this number: table-features lists those it has")                 \
    X(OFPBRC_IS_SLAVE, 10,                                                                         \
      "this connection is a slave and may only ask: make it master or equal (role)")               \
    X(OFPBRC_BAD_PORT, 11,                                                                         \
      "the switch has no port of this number: port-desc lists those it has")                       \
    X(OFPBRC_BAD_PACKET, 12,                                                                       \
      "the data is no packet that can be sent: it is too short, or too long")                      \
    X(OFPBRC_MULTIPART_BUFFER_OVERFLOW, 13,                                                        \
      "the parts of the multipart request are more than the switch keeps: send fewer, "            \
      "or finish those begun")
enum ofp_bad_request_code { OFPBRC_ROWS(OF_ENUM_ROW) };

#define OFPBAC_ROWS(X)                                                                             \
    X(OFPBAC_BAD_TYPE, 0,                                                                          \
      "the switch does not know, or this table does not allow, this action: "                      \
      "table-features lists those it has")                                                         \
    X(OFPBAC_BAD_LEN, 1,                                                                           \
      "the length of an action does not fit its type")                                             \
    X(OFPBAC_BAD_EXPERIMENTER, 2,                                                                  \
      "the switch does not know the maker whose action this is")                                   \
    X(OFPBAC_BAD_EXP_TYPE, 3,                                                                      \
      "the switch does not know this action of the maker")                                         \
    X(OFPBAC_BAD_OUT_PORT, 4,                                                                      \
      "the output names a port that nothing can be sent to: port-desc lists the ports")            \
    X(OFPBAC_BAD_ARGUMENT, 5,                                                                      \
      "the value of an action can not be right: check set_field, push and TTL values")             \
    X(OFPBAC_EPERM, 6,                                                                             \
      "the switch does not allow this action to this connection")                                  \
    X(OFPBAC_TOO_MANY, 7,                                                                          \
      "there are more actions than the switch can carry out")                                      \
    X(OFPBAC_BAD_QUEUE, 8,                                                                         \
      "the queue can not be chosen: queue numbers are 1 to 65519, qos-show lists those "           \
      "that are there")                                                                            \
    X(OFPBAC_BAD_OUT_GROUP, 9,                                                                     \
      "the switch has no group of this number: group-desc lists those it has")                     \
    X(OFPBAC_MATCH_INCONSISTENT, 10,                                                               \
      "an action needs a field that the match does not say: set_field=tcp_dst needs "              \
      "ip_proto=6 in the match")                                                                   \
    X(OFPBAC_UNSUPPORTED_ORDER, 11,                                                                \
      "the switch can not carry the actions out in this order")                                    \
    X(OFPBAC_BAD_TAG, 12,                                                                          \
      "push takes another EtherType: 0x8100 or 0x88a8 for VLAN, 0x8847 or 0x8848 for "             \
      "MPLS, 0x88e7 for PBB")                                                                      \
    X(OFPBAC_BAD_SET_TYPE, 13,                                                                     \
      "the field can not be set in this table: table-features lists those that can")               \
    X(OFPBAC_BAD_SET_LEN, 14,                                                                      \
      "the value of set_field is not as long as its field")                                        \
    X(OFPBAC_BAD_SET_ARGUMENT, 15,                                                                 \
      "the value of set_field is none that the field can have")
enum ofp_bad_action_code { OFPBAC_ROWS(OF_ENUM_ROW) };

#define OFPBIC_ROWS(X)                                                                             \
    X(OFPBIC_UNKNOWN_INST, 0,                                                                      \
      "the switch does not know this instruction")                                                 \
    X(OFPBIC_UNSUP_INST, 1,                                                                        \
      "the table does not allow this instruction: table-features lists those it allows")           \
    X(OFPBIC_BAD_TABLE_ID, 2,                                                                      \
      "goto leads to a table that is not there or not behind this one: it must have a "            \
      "higher number")                                                                             \
    X(OFPBIC_UNSUP_METADATA, 3,                                                                    \
      "the table can not write these bits of metadata: table-features says which")                 \
    X(OFPBIC_UNSUP_METADATA_MASK, 4,                                                               \
      "the table can not write metadata with this mask: table-features says which bits")           \
    X(OFPBIC_BAD_EXPERIMENTER, 5,                                                                  \
      "the switch does not know the maker whose instruction this is")                              \
    X(OFPBIC_BAD_EXP_TYPE, 6,                                                                      \
      "the switch does not know this instruction of the maker")                                    \
    X(OFPBIC_BAD_LEN, 7,                                                                           \
      "the length of an instruction does not fit its type")                                        \
    X(OFPBIC_EPERM, 8,                                                                             \
      "the switch does not allow this instruction to this connection")
enum ofp_bad_instruction_code { OFPBIC_ROWS(OF_ENUM_ROW) };

#define OFPBMC_ROWS(X)                                                                             \
    X(OFPBMC_BAD_TYPE, 0,                                                                          \
      "the match is not of a type that OpenFlow 1.3 has (OXM)")                                    \
    X(OFPBMC_BAD_LEN, 1,                                                                           \
      "a length in the match does not fit its fields")                                             \
    X(OFPBMC_BAD_TAG, 2,                                                                           \
      "the match has a tag that the switch does not know")                                         \
    X(OFPBMC_BAD_DL_ADDR_MASK, 3,                                                                  \
      "the switch does not take this mask of an Ethernet address")                                 \
    X(OFPBMC_BAD_NW_ADDR_MASK, 4,                                                                  \
      "the switch does not take this mask of an IP address")                                       \
    X(OFPBMC_BAD_WILDCARDS, 5,                                                                     \
      "a field that is left out must be given in this table: table-features says which")           \
    X(OFPBMC_BAD_FIELD, 6,                                                                         \
      "the table can not match this field: table-features lists those it can")                     \
    X(OFPBMC_BAD_VALUE, 7,                                                                         \
      "a field of the match has a value that it can not have")                                     \
    X(OFPBMC_BAD_MASK, 8,                                                                          \
      "a field of the match has a mask that it can not have, or the value has bits "               \
      "outside its mask")                                                                          \
    X(OFPBMC_BAD_PREREQ, 9,                                                                        \
      "a field needs another one before it: tcp_dst needs ip_proto=6, ip_proto needs "             \
      "eth_type=0x800")                                                                            \
    X(OFPBMC_DUP_FIELD, 10,                                                                        \
      "a field is given twice in the match")                                                       \
    X(OFPBMC_EPERM, 11,                                                                            \
      "the switch does not allow this match to this connection")
enum ofp_bad_match_code { OFPBMC_ROWS(OF_ENUM_ROW) };

#define OFPFMFC_ROWS(X)                                                                            \
    X(OFPFMFC_UNKNOWN, 0,                                                                          \
      "the flow entry can not be made for a reason that has no code of its own")                   \
    X(OFPFMFC_TABLE_FULL, 1,                                                                       \
      "the table has as many flow entries as it may: delete some, or raise the limit of "          \
      "the switch")                                                                                \
    X(OFPFMFC_BAD_TABLE_ID, 2,                                                                     \
      "the switch has no table of this number: table-features lists those it has")                 \
    X(OFPFMFC_OVERLAP, 3,                                                                          \
      "check_overlap was given, and a flow entry of the same priority matches some of "            \
      "the same packets")                                                                          \
    X(OFPFMFC_EPERM, 4,                                                                            \
      "the switch does not allow this change of flow entries to this connection")                  \
    X(OFPFMFC_BAD_TIMEOUT, 5,                                                                      \
      "the switch does not have this timeout")                                                     \
    X(OFPFMFC_BAD_COMMAND, 6,                                                                      \
      "the switch does not know this command for flow entries: add, modify, delete and "           \
      "the strict ones are right")                                                                 \
    X(OFPFMFC_BAD_FLAGS, 7,                                                                        \
      "the switch does not know one of the flags, or they exclude each other")
enum ofp_flow_mod_failed_code { OFPFMFC_ROWS(OF_ENUM_ROW) };

#define OFPGMFC_ROWS(X)                                                                            \
    X(OFPGMFC_GROUP_EXISTS, 0,                                                                     \
      "there is a group of this number already: change it with cmd=mod, or delete it "             \
      "first")                                                                                     \
    X(OFPGMFC_INVALID_GROUP, 1,                                                                    \
      "the group can not be: check its number, and the weights of its buckets (0 unless "          \
      "of type select, above 0 there)")                                                            \
    X(OFPGMFC_WEIGHT_UNSUPPORTED, 2,                                                               \
      "the switch can not divide by these weights")                                                \
    X(OFPGMFC_OUT_OF_GROUPS, 3,                                                                    \
      "the switch has as many groups as it may: delete some, or raise its limit")                  \
    X(OFPGMFC_OUT_OF_BUCKETS, 4,                                                                   \
      "the group has more buckets than the switch can keep")                                       \
    X(OFPGMFC_CHAINING_UNSUPPORTED, 5,                                                             \
      "groups that lead to groups are not to be had, or would be too deep a chain here")           \
    X(OFPGMFC_WATCH_UNSUPPORTED, 6,                                                                \
      "the switch can not watch this port or group for the bucket")                                \
    X(OFPGMFC_LOOP, 7,                                                                             \
      "the group would lead back to itself by way of its buckets")                                 \
    X(OFPGMFC_UNKNOWN_GROUP, 8,                                                                    \
      "the switch has no group of this number: group-desc lists those it has")                     \
    X(OFPGMFC_CHAINED_GROUP, 9,                                                                    \
      "another group leads to this one: change or delete that first")                              \
    X(OFPGMFC_BAD_TYPE, 10,                                                                        \
      "the switch does not know this type of group: all, select, indirect and ff are "             \
      "right")                                                                                     \
    X(OFPGMFC_BAD_COMMAND, 11,                                                                     \
      "the switch does not know this command for groups: add, modify and delete are "              \
      "right")                                                                                     \
    X(OFPGMFC_BAD_BUCKET, 12,                                                                      \
      "a bucket can not be right: check its length and its actions")                               \
    X(OFPGMFC_BAD_WATCH, 13,                                                                       \
      "a bucket watches a port or a group that is not there; in a group of type ff each "          \
      "must watch one")                                                                            \
    X(OFPGMFC_EPERM, 14,                                                                           \
      "the switch does not allow this change of groups to this connection")
enum ofp_group_mod_failed_code { OFPGMFC_ROWS(OF_ENUM_ROW) };

#define OFPPMFC_ROWS(X)                                                                            \
    X(OFPPMFC_BAD_PORT, 0,                                                                         \
      "the switch has no port of this number: port-desc lists those it has")                       \
    X(OFPPMFC_BAD_HW_ADDR, 1,                                                                      \
      "the address is not the one that the port has: leave addr= out, and it is asked "            \
      "for")                                                                                       \
    X(OFPPMFC_BAD_CONFIG, 2,                                                                       \
      "the port can not be configured like this")                                                  \
    X(OFPPMFC_BAD_ADVERTISE, 3,                                                                    \
      "the port can not advertise these speeds")                                                   \
    X(OFPPMFC_EPERM, 4,                                                                            \
      "the switch does not allow, or its kernel does not, to change this port")
enum ofp_port_mod_failed_code { OFPPMFC_ROWS(OF_ENUM_ROW) };

#define OFPTMFC_ROWS(X)                                                                            \
    X(OFPTMFC_BAD_TABLE, 0,                                                                        \
      "the switch has no table of this number: table-features lists those it has")                 \
    X(OFPTMFC_BAD_CONFIG, 1,                                                                       \
      "tables have nothing to configure in OpenFlow 1.3: conf=0 is right")                         \
    X(OFPTMFC_EPERM, 2,                                                                            \
      "the switch does not allow this change of tables to this connection")
enum ofp_table_mod_failed_code { OFPTMFC_ROWS(OF_ENUM_ROW) };

#define OFPQOFC_ROWS(X)                                                                            \
    X(OFPQOFC_BAD_PORT, 0,                                                                         \
      "the switch has no port of this number: port-desc lists those it has")                       \
    X(OFPQOFC_BAD_QUEUE, 1,                                                                        \
      "the port has no queue of this number: qos-show lists those it has")                         \
    X(OFPQOFC_EPERM, 2,                                                                            \
      "the switch does not allow this request about queues to this connection")
enum ofp_queue_op_failed_code { OFPQOFC_ROWS(OF_ENUM_ROW) };

#define OFPSCFC_ROWS(X)                                                                            \
    X(OFPSCFC_BAD_FLAGS, 0,                                                                        \
      "the switch can not handle fragments like this: get-config shows how it does")               \
    X(OFPSCFC_BAD_LEN, 1,                                                                          \
      "the switch can not send this many bytes of a packet to a controller")                       \
    X(OFPSCFC_EPERM, 2,                                                                            \
      "the switch does not allow its configuration to be changed by this connection")
enum ofp_switch_config_failed_code { OFPSCFC_ROWS(OF_ENUM_ROW) };

#define OFPRRFC_ROWS(X)                                                                            \
    X(OFPRRFC_STALE, 0,                                                                            \
      "the generation id is older than one that the switch was given: a newer master "             \
      "has been chosen")                                                                           \
    X(OFPRRFC_UNSUP, 1,                                                                            \
      "the switch can not give this role to a connection")                                         \
    X(OFPRRFC_BAD_ROLE, 2,                                                                         \
      "the switch does not know this role: equal, master and slave are right")
enum ofp_role_request_failed_code { OFPRRFC_ROWS(OF_ENUM_ROW) };

#define OFPMMFC_ROWS(X)                                                                            \
    X(OFPMMFC_UNKNOWN, 0,                                                                          \
      "the meter can not be made for a reason that has no code of its own")                        \
    X(OFPMMFC_METER_EXISTS, 1,                                                                     \
      "there is a meter of this number already: change it with cmd=mod, or delete it "             \
      "first")                                                                                     \
    X(OFPMMFC_INVALID_METER, 2,                                                                    \
      "the number is none that a meter can have")                                                  \
    X(OFPMMFC_UNKNOWN_METER, 3,                                                                    \
      "the switch has no meter of this number: meter-config lists those it has")                   \
    X(OFPMMFC_BAD_COMMAND, 4,                                                                      \
      "the switch does not know this command for meters: add, modify and delete are "              \
      "right")                                                                                     \
    X(OFPMMFC_BAD_FLAGS, 5,                                                                        \
      "the flags of the meter can not be together: one of kbps and pktps is right")                \
    X(OFPMMFC_BAD_RATE, 6,                                                                         \
      "the rate of a band is none that it can have: above 0 is right")                             \
    X(OFPMMFC_BAD_BURST, 7,                                                                        \
      "the burst of a band is none that it can have")                                              \
    X(OFPMMFC_BAD_BAND, 8,                                                                         \
      "the switch does not know this kind of band: meter-features lists those it has")             \
    X(OFPMMFC_BAD_BAND_VALUE, 9,                                                                   \
      "a value of a band is none that it can have: prec_level is of dscp_remark, up to "           \
      "3")                                                                                         \
    X(OFPMMFC_OUT_OF_METERS, 10,                                                                   \
      "the switch has as many meters as it may: delete some, or raise its limit")                  \
    X(OFPMMFC_OUT_OF_BANDS, 11,                                                                    \
      "the meter has more bands than the switch can keep: meter-features says how many")
enum ofp_meter_mod_failed_code { OFPMMFC_ROWS(OF_ENUM_ROW) };

#define OFPTFFC_ROWS(X)                                                                            \
    X(OFPTFFC_BAD_TABLE, 0,                                                                        \
      "the request names a table that is not there, or one twice")                                 \
    X(OFPTFFC_BAD_METADATA, 1,                                                                     \
      "the table can not have these bits of metadata")                                             \
    X(OFPTFFC_BAD_TYPE, 2,                                                                         \
      "the switch does not know a property of the request")                                        \
    X(OFPTFFC_BAD_LEN, 3,                                                                          \
      "the length of a property does not fit what it holds")                                       \
    X(OFPTFFC_BAD_ARGUMENT, 4,                                                                     \
      "a property asks for what the table can not do: table-features lists what it can")           \
    X(OFPTFFC_EPERM, 5,                                                                            \
      "the switch does not allow its tables to be changed by this connection")
enum ofp_table_features_failed_code { OFPTFFC_ROWS(OF_ENUM_ROW) };

/* Bundles.  In 1.3 they go out as OFPET_EXPERIMENTER errors of ONF. */
#define OFPBFC_ROWS(X)                                                                             \
    X(OFPBFC_UNKNOWN, 0,                                                                           \
      "the bundle failed for a reason that has no code of its own")                                \
    X(OFPBFC_EPERM, 1,                                                                             \
      "the switch does not allow bundles to this connection")                                      \
    X(OFPBFC_BAD_ID, 2,                                                                            \
      "there is no bundle of this number on this connection: it was never opened, or is "          \
      "gone")                                                                                      \
    X(OFPBFC_BUNDLE_EXIST, 3,                                                                      \
      "there is a bundle of this number already on this connection")                               \
    X(OFPBFC_BUNDLE_CLOSED, 4,                                                                     \
      "the bundle is closed: it takes no more messages, only commit or discard")                   \
    X(OFPBFC_OUT_OF_BUNDLES, 5,                                                                    \
      "this connection has as many bundles open as it may: commit or discard one")                 \
    X(OFPBFC_BAD_TYPE, 6,                                                                          \
      "the switch does not know this request about a bundle")                                      \
    X(OFPBFC_BAD_FLAGS, 7,                                                                         \
      "the flags are not those that the bundle was opened with, or not known")                     \
    X(OFPBFC_MSG_BAD_LEN, 8,                                                                       \
      "the length of a message in the bundle does not fit what it holds")                          \
    X(OFPBFC_MSG_BAD_XID, 9,                                                                       \
      "a message in the bundle has another xid than the one that adds it")                         \
    X(OFPBFC_MSG_UNSUP, 10,                                                                        \
      "messages of this type can not be part of a bundle")                                         \
    X(OFPBFC_MSG_CONFLICT, 11,                                                                     \
      "a message contradicts another one of the same bundle")                                      \
    X(OFPBFC_MSG_TOO_MANY, 12,                                                                     \
      "the bundle has more messages than the switch keeps: use several bundles")                   \
    X(OFPBFC_MSG_FAILED, 13,                                                                       \
      "a message of the bundle was refused, so nothing of it was done: the error before "          \
      "this one says why")                                                                         \
    X(OFPBFC_TIMEOUT, 14,                                                                          \
      "the bundle was open for too long and has been discarded: open it again")                    \
    X(OFPBFC_BUNDLE_IN_PROGRESS, 15,                                                               \
      "another bundle is being committed: try again")
enum ofp_bundle_failed_code { OFPBFC_ROWS(OF_ENUM_ROW) };

/* The QoS extension's own (docs/qos-extension.md, "Errors"). */
#define OFPSFC_ROWS(X)                                                                             \
    X(OFPSFC_BAD_SCHED, 0,                                                                         \
      "there is no scheduler of this number: qos-show --kernel lists those there are")             \
    X(OFPSFC_BAD_OBJECT, 1,                                                                        \
      "this scheduler has no such object: only those with classes have some")                      \
    X(OFPSFC_BAD_ACTION, 2,                                                                        \
      "the switch does not know this action for queues: add, del, change and replace "             \
      "are right")                                                                                 \
    X(OFPSFC_BAD_PORT, 3,                                                                          \
      "the switch has no port of this number, or none that can have queues: port-desc "            \
      "lists the ports")                                                                           \
    X(OFPSFC_BAD_CLASS, 4,                                                                         \
      "the number is none that a class can have here: 1 to 65519 is right, 0 for the "             \
      "root class")                                                                                \
    X(OFPSFC_BAD_PARAM, 5,                                                                         \
      "a parameter of the scheduler has a value that it can not have")                             \
    X(OFPSFC_BAD_PROPERTY, 6,                                                                      \
      "a property of the request is not known, is given twice or has a wrong length")              \
    X(OFPSFC_EXISTS, 7,                                                                            \
      "what is to be added is there already: cmd=change or cmd=replace is right")                  \
    X(OFPSFC_NOT_FOUND, 8,                                                                         \
      "what is to be changed or deleted is not there: qos-show lists what is")                     \
    X(OFPSFC_BUSY, 9,                                                                              \
      "something hangs below it: delete that first, or with it (children=yes)")                    \
    X(OFPSFC_UNSUPPORTED, 10,                                                                      \
      "the kernel has not got this scheduler or option: qos-show --kernel lists what it "          \
      "has")                                                                                       \
    X(OFPSFC_PERM, 11,                                                                             \
      "the queues of this port are somebody else's, or the switch lacks CAP_NET_ADMIN")            \
    X(OFPSFC_KERNEL, 12,                                                                           \
      "the kernel refused it")
enum ofp_sched_failed_code { OFPSFC_ROWS(OF_ENUM_ROW) };

#endif
