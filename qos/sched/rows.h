/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder that define a scheduler share. */
#ifndef QOS_ROWS_H
#define QOS_ROWS_H

#include <qos/sched/sched.h>

#include <stddef.h>

#define QOS_FIELDS(a) .fields = (a), .n_fields = (uint8_t)QOS_COUNT(a)

/* A field of a qdisc, of a class, that DEL does not carry. */
#define QOS_QDISC_SET (QOS_ON_QDISC | QOS_ON_SET)
#define QOS_CLASS_SET (QOS_ON_CLASS | QOS_ON_SET)

#define QOS_U32_MAX 0xffffffffull
/* 8 bit/s is the kernel's smallest rate (1 byte/s); 10 Pbit/s keeps every product below 2^64. */
#define QOS_RATE_MIN    8ull
#define QOS_RATE_MAX    10000000000000000ull
#define QOS_TIME_MAX_US 3600000000ull

/* How a field's row begins: its names, slot, unit, and where it may stand. */
#define QOS_FIELD(n, s, u, w)  .names = n, .slot = QOS_##s, .unit = QOS_U_##u, .where = w
#define QOS_PROP(type)         .prop = OFP_QOS_PROP_##type
#define QOS_RANGE(least, most) .min = least, .max = most

/* The row of `ecn`; a: its attribute, or 0. */
#define QOS_FIELD_ECN(a)                                                                           \
    {                                                                                              \
        .names = "ecn", .slot = QOS_ECN, .unit = QOS_U_BOOL, .where = QOS_QDISC_SET,               \
        QOS_PROP(ECN), .max = 1, .attr = (a),                                                      \
        .help = "mark instead of dropping, where the sender can"                                   \
    }

/* The rows of the link layer; w: QOS_QDISC_SET or QOS_CLASS_SET, o, m, l: their attributes, or 0. */
#define QOS_FIELDS_LINK(w, o, m, l)                                                                \
    {.names = "overhead",                                                                          \
     .slot = QOS_OVERHEAD,                                                                         \
     .unit = QOS_U_SIGNED,                                                                         \
     .where = (w),                                                                                 \
     QOS_PROP(OVERHEAD),                                                                           \
     .min = (uint64_t)-QOS_OVERHEAD_LEAST,                                                         \
     .max = QOS_OVERHEAD_MOST,                                                                     \
     .attr = (o),                                                                                  \
     .help = "bytes that the link adds to each packet (below 0: cake alone)"},                     \
        {.names = "mpu",                                                                           \
         .slot = QOS_MPU,                                                                          \
         .unit = QOS_U_SIZE,                                                                       \
         .where = (w),                                                                             \
         QOS_PROP(MPU),                                                                            \
         .max = QOS_OVERHEAD_MOST,                                                                 \
         .attr = (m),                                                                              \
         .help = "least bytes of a packet on the link, overhead included"},                        \
    {                                                                                              \
        .names = "linklayer", .slot = QOS_LINKLAYER, .unit = QOS_U_ENUM, .where = (w),             \
        QOS_PROP(LINKLAYER), .max = 2, .words = "ethernet|atm|ptm", .attr = (l),                   \
        .help = "atm: cells of 53 bytes carry 48; ptm (cake alone): 65 carry 64; or tc-cake's "    \
                "words for a line, with its overhead: docsis, pppoe-llcsnap, pppoe-ptm, ..."       \
    }
#define QOS_OVERHEAD_LEAST 64
#define QOS_OVERHEAD_MOST  256

/* The row of a class's `name`. */
#define QOS_FIELD_NAME                                                                             \
    {                                                                                              \
        .names = "name", .slot = QOS_NAME, .unit = QOS_U_NAME, .where = QOS_CLASS_SET,             \
        QOS_PROP(NAME), .help = "of up to 31 bytes, shown with the class (name=: none)"            \
    }

/* The row of a class's `promise`. */
#define QOS_FIELD_PROMISE                                                                          \
    {                                                                                              \
        .names = "promise", .slot = QOS_PROMISE, .unit = QOS_U_MSEC, .where = QOS_CLASS_SET,       \
        QOS_PROP(PROMISE), .min = 100, .max = 3600000, .none = 1,                                  \
        .help = "say when it gets less than its rate, or drops, for so long (0: don't)"            \
    }

/* The row of a class's `delay`. */
#define QOS_FIELD_DELAY                                                                            \
    {                                                                                              \
        .names = "delay", .slot = QOS_DELAY, .unit = QOS_U_USEC, .where = QOS_CLASS_SET,           \
        QOS_PROP(DELAY_US), .min = 1000, .max = 10000000, .none = 1,                               \
        .help =                                                                                    \
            "promised: nine tenths of a second's time packets wait no longer than this, else say " \
            "so (0: no promise)"                                                                   \
    }

