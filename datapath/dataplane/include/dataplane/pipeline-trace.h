/* SPDX-License-Identifier: Apache-2.0 */
/* A dry run of the pipeline: the packet's way is walked and reported, but nothing is sent, counted, metered or
 * learnt.  Three use it: a worker's preview for a port whose receive side is shaped (preview.c), `dpctl trace`
 * (trace/), and the plans of megaflows (megaflow/plan.c).
 *
 * Each member of struct pipeline_trace may be NULL.  They change nothing of the step, and of its packet only what
 * their comment says. */
#ifndef DATAPLANE_PIPELINE_TRACE_H
#define DATAPLANE_PIPELINE_TRACE_H

#include <dataplane/dp.h>
#include <flow/action-set.h>
#include <table/flow-cache.h>

struct step;

struct pipeline_trace {
    /* Enough is known: go on no further than needed. */
    bool (*enough)(const struct step *s);

    /* Tables.  at->flow NULL: no match. */
    void (*table)(const struct step *s, uint8_t id, const struct path_step *at);
    /* 0 or EDIT_DROP(meter).  May remark the packet. */
    int (*meter)(const struct step *s, const struct meter *m);
    void (*written)(const struct step *s, const struct program *prog, const struct action_set *set);
    void (*metadata)(const struct step *s, const struct program *prog);
    void (*standalone)(const struct step *s); /* OFPP_NORMAL, as nothing matched */

    /* Actions.  action_set: it is carried out, n actions in this order. */
    void (*action_set)(const struct step *s, const struct act *const v[], unsigned n);
    void (*action)(const struct step *s, const struct act *a); /* before it */
    void (*acted)(const struct step *s, const struct act *a);  /* behind it */
    int (*edit)(struct step *s, const struct act *a);          /* instead of the row's edit */
    void (*queue)(const struct step *s, const struct act *a);
    void (*table_again)(const struct step *s); /* OFPP_TABLE, which then does nothing */

    /* What follows happens to a copy of the packet, until join. */
    void (*fork)(const struct step *s);
    void (*join)(const struct step *s);

    /* Groups.  group: g NULL: there is none of that number.  One at GROUP_MAX_DEPTH is dropped. */
    void (*group)(const struct step *s, uint32_t id, const struct group *g);
    void (*choose)(const struct step *s, const struct group *g); /* before a bucket is chosen */
    /* Which bucket a group that is not OFPGT_ALL takes; b NULL: none. */
    void (*chosen)(const struct step *s, const struct group *g, const struct bucket *b);
    void (*bucket)(const struct step *s, const struct group *g, const struct bucket *b);
    void (*no_more_buckets)(const struct step *s, const struct group *g, const struct bucket *b);

    /* Outputs. */
    void (*flood)(const struct step *s, uint32_t without); /* as flood() */
    void (*normal)(const struct step *s);                  /* it begins */
    /* A packet may meet NORMAL again, which knows then what the first one has learnt. */
    void (*learn)(const struct step *s, uint16_t vid);
    uint16_t (*find)(const struct step *s, uint16_t vid, uint32_t now); /* instead of normal_find */
    void (*decided)(const struct step *s, uint16_t vid, const struct port *to); /* NULL: floods */
    void (*retag)(const struct step *s); /* a flood's next ports take the packet with another tag */
    void (*port)(const struct step *s, struct port *port, uint32_t no); /* NULL: none */

    /* To the controllers.  False: it need not be finished for them. */
    bool (*controller)(const struct step *s);
    void (*no_packet_in)(const struct step *s);
    /* A packet-in, or one of a super-packet's, which is padded with zeros. */
    void (*packet_in)(const struct step *s, const uint8_t *data, uint32_t len, uint32_t padding,
                      uint16_t max_len);

    void (*drop)(const struct step *s, enum drop_reason why, uint32_t to);
};

/* Of one packet; the first member of what its functions keep. */
struct dry_run {
    const struct pipeline_trace *on;
    const struct flow_path *path; /* through the tables, where it is known; else NULL */
};

/* Leaves the packet as it is. */
void pipeline_dry_run(struct worker *w, struct packet *p, struct dry_run *d);

#endif
