/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as the switch's cache: two eBPF programs at each port find a packet's entry and do
 * what it says, and user space gets only what they have no entry for (docs/explanation/offload.md).
 *
 * A socket filter on the port's receive rings looks the packet up.  If it finds an entry, the ring
 * does not get the packet; the verdict goes to the program at tc's ingress, which comes next in
 * the same receive path, edits the packet and redirects it to the output's queueing disciplines.
 *
 * Control thread, except where a comment says otherwise.  An int is 0 or -errno. */
#ifndef OFFLOAD_OFFLOAD_H
#define OFFLOAD_OFFLOAD_H

#include <latency/probes.h>
#include <offload/layout.h>
#include <packet/key.h>

#include <stddef.h>

struct offload;

struct offload_options {
    uint32_t entries;   /* at most; a power of two */
    uint64_t linger_ns; /* entries hold so long after the process was killed; 0: they don't */
    bool uso;           /* the ports' rings take super-packets of UDP */
    uint32_t rtt_slots; /* connections whose round trips are measured; a power of two; 0: none */
};

/* Bytes in the kernel, which are locked in memory.  Each entry counts apart for each possible processor. */
uint64_t offload_memory_bytes(uint32_t entries, uint32_t processors);
/* So many that they take at most a sixteenth of `memory`, and 64 MB. */
uint32_t offload_entries_default(uint64_t memory, uint32_t processors);

/* Loads the programs.  Returns -errno (-EOPNOTSUPP: not in this build), and a sentence in `why`. */
int offload_open(const struct offload_options *opt, struct offload **out, char *why,
                 size_t why_len);
/* Takes everything off the interfaces, but for ports that have a wire.  NULL is allowed. */
void offload_close(struct offload *o);

/* ------------------------------------------------------------------ ports */

struct offload_port_config {
    /* Where its frames go while nobody serves it (offload_serve); then the program stays on the interface when the
     * process ends, and takes the place of one that a former process has left, without a frame in between
     * that neither sees.  NULL: the port has no wire. */
    const struct offload_wire *wire;
    uint8_t inside; /* PACKET_INSIDE_ */
};
/* Begins to handle what comes in by the interface.  ring: the port's receive sockets, which get
 * our filter.  -errno, and a sentence in `why`: the port stays as it was. */
int offload_port_add(struct offload *o, int ifindex, const struct offload_port_config *c,
                     const int *ring, unsigned n, char *why, size_t why_len);
/* The other end has come (again), or has gone (to: 0). */
void offload_port_rewire(struct offload *o, int ifindex, const struct offload_wire *wire);
/* From now on the frames go to these sockets, in the place of the first ones, which keep their filter until
 * offload_port_moved.  The sockets are to be bound later than those, and to get nothing before.  -EAGAIN: the
 * port is not ready.  Another -errno: close them. */
int offload_port_move(struct offload *o, int ifindex, const int *ring, unsigned n);
void offload_port_moved(struct offload *o, int ifindex); /* the first ones get nothing any more */
/* To be called before the port's sockets are closed, and after its entries were withdrawn.  later:
 * the program may stay on the interface, doing nothing, until offload_take_off, the interface is a
 * port again, or the process ends. */
void offload_port_del(struct offload *o, int ifindex, bool later);
/* Takes one such program off its interface, which costs some 12 ms in the kernel.  False: there
 * was none. */
bool offload_take_off(struct offload *o);
bool offload_port_has(const struct offload *o, int ifindex);

/* Calls fn for each other filter at the port's tc ingress: "bpf, pref 77, handle 0x1, NAME". */
typedef void offload_name_fn(void *ctx, const char *what);
void offload_port_others(const struct offload *o, int ifindex, offload_name_fn *name, void *ctx);

/* What of the interface's frames the host may want (OFFLOAD_HOST_).  It gets them, whatever the switch
 * does with them. */
void offload_port_host(struct offload *o, int ifindex, uint32_t what);

/* Workers add here, atomically, the packets of the port that they are done with, and the control
 * thread those that the ring lost. */
uint64_t *offload_port_done(struct offload *o, int ifindex);
/* Packets of the port to user space so far; written by the kernel. */
const uint64_t *offload_port_passed(const struct offload *o, int ifindex);

/* Attaches programs again that are not attached any more.  Returns how many there were.
 *
 * Somebody whose program or filter comes before ours may take frames that the kernel was to handle.  Then
 * it calls `lost`, with a sentence: the port's packets go to user space for so many seconds.  0: our
 * program comes first now. */
typedef void offload_front_fn(void *ctx, int ifindex, const char *why, unsigned seconds);
unsigned offload_check(struct offload *o, uint64_t now, offload_front_fn *lost, void *ctx);
/* That sentence while they do; NULL: they don't. */
const char *offload_port_waits(const struct offload *o, int ifindex);

/* Super-packets that no ring takes, and that no entry knows, leave by tx, where the kernel cuts them, and come
 * in by rx; from there the segments come in by their port once more.  0, 0: they are lost, as they
 * are at the beginning. */
int offload_cut_by(struct offload *o, int tx_ifindex, int rx_ifindex);

/* ------------------------------------------------------------------ entries */

