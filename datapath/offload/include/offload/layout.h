/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the switch shares with its programs in the kernel (bpf/switch.bpf.c): included by
 * both.  Each structure is the value of an array map that the switch maps into its memory, so that
 * neither side needs a system call.
 *
 * Numbers are in the processor's byte order, except a key's words, which have a flow key's bytes
 * (packet/key.h).
 */
#ifndef OFFLOAD_LAYOUT_H
#define OFFLOAD_LAYOUT_H

#include <linux/types.h>

#define OFFLOAD_MASKS                                                                              \
    16 /* that a packet's key is looked up under, in turn: each costs about 40 ns */
#define OFFLOAD_COARSE  4   /* of these, the last ones, for masks of whole fields */
#define OFFLOAD_OPS     16  /* of an entry */
#define OFFLOAD_EXTS    6   /* IPv6 extension headers that a packet may have, in the usual order, */
#define OFFLOAD_IP_MOST 124 /* and bytes of its IP header with these */
#define OFFLOAD_WAYS    8   /* entries whose hashes share a set */
#define OFFLOAD_PORTS   4096 /* a port's place is its ifindex modulo this */
#define OFFLOAD_METERS  1024
#define OFFLOAD_SEGMENT 1000 /* bytes of a frame that workers might join with others */
#define OFFLOAD_BANDS   2    /* of a meter */
#define OFFLOAD_HOLD                                                                               \
    65536 /* packets that a port's entries leave to user space, until one ceases to */
#define OFFLOAD_HOLD_EACH 1024 /* of these, for each packet that the entry may overtake */
#define OFFLOAD_MAX_FRAME 0xffffffffu
#define OFFLOAD_MAX_RING  (65536 + 64) /* the longest frame that user space takes from a ring */
#define OFFLOAD_CUT       0xffffffffu  /* in an entry's place: the frame is to be cut */
#define OFFLOAD_NUMBERED                                                                           \
    0x8000 /* of skb->tc_index on the way to be cut: skb->mark is its number (offload_around) */
#define OFFLOAD_AGAIN 0xffff /* skb->tc_index of such a frame when it comes again */
#define OFFLOAD_AWAY                                                                               \
    256 /* of a processor's packets on the way around: with more, no entry begins to send some */
#define OFFLOAD_AWAY_NS 100000000ull /* what isn't back by then was dropped */

/* The words of a flow key by which the programs tell packets apart.  Word 0 has the interface's index in place of
 * both ports.  ARP's link-layer addresses, which a flow key has elsewhere, are in place of MPLS's and PBB's fields
 * and the flow label, which ARP lacks.  The programs don't read what neighbour discovery says of targets and link
 * layers. */
#define OFFLOAD_WORDS 10
#define OFFLOAD_WORD_ROWS(W)                                                                       \
    W(0, 0) W(1, 3) W(2, 4) W(3, 5) W(4, 6) W(5, 7) W(6, 8) W(7, 9) W(8, 10) W(9, 11)

/* What is done with a packet, in this order.  A packet leaves as its last op says: an output, or
 * nothing, which is a drop. */
enum offload_kind {
    OFFLOAD_OUTPUT = 1,  /* arg: ifindex; value: skb->priority, and in its upper half the queue */
    OFFLOAD_METER,       /* arg: place among the meters */
    OFFLOAD_SET_ETH_DST, /* value: the address in its first six bytes */
    OFFLOAD_SET_ETH_SRC, /* the same */
    OFFLOAD_PUSH_VLAN, /* arg: EtherType of the tag; its VID and PCP are those of the tag behind it */
    OFFLOAD_POP_VLAN,     /* */
    OFFLOAD_SET_VLAN,     /* arg: bits of the TCI that are set; value: to what */
    OFFLOAD_SET_TOS,      /* the same of IPv4's TOS and IPv6's traffic class */
    OFFLOAD_SET_IPV4_SRC, /* arg: the address as it is in memory */
    OFFLOAD_SET_IPV4_DST, /* the same */
    OFFLOAD_SET_IPV6,     /* arg: which 8 bytes of both addresses, 0 to 3; value: as in memory */
    OFFLOAD_SET_TTL,      /* arg */
    OFFLOAD_DEC_TTL,      /* */
    OFFLOAD_SET_TP_SRC,   /* arg: the port as it is in memory, in its first two bytes */
    OFFLOAD_SET_TP_DST,   /* the same */
    OFFLOAD_QUEUE_IN, /* as OUTPUT, to the queues for what enters by the port: the frame stays as it is */
    OFFLOAD_SET_HEAD, /* arg: the OXM field, for reports; value: bits of the four bytes that begin behind the
                         EtherType, as they are in memory, and in its upper half which ones are set */
    OFFLOAD_PUSH_MPLS, /* arg: EtherType of the label; value: of what it comes in front of, behind tags */
    OFFLOAD_POP_MPLS,     /* arg: EtherType of what is behind the label */
    OFFLOAD_SET_MPLS_TTL, /* arg */
    OFFLOAD_DEC_MPLS_TTL, /* */
    OFFLOAD_SET_ARP, /* arg: the field, << 8 how many bytes (2, 4, 6), << 16 where; value: they, in memory */
    OFFLOAD_PUSH_PBB, /* arg, value: as PUSH_MPLS */
    OFFLOAD_POP_PBB,  /* */
};

