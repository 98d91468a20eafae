/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/flow-counters.h>

#include <stdlib.h>
#include <string.h>

#define PAGE   FLOW_COUNTERS_STRIDE
#define PLACES (PAGE / sizeof(struct flow_counter))

struct flow_counter *
flow_counters_new(uint32_t n, unsigned workers, bool kernel)
{
    size_t bytes = (size_t)flow_counters_apart(n, workers) * flow_counters_slots(workers, kernel) *
                   sizeof(struct flow_counter);
    if (workers == 1)
        return calloc(1, bytes);
    void *v = aligned_alloc(COUNTER_LINE, bytes);
    return v ? memset(v, 0, bytes) : NULL;
}

/* What is in the first places of the first worker's page, which no flow gets. */
struct page_head {
    struct page_head *next, **at; /* of the pages with room; at NULL: it has none */
    unsigned workers;
    uint16_t used;
    uint16_t free;  /* the last place that was given back; its `packets` is the next one; 0: none */
    uint16_t fresh; /* places from here on have never been used */
};

#define FIRST                                                                                      \
    ((sizeof(struct page_head) + sizeof(struct flow_counter) - 1) / sizeof(struct flow_counter))

static struct page_head *with_room;

static void
link_page(struct page_head *h)
{
    h->next = with_room;
    h->at = &with_room;
    if (h->next)
        h->next->at = &h->next;
    with_room = h;
}

static void
unlink_page(struct page_head *h)
{
    *h->at = h->next;
    if (h->next)
        h->next->at = h->at;
    h->at = NULL;
}

static struct page_head *
page_for(unsigned workers)
{
    struct page_head *h = with_room;
    while (h && h->workers != workers)
        h = h->next; /* LCOV_EXCL_LINE: luck: pages for two numbers of workers */
    if (h)
        return h;
    h = aligned_alloc(PAGE, (size_t)PAGE * workers);
    if (!h)
        return NULL;
    *h = (struct page_head){.workers = workers, .fresh = FIRST};
    link_page(h);
    return h;
}

struct flow_counter *
flow_counters_place(unsigned workers)
{
    struct page_head *h = page_for(workers);
    if (!h)
        return NULL;
    struct flow_counter *place = (struct flow_counter *)(void *)h;
    unsigned i = h->free ? h->free : h->fresh;
    if (h->free)
        h->free = (uint16_t)place[i].packets;
    else
        h->fresh++;
    if (++h->used == PLACES - FIRST)
        unlink_page(h);
    for (unsigned w = 0; w < workers; w++)
        place[i + w * PLACES] = (struct flow_counter){0};
    return &place[i];
}

void
flow_counters_leave(struct flow_counter *first)
{
    struct page_head *h = (struct page_head *)(void *)((uintptr_t)first & ~(uintptr_t)(PAGE - 1));
    first->packets = h->free;
    h->free = (uint16_t)(first - (struct flow_counter *)(void *)h);
    h->used--;
    if (!h->at)
        link_page(h);
    if (h->used)
        return;
    unlink_page(h);
    free(h);
}
