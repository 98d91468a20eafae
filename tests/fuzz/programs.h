/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's programs (datapath/offload/bpf) as functions of this process, on a frame as the kernel keeps it. */
#ifndef FUZZ_PROGRAMS_H
#define FUZZ_PROGRAMS_H

#include <offload-inside.h>

#include <linux/bpf.h>
#include <stdbool.h>

#define SKB_ROOM 4096
#define SKB_OUTS (OFFLOAD_OPS + 1)

/* A frame in the kernel: its outermost tag is beside the bytes. */
struct skb {
    struct __sk_buff s; /* first: it is all that the programs see */
    bool partial;       /* the transport's checksum is still to be made */
    uint8_t data[SKB_ROOM];
};

/* What went out, with its tag in its place. */
struct skb_out {
    uint32_t ifindex, priority, n;
    uint8_t data[SKB_ROOM + 4];
};

/* What the programs read of a frame. */
struct skb_view {
    uint64_t key[OFFLOAD_WORDS];
    uint32_t l3, l4; /* in the frame with its tag */
    uint32_t ttl;
    bool inside;             /* it is a datagram with a packet in it */
    uint8_t transport;       /* whose payload a super-packet's is, as far as they know */
    bool cuts;               /* it is a super-packet of which they know how it is cut */
    uint64_t packets, bytes; /* on the wire */
};

/* A frame as it comes off the wire.  False: the kernel would drop it. */
bool skb_of(struct skb *s, const uint8_t *frame, uint32_t n);

void programs_use(const struct offload_memory *m);

/* False: the frame is for user space. */
bool programs_read(struct skb *s, struct skb_view *out);

/* The filter of the port's ring.  False: the ring hears the frame. */
bool programs_filter(struct skb *s);

/* What tc does with the frame then.  How many went out. */
unsigned programs_ingress(struct skb *s, const struct skb_out **out);

#endif
