/* SPDX-License-Identifier: Apache-2.0 */
/* A flow entry, and the program that its instructions are compiled to.
 *
 * Match, instructions and actions are checked and translated once, when the flow-mod comes; the
 * packet path interprets no wire format.  All that a worker reads of a flow besides its key is in
 * its program.  A modify replaces the program as a whole (RCU).
 */
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include <packet/key.h>
#include <shared/atomics.h>
#include <shared/change-set.h>
#include <shared/rcu.h>

#include <oflib/codec.h>

/* One action, in units of 8 bytes; what follows it depends on `op`. */
struct act {
    uint8_t op;     /* OFPAT_ */
    uint8_t units;  /* of 8 bytes, this header included */
    uint16_t extra; /* output: max_len; set_field: OXM field */
    uint32_t arg;   /* port, queue, group, ttl, ethertype */
    uint8_t data[]; /* set_field: the value; set_queue: struct queue_ports, if there are any */
};

/* Where a set_queue holds; NULL: everywhere. */
static inline const struct queue_ports *
act_queue_ports(const struct act *a)
{
    return a->units > 1 ? (const struct queue_ports *)(const void *)a->data : NULL;
}

struct act_list {
    const struct act *first;
    const struct act *end;
};

static inline const struct act *
act_next(const struct act *a)
{
    return (const struct act *)((const uint8_t *)a + a->units * 8u);
}

#define ACTS_EACH(a, list) for (const struct act *a = (list).first; a < (list).end; a = act_next(a))

#define NO_TABLE 0xff

/* What an action, or a program, does to a packet's flow key: how far the flow cache may rely on a
 * key.  A program's effect is the lowest of its actions'. */
enum key_effect {
    KEY_UNKNOWN, /* the new key depends on more than the old one: nothing may be assumed */
    KEY_FOLLOWS, /* the key may change, but depends only on the old one */
    KEY_KEPT,
};

/* What a flow's instructions do, in the order in which they are carried out (5.9). */
struct program {
    uint64_t cookie;
    uint32_t meter_id;  /* 0: none */
    uint8_t goto_table; /* NO_TABLE: end here */
    bool clear : 1;     /* the action set */
    bool has_metadata : 1;
    bool miss : 1;          /* of a table-miss entry: packet-in reason OFPR_NO_MATCH */
    uint8_t key_effect : 2; /* enum key_effect, but for its meter's */
    uint16_t n_apply;       /* units of 8 bytes in acts */
    uint16_t n_write;
    uint16_t n_wire; /* bytes behind acts: the instructions as they came, for statistics */
    uint16_t n_uses; /* struct flow_use behind those */
    uint64_t metadata;
    uint64_t metadata_mask;
    uint64_t acts[];
};

static inline struct act_list
program_apply(const struct program *p)
{
    const struct act *a = (const struct act *)(const void *)p->acts;
    return (struct act_list){a, (const struct act *)(const void *)(p->acts + p->n_apply)};
}

static inline struct act_list
program_write(const struct program *p)
{
    const struct act *a = (const struct act *)(const void *)(p->acts + p->n_apply);
    return (struct act_list){a,
                             (const struct act *)(const void *)(p->acts + p->n_apply + p->n_write)};
}

static inline struct of_bytes
program_wire(const struct program *p)
{
    return (struct of_bytes){(const uint8_t *)(p->acts + p->n_apply + p->n_write), p->n_wire};
}

/* A flow's reference to a meter or group, in the list of its users (refs.h). */
struct flow_use {
    struct flow_use *next, **at;
    struct flow *flow;
};

/* One for the meter, if there is one, then one for each group action. */
static inline struct flow_use *
program_uses(struct program *p)
{
    return (struct flow_use *)(void *)(p->acts + p->n_apply + p->n_write + (p->n_wire + 7u) / 8);
}

static inline size_t
program_size(const struct program *p)
{
    size_t acts = (size_t)p->n_apply + p->n_write, wire = p->n_wire;
    if (p->n_uses)
        wire = (wire + 7) / 8 * 8 + p->n_uses * sizeof(struct flow_use);
    return sizeof *p + acts * 8 + wire;
}

struct flow_counter {
    uint64_t packets;
    uint64_t bytes;
};

static inline void
flow_counter_add(struct flow_counter *c, uint64_t packets, uint64_t bytes)
{
    counter_add(&c->packets, packets);
    counter_add(&c->bytes, bytes);
}

/* Each worker has its own counters, in cache lines of its own: workers would otherwise wait for
 * each other.  Some processors fetch two lines at a time. */
#define COUNTER_LINE 128
/* Of flows, which are many: see flow-counters.h. */
#define FLOW_COUNTERS_STRIDE 4096

/* How many counters a worker's n take. */
static inline uint32_t
flow_counters_apart(uint32_t n, unsigned workers)
{
    const uint32_t line = COUNTER_LINE / sizeof(struct flow_counter);
    return workers > 1 ? (n + line - 1) / line * line : n;
}

