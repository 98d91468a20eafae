/* SPDX-License-Identifier: Apache-2.0 */
/* The model's data: ports, classes, their configuration. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------- values */

struct packed *
packed_new(const struct qos_values *v)
{
    size_t n = (size_t)__builtin_popcountll(v->set), at = 0;
    struct packed *p = malloc(sizeof *p + n * sizeof p->v[0]);
    if (!p)
        return NULL;
    p->set = v->set;
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (qos_has(v, slot))
            p->v[at++] = v->v[slot];
    }
    return p;
}

void
packed_get(const struct packed *p, struct qos_values *v)
{
    size_t at = 0;
    memset(v, 0, sizeof *v);
    if (!p)
        return;
    v->set = p->set;
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (qos_has(v, slot))
            v->v[slot] = p->v[at++];
    }
}

/* ------------------------------------------------------------------ classes */

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct klass *
klass_new(uint32_t id, const struct qos_values *config)
{
    struct klass *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->id = id;
    c->created = now_ns();
    c->config = packed_new(config);
    if (!c->config) {
        free(c);
        return NULL;
    }
    return c;
}

void
klass_free(struct klass *c)
{
    if (!c)
        return;
    free(c->config);
    free(c->leaf_config);
    free(c);
}

struct klass *
klass_find(const struct model_port *p, uint32_t id)
{
    if (id == QOS_CLASS_ROOT)
        return p->root;
    if (id == QOS_CLASS_DEFAULT)
        return p->dflt;
    if (id == 0 || id > QOS_CLASS_MAX || !p->pages[id >> 8])
        return NULL;
    return p->pages[id >> 8][id & 0xff];
}

int
klass_reserve(struct model_port *p, uint32_t id)
{
    struct klass ***page = &p->pages[id >> 8 & 0xff];
    if (id <= QOS_CLASS_MAX && !*page)
        *page = calloc(256, sizeof **page);
    return *page || id > QOS_CLASS_MAX ? 0 : -ENOMEM;
}

void
klass_link(struct model_port *p, struct klass *c, struct klass *parent)
{
    c->parent = parent;
    c->prev = c->next = NULL;
    c->depth = 0;
    if (parent) {
        c->depth = (uint8_t)(parent->depth + 1);
        c->next = parent->child;
        if (c->next)
            c->next->prev = c;
        parent->child = c;
    }
    if (c->id == QOS_CLASS_ROOT) {
        p->root = c;
    } else if (c->id == QOS_CLASS_DEFAULT) {
        p->dflt = c;
    } else {
        p->pages[c->id >> 8][c->id & 0xff] = c;
        p->n_queues++;
    }
}

void
klass_unlink(struct model_port *p, struct klass *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else if (c->parent)
        c->parent->child = c->next;
    if (c->next)
        c->next->prev = c->prev;
    if (c->id == QOS_CLASS_ROOT) {
        p->root = NULL;
    } else if (c->id == QOS_CLASS_DEFAULT) {
        p->dflt = NULL;
    } else {
        p->pages[c->id >> 8][c->id & 0xff] = NULL;
        p->n_queues--;
    }
}

struct klass *
klass_next(const struct model_port *p, uint32_t after)
{
    for (uint32_t id = after + 1; id <= QOS_CLASS_MAX; id++) {
        struct klass **page = p->pages[id >> 8];
        if (!page)
            id |= 0xff;
        else if (page[id & 0xff])
            return page[id & 0xff];
    }
    return NULL;
}

/* -------------------------------------------------------------------- ports */

struct model_port *
port_find_dir(struct qos *q, uint32_t port_no, enum qos_direction dir)
{
    struct model_port *p = q->ports;
    while (p && (p->info.port_no != port_no || p->dir != dir))
        p = p->next;
    return p;
}

struct model_port *
port_find(struct qos *q, uint32_t port_no)
{
    return port_find_dir(q, port_no, QOS_OUT);
}

void
port_free_tree(struct model_port *p)
{
    for (unsigned i = 0; i < 256; i++) {
        for (unsigned j = 0; p->pages[i] && j < 256; j++)
            klass_free(p->pages[i][j]);
        free(p->pages[i]);
        p->pages[i] = NULL;
    }
    klass_free(p->root);
    klass_free(p->dflt);
    free(p->config);
    p->root = p->dflt = NULL;
    p->config = NULL;
    p->sched = NULL;
    p->keep = p->second = false;
    p->default_id = 0;
    p->n_queues = 0;
}

struct qos_env
port_env(const struct model_port *p, const struct klass *parent)
{
    struct qos_env env = {
        .mtu = p->info.mtu, .txqueuelen = p->info.txqueuelen, .speed = p->info.speed};
    if (parent) {
        env.parent_rate = parent->rate;
        env.parent_ceil = parent->ceil;
    }
    return env;
}

uint32_t
port_default(const struct model_port *p)
{
    return p->dflt ? default_after(p, NULL, NULL, 0) : 0;
}

/* ------------------------------------------------------------------- events */

/* A scheduler's own rate, of those that have one; 0: no limit. */
static uint64_t
leaf_limit(const struct packed *config)
{
    struct qos_values v;
    packed_get(config, &v);
    return v.v[QOS_RATE];
}

/* The least limit of a class, of those above it, and of the scheduler in it. */
static uint64_t
most_of(const struct klass *c)
{
    uint64_t most = leaf_limit(c->leaf_config);
    for (; c; c = c->parent)
        if (c->ceil && (!most || c->ceil < most))
            most = c->ceil;
    return most;
}

/* Of packets without a queue. */
static uint64_t
plain_most(const struct model_port *p)
{
    uint32_t id = port_default(p);
    const struct klass *c = id ? klass_find(p, id) : NULL;
    return c ? most_of(c) : leaf_limit(p->config);
}

/* In a class that has others below it no packet can wait: it is no queue. */
void
tell_queue(struct qos *q, const struct model_port *p, struct klass *c, bool present)
{
    bool nowhere = p->away || (p->dir == QOS_IN && !p->shaper_told); /* told already, or never */
    bool is = present && !c->child;
    if (!q->events.queue || nowhere || c->id > QOS_CLASS_MAX || (!is && !c->told))
        return;
    c->told = is;
    q->events.queue(q->events.ctx, p->info.port_no, p->dir, c->id, is, is ? most_of(c) : 0);
}

void
tell_below(struct qos *q, const struct model_port *p, struct klass *c)
{
    tell_queue(q, p, c, true);
    for (struct klass *k = c->child; k; k = k->next)
        tell_below(q, p, k);
}

static void
tell_plain(struct qos *q, struct model_port *p, uint32_t id, uint64_t most)
{
    p->told_default = id;
    p->told_most = most;
    if (q->events.default_class)
        q->events.default_class(q->events.ctx, p->info.port_no, p->dir, id, most);
}

void
tell_default(struct qos *q, struct model_port *p)
{
    uint64_t most = plain_most(p);
    if (!p->away && (port_default(p) != p->told_default || most != p->told_most))
        tell_plain(q, p, port_default(p), most);
}

void
tell_all(struct qos *q, struct model_port *p, bool present)
{
    for (struct klass *c = klass_next(p, 0); c; c = klass_next(p, c->id))
        tell_queue(q, p, c, present);
    if (present)
        tell_plain(q, p, port_default(p), plain_most(p));
    else if (p->told_default || p->told_most)
        tell_plain(q, p, 0, 0);
}
