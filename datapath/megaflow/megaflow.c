/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's part: beginning, end, ports, and what is done from time to time. */
#include "state.h"

#include <megaflow/cut.h>
#include <megaflow/wire.h>

#include <daemon/log.h>
#include <daemon/machine-memory.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16 /* ports that are attached and detached without delay */

static const char *const names[] = {
#define NAME(name, text) [SW_OFFLOAD_##name] = #name,
    SW_OFFLOAD_REASONS(NAME)};
static const char *const texts[] = {
#define TEXT(name, text) [SW_OFFLOAD_##name] = text,
    SW_OFFLOAD_REASONS(TEXT)};

const char *
sw_offload_reason_name(unsigned why)
{
    return why < OFFLOAD_REASON_N ? offload_reason_name[why] : names[why];
}

const char *
sw_offload_reason_text(unsigned why)
{
    return why < OFFLOAD_REASON_N ? offload_reason_text[why] : texts[why];
}

uint32_t
sw_offload_entries_default(uint64_t memory)
{
    return offload_entries_default(memory, machine_processors());
}

uint64_t
sw_offload_memory(const struct sw *sw)
{
    if (!sw->offload)
        return 0;
    uint64_t probes = sw->opt.no_latency ? 0 : probes_bytes(probes_slots(machine_memory()));
    return offload_memory_bytes(sw->opt.offload.entries, machine_processors()) + probes;
}

struct probes
sw_offload_probes(const struct sw *sw)
{
    return sw->offload ? offload_probes(sw->offload->o) : (struct probes){0};
}

/* ------------------------------------------------------------------ meters */

/* The workers' buckets are the kernel's, so that a meter bounds both together. */
static int
take_buckets(void *ctx, const struct meter *mt, uint64_t *full_at[METER_SHARED_BANDS])
{
    struct sw_offload *f = ctx;
    int place = offload_meter_new(f->o);
    struct offload_meter *m = place < 0 ? NULL : offload_meter(f->o, place);
    if (!m)
        return -1;
    *m = (struct offload_meter){.packets = (mt->flags & OFPMF_PKTPS) != 0, .n_bands = mt->n_bands};
    for (uint32_t i = 0; i < mt->n_bands; i++) {
        m->band[i].room = mt->bands[i].room;
        m->band[i].rate = mt->bands[i].rate;
        full_at[i] = (uint64_t *)&m->band[i].full_at;
    }
    return place;
}

static void
leave_buckets(void *ctx, int place)
{
    struct sw_offload *f = ctx;
    offload_meter_free(f->o, place);
}

const struct meter_sharing *
sw_offload_meters(const struct sw *sw)
{
    return sw->offload ? &sw->offload->sharing : NULL;
}

static int
place_of(void *ctx, const struct meter *m)
{
    return meters_kernel_place(m);
}

/* ------------------------------------------------------------------ ports */

bool
offload_is_off(const struct sw_offload *f, const char *name)
{
    for (unsigned i = 0; i < f->n_off; i++)
        if (!strcmp(f->off[i], name))
            return true;
    return false;
}

bool
sw_offload_is_for(const struct sw *sw, const char *name)
{
    return sw->offload && !offload_is_off(sw->offload, name);
}

static void
name_filter(void *ctx, const char *what)
{
    const struct sw_port *p = ctx;
    log_notice(
        PORT,
        "port %u (%s): somebody's filter at its tc ingress (%s) may see no packets that the kernel "
        "handles; --offload=off leaves them to it",
        p->no, p->name, what);
}

/* The programs are at every port, because they also cut (cut.h). */
static bool
wants_programs(const struct sw_offload *f, const struct sw_port *p)
{
    return p->port && !p->files && !p->queues_only && p->no != OFPP_LOCAL &&
           !offload_port_has(f->o, p->link.ifindex);
}

static bool
is_for_kernel(const struct sw_offload *f, const struct sw_port *p)
{
    return !offload_is_off(f, p->name);
}

/* Programs where packets come out of the port's queues for what enters.  Without them the kernel puts none in:
 * user space would lose super-packets there that no ring takes. */
