/* SPDX-License-Identifier: Apache-2.0 */
#include <megaflow/cut.h>
#include <megaflow/wire.h>
#include <offload/offload.h>

#include <daemon/log.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_ENTRIES 16 /* as few as there may be: none is made */

struct sw_cutter {
    struct sw *sw;
    struct offload *o;           /* NULL: there are no programs */
    bool own;                    /* the programs do nothing else */
    char why[SW_UNCUT_LEN];      /* there are no programs, or no pair; "": nobody has tried */
    struct qos_link_cutter pair; /* of interfaces that cut */
    uint32_t port;               /* that the pair is named for */
    uint64_t unpaired;           /* frames that it would have cut, as of the last look */
    struct loop_timer *timer;    /* begins the task */
    struct task task;
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
    char why[80] = "";
    int err = qos_link_cutter_add(c->sw->link, p->link.ifindex, &c->pair, why, sizeof why);
    if (!err) {
        c->port = p->no;
        err = offload_cut_by(c->o, c->pair.tx_ifindex, c->pair.rx_ifindex);
        if (!err) {
            *c->why = '\0';
            return;
        }
        snprintf(why, sizeof why, "%s", strerror(-err));
        leave_pair(c);
    }
    snprintf(c->why, sizeof c->why, "the interfaces ofcut%d and ofseg%d can't be made: %s",
             p->link.ifindex, p->link.ifindex, why);
}

static bool
is_cut_here(const struct sw_cutter *c, const struct sw_port *p)
{
    return c->o && p->port && !p->files && offload_port_has(c->o, p->link.ifindex);
}

/* For a port that such packets are likely to come from: of programs on this machine, in containers or virtual
 * machines.  any: for another one, as there was one.  -> whether packets are cut at any port at all */
static bool
find_port(struct sw_cutter *c, bool any)
{
    bool some = false;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(c->sw, no)); no = p->no) {
        if (!is_cut_here(c, p))
            continue;
        some = true;
        if (c->pair.tx_ifindex)
            break;
        if (any || p->link.is_virtual) {
            make_pair(c, p);
            break;
        }
    }
    return some;
}

/* ------------------------------------------------------------------ what is lost */

/* Do sockets send what enters by the port, on this machine or in a guest?  What comes from a wire the kernel joins
 * to super-packets of TCP, up to 64 KB, unless somebody has set it otherwise. */
void
sw_cutter_learn_senders(struct sw *sw, struct sw_port *p)
{
    static const char *const kinds[] = {"veth", "tun", "netkit", "macvlan", "bridge"};
    struct qos_link_info l = p->link;
    p->has_senders = false;
    while (!strcmp(l.kind, "vlan") && l.linked && !qos_link_get_by_index(sw->link, l.linked, &l))
        continue;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        p->has_senders |= !strcmp(l.kind, kinds[i]);
}

/* NULL: nothing is lost. */
static const char *
why_uncut(const struct sw_cutter *c, const struct sw_port *p)
{
    if (!c->o)
        return c->why;
    if (*p->uncut)
        return p->uncut;
    if (!is_cut_here(c, p)) /* not yet */
        return NULL;
    const char *front = offload_port_waits(c->o, p->link.ifindex);
    return front ? front : c->pair.tx_ifindex || !*c->why ? NULL : c->why;
}

/* libpcap has neither a super-packet's size of segment nor what a checksum lacks. */
static bool
is_bare(const struct sw_port *p)
{
    int fd;
    return !port_rx_sockets(p->port, &fd, 1);
}

bool
sw_cutter_loss(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    const struct sw_cutter *c = sw->cutter;
    if (!c || !p->port || p->files || p->queues_only || p->no == OFPP_LOCAL)
        return false;
    if (is_bare(p)) {
        snprintf(out, n,
                 "super-packets%s: libpcap hands them over as if they were whole (--io=pcap)",
                 p->has_senders ? " and unfinished checksums" : "");
        return true;
    }
    const char *why = why_uncut(c, p);
    if (!why || !p->has_senders)
        return false;
    snprintf(out, n, "super-packets of SCTP%s and of TCP above 64 KB: %s",
             port_takes_uso() ? "" : ", of UDP", why);
    return true;
}

/* What those can do who send by the port, or what can be done at the port. */
static void
put_remedy(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    struct qos_link_info peer;
    bool veth = !strcmp(p->link.kind, "veth");
    const char *sender = veth ? "PEER" : "INTERFACE";
    if (veth && p->link.linked && !qos_link_get_by_index(sw->link, p->link.linked, &peer))
        sender = peer.name;
    if (!p->has_senders)
        snprintf(out, n, "`ethtool -K %s gro off lro off`", p->name);
    else if (is_bare(p))
        snprintf(out, n, "`ethtool -K %s tx off gso off` where they are sent", sender);
    else
        snprintf(
            out, n,
            "`ethtool -K %s tx-sctp-segmentation off%s` and `ip link set %s gso_max_size 65536` "
            "where they are sent",
            sender, port_takes_uso() ? "" : " tx-udp-segmentation off", sender);
}

