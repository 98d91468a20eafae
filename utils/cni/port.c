/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"
#include "rules.h"

#include <core/ask.h>
#include <core/change.h>
#include <core/ports.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_MS 10000 /* for each answer */
#define ARENA_MAX  ((size_t)256 << 20)

int
port_open_switch(struct cni *c, unsigned code, struct node_switch **out)
{
    struct node_switch *s = calloc(1, sizeof *s);
    const char *address = c->conf.address ? c->conf.address : remote_usual();
    if (!s)
        return cni_no_memory(c);
    s->c = (struct ctx){.where = "ofqos-cni", .said = s->said, .address = address};
    of_arena_init(&s->c.arena, ARENA_MAX);
    s->c.parse = (struct of_parse){.arena = &s->c.arena};
    if (remote_open(&s->c.remote, address, TIMEOUT_MS)) {
        cni_fail(c, code, "the switch can't be reached: %s", s->c.remote.why);
        port_close_switch(s);
        return -1;
    }
    *out = s;
    return 0;
}

void
port_close_switch(struct node_switch *s)
{
    if (!s)
        return;
    remote_close(&s->c.remote);
    ports_forget(&s->c);
    of_arena_free(&s->c.arena);
    free(s);
}

/* ------------------------------------------------------------------------- ports */

static int
ask_ports(struct cni *c, struct node_switch *s, struct of_list *out)
{
    of_arena_reset(&s->c.arena);
    return ports_ask(&s->c, out) ? node_refused(c, s, "asking for", "the switch's ports") : 0;
}

static const struct of_port *
port_named(const struct of_list *ports, const char *name)
{
    for (uint32_t i = 0; i < ports->n; i++) {
        const struct of_port *p = OF_AT(ports, i, struct of_port);
        if (!strncmp(p->name, name, sizeof p->name))
            return p;
    }
    return NULL;
}

/* What asks the kernel is carried out in order, whoever wants it; the ports' statistics do, too. */
int
port_settle(struct cni *c, struct node_switch *s)
{
    struct of_list all;
    return ask_list(&s->c, OFPMP_PORT_STATS, NULL, &all)
               ? node_refused(c, s, "asking for", "the ports' statistics")
               : 0;
}

int
port_find(struct cni *c, struct node_switch *s, const char *name, uint32_t *no)
{
    struct of_list ports;
    if (ask_ports(c, s, &ports))
        return -1;
    const struct of_port *p = port_named(&ports, name);
    if (p)
        *no = p->port_no;
    return p != NULL;
}

int
port_each(struct cni *c, struct node_switch *s, void (*fn)(void *ctx, const char *name), void *ctx)
{
    struct of_list ports;
    char name[OFP_MAX_PORT_NAME_LEN + 1];
    if (ask_ports(c, s, &ports))
        return -1;
    for (uint32_t i = 0; i < ports.n; i++) {
        snprintf(name, sizeof name, "%.*s", OFP_MAX_PORT_NAME_LEN,
                 OF_AT(&ports, i, struct of_port)->name);
        fn(ctx, name);
    }
    return 0;
}

int
port_local(struct cni *c, struct node_switch *s, char name[IFNAMSIZ])
{
    struct of_list ports;
    if (ask_ports(c, s, &ports))
        return -1;
    const struct of_port *p = ports_desc(&ports, OFPP_LOCAL);
    if (p)
        snprintf(name, IFNAMSIZ, "%.*s", IFNAMSIZ - 1, p->name);
    return p != NULL;
}

static enum status
send_ext(struct node_switch *s, uint32_t exp_type, const void *data, size_t n)
{
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, exp_type, {data, n}};
    return change_send(&s->c, OFPT_EXPERIMENTER, &m);
}

int
port_del(struct cni *c, struct node_switch *s, uint32_t no)
{
    uint8_t data[4];
    char text[16];
    of_set32(data, no);
    snprintf(text, sizeof text, "%" PRIu32, no);
    return send_ext(s, OFP_EXP_PORT_DEL, data, sizeof data)
               ? node_refused(c, s, "removing port", text)
               : 0;
}

/* ------------------------------------------------------------------------- totals */

