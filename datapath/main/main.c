/* SPDX-License-Identifier: Apache-2.0 */
/* ofdatapath: the switch's daemon. */
#include "addresses.h"
#include "assembly.h"
#include "queues.h"
#include "reload.h"
#include "restart.h"
#include "rights.h"
#include "watchdog.h"

#include <oflib/plural.h>

#include <ports/ports.h>
#include <punt/fail.h>

#include <daemon/log.h>
#include <stream/stream.h>

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define QUEUES_FIRST_MS 2000

struct process {
    struct restart restart;
    struct configuration config;
    struct saved saved;
    struct daemon daemon;
    struct sw *sw;
    struct watchdog *watchdog;
    int signals;
    struct loop_io *on_signals;
    struct task reload;
    bool failed; /* it ends, and says so by its exit status */
};

static enum task_progress
reload(void *ctx, uint64_t deadline)
{
    struct process *p = ctx;
    char why[1024];
    configuration_reload(&p->config, why, sizeof why);
    daemon_reloaded(&p->daemon);
    return TASK_OVER;
}

static void
on_signal(void *ctx, uint32_t events)
{
    static const struct task_kind kind = {
        .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = reload};
    struct process *p = ctx;
    if (daemon_is_over(&p->daemon, p->signals))
        loop_stop(p->sw->loop);
    if (p->daemon.reload)
        task_queue(p->sw->tasks, &p->reload, &kind, p);
}

__attribute__((noreturn)) static void
give_up(struct sw *sw, const char *why)
{
    sw_free(sw);
    daemon_die("%s", why);
}

/* Those with a number of their own first, so that the others get what is left. */
static void
add_ports(struct sw *sw, const struct wanted *w, struct restart *restart)
{
    char why[256];
    port_rings_limit_set(main_options.ring_memory, (unsigned)w->n_ports);
    port_rings_ahead((unsigned)w->n_ports);
    restart_add_ports(restart, sw);
    for (size_t i = 0; i < w->n_ports && restart->takes_over; i++)
        if (w->ports[i].vlans && apply_vlans(sw, &w->ports[i], why, sizeof why))
            give_up(sw, why);
    for (int others = 0; others < 2 && !restart->takes_over; others++)
        for (size_t i = 0; i < w->n_ports; i++)
            if (w->ports[i].numbered != others &&
                apply_port(sw, &main_options, &w->ports[i], why, sizeof why))
                give_up(sw, why);
    port_rings_ahead(0);
    const char *local = sw->opt.local_port;
    if (!local || !apply_interface(sw, local, OFPP_LOCAL, false, why, sizeof why))
        return;
    if (!restart->takes_over)
        give_up(sw, why);
    log_error(PORT, "the local port (%s) is lost: %s", local, why);
}

/* Without an id of its own the switch goes by its first interface's address (7.3.1: the lower 48
 * bits).  A tap's address is another one each time. */
static void
choose_dpid(struct sw *sw)
{
    const struct sw_port *p = sw_ports_next(sw, 0);
    uint64_t id = 0;
    if (sw->opt.datapath_id)
        return;
    for (int i = 0; p && p->no != OFPP_LOCAL && i < 6; i++)
        id = id << 8 | p->link.mac[i];
    if (!id)
        log_warning(SWITCH, "no interface to take a datapath id from: it is 1 (give one with -d)");
    sw->opt.datapath_id = id ? id : 1;
}

static void
seed_groups(struct sw *sw)
{
    uint64_t id = sw->opt.datapath_id * UINT64_C(0x9e3779b97f4a7c15);
    store_relaxed(&sw->dp.select_seed, (uint32_t)(id >> 32));
}

/* A process that takes over goes on without what it can't have: its packets and other addresses need it. */
static void
add_target(const struct process *p, const char *text)
{
    char why[256];
    if (!apply_connection(p->sw, &main_options, text, why, sizeof why))
        return;
    if (!p->restart.takes_over)
        give_up(p->sw, why);
    log_error(CONN, "%s is not added: %s", text, why);
}

static void
add_targets(const struct process *p, const char *name)
{
    for (const struct daemon_setting *t = NULL;
         (t = daemon_settings_next(&p->config.now->settings, name, t));)
        add_target(p, t->value);
}

/* --socket: a service's own, which its configuration file need not name. */
static void
add_socket(const struct process *p)
{
    char target[300];
    if (!main_options.socket)
        return;
    snprintf(target, sizeof target, "punix:%s", main_options.socket);
    add_target(p, target);
}

static void
log_start(const struct sw *sw)
{
    unsigned n = 0;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        n++;
        log_info(PORT, "port %u (%s): the link is %s, %llu Mbit/s", p->no, p->name,
                 sw_port_is_down(p) ? "down" : "up", (unsigned long long)p->link.speed / 1000000);
    }
    log_notice(SWITCH,
               SW_NAME " " OFQOS_VERSION
                       " runs: datapath id %016llx, %u port%s, %u packet thread%s",
               (unsigned long long)sw->opt.datapath_id, n, OF_S(n), sw->dp.n_workers,
               OF_S(sw->dp.n_workers));
}

