/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the queues again and again: the loop, the terminal, and the differences between two
 * looks.  A command supplies the functions that write a look. */
#ifndef DPCTL_QUEUES_WATCH_H
#define DPCTL_QUEUES_WATCH_H

#include <queues/queues.h>

struct watch;

/* Writes a look: text without the last newline or, with --json, lines.  Where it writes nothing,
 * nothing is shown.  elapsed: microseconds since the look before. */
typedef enum status watch_fn(struct of_wr *w, const struct watch *watch,
                             const struct queue_view *view, int64_t elapsed);

struct watch {
    struct ctx *c;
    watch_fn *text, *json;
    bool once; /* one look, no screen */
    uint32_t port;
    uint64_t interval_us, count;
    bool tty, colour; /* a screen; with colours */
    int rows, columns;
    sigset_t before;
    struct last *last; /* counters of the look before, sorted */
    size_t n_last;
    int64_t last_us; /* 0: there was none */
};

/* Takes the words port=N, interval=TIME, count=N.  Ends after `count` looks, or on a signal. */
enum status watch_run(struct ctx *c, char **words, int n, watch_fn *text, watch_fn *json,
                      bool once);

/* What happened since the look before. */
struct watch_delta {
    uint64_t bps, pps, drops, overlimits;
};

struct watch_delta watch_delta(const struct watch *w, const struct queue_node *n,
                               int64_t elapsed_us);

/* a - b; 0 where b is more. */
uint64_t watch_above(uint64_t a, uint64_t b);

/* The time of day, in seconds. */
double watch_time(void);

/* Three digits and a unit: "9.41M". */
const char *watch_number(uint64_t n, char buf[16]);

/* A bar as long as the class's ceiling: '=' up to the guaranteed rate, '+' above it. */
void watch_bar(struct of_wr *w, const struct watch *watch, const struct queue_node *n, uint64_t bps,
               int width);

/* A number of dropped packets, in 8 columns. */
void watch_drops(struct of_wr *w, const struct watch *watch, uint64_t drops);

/* Ends a line of the screen; false: there is no room for another one. */
bool watch_end_line(struct of_wr *w, const struct watch *watch, int *line);

/* Is this node the first one of its port and direction? */
bool watch_begins(const struct queue_view *view, size_t i);

/* "port 1, in" */
void watch_port(struct of_wr *w, const struct queue_node *n);

/* Ends a screen; `room`: all of it fitted. */
void watch_end(struct of_wr *w, const struct watch *watch, bool room);

#endif