static void
attach_behind(struct sw_offload *f, const struct sw_port *p)
{
    const struct port_shaper *s = port_shaper(p->port);
    int ring[PORT_RINGS_MAX];
    char why[256];
    unsigned n = s && port_in_kernel(p->port) ? port_rx_sockets(s->from, ring, PORT_RINGS_MAX) : 0;
    if (!n || n > PORT_RINGS_MAX)
        return;
    int ifindex = port_ifindex(s->from);
    struct offload_wire wire;
    const struct offload_port_config c = {sw_wire_of(f->sw, p, &wire), port_inside(p->port)};
    if (offload_port_add(f->o, ifindex, &c, ring, n, why, sizeof why))
        log_notice(
            PORT,
            "port %u (%s): packets in its queues for what enters are not handled in the kernel: %s",
            p->no, p->name, why);
    else
        port_set_done(s->from, offload_port_done(f->o, ifindex));
}

/* Nothing must find the port's entries any more. */
static void
detach_behind(struct sw_offload *f, const struct sw_port *p)
{
    const struct port_shaper *s = port_shaper(p->port);
    if (!s || !port_in_kernel(s->from))
        return;
    port_set_done(s->from, NULL);
    rcu_wait(); /* workers add to what goes away */
    offload_port_del(f->o, port_ifindex(s->from), false);
}

static void
handle(struct sw_offload *f, struct sw_port *p)
{
    offload_host_port(f, p);
    offload_port_others(f->o, p->link.ifindex, name_filter, p);
    port_set_done(p->port, offload_port_done(f->o, p->link.ifindex));
    attach_behind(f, p);
}

static void
attach(struct sw *sw, struct sw_port *p)
{
    struct sw_offload *f = sw->offload;
    bool attached = sw_cutter_attach(sw, p);
    if (!attached) {
        offload_grow_now(f, p);
        port_unblock(p->port);
    }
    if (attached) {
        if (is_for_kernel(f, p))
            handle(f, p);
        f->n_ports++;
        loop_timer_set(f->tick, 0);
        sw_wire_follow(sw, p, true);
    } else if (*p->uncut && is_for_kernel(f, p)) {
        log_notice(PORT, "port %u (%s): its packets are not handled in the kernel: %s", p->no,
                   p->name, p->uncut);
    }
    sw_cutter_port_add(sw, p);
}

/* In each attach and detach of tcx the kernel waits for its RCU readers, 12 ms, with all
 * interfaces locked.  So of many ports one is attached a turn, and then other work gets as much
 * time as that took. */
static enum task_progress
attach_one(void *ctx, uint64_t deadline)
{
    struct sw_offload *f = ctx;
    uint64_t begun = loop_clock(), end;
    uint32_t no = 0;
    struct sw_port *p;
    while ((p = sw_ports_next(f->sw, no)) && !p->offload_waits)
        no = p->no;
    if (f->closing || (!p && !offload_take_off(f->o)))
        return TASK_OVER;
    if (p && wants_programs(f, p))
        attach(f->sw, p);
    if (p)
        p->offload_waits = false;
    end = loop_clock();
    loop_timer_set(f->attach, end + (end - begun));
    return TASK_OVER;
}

static void
go_on_attaching(void *ctx)
{
    static const struct task_kind kind = {.blocks = true, .run = attach_one};
    struct sw_offload *f = ctx;
    task_queue(f->sw->tasks, &f->attach_task, &kind, f);
}

void
sw_offload_port_add(struct sw *sw, struct sw_port *p)
{
    struct sw_offload *f = sw->offload;
    sw_cutter_learn_senders(sw, p);
    if (!f)
        sw_cutter_port_add(sw, p);
    if (!f || !wants_programs(f, p))
        return;
    p->offload_waits = f->n_ports >= AT_ONCE;
    if (p->offload_waits)
        loop_timer_set(f->attach, loop_now(sw->loop) + 1);
    else
        attach(sw, p);
}

/* The switch ends, and the programs go on with the port's wire.  Only the workers have done with it. */
static void
leave_wired(struct sw_port *p)
{
    const struct port_shaper *s = port_shaper(p->port);
    port_grow_settle(p->port);
    port_set_done(p->port, NULL);
    if (s)
        port_set_done(s->from, NULL);
    rcu_wait();
}

