/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a trace share.  trace.c begins one; trace-table.c, -action.c, -group.c and
 * -output.c are what its dry run calls (pipeline-trace.h); trace-put.c writes events. */
#ifndef TRACE_TRACE_INSIDE_H
#define TRACE_TRACE_INSIDE_H

#include <dataplane/pipeline-inside.h>

#include <trace/trace.h>

#define TRACE_LEARNT 16 /* places */

struct learnt {
    uint8_t mac[6];
    uint16_t vid, port;
};

struct trace {
    struct dry_run run; /* first */
    struct worker w;
    const struct trace_env *env;
    struct of_wr *out;
    size_t start; /* of the events in `out` */
    bool full;
    uint16_t max_len;    /* bytes to show of a packet that leaves */
    uint32_t to_compare; /* flows */
    enum ofp_trace_source source;
    struct flow_key came;   /* the packet's fields as it came in */
    struct flow_key before; /* and before the action that runs now */
    uint8_t ttl_before;
    unsigned n_learnt;
    struct learnt learnt[TRACE_LEARNT]; /* what NORMAL would have, by now */
};

static inline struct trace *
trace_of(const struct step *s)
{
    return (struct trace *)s->dry;
}

/* Depths: a table's actions are at 1, what becomes of an action one deeper, a group's actions two. */
static inline uint8_t
depth_of(const struct step *s)
{
    return (uint8_t)(1 + 2 * s->depth);
}

/* Fields of a packet, or of two, as matches; they point to themselves, so they can't be copied. */
struct fields {
    struct of_match match;
    struct of_oxm v[OXM_N];
};

/* All that the packet has, but metadata and tunnel_id where these are 0, and in_phy_port where it
 * is in_port. */
void trace_fields(const struct flow_key *key, struct fields *out);
/* Those that differ, with their prerequisites. */
void trace_changes(const struct flow_key *before, const struct flow_key *after, struct fields *was,
                   struct fields *is);
/* Of a flow's match: the fields that the packet has not, or with another value. */
void trace_mismatch(const struct of_match *flow, const struct flow_key *key, struct fields *wants,
                    struct fields *has);

/* Of struct pipeline_trace. */
bool trace_enough(const struct step *s);
void trace_table(const struct step *s, uint8_t id, const struct path_step *at);
/* What the meter would do now.  Takes nothing out of it. */
int trace_meter(const struct step *s, const struct meter *m);
void trace_written(const struct step *s, const struct program *prog, const struct action_set *set);
void trace_metadata(const struct step *s, const struct program *prog);
void trace_standalone(const struct step *s);
void trace_action_set(const struct step *s, const struct act *const v[], unsigned n);
void trace_action(const struct step *s, const struct act *a);
void trace_acted(const struct step *s, const struct act *a);
void trace_group(const struct step *s, uint32_t id, const struct group *g);
void trace_chosen(const struct step *s, const struct group *g, const struct bucket *b);
void trace_bucket(const struct step *s, const struct group *g, const struct bucket *b);
void trace_no_more_buckets(const struct step *s, const struct group *g, const struct bucket *b);
void trace_flood(const struct step *s, uint32_t without);
void trace_learn(const struct step *s, uint16_t vid);
uint16_t trace_find(const struct step *s, uint16_t vid, uint32_t now);
void trace_decided(const struct step *s, uint16_t vid, const struct port *to);
void trace_port(const struct step *s, struct port *port, uint32_t no);
void trace_no_packet_in(const struct step *s);
void trace_packet_in(const struct step *s, const uint8_t *data, uint32_t len, uint32_t padding,
                     uint16_t max_len);
void trace_drop(const struct step *s, enum drop_reason why, uint32_t to);

uint8_t trace_ttl(const struct packet *p); /* the outermost one's; 0: it has none */

#endif
