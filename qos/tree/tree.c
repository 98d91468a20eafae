/* SPDX-License-Identifier: Apache-2.0 */
/* Ports, their classes, and the configuration of both. */
#include <qos/sched/name.h>
#include <qos/tree/state.h>

#include <oflib/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct packed *
qos_packed_new(const struct qos_values *v)
{
    struct qos_slots set = v->set;
    for (unsigned i = 0; !v->v[QOS_NAME] && i < QOS_NAME_SLOTS; i++)
        qos_slots_del(&set, QOS_NAME + i); /* an empty name is none */
    static const uint8_t none_if_0[] = {QOS_PROMISE, QOS_DELAY, QOS_OVERSUBSCRIBE};
    for (unsigned i = 0; i < sizeof none_if_0; i++)
        if (!v->v[none_if_0[i]])
            qos_slots_del(&set, none_if_0[i]);
    size_t n = qos_slots_count(&set), at = 0;
    struct packed *p = malloc(sizeof *p + n * sizeof p->v[0]);
    if (!p)
        return NULL;
    p->set = set;
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (qos_slots_has(&set, slot))
            p->v[at++] = v->v[slot];
    }
    return p;
}

void
qos_packed_get(const struct packed *p, struct qos_values *v)
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

bool
qos_packed_find(const struct packed *p, unsigned slot, uint64_t *v)
{
    size_t at = 0;
    if (!p || !qos_slots_has(&p->set, slot))
        return false;
    for (unsigned i = 0; i < slot; i++)
        at += qos_slots_has(&p->set, i);
    *v = p->v[at];
    return true;
}

void
qos_classes_number(struct model_port *p)
{
    uint32_t mark = 2;
    if (p->root)
        p->root->mark = 0;
    if (p->dflt)
        p->dflt->mark = 1;
    for (struct qos_class *c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id))
        c->mark = mark++;
}

bool
qos_port_offloads(const struct model_port *p)
{
    uint64_t v = 0;
    return p->sched && p->sched->classful && qos_packed_find(p->config, QOS_OFFLOAD, &v) && v;
}

uint64_t
qos_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct qos_class *
qos_class_new(uint32_t id, const struct qos_values *config)
{
    struct qos_class *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->id = id;
    c->created = qos_now_ns();
    c->config = qos_packed_new(config);
    if (!c->config) {
        free(c);
        return NULL;
    }
    return c;
}

void
qos_class_free(struct qos_class *c)
{
    if (!c)
        return;
    free(c->config);
    free(c->leaf_config);
    free(c);
}

struct qos_class *
qos_class_find(const struct model_port *p, uint32_t id)
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
qos_class_reserve(struct model_port *p, uint32_t id)
{
    struct qos_class ***page = &p->pages[id >> 8 & 0xff];
    if (id <= QOS_CLASS_MAX && !*page)
        *page = calloc(256, sizeof **page);
    return *page || id > QOS_CLASS_MAX ? 0 : -ENOMEM;
}

/* Of the class's rate, what its parent promises: the switch's own default class is promised nothing. */
static uint64_t
promised(const struct qos_class *c)
{
    return c->id == QOS_CLASS_DEFAULT ? 0 : c->rate;
}

void
qos_class_set_rates(struct qos_class *c, uint64_t rate, uint64_t ceil)
{
    if (c->parent)
        c->parent->promised -= promised(c);
    c->rate = rate;
    c->ceil = ceil;
    if (c->parent)
        c->parent->promised += promised(c);
}

/* First if it has the lowest id, else second. */
static void
insert_child(struct qos_class *parent, struct qos_class *c)
{
    struct qos_class *first = parent->child;
    c->prev = first && first->id < c->id ? first : NULL;
    c->next = c->prev ? first->next : first;
    if (c->next)
        c->next->prev = c;
    if (c->prev)
        c->prev->next = c;
    else
        parent->child = c;
}

static void
remove_child(struct qos_class *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else if (c->parent)
        c->parent->child = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->prev = c->next = NULL;
}

