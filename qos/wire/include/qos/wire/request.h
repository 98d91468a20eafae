/* SPDX-License-Identifier: Apache-2.0 */
/* A QoS request: the content of OFPT_QOS_QUEUEING_DISCIPLINE and of its experimenter twin
 * (docs/reference/qos-extension.md), and the same in dpctl's grammar.
 */
#ifndef QOS_WIRE_REQUEST_H
#define QOS_WIRE_REQUEST_H

#include <qos/sched/sched.h>

#define QOS_REQUEST_TEXT 1024 /* room for any printed request */

struct qos_request {
    const struct qos_sched *sched;
    uint8_t object_type; /* enum ofp_qos_object */
    uint8_t action_type; /* enum ofp_qos_action */
    uint32_t port_no;
    uint32_t class_id; /* for a tree's qdisc: its default class */
    struct qos_values values;
};

/* `content` is what follows the ofp_header, or the experimenter header.
 *
 * Checks the request's syntax only, which needs no switch state, in the order of the bytes: lengths
 * (OFPBRC_BAD_LEN), scheduler, pads (OFPSFC_BAD_PARAM), object, action, port (OFPP_ANY only with
 * SCHED_NONE), class id, ranges, properties.  A property whose length fits the message but not its
 * type is OFPSFC_BAD_PROPERTY.  A refused request leaves *r alone.  A fixed parameter of 0 means
 * its default; a LIMIT property replaces a fixed limit of 0. */
int qos_request_decode(struct qos_request *r, const uint8_t *content, size_t n,
                       struct qos_error *e);

/* Appends the content, properties in the order of the scheduler's fields. */
void qos_request_encode(struct of_wr *w, const struct qos_request *r);

/* The fixed parameters and properties only; `align`: fixed ones padded to 8 as in a QOS_DUMP. */
void qos_values_encode(struct of_wr *w, const struct qos_request *r, bool align);
/* The other way, into r->values; sched, object_type, action_type must be set.  `dumped`: they are a
 * QOS_DUMP's, so aligned, and counts, sizes and times may be any. */
int qos_values_decode(struct qos_request *r, struct of_rd *rd, bool dumped, struct qos_error *e);

/* dpctl's grammar: "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1".
 *
 * Keys of every scheduler: cmd (add, del or delete, change or mod, replace), port (a number, any or
 * local), class (decimal or 0x), object (qdisc, class), direction (out, in); a scheduler with
 * classes also takes default (the qdisc's default class; the request is then for the qdisc).  The
 * other keys are the scheduler's fields.  Without object and default, a request of a scheduler with
 * classes is for a class.  Commas or blanks separate values.
 * 0: `why` is empty, or a remark on a rate without a unit.
 * -EINVAL: `why` says what is wrong and what to type instead; *r is as it was. */
int qos_request_parse(struct qos_request *r, const struct qos_sched *sched, const char *args,
                      char *why, size_t n);

/* Prints a request so that parsing gives the same one.  Returns what snprintf would. */
int qos_request_print(const struct qos_request *r, char *buf, size_t n);

const char *qos_action_name(unsigned action); /* "add"; NULL where unknown */
const char *qos_object_name(unsigned object); /* "qdisc" */

#endif
