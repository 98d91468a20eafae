/* SPDX-License-Identifier: Apache-2.0 */
/* The last packets that a worker dropped for each reason, with their beginnings.
 *
 * The worker writes, any thread reads; neither locks, allocates or waits.  A sample is some words
 * under a sequence number.  A reason gets at most one a millisecond: what a flood costs besides is
 * one comparison a packet. */
#ifndef PACKET_DROP_LOG_H
#define PACKET_DROP_LOG_H

#include <packet/packet.h>

#include <oflib/openflow.h>

#define DROP_SAMPLES      4 /* of each reason and worker */
#define DROP_SAMPLE_BYTES 128
#define DROP_SAMPLE_NS    1000000

/* Where a packet is on its way, as far as known. */
struct packet_at {
    uint64_t cookie;            /* of the last flow; all ones: none */
    uint32_t in_port, out_port; /* OFPP_ANY: none */
    uint32_t queue;             /* 0: none */
    uint8_t table_id;           /* OFPTT_ALL: none */
};
#define PACKET_AT_NONE                                                                             \
    (struct packet_at)                                                                             \
    {                                                                                              \
        .cookie = UINT64_MAX, .in_port = OFPP_ANY, .out_port = OFPP_ANY, .table_id = OFPTT_ALL     \
    }

/* A packet's bytes, and what they stand for. */
struct packet_frame {
    const uint8_t *data; /* NULL: not known */
    uint32_t len;
    uint32_t segments;                 /* 1, or a super-packet's */
    const struct virtio_net_hdr *vnet; /* NULL: not known */
};

struct drop_sample {
    struct packet_at at;
    uint64_t time;     /* ns, as drop_log.now */
    uint32_t len;      /* the packet's; 0: its bytes were not read */
    uint32_t segments; /* that it stood for */
    uint32_t n;        /* bytes here */
    uint8_t data[DROP_SAMPLE_BYTES];
};

/* What is called for every drop while somebody captures drops. */
typedef void drop_seen_fn(void *ctx, enum drop_reason why, const struct packet_at *at,
                          const struct packet_frame *frame);

struct drop_slot {
    uint32_t sequence; /* odd: being written; 0: never */
    uint32_t words[(sizeof(struct drop_sample) + 3) / 4];
};

struct drop_log {
    uint64_t now;          /* ns; set by the worker once a round */
    uint64_t next[DROP_N]; /* before that, no sample of this reason */
    uint32_t n[DROP_N];    /* samples taken */
    drop_seen_fn *seen;    /* NULL: nobody captures drops */
    void *ctx;             /* of seen */
    struct drop_slot slot[DROP_N][DROP_SAMPLES];
};

/* Use drop_log_note, or ask drop_log_wants. */
void drop_log_add(struct drop_log *l, enum drop_reason why, const struct packet_at *at,
                  const struct packet_frame *frame);

/* Whether drop_log_add would use the packet's bytes. */
static inline bool
drop_log_wants(const struct drop_log *l, enum drop_reason why)
{
    return l->now >= l->next[why] || l->seen;
}

/* Worker: a packet was dropped. */
static inline void
drop_log_note(struct drop_log *l, enum drop_reason why, const struct packet_at *at,
              const struct packet_frame *frame)
{
    if (drop_log_wants(l, why))
        drop_log_add(l, why, at, frame);
}

/* Any thread: sample i (below DROP_SAMPLES, in no order).  False: there is none, or the worker is
 * writing it just now. */
bool drop_log_read(const struct drop_log *l, enum drop_reason why, unsigned i,
                   struct drop_sample *out);

#endif