/* Rows that queues with a delay to hold share; a: its attribute, d: its default as text. */
#define QOS_FIELD_LIMIT(a, d)                                                                      \
    {                                                                                              \
        .names = "limit", .slot = QOS_LIMIT, .unit = QOS_U_PACKETS, .where = QOS_QDISC_SET,        \
        QOS_PROP(LIMIT), .min = 1, .max = QOS_U32_MAX, .attr = (a),                                \
        .help = "longest queue in packets (default " d ")"                                         \
    }

/* The kernel keeps or reports these nanoseconds in 32 bits. */
#define QOS_USEC_OF_32BIT_NS 4294967u

/* of: whose delay; m: the most; k: how exactly it is kept. */
#define QOS_FIELD_TARGET(a, of, m, k, d)                                                           \
    {                                                                                              \
        .names = "target", .slot = QOS_TARGET, .unit = QOS_U_USEC, .where = QOS_QDISC_SET,         \
        QOS_PROP(TARGET_US), .min = 1, .max = (m), .attr = (a), .kept = (k),                       \
        .help = "queueing delay " of "that is fine (default " d ")"                                \
    }

/* CoDel's. */
#define QOS_FIELD_INTERVAL(a)                                                                      \
    {                                                                                              \
        .names = "interval", .slot = QOS_INTERVAL, .unit = QOS_U_USEC, .where = QOS_QDISC_SET,     \
        QOS_PROP(INTERVAL_US), .min = 1, .max = QOS_U32_MAX, .attr = (a),                          \
        .kept = QOS_KEPT_CODEL_TIME, .help = "window of the minimum (default 100 ms)"              \
    }

/* PIE's; m: the most. */
#define QOS_FIELD_TUPDATE(a, m, k, d)                                                              \
    {                                                                                              \
        .names = "tupdate|interval", .slot = QOS_INTERVAL, .unit = QOS_U_USEC,                     \
        .where = QOS_QDISC_SET, QOS_PROP(INTERVAL_US), .min = 1, .max = (m), .attr = (a),          \
        .kept = (k), .help = "how often the drop probability is worked out (default " d ")"        \
    }

/* n: the least, in bytes. */
#define QOS_FIELD_QUANTUM(a, n, d)                                                                 \
    {                                                                                              \
        .names = "quantum", .slot = QOS_QUANTUM, .unit = QOS_U_SIZE, .where = QOS_QDISC_SET,       \
        QOS_PROP(QUANTUM), .min = (n), .max = 1048576, .attr = (a),                                \
        .help = "bytes a flow sends in its turn (default: " d ")"                                  \
    }

#define QOS_FIELD_FLOWS(a)                                                                         \
    {                                                                                              \
        .names = "flows", .slot = QOS_FLOWS, .unit = QOS_U_COUNT,                                  \
        .where = QOS_QDISC_SET | QOS_AT_ADD, QOS_PROP(FLOWS), .min = 1, .max = 65536, .attr = (a), \
        .help = "number of flows (default 1024)"                                                   \
    }

/* The row of `ce_threshold`; a: its attribute, n: the kernel's number for none,
 * k: how exactly it is kept. */
#define QOS_FIELD_CE_THRESHOLD(a, n, k)                                                            \
    {                                                                                              \
        .names = "ce_threshold", .slot = QOS_CE_THRESHOLD, .unit = QOS_U_USEC,                     \
        .where = QOS_QDISC_SET, QOS_PROP(CE_THRESHOLD_US), .min = 1, .max = QOS_CE_THRESHOLD_MAX,  \
        .attr = (a), .none = (n), .kept = (k),                                                     \
        .help = "mark every packet that waited longer and can be marked (default 0: none)"         \
    }
#define QOS_CE_THRESHOLD_MAX 2000000000ull

/* The time that CoDel keeps as CODEL_DISABLED_THRESHOLD (INT_MAX units of 1,024 ns).  Unlike
 * INT_MAX itself, it can be given to the kernel, and so takes a threshold away. */
#define QOS_CODEL_NO_THRESHOLD 2199023255u

/* The row of `memory_limit`; a: its attribute, m: the most that the kernel keeps. */
#define QOS_FIELD_MEMORY_LIMIT(a, m)                                                               \
    {                                                                                              \
        .names = "memory_limit", .slot = QOS_MEMORY_LIMIT, .unit = QOS_U_SIZE,                     \
        .where = QOS_QDISC_SET, QOS_PROP(MEMORY_LIMIT), .min = 1, .max = (m), .attr = (a),         \
        .help = "memory that waiting packets may take (default 32 MB)"                             \
    }
#define QOS_MEMORY_LIMIT_DEFAULT 33554432