struct offload_op {
    __u32 kind;
    __u32 arg;
    __u64 value;
};

/* ------------------------------------------------------------------ entries */

#define OFFLOAD_LIVE         1 /* state; else the entry is not to be used */
#define OFFLOAD_EDITS        1
#define OFFLOAD_EDITS_LABELS 2 /* it pushes a label */

/* Written by the switch, but for `used`, `joined`, `around` and `hold*`; a program ends `join`. */
struct offload_entry {
    __u32 state;
    __u32 mask;     /* its place in offload_control */
    __u32 n_ops;    /* 0: drop */
    __u32 min_ttl;  /* packets with a lower one go to user space */
    __u32 longest;  /* frame, and frame that a super-packet is cut to, with tags, as it came in */
    __u32 super;    /* the longest super-packet; 0: none */
    __u32 hold;     /* its packets must not overtake those that user space has */
    __u32 meter;    /* it begins with OFFLOAD_METER */
    __u32 hold_new; /* the next packet begins a hold */
    __u32 covered;  /* an op sets what the transport's checksum covers */
    __u32 edits;    /* OFFLOAD_EDITS_: an op changes the packet */
    __u32 ports;    /* bits of ports whose liveness it depends on (offload_port_bit) */
    __u32 join;     /* its TCP segments go to user space, which joins them */
    __u32 around;   /* a processor has had some of its super-packets cut: offload_around counts */
    __u32 zero;
    __u32 joined;  /* how many went; processors may lose some of the others' */
    __u32 came_by; /* the port's interface, also of what comes out of its queues */
    __u32
        unmeasured; /* an op sets addresses or ports, or moves labels or I-TAGs: its round trips aren't looked at */
    __u64 hold_last; /* of the port's packets to user space, the last one before the entry's next */
    __u64 hold_from; /* of the port's held packets, how many were before */
    __u64 used;      /* when a packet came last, CLOCK_MONOTONIC, ns, to some ms */
    __u64 key[OFFLOAD_WORDS];
    struct offload_op op[OFFLOAD_OPS];
};

/* An entry's super-packets, too long for a queue, that this processor had cut on the way around.  Until all of the last frame
 * that went is back, the entry's other packets go around behind it: the kernel's backlog is first in, first out.  If that has
 * dropped some, the next frame goes around, too, and takes the last one's place. */
struct offload_around {
    __u32
        last; /* its number, in skb->mark: how many packets the processor had sent around with it */
    __u32 away; /* its segments that are not back */
};

/* Of an entry, on one processor.  Packets as on the wire: a super-packet is its segments. */
struct offload_hits {
    __u64 packets, bytes;         /* as they came in */
    __u64 dropped, dropped_bytes; /* of these, by the meter */
    __u64 frames;                 /* super-packets are one */
    __u64 segments;               /* of these, long ones of TCP that came one by one */
    struct offload_around around;
};

/* A set of entries: hash in the upper half, the entry's number + 1 in the lower; 0: free. */
struct offload_set {
    __u64 way[OFFLOAD_WAYS];
};

/* ------------------------------------------------------------------ the rest */

struct offload_mask {
    __u32 used; /* 0: the place is free */
    __u32 zero;
    __u64 bits[OFFLOAD_WORDS];
};

struct offload_control {
    __u32 on;          /* 0: every packet goes to user space */
    __u32 n_masks;     /* that have entries */
    __u32 sets;        /* - 1; a power of two less one */
    __u32 magic;       /* of verdicts; random, not 0 */
    __u32 entries;     /* at most */
    __u32 stale;       /* bits of ports that went up or down: entries with one are not to be used */
    __u32 cut_by;      /* interface that cuts super-packets; 0: there is none */
    __u32 uso;         /* rings take UDP's super-packets */
    __u32 cuts_labels; /* the kernel cuts super-packets with MPLS labels */
    __u32 zero;
    __u64 linger; /* CLOCK_MONOTONIC, ns: until then entries hold even if nobody reads the rings */
    __u64 served; /* the same: until then the process serves the ports that have a wire */
    __u64 hash_sum, hash_word[OFFLOAD_WORDS][2]; /* as packet/key-hash.h */
    __u64 order; /* of their places, four bits each, the first one lowest */
    struct offload_mask mask[OFFLOAD_MASKS];
};

