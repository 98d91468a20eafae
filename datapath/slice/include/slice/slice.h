/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: what a connection may touch and see (docs/how-to/slices.md).
 *
 * A slice is sets of numbers: ports, tables, queues, groups, meters.  This room says what a slice is
 * and whether a flow, a list of actions, a bucket or an asynchronous message lies within it.  It needs
 * nothing but the codec.  What a request needs of a slice: its row (admission/request.h).
 *
 * A connection without a slice, or with one of `may = all`, has NULL in the place of one, and may do
 * everything: all functions that ask for rights take that. */
#ifndef SLICE_SLICE_H
#define SLICE_SLICE_H

#include <oflib/codec.h>

#include <stdbool.h>

#define SLICE_NAME_MAX   32 /* bytes with the final zero */
#define SLICE_RANGES_MAX 64 /* of one set */
#define SLICES_MAX       256
#define SLICE_PEERS_MAX  16 /* connections of one slice */

struct slice_set {
    unsigned n;
    struct slice_range {
        uint32_t first, last;
    } v[SLICE_RANGES_MAX];
};

struct slice {
    char name[SLICE_NAME_MAX];
    unsigned refs;
    bool read_only; /* READ access only */
    bool may_all;   /* it may do everything */
    struct slice_set ports;
    struct slice_set tables; /* tables whose flows are all its own */
    struct slice_set shared; /* tables where it owns the flows with its ports as in_port */
    struct slice_set queues; /* of its ports; 0: also their root, so the whole tree */
    struct slice_set below;  /* others' classes that its own may have as parents */
    struct slice_set groups, meters;
    uint64_t metadata; /* the bits that it may write */
    unsigned n_peers;
    char *peers[SLICE_PEERS_MAX]; /* conn_target's text; none: any */
    char *common_name;            /* UTF-8; NULL: any, or none */
    uint64_t refused;             /* requests */
};

/* ------------------------------------------------------------------ making them */

/* With one reference.  NULL: no memory. */
struct slice *slice_new(const char *name);
struct slice *slice_hold(struct slice *s); /* NULL is allowed in both */
void slice_put(struct slice *s);

/* What a key of the section says, one call each line ("ports", "1-3,local").  0, or -EINVAL, -ENOMEM
 * with a phrase in `why` that goes on behind the key's name: "must be ...". */
int slice_set_key(struct slice *s, const char *key, const char *value, char *why, size_t n);

/* All that there are, in the order in which they were made. */
struct slices {
    size_t n;
    struct slice *v[SLICES_MAX];
};
void slices_clear(struct slices *all);

/* Who connects or is connected to. */
struct slice_peer {
    const char *target;
    bool tls;
    const char *common_name; /* of its certificate; NULL: none */
};

/* The slice of a connection: the first one with its common name that suits its target, else the first
 * one without a common name that does, else NULL.  False: it may not do anything, since its target has
 * slices with common names and none is its. */
bool slices_find(const struct slices *all, const struct slice_peer *peer, struct slice **out);

/* ------------------------------------------------------------------ what is within one */

bool slice_set_has(const struct slice_set *set, uint32_t number);

static inline bool
slice_has_port(const struct slice *s, uint32_t no)
{
    return !s || slice_set_has(&s->ports, no);
}

/* Its own, or one that it shares. */
static inline bool
slice_has_table(const struct slice *s, uint8_t id)
{
    return !s || slice_set_has(&s->tables, id) || slice_set_has(&s->shared, id);
}

static inline bool
slice_has_queue(const struct slice *s, uint32_t port, uint32_t id)
{
    return !s || (slice_set_has(&s->ports, port) && slice_set_has(&s->queues, id));
}

static inline bool
slice_has_group(const struct slice *s, uint32_t id)
{
    return !s || slice_set_has(&s->groups, id);
}

static inline bool
slice_has_meter(const struct slice *s, uint32_t id)
{
    return !s || slice_set_has(&s->meters, id);
}

/* A flow of this table with this match. */
bool slice_has_flow(const struct slice *s, uint8_t table_id, const struct of_match *match);

/* These are 0 or the error to answer with, and a phrase in `why`: the right that is missing. */
#define SLICE_WHY 128
int slice_check_flow_mod(const struct slice *s, const struct of_flow_mod *q, char why[SLICE_WHY]);
int slice_check_group_mod(const struct slice *s, const struct of_group_mod *q, char why[SLICE_WHY]);
/* in_port_own: the packets come in by one of its ports. */
int slice_check_actions(const struct slice *s, const struct of_list *actions, bool in_port_own,
                        bool packet_out, char why[SLICE_WHY]);

/* Whether it may be sent this asynchronous message; the arena is scratch space. */
bool slice_sees(const struct slice *s, struct of_bytes message, struct of_arena *arena);

#endif