/* Rows of schedulers with RED's average; b: the default of `burst`. */
#define QOS_FIELDS_RED_AVERAGE(b)                                                                  \
    {.names = "probability|prob",                                                                  \
     .slot = QOS_RED_PROBABILITY,                                                                  \
     .unit = QOS_U_PPM,                                                                            \
     .where = QOS_QDISC_SET,                                                                       \
     QOS_PROP(RED_PROBABILITY_PPM),                                                                \
     .min = 1,                                                                                     \
     .max = 1000000,                                                                               \
     .help = "probability of marking just below max: 0.02 (default) or 2%"},                       \
        {.names = "avpkt",                                                                         \
         .slot = QOS_RED_AVPKT,                                                                    \
         .unit = QOS_U_SIZE,                                                                       \
         .where = QOS_QDISC_SET,                                                                   \
         QOS_PROP(RED_AVPKT),                                                                      \
         .min = 1,                                                                                 \
         .max = 65535,                                                                             \
         .help = "average packet in bytes (default 1000)"},                                        \
        {.names = "burst",                                                                         \
         .slot = QOS_RED_BURST,                                                                    \
         .unit = QOS_U_PACKETS,                                                                    \
         .where = QOS_QDISC_SET,                                                                   \
         QOS_PROP(RED_BURST),                                                                      \
         .min = 1,                                                                                 \
         .max = 1000000,                                                                           \
         .help = "packets that may come at once unmarked (default: " b ")"},                       \
    {                                                                                              \
        .names = "bandwidth", .slot = QOS_RED_BANDWIDTH, .unit = QOS_U_RATE,                       \
        .where = QOS_QDISC_SET, QOS_PROP(RED_BANDWIDTH), .min = QOS_RATE_MIN, .max = QOS_RATE_MAX, \
        .help = "of the link, for the average while idle (default: the class's ceil)"              \
    }
#define QOS_RED_PPM_DEFAULT 20000

/* The row of `offload`. */
#define QOS_FIELD_OFFLOAD                                                                          \
    {                                                                                              \
        .names = "offload", .slot = QOS_OFFLOAD, .unit = QOS_U_BOOL, .where = QOS_QDISC_SET,       \
        QOS_PROP(OFFLOAD), .max = 1, .help = "in the interface's hardware (default no)"            \
    }

/* The rows of bands that are transmit queues. */
#define QOS_FIELDS_TX_BANDS                                                                        \
    {.names = "bands",                                                                             \
     .slot = QOS_BANDS,                                                                            \
     .unit = QOS_U_COUNT,                                                                          \
     .where = QOS_QDISC_SET,                                                                       \
     QOS_PROP(BANDS),                                                                              \
     .min = 1,                                                                                     \
     .max = QOS_BANDS_MAX,                                                                         \
     .help = "transmit queues that are used (default: all of the interface's)"},                   \
        {.names = "priomap",                                                                       \
         .slot = QOS_PRIOMAP,                                                                      \
         .unit = QOS_U_PRIOMAP,                                                                    \
         .where = QOS_QDISC_SET,                                                                   \
         QOS_PROP(PRIOMAP),                                                                        \
         .max = 255,                                                                               \
         .help = "band of each of the 16 priorities, which are the queues' numbers modulo 16 "     \
                 "(default: queue 1 to band 0, ...; the rest to the last)"},                       \
        QOS_FIELD_OFFLOAD

#define QOS_EXTERN_SCHED(name, id, row) extern const struct qos_sched qos_sched_##row;
QOS_SCHED_ROWS(QOS_EXTERN_SCHED)
#undef QOS_EXTERN_SCHED

/* txqueuelen, or what the kernel gives an interface that has none (DEFAULT_TX_QUEUE_LEN). */
uint32_t qos_env_packets(const struct qos_env *env);

/* 1500 if it is unknown. */
uint32_t qos_env_mtu(const struct qos_env *env);

/* Bytes of a full frame: the MTU with an Ethernet header. */
uint32_t qos_env_frame(const struct qos_env *env);

/* Bytes of the longest frame that the interface takes: a smaller bucket drops it. */
uint32_t qos_env_longest(const struct qos_env *env);

/* Of a promised delay: bytes that may wait (0: nothing is promised, or no rate is known); the memory that
 * they take; CoDel's target and interval, which are its own without one (delay.h). */
uint64_t qos_env_waits(const struct qos_env *env);
uint64_t qos_env_memory(const struct qos_env *env);
void qos_default_codel(struct qos_values *v, const struct qos_env *env);

/* A token bucket's size in bytes that can sustain the rate on any timer: a frame, and what the
 * rate sends in a millisecond. */
uint32_t qos_default_burst(uint64_t rate, const struct qos_env *env);

/* Does the kernel count the time that this many bytes take at this rate?  name: the parameter. */
int qos_check_burst(const char *name, uint64_t bytes, uint64_t rate, struct qos_error *e);

/* The kernel's rate structure (tc_ratespec) has no negative overhead and no PTM: OFPSFC_UNSUPPORTED.
 */
int qos_check_link(const struct qos_values *v, struct qos_error *e);

/* The defaults of bands that are transmit queues. */
void qos_default_tx_bands(struct qos_values *v, const struct qos_env *env);

/* The check of schedulers with bands: the priomap names only bands that there are. */
int qos_check_priomap(const struct qos_values *v, const struct qos_values *given,
                      struct qos_error *e);

#endif