/* What the kernel is to do with packets of this key under this mask. */
struct offload_rule {
    uint64_t key[OFFLOAD_WORDS]; /* of such a packet, bits outside the mask too */
    uint64_t mask[OFFLOAD_WORDS];
    uint32_t longest, super, min_ttl; /* as in struct offload_entry */
    uint32_t n_ops;
    uint32_t ports;   /* bits of ports whose liveness it depends on */
    uint32_t came_by; /* the port's interface, also of what comes out of its queues */
    bool meter;       /* op[0] is OFFLOAD_METER */
    bool labels; /* an op pushes a label: `super` is 0 where the kernel doesn't cut what has one */
    struct offload_op op[OFFLOAD_OPS];
};

/* Key and bits that matter of packets that come in by the interface.  in_port always matters.  False:
 * they differ in bits that the kernel has not. */
bool offload_rule_match(struct offload_rule *r, const struct flow_key *key,
                        const struct flow_key *bits, int ifindex);
/* What all packets that find the rule have in common, as a flow key, which has no ports. */
void offload_rule_packets(const struct offload_rule *r, struct flow_key *key,
                          struct flow_key *mask);
/* A key's words as the programs read them of the packet, but the first one. */
void offload_key_words(const struct flow_key *key, uint64_t words[OFFLOAD_WORDS]);
bool offload_rule_op(struct offload_rule *r, struct offload_op op); /* false: there are too many */
bool offload_rule_edits(const struct offload_rule *r); /* does an op change the packet? */
/* Does an op set what the transport's checksum covers? */
bool offload_rule_covered(const struct offload_rule *r);
/* Whether round trips of its packets are looked at: they leave with the addresses they came with, not behind labels. */
bool offload_rule_measured(const struct offload_rule *r);

/* The longest super-packet that the kernel may handle as the rule says. */
uint32_t offload_rule_super(const struct offload *o, const struct offload_rule *r);

/* Ports share the masks.  If none is free for the rule, the port that has entries under the most gives one
 * up to a port that has at least two fewer: after that both have as many, or closer to it.  Returns that
 * mask, whose entries the caller withdraws before it inserts the rule, or -1: none is to be given up. */
int offload_mask_due(const struct offload *o, const struct offload_rule *r);
uint32_t offload_mask_of(const struct offload *o, uint32_t id);

/* Masks under which more packets were found are looked under first.  hits: by offload_mask_of. */
void offload_order_masks(struct offload *o, const uint64_t hits[OFFLOAD_MASKS]);

/* *id: the entry's number, below offload_options.entries.  -ENOSPC: no entry, mask or way is free.
 * -EEXIST: that entry is for these packets. */
int offload_insert(struct offload *o, const struct offload_rule *r, uint32_t *id);

/* No packet that arrives from now on finds the entry. */
void offload_withdraw(struct offload *o, uint32_t id);
/* Waits until every program that may have found a withdrawn entry has ended. */
void offload_quiesce(struct offload *o);
/* The number may be used again: after offload_withdraw and offload_quiesce. */
void offload_release(struct offload *o, uint32_t id);

/* Segments of TCP that the entry is for go to user space, which joins them; other packets stay. */
void offload_join(struct offload *o, uint32_t id, bool on);
bool offload_joins(const struct offload *o, uint32_t id);
uint32_t offload_joined(const struct offload *o, uint32_t id); /* how many went, about */

/* Hits since the entry was made, of all processors. */
struct offload_hits offload_read(const struct offload *o, uint32_t id);
uint64_t offload_used(const struct offload *o, uint32_t id); /* when last; ns, 0: never */

/* A port that goes up or down makes entries stale at once, before the control thread finds and withdraws them:
 * packets that find one go to user space.  Ports share bits.
 *
 * offload_port_stale may be called by any thread, after it has published the port's new state.  Entries that
 * are planned with the old one are stale as well, until the control thread has withdrawn all that have the bit
 * and calls offload_settled. */
#define OFFLOAD_ALL_PORTS UINT32_MAX
static inline uint32_t
offload_port_bit(uint32_t no)
{
    return UINT32_C(1) << no % 32;
}
void offload_port_stale(struct offload *o, uint32_t no);
uint32_t offload_stale(const struct offload *o);
void offload_settled(struct offload *o, uint32_t bits);

/* All packets go to user space (false), or those that no entry knows. */
void offload_turn(struct offload *o, bool on);

/* The process lives: to be called at least each half second while linger_ns is not 0. */
void offload_alive(struct offload *o, uint64_t now);
/* Workers serve ports that have a wire until then (loop_clock); before the first call, and after that time, their
 * frames go by their wires. */
void offload_serve(struct offload *o, uint64_t until);

/* ------------------------------------------------------------------ meters */

/* Room for a meter's bands; -1: none is free. */
int offload_meter_new(struct offload *o);
struct offload_meter *offload_meter(struct offload *o, int place);
void offload_meter_free(struct offload *o, int place);

/* ------------------------------------------------------------------ round trips */

/* Those of the programs, which workers use as well; its memory lasts until offload_close.  control NULL: there are none. */
struct probes offload_probes(const struct offload *o);

/* ------------------------------------------------------------------ counters */

/* Summed over processors. */
struct offload_counts {
    OFFLOAD_COUNTS(OFFLOAD_COUNT_MEMBER)
    OFFLOAD_MORE_COUNTS(OFFLOAD_COUNT_MEMBER)
    uint64_t entries, masks;
};
struct offload_counts offload_counts(const struct offload *o);
/* What the programs have done on one processor, without entries and masks.  False: there is none of this number. */
bool offload_counts_of(const struct offload *o, uint32_t processor, struct offload_counts *out);

#endif
