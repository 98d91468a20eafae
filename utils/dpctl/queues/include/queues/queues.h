/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a switch's ports: asking for them, showing them, changing them. */
#ifndef DPCTL_QUEUES_H
#define DPCTL_QUEUES_H

#include <core/context.h>

#include <qos/sched/name.h>
#include <qos/wire/entry.h>

/* A switch does not report MTU and txqueuelen of its interfaces: these are the usual values. */
static inline struct qos_env
queues_env(uint64_t speed)
{
    return (struct qos_env){.mtu = 1500, .txqueuelen = 1000, .speed = speed};
}

/* -------------------------------------------------------------- asking (ask.c)
 * Answers are in the arena. */

struct queue_entries {
    struct qos_entry *v;
    size_t n;
};

struct queue_trees {
    struct qos_tree *v;
    size_t n;
};

/* QOS_DUMP: port OFPP_ANY, class QOS_ALL_CLASSES: all. */
enum status queues_ask(struct ctx *c, uint32_t port, uint32_t class, struct queue_entries *out);
enum qos_direction queues_direction(const struct qos_entry *e);

/* QOS_PORTS: what each port has as a whole. */
enum status queues_ask_trees(struct ctx *c, struct queue_trees *out);
const struct qos_tree *queues_find_tree(const struct queue_trees *trees, uint32_t port_no,
                                        enum qos_direction dir); /* NULL */

/* A dump does not tell the class of packets without a queue.  Sets it in the root qdiscs, from the
 * trees, as a request has it. */
enum status queues_ask_defaults(struct ctx *c, struct queue_entries *all,
                                struct queue_trees *trees);

/* The kernel that the switch runs on: its release, and each scheduler's state. */
enum queue_kernel_state { KERNEL_NO, KERNEL_YES, KERNEL_UNKNOWN };

struct queue_kernel {
    char release[65];
    struct {
        const struct qos_sched *sched;
        enum queue_kernel_state state;
    } v[256];
    size_t n;
};

enum status queues_ask_kernel(struct ctx *c, struct queue_kernel *out);

/* ------------------------------------------------------------- showing (tree.c) */

/* Entries in order of port, direction (out first) and tree: what is below an entry follows it. */
struct queue_view {
    struct queue_node {
        const struct qos_entry *entry;
        enum qos_direction dir;
        int depth;
        uint64_t rate, ceil; /* of a class: what its rates or shares come to, bit/s */
    } * v;
    size_t n;
};

/* Asks for all that a view needs; also for `trees`, if it isn't NULL. */
enum status queues_view(struct ctx *c, uint32_t port, uint32_t class, struct queue_trees *trees,
                        struct queue_view *out);

/* A reply of entries of one length: SERVICE, TINS. */
struct queue_rows {
    const uint8_t *p;
    size_t n;
};

/* Asks the switch only where the view has such a node (NULL: always); no rows otherwise. */
enum status queues_ask_rows(struct ctx *c, const struct queue_view *view,
                            bool (*is_wanted)(const struct queue_node *), uint32_t exp_type,
                            size_t len, struct queue_rows *out);

/* -------------------------------------------------------------- promises (promise.c) */

/* For bsearch: where a node is in replies of SERVICE and QOS_LATENCY, which are in order of port, direction, class. */
int queues_by_place(const struct queue_node *n, uint32_t port, bool in, uint32_t class);

/* The queue's entry of SERVICE (its rows in `all`), OFP_SERVICE_LEN bytes; NULL: it has none. */
const uint8_t *queues_service(const struct queue_rows *all, const struct queue_node *node);

struct queue_promise {
    bool rated;                       /* it has a rate to be judged by */
    uint64_t backlogged_us, below_us; /* packets waited; it got less than its rate meanwhile */
    bool broken, drops;               /* for as long as the promise says, until now */
    bool slow;                        /* likewise: packets wait longer than DELAY_US */
    unsigned delay_missed; /* seconds in which they did, per mille of those that were judged */
    uint32_t delay_us;     /* nine tenths of the last second they waited no longer */
};

/* Asks the switch only where a class of the view has a PROMISE or a DELAY_US. */
enum status queues_ask_promises(struct ctx *c, const struct queue_view *view,
                                struct queue_rows *out);

/* False: the class has none, or the switch hasn't looked at it yet. */
bool queues_find_promise(const struct queue_rows *all, const struct queue_node *node,
                         struct queue_promise *out);

/* In which part of the time with packets waiting did the class get its rate, 0 to 1? Below 0:
 * unknown, as none waited. */
double queues_kept(const struct queue_promise *p);

/* The member "promise", an object; nothing where queues_find_promise finds none. */
void queues_json_promise(struct of_json *j, const struct queue_rows *all,
                         const struct queue_node *node);

/* -------------------------------------------------------------- latency (latency.c) */

#define QUEUE_NO_TIME   UINT32_MAX /* no sample in that time */
#define QUEUE_TIME_TEXT 16

