/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of qos-autorate share. */
#ifndef AUTORATE_INSIDE_H
#define AUTORATE_INSIDE_H

#include "law.h"
#include "passive.h"
#include "probe.h"

#include <core/context.h>
#include <qos/wire/request.h>

struct autorate {
    struct ctx *c;

    /* What was asked for (options.c). */
    uint32_t port, class;
    enum qos_direction dir;
    struct autorate_bounds bounds;
    uint64_t safe; /* bit/s that the class has at the end */
    uint64_t turn_us, count;
    struct probes probes;
    struct passive passive;

    /* The class (queue.c). */
    struct qos_request request; /* the change: all but its rates */
    uint64_t bytes;             /* that it had sent at the last turn */
    uint64_t backlog;           /* bytes that wait in it, and below a root class */
    uint64_t rate;              /* that it has now; 0: not known */
    uint64_t changes;

    /* The loop (loop.c). */
    struct autorate_law law;
    sigset_t before;
    enum autorate_state state;
    int64_t at;    /* of the last turn */
    uint64_t sent; /* bit/s in the last turn */
    int64_t delay, baseline;
    unsigned answering; /* reflectors */
    unsigned pairs;     /* of hosts that had a round trip in the turn */
    bool silent;        /* nothing is measured: the class has the safe rate */
    bool lost;          /* the switch is gone */
    bool refused;       /* the switch refused a request: the end */
    int64_t began;
    uint64_t line_sent;            /* bytes since the last line, and in how long */
    int64_t line_took, line_delay; /* the longest delay since then; -1: not known */
};

enum status autorate_options(struct autorate *a, char **words, int n);

/* Finds the class, or makes the port's root class. */
enum status autorate_find(struct autorate *a);
/* What the class has sent, in bytes since it began; and what waits in it. */
enum status autorate_sent(struct autorate *a, uint64_t *bytes);
/* Takes the round trips of the port's own traffic since the last turn. */
enum status autorate_listen(struct autorate *a);
/* Changes the class if it has another rate; `exactly`: even if the difference is small. */
enum status autorate_apply(struct autorate *a, uint64_t rate, bool exactly);

/* A line of the view. */
enum status autorate_line(struct autorate *a);
/* A line for something that happened. */
enum status autorate_event(struct autorate *a, const char *event, const char *why);

#endif