static void
say_loss(const struct sw *sw, struct sw_port *p)
{
    char what[SW_LOSS_LEN], remedy[256];
    if (p->loss_said || !sw_cutter_loss(sw, p, what, sizeof what))
        return;
    p->loss_said = true;
    put_remedy(sw, p, remedy, sizeof remedy);
    log_warning(PORT, "port %u (%s): it can't carry %s; remedy: %s", (unsigned)p->no, p->name, what,
                remedy);
}

static void
say_losses(const struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        say_loss(sw, p);
}

/* ------------------------------------------------------------------ from time to time */

static void
in_front(void *ctx, int ifindex, const char *why, unsigned seconds)
{
    log_info(PORT, "interface %d: some super-packets are lost: %s", ifindex, why);
}

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct sw_cutter *c = ctx;
    struct qos_link_info pair;
    struct offload_counts n = {0};
    if (c->o)
        n = offload_counts(c->o);
    if (c->own)
        offload_check(c->o, loop_now(c->sw->loop), in_front, c);
    if (c->pair.tx_ifindex &&
        qos_link_get_by_index(c->sw->link, c->pair.tx_ifindex, &pair) == -ENODEV)
        leave_pair(c); /* somebody has removed it */
    bool some = find_port(c, n.uncut + n.unpaired != c->unpaired);
    c->unpaired = n.uncut + n.unpaired;
    say_losses(c->sw);
    if (some)
        loop_timer_set(c->timer, loop_now(c->sw->loop) + NS_PER_S);
    return TASK_OVER;
}

static void
look(void *ctx)
{
    static const struct task_kind kind = {.blocks = true, .run = run};
    struct sw_cutter *c = ctx;
    task_queue(c->sw->tasks, &c->task, &kind, c);
}

/* ------------------------------------------------------------------ ports */

bool
sw_cutter_attach(struct sw *sw, struct sw_port *p)
{
    const struct sw_cutter *c = sw->cutter;
    int ring[PORT_RINGS_MAX];
    unsigned n = c && c->o ? port_rx_sockets(p->port, ring, PORT_RINGS_MAX) : 0;
    *p->uncut = '\0';
    if (n > PORT_RINGS_MAX)
        snprintf(p->uncut, sizeof p->uncut, "it has more than %d receive rings", PORT_RINGS_MAX);
    if (!n || n > PORT_RINGS_MAX)
        return false;
    struct offload_wire wire;
    const struct offload_port_config config = {sw_wire_of(sw, p, &wire), port_inside(p->port)};
    return !offload_port_add(c->o, p->link.ifindex, &config, ring, n, p->uncut, sizeof p->uncut);
}

void
sw_cutter_port_add(struct sw *sw, struct sw_port *p)
{
    struct sw_cutter *c = sw->cutter;
    if (!c || !p->port || p->files || p->queues_only || p->no == OFPP_LOCAL)
        return;
    if (c->own && p->link.is_virtual && !is_cut_here(c, p))
        sw_cutter_attach(sw, p);
    if (is_cut_here(c, p) && !c->pair.tx_ifindex && p->link.is_virtual)
        make_pair(c, p);
    loop_timer_set(c->timer, 0); /* says what is lost: the next port may get the pair */
}

void
sw_cutter_port_del(struct sw *sw, struct sw_port *p)
{
    struct sw_cutter *c = sw->cutter;
    if (!c || !is_cut_here(c, p))
        return;
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
    if (sw->cutter && sw->cutter->o)
        n = offload_counts(sw->cutter->o);
    return (struct sw_cutter_counts){
        .cut = n.cut, .lost = n.uncut, .around = n.around, .back = n.again, .whole = n.whole};
}

/* ------------------------------------------------------------------ beginning and end */

int
sw_cutter_open(struct sw *sw, struct offload *o, const char *why)
{
    struct sw_cutter *c = calloc(1, sizeof *c);
    struct offload_options opt = {.entries = OWN_ENTRIES, .uso = port_takes_uso()};
    if (!c || loop_timer_new(sw->loop, look, c, &c->timer)) {
        free(c);
        return -ENOMEM;
    }
    c->sw = sw;
    c->o = o;
    c->own = !o && !why;
    if (why)
        snprintf(c->why, sizeof c->why, "%s", why);
    if (c->own && offload_open(&opt, &c->o, c->why, sizeof c->why))
        c->own = false;
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
