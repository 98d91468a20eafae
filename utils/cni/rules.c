/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"
#include "node.h"

#include <core/change.h>
#include <core/say.h>
#include <queues/map.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define ALL_PPM 1000000u

/* ------------------------------------------------------------------------- flows */

/* What the container sends: by its port, from its address, so that nobody else gets into its groups.  What it
 * receives: by its address. */
static int
add_rules(struct of_parse *p, struct qos_map *m, const struct cni_group *g, uint32_t no,
          const struct address *a)
{
    char text[sizeof g->selects + 160], address[INET6_ADDRSTRLEN];
    inet_ntop(a->family, a->bytes, address, sizeof address);
    snprintf(text, sizeof text, "queue=%" PRIu32 ",in_port=%" PRIu32 ",src=%s%s", g->queue, no,
             address, g->selects);
    int err = qos_map_rule(p, m, text, false);
    snprintf(text, sizeof text, "queue=%" PRIu32 ",dst=%s%s", g->queue, address, g->selects);
    return err ? err : qos_map_rule(p, m, text, false);
}

/* The flows that the configuration wants.  Without a flow for other packets, which the table's owner has; the groups'
 * go on as the switch's own map says, to NORMAL if it has none. */
static enum status
make_map(struct ctx *c, const struct cni_conf *f, const char *name, uint32_t no,
         const struct result *addresses, struct qos_map *m)
{
    struct of_list all;
    int err = 0;
    qos_map_init(m, name);
    enum status st = map_flows(c, NULL, &all);
    if (st)
        return st;
    m->then = qos_map_present(&c->parse, m, &all);
    if (!m->then)
        m->then = "normal";
    for (unsigned i = 0; !err && i < f->n_groups; i++)
        for (unsigned k = 0; !err && k < addresses->n_ips; k++)
            err = add_rules(&c->parse, m, &f->groups[i], no, &addresses->ips[k].address);
    err = err ? err : qos_map_way(&c->parse, m, &all);
    return err ? say_parse(c, err) : DPCTL_OK;
}

/* What makes the switch's flows of the set the wanted ones.  A chained network has none. */
static enum status
differences(struct ctx *c, const struct cni_conf *f, const char *name, uint32_t no,
            const struct result *addresses, struct qos_map_changes *out)
{
    struct qos_map m;
    struct of_list there;
    *out = (struct qos_map_changes){0};
    if (f->chained)
        return DPCTL_OK;
    enum status st = make_map(c, f, name, no, addresses, &m);
    st = st ? st : map_flows(c, m.set, &there);
    int err = st ? 0 : qos_map_diff(&c->parse, &m, false, &there, &there, out);
    return err ? say_parse(c, err) : st;
}

/* ------------------------------------------------------------------------- classes */

static struct qos_request
class_of(const struct cni_group *g, uint32_t no, enum qos_direction dir)
{
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = OFP_QOS_ADD,
                            .port_no = no,
                            .class_id = g->queue};
    uint64_t name[QOS_NAME_SLOTS];
    qos_name_put(name, g->name, strlen(g->name));
    qos_put(&r.values, QOS_RATE_SHARE, g->ppm);
    qos_put(&r.values, QOS_CEIL_SHARE, ALL_PPM);
    qos_put_slots(&r.values, QOS_NAME, name, QOS_NAME_SLOTS);
    if (dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    return r;
}

enum status
rules_send(struct node_switch *s, const struct cni_conf *f, const char *name, uint32_t no,
           const struct result *addresses)
{
    struct qos_map_changes changes;
    if (!f->n_groups)
        return DPCTL_OK;
    enum status st = differences(&s->c, f, name, no, addresses, &changes);
    for (int i = 0; !st && i < DIRECTIONS; i++)
        for (unsigned k = 0; !st && direction_rate(f, &directions[i])->rate && k < f->n_groups;
             k++) {
            struct qos_request r = class_of(&f->groups[k], no, directions[i].dir);
            st = queues_send(&s->c, &r);
        }
    for (size_t i = 0; !st && i < changes.n; i++)
        st = change_send(&s->c, OFPT_FLOW_MOD, &changes.v[i]);
    return st;
}

/* ------------------------------------------------------------------------- CHECK, DEL */

static int
check_class(struct cni *c, const struct queue_entries *all, const struct cni_group *g,
            const struct direction *d)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_request *r = &all->v[i].config;
        if (r->object_type != OFP_QOS_CLASS || r->class_id != g->queue ||
            queues_direction(&all->v[i]) != d->dir)
            continue;
        uint64_t share = r->values.v[QOS_RATE_SHARE];
        return share == g->ppm
                   ? 0
                   : cni_fail(c, CNI_DIFFERS,
                              "group %s (%s) has %.2f %% of the total and should have %.2f %%",
                              g->name, d->name, (double)share / 1e4, g->ppm / 1e4);
    }
    return cni_fail(c, CNI_DIFFERS, "the port has no group %s (%s, queue %" PRIu32 ")", g->name,
                    d->name, g->queue);
}

int
rules_check(struct cni *c, struct node_switch *s, const char *name, uint32_t no,
            const struct result *addresses)
{
    struct queue_entries all;
    struct qos_map_changes changes;
    const struct cni_conf *f = &c->conf;
    if (!f->n_groups)
        return 0;
    if (queues_ask(&s->c, no, QOS_ALL_CLASSES, &all))
        return node_refused(c, s, "asking for", "the port's groups");
    for (int i = 0; i < DIRECTIONS; i++)
        for (unsigned k = 0; direction_rate(f, &directions[i])->rate && k < f->n_groups; k++)
            if (check_class(c, &all, &f->groups[k], &directions[i]))
                return -1;
    if (differences(&s->c, f, name, no, addresses, &changes))
        return node_refused(c, s, "asking for", "the groups' rules");
    return changes.n
               ? cni_fail(
                     c, CNI_DIFFERS,
                     "%zu of the groups' flows are missing, too many or other than they should be: dpctl "
                     "qos-map show set=%s",
                     changes.n, name)
               : 0;
}

int
rules_del(struct cni *c, struct node_switch *s, const char *name)
{
    struct of_list flows;
    of_arena_reset(&s->c.arena);
    enum status st = map_flows(&s->c, name, &flows);
    if (st || !flows.n)
        return st ? node_refused(c, s, "asking for the rules of", name) : 0;
    st = change_begin(&s->c);
    for (uint32_t i = 0; !st && i < flows.n; i++) {
        struct of_flow_mod fm = qos_map_deletion(OF_AT(&flows, i, struct of_flow_stats));
        st = change_send(&s->c, OFPT_FLOW_MOD, &fm);
    }
    st = st ? st : change_commit(&s->c);
    change_drop(&s->c);
    return st ? node_refused(c, s, "removing the rules of", name) : 0;
}