/* us */
struct queue_figures {
    uint64_t samples;
    uint32_t min, p50, p90, p99;
};

struct queue_latency {
    uint32_t port_no, class_id;
    bool in;
    uint32_t seconds; /* that the figures are of */
    struct queue_figures rtt, wait;
    uint32_t path;  /* the least round trip of ten minutes */
    uint8_t source; /* of `wait` */
};

enum status queues_ask_latency(struct ctx *c, uint32_t port, uint32_t class,
                               struct queue_rows *out);
/* Fails, and says so, if the switch was started with --latency=off. */
enum status queues_needs_latency(struct ctx *c);
/* Says why there are no rows. */
enum status queues_say_no_latency(struct ctx *c);
/* TCP segments that were counted, and of them those sent again: lost behind the switch, or before it. */
struct queue_segments {
    uint64_t counted, behind, before;
};

/* Likewise, RETRANSMISSIONS of all queues: none of a switch that knows no such request. */
struct queue_rows queues_segments_if_known(struct ctx *c);
/* Of the queue that the row of QOS_LATENCY is of: in all, and of late.  False: none were counted. */
bool queues_find_segments(const struct queue_rows *rows, const struct queue_latency *of,
                          struct queue_segments *all, struct queue_segments *late);
/* The object "segments"; nothing where none were counted. */
void queues_json_segments(struct of_json *j, const struct queue_rows *rows,
                          const struct queue_latency *of);
/* HISTOGRAMS of all queues: rows of OFP_HISTOGRAMS_LEN. */
enum status queues_ask_histograms(struct ctx *c, struct queue_rows *out);
/* Of all; none of a switch that knows no such request. */
struct queue_rows queues_latency_if_known(struct ctx *c);
struct queue_latency queues_latency_at(const struct queue_rows *rows, size_t i);
/* The row of the class that the node is, or is at.  False: nothing is known of it. */
bool queues_latency_row(const struct queue_rows *rows, const struct queue_node *node, size_t *i);
/* False: the node is no class, or nothing is known of it. */
bool queues_find_latency(const struct queue_rows *rows, const struct queue_node *node,
                         struct queue_latency *out);
const char *queues_latency_source(uint8_t source);

/* Members of an object. */
void queues_json_latency(struct of_json *j, const struct queue_latency *l);
/* The object "latency" of a node, if anything is known of it. */
void queues_json_node_latency(struct of_json *j, const struct queue_node *node,
                              const struct queue_rows *rows);
/* In ms: "12.3"; "-": there is none. */
const char *queues_print_time(uint32_t us, char buf[QUEUE_TIME_TEXT]);

/* -------------------------------------------------------------- tins (tins.c) */

struct queue_tin {
    unsigned number;
    uint64_t bytes, packets, drops, marked, rate; /* bit/s */
    uint32_t backlog_bytes, delay_us, peak_us;
};

/* Asks the switch only if the view has CAKE; no rows otherwise. */
enum status queues_ask_tins(struct ctx *c, const struct queue_view *view, struct queue_rows *out);

/* The node's next tin from *i on, which is 0 at first. */
bool queues_next_tin(const struct queue_rows *tins, const struct queue_node *node, size_t *i,
                     struct queue_tin *out);

/* ---------------------------------------------------------- inner.c */

/* The class that takes the packets for a class of the view: itself, or the one with the lowest id below it, and so on;
 * in a tree below a transmit queue the default class. */
uint32_t queues_taker(const struct queue_view *v, size_t i);

/* ---------------------------------------------------------- requests (request.c) */

/* Sends it as a message of its own, or with --experimenter in the experimenter's envelope. */
enum status queues_send(struct ctx *c, const struct qos_request *r);

/* The command that sends it: "qos-htb cmd=add,port=2,...". */
void queues_print_command(struct of_wr *w, const struct qos_request *r);

/* A class's name, "" where it has none; returns buf. */
const char *queues_name(const struct qos_request *r, char buf[QOS_NAME_ROOM]);

/* "root class", "class 10 \"voice\"", "sfq" */
void queues_print_name(struct of_wr *w, const struct qos_request *r);

/* The members that say which queue it is: port_no, direction, object, sched, class_id,
 * parent_id, and its name where it has one. */
void queues_json_place(struct of_json *j, const struct queue_node *node);

/* The member "config", an object: rates in bit/s, sizes in bytes, times in microseconds (perturb:
 * seconds; promise: milliseconds), shares in ppm. */
void queues_json_config(struct of_json *j, const struct qos_request *r);

/* -------------------------------------------------------------- openconfig.c */

/* Asks for ports and their counters; writes them (OFPP_ANY: all) and the view's queues in
 * OpenConfig's models. */
enum status queues_json_openconfig(struct ctx *c, const struct queue_view *view, uint32_t port,
                                   struct of_wr *w);

#endif
