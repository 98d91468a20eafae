/* SPDX-License-Identifier: Apache-2.0 */
/* What each processor does for the switch in the kernel, and what each of its packet threads does. */
#include "top-inside.h"

#include <core/ask.h>
#include <core/counters.h>
#include <core/say.h>

#include <stdio.h>
#include <string.h>

enum { KERNEL, LEFT, PACKETS, WAKEUPS, CPU_US, VALUES };

struct taking {
    struct top *t;
    bool full; /* there was no memory for an item */
};

static const struct {
    const char *room, *what;
    int value;
    uint64_t unit;
} rows[] = {
    {"processor", "hits", KERNEL, 1},   {"processor", "left", LEFT, 1},
    {"worker", "packets", PACKETS, 1},  {"worker", "wakeups", WAKEUPS, 1},
    {"worker", "cpu_ns", CPU_US, 1000},
};

static struct top_item *
item_of(struct top *t, bool worker, unsigned number)
{
    struct top_item *i;
    for (size_t k = 0; k < t->n; k++)
        if (t->v[k].key[0] == worker && t->v[k].key[1] == number)
            return &t->v[k];
    if (!(i = top_add(t)))
        return NULL;
    *i = (struct top_item){.key = {worker, number},
                           .name = top_text(t, worker ? "worker %u" : "%u", number),
                           .detail = ""};
    for (int k = 0; k < VALUES; k++)
        i->v[k] = TOP_UNKNOWN;
    return i;
}

static void
take(void *to, const char *name, uint64_t value)
{
    struct taking *taking = to;
    unsigned number;
    char room[32], what[32];
    if (sscanf(name, "%31[a-z_].%u.%31[a-z_]", room, &number, what) != 3)
        return;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (strcmp(rows[k].room, room) != 0 || strcmp(rows[k].what, what) != 0)
            continue;
        struct top_item *i = item_of(taking->t, *room == 'w', number);
        if (i)
            i->v[rows[k].value] = value / rows[k].unit;
        taking->full |= !i;
    }
}

enum status
top_collect_processors(struct top *t)
{
    struct of_bytes entries;
    struct taking taking = {.t = t};
    enum status st = ask_experimenter(t->c, OFP_EXP_COUNTERS, (struct of_bytes){NULL, 0}, &entries);
    if (st)
        return st;
    if (!counters_each(entries, take, &taking))
        return say_malformed(t->c);
    return taking.full ? say_memory(t->c) : DPCTL_OK;
}