/* --qos-refused=end: without its queues it must not run.  A process that takes over goes on: its packets need it. */
static bool
must_end(struct process *p)
{
    if (main_options.qos_refused != REFUSED_END || p->restart.takes_over ||
        !configuration_refused(&p->config, 0))
        return false;
    log_error(
        SWITCH,
        "the switch ends, because not all of its configuration is in force (--qos-refused=end)");
    p->failed = true;
    loop_stop(p->sw->loop);
    return true;
}

static void
is_ready(void *ctx)
{
    struct process *p = ctx;
    if (must_end(p))
        return;
    watchdog_ready(p->watchdog);
    daemon_take_over(&p->daemon);
    daemon_ready(&p->daemon);
    log_start(p->sw);
}

/* For all sockets that the switch makes.  It is not set whenever a configuration is read, as
 * that may be refused. */
static void
choose_socket_group(void)
{
    gid_t group;
    if (main_options.socket_group && !stream_group_of(main_options.socket_group, &group))
        stream_socket_group(group);
}

/* The switch without its queues and connections. */
static void
make_switch(struct process *p)
{
    char why[256];
    const struct wanted *wanted = &p->config.now->wanted;
    memcpy(main_options.sw.wire, wanted->wire, sizeof wanted->wire);
    main_options.sw.n_wires = wanted->n_wires;
    memcpy(main_options.sw.inside, wanted->inside, sizeof wanted->inside);
    main_options.sw.n_inside = wanted->n_inside;
    if (sw_new(&main_options.sw, &p->sw, why, sizeof why))
        daemon_die("%s", why);
    p->config.running.sw = p->sw;
    p->sw->reload = configuration_reload;
    p->sw->port_has_come = configuration_port_has_come;
    p->sw->config_refused = configuration_refused;
    p->sw->config_ctx = &p->config;
    apply_slices(&p->config.running); /* before the flows, some of which are theirs */
    if (saved_load_tables(&p->saved, p->sw, why, sizeof why))
        give_up(p->sw, why);
    if (loop_io_add(p->sw->loop, p->signals, EPOLLIN, on_signal, p, &p->on_signals))
        give_up(p->sw, "cannot wait for signals");
    if (queue_jobs_new(&p->config.running, &p->config.running.jobs))
        give_up(p->sw, "out of memory");
    restart_ready(&p->restart); /* behind this, what can fail must not end the process */
    apply_offload(&p->config.running);
    sw_fail_update(p->sw); /* before the first packet, as no controller is connected yet */
    add_ports(p->sw, wanted, &p->restart);
    if (main_options.qos_reset && !p->restart.takes_over)
        qos_clear_all(p->sw->qos, NULL);
    if (saved_load_ports(&p->saved, p->sw, why, sizeof why))
        give_up(p->sw, why);
    restart_done(&p->restart);
    choose_dpid(p->sw);
    seed_groups(p->sw);
}

/* Who connects finds the queues of the configuration, unless the kernel takes long to make them. */
static void
make_queues(struct process *p)
{
    const struct running *r = &p->config.running;
    const uint64_t end = loop_clock() + QUEUES_FIRST_MS * UINT64_C(1000000);
    apply_queues(&p->config.running);
    while (!queue_jobs_over(r->jobs) && loop_clock() < end)
        loop_turn(p->sw->loop, QUEUES_FIRST_MS);
}

/* Long changes of queues go on in the loop; only then the switch is ready. */
static int
run(struct process *p)
{
    struct running *r = &p->config.running;
    make_queues(p);
    add_targets(p, "listen");
    add_targets(p, "controller");
    add_socket(p);
    sw_fail_update(p->sw);
    sw_fail_say(p->sw);
    addresses_say(p->sw);
    if (watchdog_start(p->sw, &p->watchdog))
        give_up(p->sw, "cannot start the watchdog: out of memory");
    queue_jobs_wait(r->jobs, is_ready, p);
    p->sw->restart = restart_run;
    int err = loop_run(p->sw->loop);
    saved_write(&p->saved, p->sw);
    watchdog_stop(p->watchdog);
    loop_io_del(p->on_signals);
    return err;
}

int
main(int argc, char **argv)
{
    static struct process p;
    struct stream_tls *tls;
    char why[256];
    p.restart = restart_begin(argv);
    configuration_begin(&p.config, argc, argv);
    confine_memory(&main_options.confine);
    if (stream_tls_new(&main_options.tls, &tls, why, sizeof why))
        daemon_die("%s", why);
    p.daemon = main_options.daemon;
    p.daemon.reloads = p.config.now->settings.file;
    p.daemon.takes_over = p.restart.takes_over;
    p.saved = main_options.saved;
    if (p.restart.takes_over)
        p.saved.restore = p.restart.state;
    p.saved.takes_over = p.restart.takes_over;
    daemon_begin(&p.daemon);
    p.signals = daemon_signals();
    port_global_init();
    choose_socket_group();
    rights_give_up(&p.config.now->settings, &p.config.now->wanted, &p.daemon);
    make_switch(&p);
    channel_set_tls(p.sw->channel, tls);
    int err = run(&p);
    queue_jobs_stop(p.config.running.jobs);
    sw_free(p.sw);
    queue_jobs_free(p.config.running.jobs);
    stream_tls_free(tls);
    port_global_exit();
    daemon_end(&p.daemon);
    configuration_end(&p.config);
    return err || p.failed ? 1 : 0;
}
