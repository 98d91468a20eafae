/* SPDX-License-Identifier: Apache-2.0 */
/* What the pipeline's files share: pipeline.c runs tables, actions and groups; pipeline-output.c
 * sends; pipeline-bucket.c chooses a group's bucket.
 *
 * Their bodies take `dry`, a constant: each is always inlined into one function for workers and one for dry runs
 * (pipeline-trace.h).  So TRACE costs workers not one instruction. */
#ifndef DATAPLANE_PIPELINE_INSIDE_H
#define DATAPLANE_PIPELINE_INSIDE_H

#include <dataplane/pipeline-trace.h>

#include <dataplane/dp.h>
#include <flow/actions.h>

#define PIPELINE_BODY static inline __attribute__((always_inline))

/* Calls s->dry's function of this name in a dry run. */
#define TRACE(name, ...)                                                                           \
    do {                                                                                           \
        if (dry && s->dry->on->name)                                                               \
            s->dry->on->name(__VA_ARGS__);                                                         \
    } while (0)

#define MAX_BUCKETS 4096 /* one packet may run through, or look at to choose one */

/* A packet in the pipeline, and what the actions that run on it need to know. */
struct step {
    struct worker *w;
    struct packet *p;
    uint64_t cookie; /* of the last flow; all ones: none */
    uint8_t table_id;
    uint8_t reason;      /* of a packet-in by an output */
    uint8_t depth;       /* of nested groups */
    uint16_t *buckets;   /* how many may still run: groups can lead to very many */
    bool last;           /* nobody looks at the packet after the actions that run now */
    bool in_set;         /* they are a bucket's, or of the action set */
    bool sent;           /* or dropped with a reason of its own */
    bool missed;         /* by OFPP_NORMAL, if nothing else sends it (standalone) */
    struct dry_run *dry; /* not NULL: nothing is sent, counted or learned */
};

/* Ports with one of these bits get nothing that FLOOD or NORMAL sends to all (OpenFlow 1.0, 5.2.1). */
#define FLOOD_WITHOUT (OFPPC_NO_FWD | OFPPC_NO_FLOOD)

/* Enough is known of the packet. */
PIPELINE_BODY bool
step_enough(const struct step *s, const bool dry)
{
    return dry && s->dry->on->enough && s->dry->on->enough(s);
}

/* 0 or EDIT_DROP. */
PIPELINE_BODY int
step_edit(struct step *s, const struct act *a, const bool dry)
{
    return dry && s->dry->on->edit ? s->dry->on->edit(s, a) : action_rows[a->op].edit(s->p, a);
}

/* The packet ends here, dry or not.  out_port: where it was to go; OFPP_ANY: not known. */
void pipeline_drop_to(const struct step *s, enum drop_reason why, uint32_t out_port);

static inline void
step_drop(const struct step *s, enum drop_reason why)
{
    pipeline_drop_to(s, why, OFPP_ANY);
}

/* The cookie of a packet-in: an action set or a bucket is no particular flow's (7.4.1). */
static inline uint64_t
step_cookie(const struct step *s)
{
    return s->in_set ? UINT64_MAX : s->cookie;
}

/* Somebody may capture the packet here. */
void pipeline_capture_now(const struct step *s, enum ofp_capture point, uint32_t out_port);

PIPELINE_BODY void
pipeline_capture(const struct step *s, enum ofp_capture point, uint32_t out_port, const bool dry)
{
    if (!dry && s->w->capture)
        pipeline_capture_now(s, point, out_port);
}

/* An output action, but OFPP_TABLE. */
void pipeline_output(struct step *s, uint32_t to, uint16_t max_len);
void pipeline_output_dry(struct step *s, uint32_t to, uint16_t max_len);

/* The bucket of a group that is not OFPGT_ALL; NULL: there is no live one. */
const struct bucket *pipeline_bucket(const struct dp *dp, const struct group *g,
                                     const struct packet *p);

/* The hash by which a select group chooses; 0 for other groups. */
uint32_t pipeline_bucket_hash(const struct dp *dp, const struct group *g, const struct packet *p);

/* Whether a select group's bucket may be chosen: neither the port that it watches nor the port that it
 * sends to is down or missing (5.6.1). */
bool pipeline_bucket_usable(const struct dp *dp, const struct bucket *b);

#endif
