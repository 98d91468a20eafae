/* SPDX-License-Identifier: Apache-2.0 */
/* A class's name, or the kind of a BPF program's qdisc: UTF-8 without control characters, kept in slots of a struct qos_values.  An empty
 * one ends the name that was there. */
#ifndef QOS_NAME_H
#define QOS_NAME_H

#include <qos/sched/error.h>
#include <qos/sched/values.h>

#include <stddef.h>

#define QOS_NAME_BYTES 31 /* the most */
#define QOS_NAME_SLOTS 4
#define QOS_NAME_ROOM  (QOS_NAME_BYTES + 1) /* and its terminating NUL */

/* The name in the slots, terminated; returns buf. */
char *qos_name_get(const uint64_t v[QOS_NAME_SLOTS], char buf[QOS_NAME_ROOM]);

/* OFPSFC_BAD_PARAM: these bytes are no name. */
int qos_name_check(const char *name, size_t n, struct qos_error *e);
void qos_name_put(uint64_t v[QOS_NAME_SLOTS], const char *name, size_t n); /* a checked one */

/* As dpctl's grammar has it: what would end the value there is %XX, the byte in hexadecimal.
 * Parsing answers -EINVAL and says why. */
char *qos_name_format(const uint64_t v[QOS_NAME_SLOTS], char *buf, size_t n);
int qos_name_parse(const char *text, uint64_t v[QOS_NAME_SLOTS], char *why, size_t n);

#endif
