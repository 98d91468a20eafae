/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/say.h>
#include <queues/queues.h>

#define ENTRY_MIN 72 /* bytes of the smallest entry of a dump */

enum qos_direction
queues_direction(const struct qos_entry *e)
{
    return e->config.values.v[QOS_DIRECTION] == QOS_IN ? QOS_IN : QOS_OUT;
}

enum status
queues_ask_trees(struct ctx *c, struct queue_trees *out)
{
    struct of_bytes data = {0};
    enum status st = ask_experimenter(c, OFP_EXP_QOS_PORTS, (struct of_bytes){NULL, 0}, &data);
    *out = (struct queue_trees){0};
    if (st)
        return st;
    if (data.n % QOS_TREE_LEN)
        return say_malformed(c);
    out->v = of_arena_array(&c->arena, data.n / QOS_TREE_LEN, sizeof *out->v);
    if (!out->v && data.n)
        return say_memory(c);
    for (const uint8_t *p = data.p; p < data.p + data.n; p += QOS_TREE_LEN)
        qos_tree_decode(&out->v[out->n++], p);
    return DPCTL_OK;
}

const struct qos_tree *
queues_find_tree(const struct queue_trees *trees, uint32_t port_no, enum qos_direction dir)
{
    for (size_t i = 0; i < trees->n; i++)
        if (trees->v[i].port_no == port_no && trees->v[i].dir == dir)
            return &trees->v[i];
    return NULL;
}

enum status
queues_ask_defaults(struct ctx *c, struct queue_entries *all, struct queue_trees *trees)
{
    enum status st = queues_ask_trees(c, trees);
    for (size_t i = 0; !st && i < all->n; i++) {
        struct qos_request *r = &all->v[i].config;
        const struct qos_tree *t =
            queues_find_tree(trees, r->port_no, queues_direction(&all->v[i]));
        if (r->object_type == OFP_QOS_QDISC && r->sched->classful && t)
            r->class_id = t->default_id;
    }
    return st;
}

enum status
queues_ask(struct ctx *c, uint32_t port, uint32_t class, struct queue_entries *out)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    struct qos_error e;
    of_set32(what, port);
    of_set32(what + 4, class);
    *out = (struct queue_entries){0};
    enum status st = ask_experimenter(c, OFP_QOS_EXP_DUMP, (struct of_bytes){what, 8}, &data);
    if (st)
        return st;
    struct of_rd rd = of_rd(data.p, data.n);
    out->v = of_arena_array(&c->arena, data.n / ENTRY_MIN + 1, sizeof *out->v);
    if (!out->v)
        return say_memory(c);
    while (of_rd_left(&rd)) {
        if (qos_entry_decode(&out->v[out->n], &rd, &e))
            return say_failed(c, "the switch's answer is malformed: %s", e.text);
        out->n++;
    }
    return DPCTL_OK;
}

/* The release, then four bytes for each scheduler: its id, its state. */
enum { RELEASE_LEN = 64, STATE_LEN = 4 };

enum status
queues_ask_kernel(struct ctx *c, struct queue_kernel *out)
{
    struct of_bytes data = {0};
    *out = (struct queue_kernel){0};
    enum status st = ask_experimenter(c, OFP_EXP_KERNEL, (struct of_bytes){NULL, 0}, &data);
    if (st || data.n < RELEASE_LEN)
        return st ? st : say_malformed(c);
    memcpy(out->release, data.p, RELEASE_LEN);
    for (char *p = out->release; *p; p++) /* it goes to a terminal */
        if (*p < ' ' || *p > '~')
            *p = '?';
    for (size_t at = RELEASE_LEN; at + STATE_LEN <= data.n && out->n < 256; at += STATE_LEN) {
        const struct qos_sched *s = qos_sched_by_id(data.p[at]);
        uint8_t state = data.p[at + 1];
        if (!s)
            continue;
        out->v[out->n].sched = s;
        out->v[out->n++].state = state <= KERNEL_YES ? state : KERNEL_UNKNOWN;
    }
    return DPCTL_OK;
}