static void
take_off(struct sw *sw, struct sw_port *p)
{
    struct sw_offload *f = sw->offload;
    if (f->closing && sw_wire_has(sw, p->name)) {
        leave_wired(p);
        return;
    }
    sw_wire_follow(sw, p, false);
    sw_offload_forget_port(sw, p->no);
    sw_offload_settle(sw);
    if (!offload_port_has(f->o, p->link.ifindex))
        return;
    detach_behind(f, p);
    port_grow_settle(p->port);
    port_set_done(p->port, NULL);
    rcu_wait();                        /* workers add to what goes away */
    bool later = f->n_ports > AT_ONCE; /* at the switch's end: the end of the process does it */
    offload_port_del(f->o, p->link.ifindex, later);
    if (later)
        loop_timer_set(f->attach, loop_now(sw->loop) + 1);
    f->n_ports--;
}

void
sw_offload_port_del(struct sw *sw, struct sw_port *p)
{
    p->offload_waits = false;
    sw_cutter_port_del(sw, p);
    if (sw->offload && p->port)
        take_off(sw, p);
}

void
sw_offload_shaper_del(struct sw *sw, struct sw_port *p)
{
    if (!sw->offload || sw->offload->closing)
        return;
    sw_offload_forget_port(sw, p->no);
    sw_offload_settle(sw);
    detach_behind(sw->offload, p);
}

void
sw_offload_shaper_add(struct sw *sw, struct sw_port *p)
{
    if (!sw->offload || sw->offload->closing)
        return;
    attach_behind(sw->offload, p);
    sw_offload_forget_port(sw, p->no);
    sw_offload_settle(sw);
}

/* The port's packets are to be handled in the kernel, or no longer. */
static void
follow_off(struct sw *sw, struct sw_port *p)
{
    const struct sw_offload *f = sw->offload;
    if (!f || !p->port || port_in_kernel(p->port) == is_for_kernel(f, p))
        return;
    take_off(sw, p);
    sw_offload_port_add(sw, p);
}

static void
each_port(struct sw *sw, void (*fn)(struct sw *sw, struct sw_port *p))
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        fn(sw, p);
}

int
sw_offload_set_off(struct sw *sw, const char (*name)[IFNAMSIZ], unsigned n)
{
    struct sw_offload *f = sw->offload;
    char(*copy)[IFNAMSIZ] = f ? malloc((n + 1) * sizeof *copy) : NULL;
    if (!copy)
        return f ? -ENOMEM : 0;
    for (unsigned i = 0; i < n; i++)
        memcpy(copy[i], name[i], sizeof copy[i]);
    free(f->off);
    f->off = copy;
    f->n_off = n;
    each_port(sw, follow_off);
    return 0;
}

/* ------------------------------------------------------------------ from time to time */

static void
look_after(struct sw *sw, struct sw_port *p)
{
    struct sw_offload *f = sw->offload;
    if (!p->port || !offload_port_has(f->o, p->link.ifindex))
        return;
    port_sync_done(p->port, offload_port_passed(f->o, p->link.ifindex));
    const struct port_shaper *s = port_shaper(p->port);
    if (s && port_in_kernel(s->from))
        port_sync_done(s->from, offload_port_passed(f->o, port_ifindex(s->from)));
}

static void
lost_in_front(void *ctx, int ifindex, const char *why, unsigned seconds)
{
    const struct sw_offload *f = ctx;
    const struct sw_port *p = sw_ports_by_ifindex(f->sw, ifindex);
    char then[64] = "the switch's program comes first now";
    if (seconds)
        snprintf(then, sizeof then, "workers handle the port's packets for %u s", seconds);
    if (p)
        log_warning(PORT, "port %u (%s): frames were lost: %s; %s", p->no, p->name, why, then);
}

/* Once a second, and ten times while there are entries.  Without ports there is nothing to do. */
static void
tick(void *ctx)
{
    struct sw_offload *f = ctx;
    uint64_t now = loop_now(f->sw->loop);
    bool often = f->n_live || f->sw->opt.offload.linger_ms;
    offload_alive(f->o, loop_clock());
    offload_judge(f);
    offload_grow(f);
    if (now - f->looked_after >= NS_PER_S) {
        f->looked_after = now;
        f->counts.mended += offload_check(f->o, now, lost_in_front, f);
        each_port(f->sw, look_after);
        offload_host_look(f);
        offload_age(f, now);
    }
    if (f->n_ports)
        loop_timer_set(f->tick, now + (often ? OFFLOAD_TICK_NS : NS_PER_S));
}

