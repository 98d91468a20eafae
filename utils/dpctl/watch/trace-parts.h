/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the command trace: packets out of words or of a file, and what the switch answers. */
#ifndef DPCTL_TRACE_PARTS_H
#define DPCTL_TRACE_PARTS_H

#include <core/context.h>

#include <qos/wire/entry.h>

/* A request's packet has at most so many bytes: the message has 65,535. */
#define TRACE_FRAME_MAX 65400u

/* ------------------------------------------------------------------ trace-frame.c */

struct trace_made {
    uint32_t len; /* wanted; 0: as short as can be */
    uint8_t ttl;
};

/* A frame that has these fields, usual values in the others, and right checksums; in the arena.
 * A field for which no frame can be made is reported. */
enum status trace_make_frame(struct ctx *c, const struct of_match *match,
                             const struct trace_made *how, struct of_bytes *out);

/* ------------------------------------------------------------------ trace-text.c */

struct trace_shown {
    const struct of_list *events;
    const struct of_match *given; /* what was asked for; NULL: a packet of a file */
    unsigned number;              /* of the packet */
    unsigned packets;             /* shown in all; 0: of a file */
    bool cut;
};

void trace_print(struct of_wr *w, const struct trace_shown *t);
void trace_json(struct of_wr *w, const struct trace_shown *t);

/* ------------------------------------------------------------------ trace-sum.c */

/* Lines, each with its newline. */
void trace_sum_up(struct of_wr *w, const struct of_list *events);

void trace_put_rate(struct of_wr *w, uint64_t bps);                    /* "6 Mbit/s" */
void trace_put_port(struct of_wr *w, const struct of_trace_output *e); /* "port 2 (eth2)" */
/* Has its queue classes below it, one of which takes the packet? */
bool trace_is_led(const struct of_list *events, const struct of_trace_output *e);

/* ------------------------------------------------------------------ trace-queue.c */

/* The entry of an event; false: it can't be read. */
bool trace_queue_entry(const struct of_trace_queue *e, struct qos_entry *out);
void trace_print_queue(struct of_wr *w, const struct of_trace_queue *e);
void trace_json_queue(struct of_json *j, const struct of_trace_queue *e);

#endif
