/* SPDX-License-Identifier: Apache-2.0 */
/* How long packets take, by queue (latency/latency.h): samples of round trips come from workers and the kernel, of
 * queueing delays from service.c. */
#ifndef QUEUES_LATENCY_H
#define QUEUES_LATENCY_H

#include <latency/latency.h>
#include <latency/probes.h>
#include <qos/model/model.h>

struct sw;

/* Begins to measure, before workers start.  kernel: the memory that the kernel's programs share, or control NULL.
 * Does nothing with --latency=off.  -ENOMEM. */
int sw_latency_open(struct sw *sw, const struct probes *kernel);
void sw_latency_free(struct sw *sw); /* once no worker runs, and before the kernel's memory goes */

/* With all samples so far.  NULL: --latency=off. */
struct latency *sw_latency(struct sw *sw);

/* Samples of more queues than are followed. */
uint64_t sw_latency_lost(const struct sw *sw);

/* The queue, or the port with all of its queues, is gone. */
void sw_latency_forget(struct sw *sw, uint32_t port_no, enum qos_direction dir, uint32_t class_id);
void sw_latency_forget_port(struct sw *sw, uint32_t port_no);

#endif
