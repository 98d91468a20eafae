/* SPDX-License-Identifier: Apache-2.0 */
/* ofdatapath: the switch's daemon. */
#include "assembly.h"
#include "watchdog.h"

#include <switch/fail.h>

#include <daemon/daemon.h>
#include <daemon/log.h>
#include <daemon/machine-memory.h>
#include <daemon/options.h>
#include <qos/sched/units.h>
#include <stream/stream.h>
#include <stream/tls.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static struct {
    struct sw_options sw;
    struct stream_tls_options tls;
    struct daemon daemon;
    char *interfaces;
    unsigned fail, foreign, backend; /* words' values */
    uint64_t ring_memory;            /* 0: by main memory */
    bool qos_reset;
    bool wait_for_interfaces;
} args = {
    .sw = {.n_tables = TABLES_DEFAULT,
           .n_workers = 1,
           .cache_entries = 16384,
           .channel = CHANNEL_OPTIONS_DEFAULT},
    .tls.warn = log_tls_warning,
};

/* ------------------------------------------------------------------ arguments of their own kind */

/* -i may be given again: its ports come after those before. */
static bool
take_interfaces(const char *more, char *why, size_t n)
{
    char *all;
    const char *before = args.interfaces;
    if (asprintf(&all, "%s%s%s", before ? before : "", before ? "," : "", more) < 0)
        daemon_die("out of memory");
    free(args.interfaces);
    args.interfaces = all;
    return true;
}

static bool
take_datapath_id(const char *arg, char *why, size_t n)
{
    size_t len = strlen(arg), digits = strspn(arg, "0123456789abcdefABCDEF");
    args.sw.datapath_id = strtoull(arg, NULL, 16);
    if (digits == len && (len == 12 || len == 16) && args.sw.datapath_id)
        return true;
    snprintf(why, n, "must be 12 or 16 hexadecimal digits, not all 0, such as 000000000001");
    return false;
}

static bool
take_no_local_port(const char *arg, char *why, size_t n)
{
    args.sw.local_port = NULL;
    return true;
}

static bool
take_group(const char *arg, char *why, size_t n)
{
    char unused[256];
    snprintf(why, n, "must be the name or number of a group, such as getent group lists");
    return !stream_socket_group(arg, unused, sizeof unused);
}

static bool
take_ring_memory(const char *arg, char *why, size_t n)
{
    char unused[256];
    snprintf(why, n, "must be a size from 1mb to 1024gb, such as 64mb");
    return !qos_parse_size(arg, &args.ring_memory, unused, sizeof unused) &&
           args.ring_memory >= 1 << 20 && args.ring_memory <= UINT64_C(1) << 40;
}

/* ------------------------------------------------------------------ the options */

static const struct daemon_word fail_words[] = {
    {"closed", false}, {"open", true}, {"secure", false}, {"standalone", true}, {0}};

static const struct daemon_word foreign_words[] = {{"adopt", QOS_FOREIGN_ADOPT},
                                                   {"report", QOS_FOREIGN_REPORT},
                                                   {"repair", QOS_FOREIGN_REPAIR},
                                                   {0}};

static const struct daemon_word backend_words[] = {{"packet", 0}, {"pcap", 1}, {0}};

#define LIMIT_OPTION(name, option, most, bytes, part, help)                                        \
    {option, 0, "N", help, "by the memory there is", OPTION_NUMBER(args.sw.limits.name, 0, most)},
