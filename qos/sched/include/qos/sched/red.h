/* SPDX-License-Identifier: Apache-2.0 */
/* RED's parameters as the kernel wants them (linux/pkt_sched.h, struct tc_red_qopt).
 *
 * Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993: the
 * average queue is avg += w (q - avg) for each packet, w = 2^-wlog; while the link is idle it
 * decays as if a packet of average size had been sent each avpkt / bandwidth seconds.
 */
#ifndef QOS_RED_H
#define QOS_RED_H

#include <qos/sched/sched.h>

#define QOS_RED_CELLS 256

struct qos_red {
    uint8_t wlog;                /* weight of a packet in the average: 2^-wlog */
    uint8_t plog;                /* probability a byte above the threshold: about 2^-plog */
    uint8_t cell_log;            /* an idle cell is 2^cell_log microseconds */
    uint8_t idle[QOS_RED_CELLS]; /* after i idle cells the average is shifted right by this */
    uint32_t max_p;              /* probability at the upper threshold, times 2^32 */
};

/* What they are worked out from. */
struct qos_red_of {
    uint64_t min, max; /* thresholds in bytes, min below max */
    bool packets;      /* they are in packets */
    uint64_t avpkt, burst, bandwidth, ppm;
};

/* Of resolved values of a RED. */
struct qos_red_of qos_red_of_values(const struct qos_values *v);

/* Default of RED_BANDWIDTH. */
uint64_t qos_red_bandwidth(const struct qos_env *env);

/* false: no weight lets a burst of this many packets pass below the threshold. */
bool qos_red_derive(const struct qos_red_of *of, struct qos_red *out);

/* From resolved values of a CHOKE. */
bool qos_choke_derive(const struct qos_values *v, struct qos_red *out);

#endif