/* What the kernel did for the switch (docs/explanation/offload.md) is counted like another worker's packets:
 * the control thread writes it, under the number after the last worker's.  It writes seldom, so
 * with one worker both counters lie side by side.  This takes 16 bytes more for each flow, band or
 * bucket, and COUNTER_LINE for a table.  With several workers, groups and meters take lines of
 * their own for it. */
static inline unsigned
flow_counters_slots(unsigned workers, bool kernel)
{
    return workers + kernel;
}

/* Zeroed counters for all workers; free() frees them.  NULL: no memory. */
struct flow_counter *flow_counters_new(uint32_t n, unsigned workers, bool kernel);

struct subtable;

/* What workers read comes last, beside the key and the counters. */
struct flow {
    struct flow *lower;                  /* same key, next lower priority (control thread) */
    uint64_t created;                    /* loop time, ns */
    uint64_t reset_packets, reset_bytes; /* subtracted from the counters */
    struct flow_timer *timer;
    uint32_t refs;                       /* snapshots that still need it (control thread) */
    uint16_t idle_timeout, hard_timeout; /* s */
    uint8_t flags;                       /* OFPFF_ */
    uint8_t table_id;
    bool removed;
    uint8_t mark; /* change-set.h */
    uint16_t priority;
    bool apart;      /* behind the key is where its counters are (flow-counters.h) */
    uint8_t n_words; /* of the key */
    uint32_t hash;
    uint32_t used;               /* last packet, by flow_clock; workers write it */
    struct program *program;     /* RCU; read it by flow_program: it may be a struct flow_change */
    struct subtable *sub;        /* holds the mask */
    uint64_t key_and_counters[]; /* the key's words under the mask, then a flow_counter a worker */
};

/* What a change set (change-set.h) changes of a flow that was there before.  Until the set is
 * closed, this takes the program's place, with the pointer's lowest bit set. */
struct flow_change {
    struct program *old, *now;
    uint64_t created; /* from here to `mark`: restored if the set fails */
    uint16_t idle_timeout, hard_timeout;
    uint8_t flags;
    bool watched;
    uint8_t mark;
    bool replaced, reset; /* if it doesn't fail: times begin anew, counters are reset */
};

static inline struct program *
flow_change_program(struct flow_change *c)
{
    return (struct program *)(void *)((uint8_t *)c + 1);
}

/* NULL: it is a program. */
static inline struct flow_change *
flow_changing(struct program *p)
{
    return (uintptr_t)p & 1 ? (struct flow_change *)(void *)((uint8_t *)p - 1) : NULL;
}

/* The program that this reader must see.  Any thread, under RCU. */
static inline struct program *
flow_program(const struct flow *f)
{
    struct program *p = rcu_dereference(f->program);
    struct flow_change *c = flow_changing(p);
    if (__builtin_expect(!c, 1))
        return p;
    return change_set_after(c->mark) ? c->now : c->old;
}

static inline struct flow_counter *
flow_counter_of(const struct flow *f, unsigned worker)
{
    const uint64_t *at = f->key_and_counters + f->n_words;
    return f->apart ? (struct flow_counter *)((uintptr_t)*at + worker * FLOW_COUNTERS_STRIDE)
                    : (struct flow_counter *)(uintptr_t)at + worker;
}

/* The clock of flow.used: eighths of a second, rounded up, as idle timeouts are looked at
 * (timeouts.h).  All workers read the cache line that `used` is in for each packet, so none may
 * write it much more often. */
#define FLOW_CLOCK_NS 125000000

static inline uint32_t
flow_clock(uint64_t ns)
{
    return (uint32_t)((ns + FLOW_CLOCK_NS - 1) / FLOW_CLOCK_NS);
}

#define QUEUE_PORTS_MAX 64

/* What the compiler needs to know about the switch. */
struct compile_env {
    void *sw;
    bool (*port_ok)(void *sw, uint32_t port_no); /* a valid output, though it may not exist yet */
    bool (*group_ok)(void *sw, uint32_t group_id);
    bool (*meter_ok)(void *sw, uint32_t meter_id);
    /* Where the choices of a queue hold, at most QUEUE_PORTS_MAX ranges, which are copied; NULL, or what is
     * returned is NULL: everywhere. */
    const struct queue_ports *(*queue_ports)(void *sw);
    uint8_t table_id;
    uint8_t n_tables;
    bool packet_out; /* OFPP_TABLE is allowed */
    bool has_match;  /* of a flow-mod: check actions against `match` */
    const struct of_match *match;
};

/* Checks and compiles a flow's instructions; free() frees the program. */
int compile_instructions(const struct compile_env *env, const struct of_list *instructions,
                         struct program **out);

/* The same for a list of actions (packet-out, bucket), which becomes the apply list. */
int compile_actions(const struct compile_env *env, const struct of_list *actions,
                    struct program **out);

#endif
