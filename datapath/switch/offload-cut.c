/* SPDX-License-Identifier: Apache-2.0 */
#include <switch/offload-cut.h>

#include <daemon/log.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RINGS_MAX   64
#define OWN_ENTRIES 16 /* as few as there may be: none is made */

struct sw_cutter {
    struct sw *sw;
    struct offload *o;
    bool own;                    /* the programs do nothing else */
    bool refused;                /* the log has said why there is no pair */
    struct qos_link_cutter pair; /* of interfaces that cut */
    uint32_t port;               /* that the pair is named for */
    uint64_t uncut;              /* frames that were lost, as of the last look */
    unsigned n_ports;
    struct loop_timer *timer;
};

/* ------------------------------------------------------------------ the pair */

static void
leave_pair(struct sw_cutter *c)
{
    if (!c->pair.tx_ifindex)
        return;
    offload_cut_by(c->o, 0, 0);
    qos_link_cutter_del(c->sw->link, &c->pair);
    c->pair = (struct qos_link_cutter){0};
}

static void
make_pair(struct sw_cutter *c, const struct sw_port *p)
{
    char why[160];
    int err = qos_link_cutter_add(c->sw->link, p->link.ifindex, &c->pair, why, sizeof why);
    if (!err) {
        c->port = p->no;
        err = offload_cut_by(c->o, c->pair.tx_ifindex, c->pair.rx_ifindex);
        if (!err)
            return;
        snprintf(why, sizeof why, "%s", strerror(-err));
        leave_pair(c);
    }
    if (!c->refused)
        log_notice(PORT,
                   "super-packets that the kernel does not hand over whole (SCTP, BIG TCP, before "
                   "Linux 6.2 also UDP) are lost where no entry knows them: %s",
                   why);
    c->refused = true;
}

static bool
is_cut_here(const struct sw_cutter *c, const struct sw_port *p)
{
    return p->port && !p->files && offload_port_has(c->o, p->link.ifindex);
}

/* For a port that such packets are likely to come from: of programs on this machine, in containers or
 * virtual machines.  Others get the pair when the first one was lost. */
static void
find_port(struct sw_cutter *c, bool any)
{
    uint32_t no = 0;
    for (const struct sw_port *p; !c->pair.tx_ifindex && (p = sw_ports_next(c->sw, no)); no = p->no)
        if (is_cut_here(c, p) && (any || p->link.is_virtual)) {
            make_pair(c, p);
            return;
        }
}

/* ------------------------------------------------------------------ from time to time */

static void
in_front(void *ctx, int ifindex, const char *why, unsigned seconds)
{
    log_info(PORT, "interface %d: some super-packets are lost: %s", ifindex, why);
}

static void
look(void *ctx)
{
    struct sw_cutter *c = ctx;
    struct qos_link_info pair;
    uint64_t uncut = offload_counts(c->o).uncut;
    if (c->own)
        offload_check(c->o, loop_now(c->sw->loop), in_front, c);
    if (c->pair.tx_ifindex &&
        qos_link_get_by_index(c->sw->link, c->pair.tx_ifindex, &pair) == -ENODEV)
        leave_pair(c); /* somebody has removed it */
    find_port(c, uncut != c->uncut);
    c->uncut = uncut;
    if (c->n_ports)
        loop_timer_set(c->timer, loop_now(c->sw->loop) + NS_PER_S);
}

/* ------------------------------------------------------------------ ports */

/* The programs of a switch that handles no packets in the kernel are only for ports that such
 * super-packets are likely to come from. */
static void
attach_own(struct sw_cutter *c, const struct sw_port *p)
{
    int ring[RINGS_MAX];
    char why[256] = "";
    unsigned n = p->port && !p->files && p->no != OFPP_LOCAL && p->link.is_virtual
                     ? port_rx_sockets(p->port, ring, RINGS_MAX)
                     : 0;
    if (!n || n > RINGS_MAX || offload_port_has(c->o, p->link.ifindex))
        return;
    if (offload_port_add(c->o, p->link.ifindex, ring, n, why, sizeof why))
        log_info(PORT, "port %u (%s): some super-packets are lost, as none can be cut: %s", p->no,
                 p->name, why);
}

void
sw_cutter_port_add(struct sw *sw, struct sw_port *p)
{
    struct sw_cutter *c = sw->cutter;
    if (!c)
        return;
    if (c->own)
        attach_own(c, p);
    if (!is_cut_here(c, p))
        return;
    c->n_ports++;
    if (!c->pair.tx_ifindex && p->link.is_virtual)
        make_pair(c, p);
    loop_timer_set(c->timer, loop_now(sw->loop) + NS_PER_S);
}

void
sw_cutter_port_del(struct sw *sw, struct sw_port *p)
{
    struct sw_cutter *c = sw->cutter;
    if (!c || !is_cut_here(c, p))
        return;
    c->n_ports--;
    if (c->own)
        offload_port_del(c->o, p->link.ifindex, false);
    if (c->pair.tx_ifindex && c->port == p->no) {
        leave_pair(c); /* the name belongs to who has the port next */
        loop_timer_set(c->timer, 0);
    }
}

struct sw_cutter_counts
sw_cutter_counts(const struct sw *sw)
{
    struct offload_counts n = {0};
    if (sw->cutter)
        n = offload_counts(sw->cutter->o);
    return (struct sw_cutter_counts){.cut = n.cut, .lost = n.uncut};
}

/* ------------------------------------------------------------------ beginning and end */

int
sw_cutter_open(struct sw *sw, struct offload *o)
{
    struct sw_cutter *c = calloc(1, sizeof *c);
    struct offload_options opt = {.entries = OWN_ENTRIES, .uso = port_takes_uso()};
    char why[160] = "";
    if (!c || loop_timer_new(sw->loop, look, c, &c->timer)) {
        free(c);
        return -ENOMEM;
    }
    c->sw = sw;
    c->o = o;
    c->own = !o;
    if (c->own && offload_open(&opt, &c->o, why, sizeof why)) {
        log_info(SWITCH, "super-packets that no packet socket takes are lost: %s", why);
        loop_timer_free(c->timer);
        free(c);
        return 0;
    }
    sw->cutter = c;
    return 0;
}

void
sw_cutter_close(struct sw *sw)
{
    struct sw_cutter *c = sw->cutter;
    sw->cutter = NULL;
    if (!c)
        return;
    leave_pair(c);
    if (c->own)
        offload_close(c->o);
    loop_timer_free(c->timer);
    free(c);
}