#define TLS_OPTION(id, name, arg, help)                                                            \
    {name, 0, arg, help, NULL, OPTION_TEXT(args.tls.values[STREAM_TLS_##id])},

static const struct daemon_option options[] = {
    OPTION_GROUP("Ports and packets"),
    {"interfaces", 'i', "IF[,IF]...",
     "the switch's ports 1, 2, ... in this order; may be given again; instead of an interface "
     "pcap:IN:OUT, which are files",
     NULL, OPTION_CALL(take_interfaces)},
    {"wait-for-interfaces", 0, NULL,
     "start although some of them are not there: their ports are down until they come", NULL,
     OPTION_FLAG(args.wait_for_interfaces)},
    {"datapath-id", 'd', "ID", "12 or 16 hexadecimal digits",
     "the first interface's address, or 1 without interfaces", OPTION_CALL(take_datapath_id)},
    {"local-port", 'L', "NAME", "make a tap interface of this name the port OFPP_LOCAL", NULL,
     OPTION_TEXT(args.sw.local_port)},
    {"no-local-port", 0, NULL, "make none, as without --local-port", NULL,
     OPTION_CALL(take_no_local_port)},
    {"workers", 0, "N", "packet threads", NULL, OPTION_NUMBER(args.sw.n_workers, 1, 64)},
    {"fanout", 0, NULL, "every worker reads every port, each its share of the flows", NULL,
     OPTION_FLAG(args.sw.fanout)},
    {"cache", 0, "N", "exact matches that each worker remembers; 0, or a power of two", NULL,
     OPTION_NUMBER(args.sw.cache_entries, 0, 1u << 22)},
    {"io", 0, "packet|pcap", "how packets are read and sent", NULL,
     OPTION_WORD(args.backend, backend_words)},
    {"ring-memory", 0, "SIZE", "memory for the receive rings of all ports, such as 64mb",
     "a sixteenth of main memory, at most 256mb, less what other switches' rings have",
     OPTION_CALL(take_ring_memory)},

    OPTION_GROUP("Flow tables, and how much controllers may put into them"),
    {"tables", 0, "N", "flow tables", NULL, OPTION_NUMBER(args.sw.n_tables, 1, 254)},
    LIMIT_ROWS(LIMIT_OPTION)

        OPTION_GROUP("Queues"),
    {"no-slicing", 0, NULL, "leave the interfaces' traffic control alone", NULL,
     OPTION_FLAG(args.sw.no_slicing)},
    {"qos-reset", 0, NULL, "start without the queues that an earlier run left", NULL,
     OPTION_FLAG(args.qos_reset)},
    {"qos-keep", 0, NULL, "leave the queues where they are at the end", NULL,
     OPTION_FLAG(args.sw.qos_keep)},
    {"qos-foreign", 0, "adopt|report|repair",
     "what to do when somebody else's tc changes the queues", NULL,
     OPTION_WORD(args.foreign, foreign_words)},

    OPTION_GROUP("Controllers and other peers"),
    {"fail", 0, "closed|open",
     "while no controller is connected: closed leaves the flows as they are, open forwards as a "
     "learning switch does",
     NULL, OPTION_WORD(args.fail, fail_words)},
    {"aux", 0, "N", "auxiliary connections to each controller", NULL,
     OPTION_NUMBER(args.sw.channel.aux, 0, CHANNEL_AUX_MAX)},
    {"packet-in-rate", 0, "N", "packet-ins a second to each controller", "0, as many as it reads",
     OPTION_NUMBER(args.sw.channel.packet_in_rate, 0, 1000000)},
    {"packet-in-burst", 0, "N", "and so many at once", "a quarter of the rate",
     OPTION_NUMBER(args.sw.channel.packet_in_burst, 1, 1000000)},
    {"inactivity-probe", 0, "SECS",
     "seconds of silence before an echo request, and again before the connection is closed", NULL,
     OPTION_SECONDS_OR(args.sw.channel.probe_ms, CHANNEL_NEVER)},
    {"max-backoff", 0, "SECS", "the longest wait before connecting again", NULL,
     OPTION_SECONDS(args.sw.channel.backoff_max_ms)},
    {"max-connections", 0, "N",
     "accepted connections, shared by the addresses and local users that they come from", NULL,
     OPTION_NUMBER(args.sw.channel.max_conns, 16, 65536)},
    {"socket-group", 0, "GROUP", "who may use the Unix sockets, beside root", "root's group",
     OPTION_CALL(take_group)},
    {"dp-desc", 0, "TEXT", "the description that controllers read", NULL,
     OPTION_TEXT(args.sw.desc.dp)},
    {"dp_desc", 0, "TEXT", NULL, NULL, OPTION_TEXT(args.sw.desc.dp)}, /* BOFUSS's spelling */
    {"mfr-desc", 0, "TEXT", "the manufacturer that they read", NULL, OPTION_TEXT(args.sw.desc.mfr)},
    {"hw-desc", 0, "TEXT", "the hardware that they read", NULL, OPTION_TEXT(args.sw.desc.hw)},
    {"sw-desc", 0, "TEXT", "the software that they read", NULL, OPTION_TEXT(args.sw.desc.sw)},
    {"serial_num", 0, "TEXT", "the serial number that they read", NULL,
     OPTION_TEXT(args.sw.desc.serial)},

    OPTION_GROUP("TLS"),
    STREAM_TLS_OPTIONS(TLS_OPTION)

        DAEMON_OPTIONS(args.daemon),
    OPTION_END,
};

static const struct daemon_program program = {
    .name = "ofdatapath",
    .version = SW_NAME " " OFQOS_VERSION,
    .before =
        "usage: ofdatapath [OPTION]... CONNECTION...\n"
        "An OpenFlow 1.3 switch over network interfaces, with packet schedulers set over OpenFlow.\n"
        "\n"
        "CONNECTION is one of\n"
        "  punix:[PATH]        listen on a Unix socket (default: where dpctl looks for it)\n"
        "  ptcp:[PORT][:IP]    listen on TCP (6653, all addresses)\n"
        "  unix:PATH           connect to a Unix socket\n"
        "  tcp:HOST[:PORT]     connect to a controller (6653), again and again until it is there\n"
        "  ptls:, tls:         the same as ptcp: and tcp: with TLS (also pssl:, ssl:)\n",
    .after =
        "\n"
        "SIGTERM, SIGINT and SIGQUIT end it; what it put on the interfaces is removed (but see\n"
        "--qos-keep), and nothing else.  SIGHUP opens the --log-file anew.\n",
    .words = "punix:|ptcp:|ptls:|unix:|tcp:|tls:",
    .options = options,
};

/* -> the first CONNECTION of the command line. */
static char **
parse_args(int argc, char **argv)
{
    args.sw.limits = limits_default(machine_memory());
    char **targets = argv + daemon_options(&program, argc, argv);
    uint32_t cache = args.sw.cache_entries;
    if (cache & (cache - 1) || cache == 1)
        daemon_die("--cache must be 0 or a power of two from 2 up, such as 16384, not '%u'", cache);
    if (!*targets)
        daemon_die("no connection is given: add one such as punix: or tcp:127.0.0.1 (see --help)");
    args.sw.fail_open = args.fail;
    args.sw.qos_foreign = (enum qos_foreign)args.foreign;
    args.sw.backend = backend_words[args.backend].word;
    return targets;
}

/* ------------------------------------------------------------------ running */

struct ending {
    struct sw *sw;
    struct daemon *daemon;
    int signals;
};

static void
on_signal(void *ctx, uint32_t events)
{
    struct ending *e = ctx;
    if (daemon_is_over(e->daemon, e->signals))
        loop_stop(e->sw->loop);
}

__attribute__((noreturn)) static void
give_up(struct sw *sw, const char *why)
{
    sw_free(sw);
    daemon_die("%s", why);
}

static int
add_port(struct sw *sw, const char *name, char *why, size_t why_len)
{
    if (sw_ports_is_files(name))
        return sw_ports_add_files(sw, name, why, why_len);
    int err = sw_ports_add(sw, name, 0, why, why_len);
    if (err == -ENODEV && args.wait_for_interfaces)
        err = sw_ports_expect(sw, name, 0, why, why_len);
    return err;
}

static void
add_ports(struct sw *sw)
{
    char why[256], *names = args.interfaces;
    unsigned n = names ? 1 : 0;
    for (const char *p = names; p && *p; p++)
        n += *p == ',';
    port_rings_limit_set(args.ring_memory, n);
    for (char *name; (name = strsep(&names, ","));)
        if (add_port(sw, name, why, sizeof why))
            give_up(sw, why);
    if (sw->opt.local_port && sw_ports_add(sw, sw->opt.local_port, OFPP_LOCAL, why, sizeof why))
        give_up(sw, why);
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
add_targets(struct sw *sw, char **targets)
{
    char why[256];
    for (; *targets; targets++)
        if (channel_add(sw->channel, *targets, why, sizeof why))
            give_up(sw, why);
    sw_fail_update(sw);
}

int
main(int argc, char **argv)
{
    struct sw *sw;
    struct stream_tls *tls;
    struct loop_io *signals;
    struct watchdog *watchdog;
    char why[256];
    char **targets = parse_args(argc, argv);
    if (stream_tls_new(&args.tls, &tls, why, sizeof why))
        daemon_die("%s", why);
    daemon_begin(&args.daemon);
    int signal_fd = daemon_signals();
    port_global_init();
    if (sw_new(&args.sw, &sw, why, sizeof why))
        daemon_die("%s", why);
    add_ports(sw);
    if (args.qos_reset)
        qos_clear_all(sw->qos, NULL);
    choose_dpid(sw);
    channel_set_tls(sw->channel, tls);
    add_targets(sw, targets);
    struct ending ending = {sw, &args.daemon, signal_fd};
    if (loop_io_add(sw->loop, signal_fd, EPOLLIN, on_signal, &ending, &signals))
        daemon_die("cannot wait for signals");
    if (watchdog_start(sw, &watchdog))
        give_up(sw, "cannot start the watchdog: out of memory");
    daemon_ready(&args.daemon);
    int err = loop_run(sw->loop);
    watchdog_stop(watchdog);
    loop_io_del(signals);
    sw_free(sw);
    stream_tls_free(tls);
    port_global_exit();
    daemon_end(&args.daemon);
    return err ? 1 : 0;
}
