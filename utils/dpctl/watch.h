/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at queues again and again: the loop, the terminal, and what has happened since the look
 * before.  qos-watch, bw-watch and bw-show say what is shown. */
#ifndef DPCTL_WATCH_H
#define DPCTL_WATCH_H

#include "qos-cmd.h"

struct watch;

/* Writes a look at the queues, as text (without the last newline) or, with --json, as lines; nothing
 * written is nothing shown.  elapsed: us since the look before. */
typedef enum status watch_fn(struct of_wr *w, const struct watch *watch,
                             const struct qos_view *view, int64_t elapsed);

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

/* Takes the words port=N, interval=TIME, count=N; looks until that is reached or a signal comes. */
enum status watch_run(struct ctx *c, char **words, int n, watch_fn *text, watch_fn *json,
                      bool once);

/* What happened since the look before. */
struct watch_delta {
    uint64_t bps, pps, drops, overlimits;
};

struct watch_delta watch_delta(const struct watch *w, const struct qos_view_node *n,
                               int64_t elapsed_us);

/* a - b, 0 where b is more */
uint64_t watch_above(uint64_t a, uint64_t b);
/* The time of day, in seconds. */
double watch_time(void);

/* Three digits and a unit: "9.41M". */
const char *watch_number(uint64_t n, char buf[16]);
/* `bps` of the class's ceiling, and where its guaranteed rate ends. */
void watch_bar(struct of_wr *w, const struct watch *watch, const struct qos_view_node *n,
               uint64_t bps, int width);
/* How many packets were dropped, in 8 columns. */
void watch_drops(struct of_wr *w, const struct watch *watch, uint64_t drops);
/* Ends a line of the screen; false: there is no room for another one. */
bool watch_end_line(struct of_wr *w, const struct watch *watch, int *line);
/* Is this node the first one of its port and direction? */
bool watch_begins(const struct qos_view *view, size_t i);
/* "port 1, in" */
void watch_port(struct of_wr *w, const struct qos_view_node *n);
/* At the end of a screen; `room`: there was enough of it. */
void watch_end(struct of_wr *w, const struct watch *watch, bool room);

#endif
