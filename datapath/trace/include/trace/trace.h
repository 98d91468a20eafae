/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a packet's way through the switch (docs/how-to/trace.md), by the pipeline that workers run:
 * pipeline-inside.h.  Nothing is sent, counted, metered, learnt or cached, and no idle timeout
 * begins anew.  Control thread. */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <dataplane/dp.h>

#include <oflib/codec.h>

/* The reply's size.  What happens beyond it is left out, and OFPTE_TRUNCATED says so. */
#define TRACE_BYTES_MAX (2u << 20)

/* How many flows are compared to find those that nearly matched: some milliseconds. */
#define TRACE_COMPARED_MAX 32768

struct trace;

/* What the rest of the switch knows.  Any member may be NULL. */
struct trace_env {
    void *ctx;
    /* Fills in what is known about port_no, and finds class_id by queue_id. */
    void (*port)(void *ctx, struct of_trace_output *port);
    /* Adds the events of the class that a packet of this queue (0: of none) waits in, and of those
     * above it. */
    void (*queues)(void *ctx, struct trace *t, uint8_t depth, uint32_t port_no, uint32_t queue_id,
                   bool in);
    /* Adds the events of those who want a packet-in for this reason. */
    void (*controllers)(void *ctx, struct trace *t, uint8_t depth, uint8_t reason);
    /* Says whether the kernel would handle the packet, which is as it came in. */
    void (*kernel)(void *ctx, const struct packet *p, struct of_trace_kernel *out);
};

/* The events of the request's packet are appended to `out`, a list of of_list_trace_events; it must
 * grow to TRACE_BYTES_MAX and a message more.  now: monotonic, ns.  -ENOMEM; OFPBRC_BAD_PORT: there
 * is no such ingress port; OFPBRC_BAD_LEN: the packet is empty. */
int trace_run(struct dp *dp, const struct trace_env *env, const struct of_trace_request *r,
              uint64_t now, struct of_wr *out);

/* Appends an event: a structure that begins with `row`, which need not be set. */
void trace_put(struct trace *t, enum ofp_trace_event type, void *event);

#endif
