/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `dpctl top` share. */
#ifndef TOP_INSIDE_H
#define TOP_INSIDE_H

#include "rates.h"
#include "terminal.h"

#include <core/context.h>

#define TOP_FILTER     64
#define TOP_FLOWS_MAX  100000 /* flows that a look takes in, at most */
#define TOP_COLUMNS    10
#define TOP_NAME_WIDTH 20

struct top;

enum top_kind {
    TOP_BITS,  /* bytes, shown as bit/s */
    TOP_RATE,  /* a counter, shown per second */
    TOP_STATE, /* a number as it is */
};

struct top_column {
    const char *title, *json;
    enum top_kind kind;
    int value;
    int width;
};

struct top_view {
    char key;
    const char *name;                       /* "ports" */
    const char *item;                       /* "PORT" */
    const char *detail;                     /* the last column's title, NULL: none */
    struct top_column columns[TOP_COLUMNS]; /* up to one without a title */
    enum status (*collect)(struct top *t);
};
extern const struct top_view top_views[];
const struct top_view *top_view_by_name(const char *name);
const struct top_view *top_view_by_key(int key);
int top_columns(const struct top_view *v);

struct top {
    struct ctx *c;
    const struct top_view *view;
    char *match;      /* flows: words of stats-flow, commas between them; allocated, NULL: none */
    const char *sort; /* as it was asked for */
    uint64_t interval_us, count; /* count 0: no end */
    int rows;                    /* of text and JSON, at most */
    int column;                  /* sorted by; -1: by name */
    bool reverse, paused, help, typing;
    char filter[TOP_FILTER];

    struct top_item *v; /* of the present look, in the arena */
    size_t n, room;     /* n: those that pass the filter come first */
    size_t total;
    struct top_last last;
    int64_t elapsed_us; /* between the last two looks */
    int64_t took_us;    /* the last look */
    char note[200];     /* shown below the heading */
    char lost[256];     /* why there is no connection; "": there is one */

    bool tty;
    struct terminal screen;
    sigset_t asking; /* blocked while the switch is asked */
    size_t first;    /* the item in the first line */
};

/* A text that lasts as long as the command, with what a terminal can show. */
__attribute__((format(printf, 2, 3))) const char *top_text(struct top *t, const char *fmt, ...);

/* One more item of the present look; NULL: no memory. */
struct top_item *top_add(struct top *t);

/* flows.c */
enum status top_collect_flows(struct top *t);
enum status top_check_match(struct top *t);
/* "in_port=1 -> apply:output=2"; in the arena. */
const char *top_flow_text(struct top *t, const struct top_item *i);

/* processors.c */
enum status top_collect_processors(struct top *t);

/* draw.c */
void top_draw(struct top *t, struct of_wr *w);       /* a screen */
void top_print_text(struct top *t, struct of_wr *w); /* a table */
void top_print_json(struct top *t, struct of_wr *w); /* an object */
void top_arrange(struct top *t);                     /* filters and sorts */

#endif
