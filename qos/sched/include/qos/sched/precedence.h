/* SPDX-License-Identifier: Apache-2.0 */
/* One drop precedence of GRED: a RED of its own in a queue that all share. */
#ifndef QOS_PRECEDENCE_H
#define QOS_PRECEDENCE_H

#include <qos/sched/red.h>

#define QOS_PRECEDENCES         16 /* TC_GRED's MAX_DPs */
#define QOS_PRECEDENCE_SLOTS    2
#define QOS_PRECEDENCE_PRIO     255
#define QOS_PRECEDENCE_SLOT(dp) (QOS_PRECEDENCE + (dp)*QOS_PRECEDENCE_SLOTS)

struct qos_precedence {
    uint32_t prio;            /* 0: counts by itself */
    uint32_t min, max, limit; /* bytes */
    uint32_t ppm;
};

/* From and to the two slots of a struct qos_values. */
struct qos_precedence qos_precedence_get(const uint64_t v[QOS_PRECEDENCE_SLOTS]);
void qos_precedence_put(uint64_t v[QOS_PRECEDENCE_SLOTS], const struct qos_precedence *p);

/* "min/max/limit/probability", then "/prio" where that isn't 0. */
char *qos_precedence_format(const uint64_t v[QOS_PRECEDENCE_SLOTS], char *buf, size_t n);
int qos_precedence_parse(const char *text, uint64_t v[QOS_PRECEDENCE_SLOTS], char *why, size_t n);

/* Is the drop precedence dp possible by itself?  OFPSFC_BAD_PARAM. */
int qos_precedence_check(unsigned dp, const uint64_t v[QOS_PRECEDENCE_SLOTS], struct qos_error *e);

/* Does the GRED have this precedence?  Then its RED, from resolved values, in *red. */
bool qos_gred_derive(const struct qos_values *v, unsigned dp, struct qos_precedence *p,
                     struct qos_red *red);

#endif