static void
grow(void *ctx)
{
    offload_grow(ctx);
}

static void
settle(void *ctx)
{
    struct sw_offload *f = ctx;
    offload_settle(f);
}

/* ------------------------------------------------------------------ beginning and end */

static struct sw_offload *
make(struct sw *sw)
{
    struct sw_offload *f = calloc(1, sizeof *f);
    uint32_t n = sw->opt.offload.entries;
    if (!f)
        return NULL;
    f->sw = sw;
    f->most = n;
    f->sharing = (struct meter_sharing){.take = take_buckets, .leave = leave_buckets, .ctx = f};
    f->places = (struct offload_meters){.place = place_of, .ctx = f};
    f->live = calloc(n, sizeof *f->live);
    f->gone = calloc(n, sizeof *f->gone);
    if (f->live && f->gone && !loop_timer_new(sw->loop, tick, f, &f->tick) &&
        !loop_timer_new(sw->loop, settle, f, &f->soon) &&
        !loop_timer_new(sw->loop, go_on_attaching, f, &f->attach) &&
        !loop_timer_new(sw->loop, grow, f, &f->grow))
        return f;
    sw->offload = f;
    sw_offload_free(sw);
    return NULL;
}

int
sw_offload_open(struct sw *sw)
{
    char *why = sw->offload_why;
    struct offload_options opt = {.entries = sw->opt.offload.entries,
                                  .linger_ns = sw->opt.offload.linger_ms * UINT64_C(1000000),
                                  .uso = port_takes_uso(),
                                  .rtt_slots =
                                      sw->opt.no_latency ? 0 : probes_slots(machine_memory())};
    *why = '\0';
    if (sw->opt.offload.mode == SW_OFFLOAD_OFF) {
        snprintf(why, OFFLOAD_WHY_LEN, "--offload=off");
        log_info(SWITCH, "packets are not handled in the kernel (--offload=off)");
        return sw_cutter_open(sw, NULL, NULL);
    }
    struct sw_offload *f = make(sw);
    if (!f)
        return -ENOMEM;
    int err = offload_open(&opt, &f->o, why, OFFLOAD_WHY_LEN);
    if (!err)
        err = offload_host_open(f);
    sw->offload = f;
    if (err && !*why)
        snprintf(why, OFFLOAD_WHY_LEN, "%s", strerror(-err));
    if (err == -EOPNOTSUPP)
        log_info(SWITCH, "packets are not handled in the kernel: %s", why);
    else if (err)
        log_notice(SWITCH, "packets are not handled in the kernel: %s", why);
    if (err) {
        sw_wires_refused(sw, why);
        sw_offload_free(sw);
        return sw_cutter_open(sw, NULL, why);
    }
    rcu_wait_also(settle, f);
    log_info(SWITCH,
             "the kernel handles packets of at most %u kinds at once, in %u MB of memory "
             "(--offload=auto)",
             (unsigned)opt.entries, (unsigned)(sw_offload_memory(sw) >> 20));
    return sw_cutter_open(sw, f->o, NULL);
}

void
sw_offload_stop(struct sw *sw)
{
    struct sw_offload *f = sw->offload;
    if (!f)
        each_port(sw, sw_cutter_port_del);
    if (!f || f->closing)
        return;
    bool complete = sw->dp.tables && sw->dp.groups && sw->dp.meters; /* else the start has failed */
    if (sw->opt.n_wires && complete) {
        sw_wires_take_over(sw);
        sw_offload_settle(sw);
        offload_leave_all(f);
    }
    f->closing = true;
    if (complete)
        sw_offload_settle(sw);
    each_port(sw, sw_offload_port_del);
    dp_set_kinds(&sw->dp, false, NULL);
    rcu_wait_also(NULL, NULL);
}

void
sw_offload_free(struct sw *sw)
{
    struct sw_offload *f = sw->offload;
    sw_cutter_close(sw);
    sw->offload = NULL;
    if (!f)
        return;
    offload_host_close(f);
    offload_close(f->o);
    if (f->tick)
        loop_timer_free(f->tick);
    if (f->soon)
        loop_timer_free(f->soon);
    if (f->attach)
        loop_timer_free(f->attach);
    if (f->grow)
        loop_timer_free(f->grow);
    offload_quick_free(f);
    free(f->live);
    free(f->gone);
    free(f->off);
    free(f);
}
