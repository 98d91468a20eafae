/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about the kernel's entries share: megaflow.c (life, ports), entries.c (makes an entry for a
 * request), changes.c (finds the entries that a change concerns), grow.c (rings that grow), host.c (what the host may want), forget.c (what has
 * changed), quick.c (rules out entries quickly), end.c (an entry's end), count.c (reads counters back), turn.c
 * (the end of a turn), wire.c (what the kernel does while nobody serves a port). */
#ifndef MEGAFLOW_STATE_H
#define MEGAFLOW_STATE_H

#include <megaflow/megaflow.h>
#include <shared/clock.h>
#include <switch/switch.h>

#define OFFLOAD_REFUSED 1024  /* keys that are remembered: a power of two */
#define OFFLOAD_PAUSES  1024  /* places for pauses: a power of two */
#define OFFLOAD_QUEUES  65536 /* bits of queues; a power of two */
#define OFFLOAD_TICK_NS (NS_PER_S / 10)
#define OFFLOAD_LOOK_NS (NS_PER_S / 20) /* at rings that fill */

/* What the entry counts; a change of these may concern it. */
struct entry_run {
    const struct group *group; /* NULL: there was none of that number */
    uint32_t id;
    int32_t bucket;
    int16_t added; /* as in struct offload_plan */
};

struct entry_out {
    uint32_t port;
    uint32_t queue;
    int16_t added;
    bool no_queue;
};

struct entry_drop {
    uint32_t port;
    uint32_t group;
    const struct group *found; /* of that number; NULL: there was none */
    uint8_t why;
};

/* An entry that the kernel has.  What it names is in memory until it is withdrawn. */
struct entry {
    uint32_t id, at; /* its number, and its place in `live` or `gone` */
    uint32_t in_port;
    uint64_t created;
    struct flow_key asked; /* the packet's that it was made for */
    struct flow_key key, mask;
    struct offload_hits read; /* as of the last time */
    uint64_t used, looked;    /* offload_used then, and when that was */
    struct offload_hits tick; /* as of the last tick */
    uint32_t joined;          /* the same, segments that went to be joined */
    uint64_t sign;            /* of its key and mask, for pauses */
    enum offload_stage stage;
    bool queue_in, no_queue_in; /* as in struct offload_plan */

    uint8_t n_steps, rekeys;
    uint8_t metered; /* the first step that counts only what the meter let pass */
    uint8_t n_ops, n_runs, n_outs, n_drops;
    bool any_port, any_group;
    uint32_t ports; /* as struct offload_rule has them */
    struct offload_stations stations;
    uint8_t table[CACHE_STEPS];
    int16_t added[CACHE_STEPS];
    struct path_step step[CACHE_STEPS];
    uint32_t meter_id;
    struct meter *meter;
    /* Behind it, in this order. */
    struct entry_run *run;
    struct entry_drop *drop;
    struct offload_op *op;
    struct entry_out *out;
};

static inline struct known_path
entry_path(const struct entry *e)
{
    return (struct known_path){e->table, e->step, e->n_steps, e->rekeys};
}

/* A key for which there is no entry. */
struct refusal {
    struct flow_key key;
    enum offload_stage stage;
    uint64_t until;       /* 0: a free place */
    unsigned long tables; /* as of these changes */
    uint8_t why;
};

/* An entry that is not to be made before `until`: it was withdrawn soon after it was made. */
struct pause {
    uint64_t sign, until;
    uint32_t ms;
};

struct sw_offload {
    struct sw *sw;
    struct offload *o;
    struct offload_host *host;
    struct loop_timer *tick, *soon;
    struct loop_timer *attach; /* of ports that wait: begins the task */
    struct task attach_task;
    struct loop_timer *grow; /* their rings */
    uint64_t filled;         /* when rings were last looked at */
    struct meter_sharing sharing;
    struct offload_meters places;
    uint64_t now; /* of the present request */

    struct entry **live;
    struct offload_known *column[KEY_WORDS]; /* of `live`, by place; quick.c */
    uint64_t *maybe;                         /* the same, bits */
    struct entry **gone;                     /* withdrawn; programs may still use them */
    uint32_t n_live, n_gone, most;

    uint64_t served; /* until when workers serve the ports that have a wire (wire.h) */
    uint64_t wired;  /* frames that had gone by wires then */

    bool on; /* packets are looked up */
    bool closing;
    bool all;                             /* everything is to be withdrawn */
    bool ports;                           /* some of `port` are set */
    uint64_t port[PORT_MAX / 64 + 2];     /* bits: has changed; the last one is OFPP_LOCAL's */
    bool queues;                          /* some of `queue` are set */
    uint64_t queue[OFFLOAD_QUEUES / 64];  /* bits: a queue with this hash has changed */
    unsigned long tables, groups, meters; /* their changes as of the last time */
    uint64_t settled;                     /* when, at the end of a turn */
    uint64_t synced_until;                /* what was read counts for statistics */
    uint64_t compared;                    /* this turn */
    uint64_t credit, credit_since;        /* of comparisons, over time */
    uint64_t looked_after;                /* ports, when */
    unsigned n_ports;
    unsigned long kinds_groups; /* groups_changes, when `selects` was found */
    bool selects;               /* there are select groups */
    bool normal;                /* packets that workers asked for went by OFPP_NORMAL */

    uint64_t asks, asks_since; /* how many requests may be looked at, and as of when */
    bool asked;                /* requests wait until workers have this thread's tables again */
    uint64_t full;             /* when there was no room last */
    struct sw_offload_counts counts;
    uint64_t drops[DROP_N];
    struct refusal refusal[OFFLOAD_REFUSED];
    struct pause pause[OFFLOAD_PAUSES];

    char (*off)[IFNAMSIZ];
    unsigned n_off;
};

/* ------------------------------------------------------------------ megaflow.c */

bool offload_is_off(const struct sw_offload *f, const char *name); /* of a port, by its owner */

/* ------------------------------------------------------------------ grow.c */

/* Gives ports larger rings whose rings fill again and again: those that user space handles much of. */
void offload_grow(struct sw_offload *f);
/* The kernel can't handle what comes in by the port: its ring is to be large at once. */
void offload_grow_now(struct sw_offload *f, struct sw_port *p);
/* The same of all ports, as when somebody captures: user space gets all packets from now on. */
void offload_grow_all(struct sw_offload *f);

/* ------------------------------------------------------------------ host.c */

int offload_host_open(struct sw_offload *f); /* -errno */
void offload_host_close(struct sw_offload *f);

/* May the host want this frame of the port?  As is_for_host in offload/bpf/lookup.h. */
bool offload_host_wants(const struct sw_offload *f, const struct sw_port *p,
                        const struct packet *frame);

/* Tells the programs what the host may want of the port's frames. */
void offload_host_port(struct sw_offload *f, const struct sw_port *p);

/* Has the netlink thread look for what no event tells. */
void offload_host_look(struct sw_offload *f);

/* ------------------------------------------------------------------ entries.c */

/* A worker has seen packets with this key again and again. */
void offload_ask(struct sw_offload *f, const struct flow_key *key, enum offload_stage stage);

/* ------------------------------------------------------------------ end.c */

/* Where the pause of entries with this sign is, or would be. */
struct pause *offload_pause_of(struct sw_offload *f, uint64_t sign);

/* No packet finds the entry any more; offload_finish then waits for those under way, counts, and
 * frees. */
enum gone_why { GONE_CHANGED, GONE_AGED, GONE_SHARED, GONE_ALL };
void offload_take_out(struct sw_offload *f, struct entry *e, enum gone_why why);
void offload_finish(struct sw_offload *f);
void offload_take_out_all(struct sw_offload *f);
/* The switch ends, and the kernel goes on with them. */
void offload_leave_all(struct sw_offload *f);

/* Withdraws entries that nobody needs; those that a moved station makes wrong, and tells whether workers join segments. */
void offload_age(struct sw_offload *f, uint64_t now);
void offload_judge(struct sw_offload *f);

/* ------------------------------------------------------------------ forget.c */

bool offload_port_changed(const struct sw_offload *f, uint32_t no);
bool offload_queue_changed(const struct sw_offload *f, uint32_t no,
                           uint32_t queue); /* or one of the same hash */

/* ------------------------------------------------------------------ changes.c */

void offload_settle(struct sw_offload *f);
/* The same, unless that was a moment ago; and tells workers what distinguishes packets. */
void offload_look_at_changes(struct sw_offload *f);

/* ------------------------------------------------------------------ quick.c */

/* Sets the bits in f->maybe of entries that changes of flows may concern.  False: it may be any. */
bool offload_quick_look(struct sw_offload *f);
void offload_quick_put(struct sw_offload *f, const struct entry *e); /* at e->at in `live` */
void offload_quick_move(struct sw_offload *f, uint32_t to, uint32_t from);
void offload_quick_free(struct sw_offload *f);

/* ------------------------------------------------------------------ count.c */

/* Adds what the entry has counted since the last time. */
void offload_count(struct sw_offload *f, struct entry *e);
void offload_sync(struct sw_offload *f);
void offload_sync_lately(struct sw_offload *f);

#endif