static struct qos_request
total_of(uint32_t no, const struct direction *d, const struct cni_rate *rate)
{
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = OFP_QOS_ADD,
                            .port_no = no,
                            .class_id = QOS_CLASS_NONE};
    qos_put(&r.values, QOS_RATE, rate->rate);
    qos_put(&r.values, QOS_CEIL, rate->rate);
    if (rate->burst) {
        qos_put(&r.values, QOS_BURST, rate->burst);
        qos_put(&r.values, QOS_CBURST, rate->burst);
    }
    if (d->dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    return r;
}

/* One bundle: both totals and all groups, or nothing. */
static enum status
send_totals(struct node_switch *s, const struct cni_conf *f, const char *name, uint32_t no,
            const struct result *addresses)
{
    enum status st = change_begin(&s->c);
    for (int i = 0; !st && i < 2; i++) {
        struct qos_request r = total_of(no, &directions[i], direction_rate(f, &directions[i]));
        if (r.values.v[QOS_RATE])
            st = queues_send(&s->c, &r);
    }
    st = st ? st : rules_send(s, f, name, no, addresses);
    if (!st)
        st = change_commit(&s->c);
    change_drop(&s->c);
    return st;
}

int
port_add(struct cni *c, struct node_switch *s, const char *name, const struct result *addresses)
{
    uint8_t data[4 + IFNAMSIZ + 4] = {0};
    uint32_t no = 0;
    memcpy(data + 4, name, strnlen(name, IFNAMSIZ - 1));
    of_set32(data + 4 + IFNAMSIZ, c->conf.chained ? OFPORT_ADD_QUEUES_ONLY : 0);
    if (send_ext(s, OFP_EXP_PORT_ADD, data, sizeof data))
        return node_refused(c, s, "making a port of", name);
    if (!c->conf.in.rate && !c->conf.out.rate)
        return 0;
    int found = port_find(c, s, name, &no);
    if (found <= 0)
        return found ? -1
                     : cni_fail(c, CNI_SWITCH_REFUSED,
                                "port %s was removed at once by somebody else", name);
    return send_totals(s, &c->conf, name, no, addresses)
               ? node_refused(c, s, "limiting the rates of", name)
               : 0;
}

/* The port's root class in that direction, or NULL. */
static const struct qos_request *
root_of(const struct queue_entries *all, enum qos_direction dir)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_request *r = &all->v[i].config;
        if (r->object_type == OFP_QOS_CLASS && r->class_id == QOS_CLASS_NONE &&
            queues_direction(&all->v[i]) == dir)
            return r;
    }
    return NULL;
}

/* The kernel keeps rates in bytes a second. */
static int
check_rate(struct cni *c, const struct direction *d, const struct cni_rate *rate,
           const struct qos_request *root)
{
    uint64_t is =
        root ? root->values.v[QOS_CEIL] ? root->values.v[QOS_CEIL] : root->values.v[QOS_RATE] : 0;
    if (!rate->rate || is / 8 == rate->rate / 8)
        return 0;
    return cni_fail(c, CNI_DIFFERS, "%sRate is %" PRIu64 " bit/s and should be %" PRIu64 "%s",
                    d->name, is, rate->rate,
                    root ? "" : " (the port has no total in that direction)");
}

int
port_check_rates(struct cni *c, struct node_switch *s, uint32_t no)
{
    struct queue_entries all;
    struct queue_trees trees;
    if (!c->conf.in.rate && !c->conf.out.rate)
        return 0;
    if (queues_ask(&s->c, no, QOS_ALL_CLASSES, &all) || queues_ask_trees(&s->c, &trees))
        return node_refused(c, s, "asking for", "the port's queues");
    for (int i = 0; i < 2; i++) {
        const struct qos_tree *t = queues_find_tree(&trees, no, directions[i].dir);
        if (check_rate(c, &directions[i], direction_rate(&c->conf, &directions[i]),
                       root_of(&all, directions[i].dir)))
            return -1;
        if (t && t->foreign.differs)
            return cni_fail(c, CNI_DIFFERS,
                            "another program has changed the queues of the port (%s)",
                            directions[i].name);
    }
    return 0;
}