void
qos_class_link(struct model_port *p, struct qos_class *c, struct qos_class *parent)
{
    c->parent = parent;
    c->prev = c->next = NULL;
    c->depth = 0;
    if (parent) {
        c->depth = (uint8_t)(parent->depth + 1);
        insert_child(parent, c);
        parent->promised += promised(c);
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
qos_class_unlink(struct model_port *p, struct qos_class *c)
{
    bool was_first = c->parent && c->parent->child == c;
    remove_child(c);
    if (c->parent)
        c->parent->promised -= promised(c);
    if (c->id == QOS_CLASS_ROOT) {
        p->root = NULL;
    } else if (c->id == QOS_CLASS_DEFAULT) {
        p->dflt = NULL;
    } else {
        p->pages[c->id >> 8][c->id & 0xff] = NULL;
        p->n_queues--;
    }
    if (!was_first || !c->parent->child || !c->parent->child->next)
        return;
    struct qos_class *first = qos_class_next(p, c->id); /* ids are sparser than siblings are many */
    while (first && first->parent != c->parent)
        first = qos_class_next(p, first->id);
    if (first && first != c->parent->child) {
        remove_child(first);
        insert_child(c->parent, first);
    }
}

struct qos_class *
qos_class_next(const struct model_port *p, uint32_t after)
{
    for (uint32_t id = after + 1; id <= QOS_CLASS_MAX; id++) {
        struct qos_class **page = p->pages[id >> 8];
        if (!page)
            id |= 0xff;
        else if (page[id & 0xff])
            return page[id & 0xff];
    }
    return NULL;
}

struct model_port *
qos_port_find_dir(struct qos *q, uint32_t port_no, enum qos_direction dir)
{
    struct model_port *p = q->ports;
    while (p && (p->info.port_no != port_no || p->dir != dir))
        p = p->next;
    return p;
}

struct model_port *
qos_port_find(struct qos *q, uint32_t port_no)
{
    return qos_port_find_dir(q, port_no, QOS_OUT);
}

int
qos_port_missing(uint32_t port_no, struct qos_error *e)
{
    if (port_no == OFPP_LOCAL)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT),
                        "the local port has no queues: its packets wait in those of the port that "
                        "they leave by, or enter by (direction=in)");
    return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %s",
                    of_port_text(port_no, (char[OF_PORT_TEXT]){0}));
}

struct model_port *
qos_band_next(const struct model_port *p)
{
    struct model_port *t = p->next;
    while (t && t->band && !t->sched)
        t = t->next;
    return t && t->band ? t : NULL;
}

struct model_port *
qos_band_find(const struct model_port *p, uint32_t band)
{
    struct model_port *t = qos_band_next(p);
    while (t && t->band != band)
        t = qos_band_next(t);
    return t;
}

struct model_port *
qos_band_with(const struct model_port *p, uint32_t id)
{
    struct model_port *t = qos_band_next(p);
    while (t && (id > QOS_CLASS_MAX || !qos_class_find(t, id)))
        t = qos_band_next(t);
    return t;
}

const struct model_port *
qos_band_plain(const struct model_port *p)
{
    const struct model_port *t = qos_band_next(p);
    return t ? t : p;
}

bool
qos_class_is_inner(const struct model_port *p, const struct qos_class *c)
{
    return c->child || (p->sched && p->sched->tx_queues && qos_band_find(p, c->id));
}

void
qos_port_free_tree(struct model_port *p)
{
    for (unsigned i = 0; i < 256; i++) {
        for (unsigned j = 0; p->pages[i] && j < 256; j++)
            qos_class_free(p->pages[i][j]);
        free(p->pages[i]);
        p->pages[i] = NULL;
    }
    qos_class_free(p->root);
    qos_class_free(p->dflt);
    free(p->config);
    p->root = p->dflt = NULL;
    p->config = NULL;
    p->sched = NULL;
    p->keep = p->second = false;
    p->default_id = 0;
    p->n_queues = 0;
}