/* What a program has done on one processor. */
#define OFFLOAD_COUNTS(C)                                                                          \
    C(hits)       /* packets that the kernel handled */                                            \
    C(misses)     /* of which no entry knew */                                                     \
    C(other)      /* of kinds that user space handles */                                           \
    C(held)       /* while user space had earlier ones of the entry, or joins its TCP segments */  \
    C(too_long)   /* for the output or its queue, or a tunnel's that only user space can edit */   \
    C(host)       /* that the host may want: it got them, too */                                   \
    C(unclaimed)  /* verdicts that the program at tc did not use */                                \
    C(no_verdict) /* that reached the program at tc without a verdict */                           \
    C(failed)     /* lost, because an edit or a copy failed: no memory */

/* The same, which STATS_CACHE doesn't tell. */
#define OFFLOAD_MORE_COUNTS(C)                                                                              \
    C(cut) /* super-packets that come again as their segments: no ring takes them, or they were too long */ \
    C(uncut)  /* the same, lost: there was nothing to cut them */                                           \
    C(around) /* packets, cut or behind such ones, that were to come again to their entry */                \
    C(again)  /* of these, that did: the kernel's backlog has, or has dropped, the others */                \
    C(whole) /* super-packets too long for a queue that went there: too many were on the way around */      \
    C(unpaired) /* super-packets that user space cuts, as there was nothing to cut them */                  \
    C(wired)    /* frames that left by the wire, as nobody served the port */

/* Where a packet's headers are now, while it is edited. */
struct offload_at {
    __u32 tags;
    __u32 where; /* as the filter said (bpf/lookup.h) */
    __u32
        summed; /* the kernel's checksum of the frame has the outermost label or I-TAG: BPF_F_RECOMPUTE_CSUM; or 0 */
};

struct offload_cpu {
    __u64 inside; /* odd: a program is at work between looking up and sending */
    __u32 magic;  /* the verdict's second place, beside skb->cb */
    __u32 ifindex, len, hash;
    __u32 entry, where;
    __u32 owed;           /* a verdict that the program at tc has not used yet */
    struct offload_at at; /* here, and not on the stack, as the verifier then ends sooner */
    __u32 ran;        /* the filter has seen the packet that comes to tc next: of this interface */
    __u32 again_now;  /* the packet at tc was sent around: here, too, and not on the stack */
    __u32 sent, back; /* the last numbers that went around, and came back */
    __u32 beyond;     /* enum beyond (bpf/lookup.h), here for the same reason */
    __u32 zero1;
    __u64 sent_at; /* when the last one went, CLOCK_MONOTONIC, ns, to some ms */
#define OFFLOAD_COUNT_MEMBER(name) __u64 name;
    OFFLOAD_COUNTS(OFFLOAD_COUNT_MEMBER)
    OFFLOAD_MORE_COUNTS(OFFLOAD_COUNT_MEMBER)
} __attribute__((aligned(128)));

/* Frames that the host may want although they are for another station.  Those for the port's own address,
 * broadcasts and multicasts it may always want. */
#define OFFLOAD_HOST_ALL    1 /* all: something above the port may take any (a bridge, a macvlan) */
#define OFFLOAD_HOST_TAGGED 2 /* those with a VLAN tag: there are VLAN interfaces */

/* Where a port's frames go while nobody serves it: the process has ended, hangs, or is not ready yet. */
struct offload_wire {
    __u32 to;       /* interface; 0: there is none */
    __u32 priority; /* their skb->priority */
    __u32 alone;    /* also those that there is an entry for */
};

struct offload_port {
    __u32 ifindex;   /* 0: the place is free */
    __u32 ready;     /* both programs are there; 0: every packet goes to user space */
    __u32 host;      /* OFFLOAD_HOST_ */
    __u32 entries;   /* of packets that come in here; 0: none needs to be looked for */
    __u64 passed;    /* packets to user space */
    __u64 unclaimed; /* verdicts that no program used: their frames are lost */
    __u32 moving;    /* two rings have the filter (offload_port_move) */
    struct offload_wire wire;
    __u32 inside; /* PACKET_INSIDE_ of packet/packet.h */
    __u32 zero1;
    __u64 held; /* packets that went to user space because their entry was held */
    __u64 done; /* of which user space has sent, or lost; written by workers */
    __u64 zero2[7];
};

/* A meter's bands that drop.  Cost and room as group/meters.h has them, in sixteenths of ns. */
struct offload_meter {
    __u32 packets; /* rates are in packets/s, not kbit/s */
    __u32 n_bands;
    struct {
        __u64 full_at; /* shared with the workers: compare and swap */
        __u64 room;
        __u64 rate;
    } band[OFFLOAD_BANDS];
};

#endif
