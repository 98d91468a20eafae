/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel does for the switch (offload/offload.h), as the control thread keeps it: which
 * entries it has, why, and what they have counted.
 *
 * Workers ask for entries.  An entry is right as long as nothing has changed that it depends on.
 * sw_offload_settle finds what has changed, withdraws the entries concerned, and returns when no
 * packet is under way by them.  It knows changed flows by the tables' change log, groups and
 * meters by their identity, ports by sw_offload_forget_port.  Every grace period begins with it
 * (rcu_wait_also), so what an entry names stays in memory as long as the entry, and a barrier is
 * answered after it.
 *
 * Control thread.  Without the kernel's part (sw->offload NULL) all of it does nothing. */
#ifndef MEGAFLOW_MEGAFLOW_H
#define MEGAFLOW_MEGAFLOW_H

#include <megaflow/plan.h>
#include <net/if.h>
#include <packet/packet.h>

struct meter_sharing;
struct sw;
struct sw_port;

/* The default of `entries`: fewer on machines with little memory, or very many processors. */
uint32_t sw_offload_entries_default(uint64_t memory);
/* Round trips that the kernel's programs measure; control NULL: none. */
struct probes sw_offload_probes(const struct sw *sw);
/* Bytes in the kernel; 0: it handles nothing. */
uint64_t sw_offload_memory(const struct sw *sw);

/* ------------------------------------------------------------------ life */

/* Sets sw->offload, or says in the log why not.  Before the tables are made, and before workers start.
 * -errno: no memory. */
int sw_offload_open(struct sw *sw);
/* Takes everything off the interfaces; then counters are final.  To be called while the tables
 * still exist. */
void sw_offload_stop(struct sw *sw);
/* To be called after the workers and the meters are freed: the meters' buckets may be in its
 * memory. */
void sw_offload_free(struct sw *sw);

/* Where meters have their buckets; NULL without the kernel's part. */
const struct meter_sharing *sw_offload_meters(const struct sw *sw);

/* ------------------------------------------------------------------ ports */

/* Ports whose packets stay with the workers, by name; those that are there follow at once.  -ENOMEM: as
 * before. */
int sw_offload_set_off(struct sw *sw, const char (*name)[IFNAMSIZ], unsigned n);

/* May the kernel handle what comes in by the port of that name? */
bool sw_offload_is_for(const struct sw *sw, const char *name);

/* To be called when the port has its interface.  If the kernel can't handle its packets, they stay with the
 * workers. */
void sw_offload_port_add(struct sw *sw, struct sw_port *p);
/* To be called before the port's sockets are closed. */
void sw_offload_port_del(struct sw *sw, struct sw_port *p);
/* The port's shaper: to be called before it is taken away, and when there is a new one, or none. */
void sw_offload_shaper_del(struct sw *sw, struct sw_port *p);
void sw_offload_shaper_add(struct sw *sw, struct sw_port *p);

/* ------------------------------------------------------------------ requests */

/* Makes entries that workers have asked for.  True: more wait. */
bool sw_offload_asked(struct sw *sw);

/* ------------------------------------------------------------------ changes */

/* To be called when the port's state, configuration, MTU or queues have changed. */
void sw_offload_forget_port(struct sw *sw, uint32_t no);
/* Only what leaves by this queue of the port, or was to leave by one that did not exist.  0: what has no queue. */
void sw_offload_forget_queue(struct sw *sw, uint32_t no, uint32_t queue);
void sw_offload_forget_all(struct sw *sw);
/* The port went up or down: no packet finds an entry that depends on it from now on.  Any thread, while the
 * switch is neither begun nor ended. */
void sw_offload_port_stale(struct sw *sw, uint32_t no);

/* Withdraws the entries that changes since the last call concern. */
void sw_offload_settle(struct sw *sw);
/* The same if many changes wait: between messages. */
void sw_offload_relieve(struct sw *sw);
/* At the end of a turn of the loop: the same at most once a millisecond. */
void sw_offload_end_of_turn(struct sw *sw);

/* ------------------------------------------------------------------ counters */

/* Adds what the kernel has done so far to flows, tables, groups, meters, ports and drops.  To be
 * called before these are read. */
void sw_offload_sync(struct sw *sw);
/* The same for statistics, but what was read just now stays valid for as long as reading it took.
 * So however often somebody asks, reading takes at most half of the control thread's time. */
void sw_offload_sync_lately(struct sw *sw);

/* Packets dropped for this reason by workers, and by the kernel as of the last sw_offload_sync. */
uint64_t sw_drops(const struct sw *sw, enum drop_reason why);

/* Why keys that workers asked for got no entry, beside OFFLOAD_REASONS. */
#define SW_OFFLOAD_REASONS(R)                                                                      \
    R(full, "the kernel has no entry, mask or place free")                                         \
    R(merged, "workers serve them better: they join TCP segments")                                 \
    R(changes, "changes withdrew their entry again and again, so it is not made for a while")      \
    R(busy, "workers ask for more entries than are looked at in a second")

#define SW_OFFLOAD_REASON(name, text) SW_OFFLOAD_##name,
enum {
    SW_OFFLOAD_FIRST = OFFLOAD_REASON_N - 1,
    SW_OFFLOAD_REASONS(SW_OFFLOAD_REASON) SW_OFFLOAD_N
};
const char *sw_offload_reason_name(unsigned why);
const char *sw_offload_reason_text(unsigned why);

/* What the switch has done with entries. */
#define SW_OFFLOAD_COUNTS(C)                                                                       \
    C(asked)     /* requests of workers that were looked at */                                     \
    C(inserted)  /* entries made */                                                                \
    C(withdrawn) /* because of changes */                                                          \
    C(aged)      /* because no packet came, or few, or another port was to have their mask */      \
    C(all)       /* times that all entries were withdrawn at once */                               \
    C(mended)    /* programs that somebody else took off an interface */

struct sw_offload_counts {
    struct offload_counts kernel;
#define SW_OFFLOAD_COUNT(name) uint64_t name;
    SW_OFFLOAD_COUNTS(SW_OFFLOAD_COUNT)
    uint64_t refused[SW_OFFLOAD_N];
};
struct sw_offload_counts sw_offload_counts(const struct sw *sw);
/* offload_counts_of; false: there is no such processor, or the kernel handles nothing. */
bool sw_offload_counts_of(const struct sw *sw, uint32_t processor, struct offload_counts *out);

/* ------------------------------------------------------------------ looking at it */

/* An entry, or a key that was refused. */
struct sw_offload_view {
    unsigned why;              /* OFFLOADED, or why not */
    struct flow_key key, mask; /* the packets; of a refused one, a packet's */
    struct offload_hits hits;
    uint64_t used, created; /* ns */
    uint32_t meter_id;      /* 0: none */
    const struct offload_op *op;
    uint32_t n_ops;
};
/* Calls `each` for all of them; false ends it. */
void sw_offload_each(struct sw *sw, bool (*each)(void *ctx, const struct sw_offload_view *v),
                     void *ctx);

/* Why packets stay with the workers: a reason's name, as OFFLOAD_REASONS and SW_OFFLOAD_REASONS have it
 * or one of why.c, and its sentence.  name NULL: they are handled in the kernel. */
struct sw_offload_why {
    const char *name, *text;
};
struct sw_offload_why sw_offload_why(const struct sw *sw); /* all packets */
struct sw_offload_why sw_offload_port_why(const struct sw *sw, const struct sw_port *p);
/* Explains it for packets like this one, which is as it came in.  An entry need not exist yet. */
struct sw_offload_why sw_offload_explain(struct sw *sw, const struct packet *p);

#endif
