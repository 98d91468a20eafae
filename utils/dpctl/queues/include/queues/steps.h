/* SPDX-License-Identifier: Apache-2.0 */
/* A list of things to do, in order: QoS requests and flow-mods, carried out as one bundle or
 * shown. */
#ifndef DPCTL_QUEUES_STEPS_H
#define DPCTL_QUEUES_STEPS_H

#include <queues/queues.h>

struct steps {
    struct step {
        struct qos_request *qos;  /* or NULL: */
        struct of_flow_mod *flow; /* or NULL: a message of this type */
        uint8_t type;
        const void *body;
        const char *where; /* what refusals begin with; NULL: c->where */
    } * v;
    size_t n, room;
    bool nomem; /* a step is missing; steps_run() reports it */
};

void steps_qos(struct ctx *c, struct steps *s, const struct qos_request *r, const char *where);
void steps_flow(struct ctx *c, struct steps *s, const struct of_flow_mod *fm);
void steps_delete(struct ctx *c, struct steps *s, const struct of_flow_stats *f);
/* A group-mod, meter-mod or port-mod; the body stays the caller's. */
void steps_message(struct ctx *c, struct steps *s, uint8_t type, const void *body);

/* The commands that would do it, one a line. */
void steps_print(struct of_wr *w, const struct steps *s, bool comments);

/* Carries out all or nothing; with --dry-run shows the commands that would. */
enum status steps_run(struct ctx *c, const struct steps *s);

#endif
