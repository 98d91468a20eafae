/* SPDX-License-Identifier: Apache-2.0 */
/* A worker asks the control thread to have packets handled in the kernel (docs/explanation/offload.md).
 *
 * Packets are of one kind if they are alike in the bits that some flow, a select group, or OFPP_NORMAL
 * looks at.  A worker asks for a kind of which it has seen two packets lately.  If they still come it
 * asks again after 10 ms, and then each time after twice as long, up to a second.  It remembers
 * 1,024 kinds; if more come in turn it asks for some, and so for all of them in the end, as those that
 * the kernel handles don't come any more.  It sends only so many requests a round and a second.
 *
 * It does not ask for malformed packets, whose key doesn't tell all.  It does ask for TCP segments that
 * packet_coalesce has merged: a connection's slow start looks like that, too.  An entry's own packets show later
 * whether workers would serve them better (offload_judge). */
#ifndef DATAPLANE_OFFLOAD_SAMPLE_H
#define DATAPLANE_OFFLOAD_SAMPLE_H

#include <packet/packet.h>
#include <shared/ring.h>

#define SAMPLE_ROUND  64   /* requests in a round, at most */
#define SAMPLE_SECOND 4096 /* and in a second */

struct dp;

/* What tells packets apart when they come in.  Made by the control thread; doesn't change. */
struct offload_kinds {
    unsigned n;
    uint8_t word[KEY_WORDS];
    uint64_t bits[KEY_WORDS]; /* of these words */
    struct flow_key all;
};

struct offload_request {
    struct flow_key key;
    uint32_t in_port;
    bool behind; /* it came out of the port's queues for what enters */
};

struct offload_sample;

struct offload_sample *sample_new(void); /* NULL: no memory */
void sample_free(struct offload_sample *s);

/* Worker: a round begins. */
void sample_begin(struct offload_sample *s, uint64_t now);

/* Worker: packets as received, behind packet_coalesce; behind: by the port's queues for what enters.  Returns
 * whether there is a request more. */
bool sample_batch(struct offload_sample *s, const struct offload_kinds *k, bool behind,
                  const struct packet *batch, unsigned n);

/* Control thread: the oldest request, or NULL; sample_take then frees its room. */
const struct offload_request *sample_peek(struct offload_sample *s);
void sample_take(struct offload_sample *s);

/* Any thread. */
struct sample_counts {
    uint64_t asked;
    uint64_t merged; /* packets that packet_coalesce has merged */
    uint64_t over;   /* requests that were too many for the round, the second or the ring */
};
struct sample_counts sample_counts(const struct offload_sample *s);

/* Control thread: sets dp->kinds.  more: bits that matter beside those of the tables, or NULL; on false: workers no longer ask.  It is cheap if nothing has changed, so call
 * it after each turn with changes.  0 or -ENOMEM: nothing has changed. */
int dp_set_kinds(struct dp *dp, bool on, const struct flow_key *more);

#endif
