/* SPDX-License-Identifier: Apache-2.0 */
/* ofdatapath: the switch's daemon. */
#include <daemon/machine-memory.h>
#include <switch/switch.h>

#include <daemon/daemon.h>
#include <daemon/log.h>
#include <qos/sched/units.h>
#include <stream/stream.h>
#include <stream/tls.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct args {
    struct sw_options sw;
    struct stream_tls_options tls;
    char *interfaces;
    char **targets;
    int n_targets;
    uint64_t ring_memory; /* 0: by main memory */
    bool qos_reset;
    struct daemon daemon;
};

/* clang-format off */
static const char usage_text[] =
    "usage: ofdatapath [OPTION]... CONNECTION...\n"
    "An OpenFlow 1.3 switch over network interfaces, with packet schedulers set over OpenFlow.\n"
    "\n"
    "CONNECTION is one of\n"
    "  punix:[PATH]        listen on a Unix socket (default: where dpctl looks for it)\n"
    "  ptcp:[PORT][:IP]    listen on TCP (6653, all addresses)\n"
    "  unix:PATH           connect to a Unix socket\n"
    "  tcp:HOST[:PORT]     connect to a controller (6653), again and again until it is there\n"
    "  ptls:, tls:         the same as ptcp: and tcp: with TLS (also pssl:, ssl:)\n"
    "\n"
    "  -i, --interfaces=IF[,IF]...  the switch's ports 1, 2, ... in this order\n"
    "  -d, --datapath-id=ID         12 or 16 hexadecimal digits (the first interface's address,\n"
    "                               or 1 without interfaces)\n"
    "  -L, --local-port=NAME        make a tap of this name as OFPP_LOCAL\n"
    "      --no-local-port          none (as without -L)\n"
    "      --tables=N               flow tables, 1 to 254 (64)\n"
    "      --workers=N              packet threads, 1 to 64 (1)\n"
    "      --fanout                 every worker reads every port, each its share of the flows\n"
#define LIMIT_HELP(name, option, most, bytes, part, help) help
    LIMIT_ROWS(LIMIT_HELP)
    "      --cache=N                exact matches remembered a worker, a power of two (16384; 0: none)\n"
    "      --io=packet|pcap         how packets are read and sent (packet)\n"
    "      --ring-memory=SIZE       of all ports' receive rings together, such as 64mb (a sixteenth of\n"
    "                               main memory, at most 256mb, less what other rings have)\n"
    "      --socket-group=GROUP     who may use the Unix sockets, beside root (root's group only)\n"
    "      --no-slicing             leave the interfaces' traffic control alone\n"
    "      --qos-reset              start without the queues that an earlier run left\n"
    "      --qos-keep               leave the queues where they are at the end\n"
    "      --qos-foreign=adopt|report|repair\n"
    "                               what to do when somebody else (tc) changes the queues (adopt)\n"
    "      --packet-in-rate=N       packet-ins a second to each controller (0: as many as it reads)\n"
    "      --packet-in-burst=N      and so many at once (a quarter of the rate)\n"
    "      --dp-desc=TEXT, --mfr-desc=, --hw-desc=, --sw-desc=, --serial_num=\n"
    "                               descriptions for controllers\n"
    "      --aux=N                  auxiliary connections to each controller, 0 to 8 (0)\n"
    "      --fail=closed|open       while no controller is connected: the flows go on, or the\n"
    "                               switch learns addresses and forwards by itself (closed)\n"
    "      --inactivity-probe=SECS  silence after which a peer is probed, and after as much again\n"
    "                               given up (15; 0: never)\n"
    "      --max-connections=N      accepted connections, shared by the addresses and local users\n"
    "                               that they come from (256)\n"
    "      --max-backoff=SECS       the longest wait before connecting again (8)\n"
    STREAM_TLS_USAGE
    DAEMON_USAGE
    "  -h, --help\n"
    "  -V, --version\n"
    "\n"
    "SIGTERM, SIGINT and SIGQUIT end it; what it put on the interfaces is removed (but see\n"
    "--qos-keep), and nothing else.  SIGHUP opens the --log-file anew.\n";
/* clang-format on */

static uint64_t
parse_dpid(const char *s)
{
    size_t n = strlen(s), digits = strspn(s, "0123456789abcdefABCDEF");
    uint64_t id = strtoull(s, NULL, 16);
    if (digits != n || (n != 12 && n != 16) || !id)
        daemon_die("datapath id '%s': must be 12 or 16 hexadecimal digits, not all 0, "
                   "such as 000000000001",
                   s);
    return id;
}

enum {
    OPT_TABLES = 256,
    OPT_WORKERS,
    OPT_FANOUT,
    OPT_CACHE,
    OPT_IO,
    OPT_RING_MEMORY,
    OPT_SOCKET_GROUP,
    OPT_NO_SLICING,
    OPT_NO_LOCAL_PORT,
    OPT_MFR_DESC,
    OPT_HW_DESC,
    OPT_SW_DESC,
    OPT_SERIAL_NUM,
    OPT_DP_DESC,
    OPT_QOS_RESET,
    OPT_QOS_KEEP,
    OPT_QOS_FOREIGN,
    OPT_AUX,
    OPT_FAIL,
    OPT_PROBE,
    OPT_BACKOFF,
    OPT_PACKET_IN_RATE,
    OPT_PACKET_IN_BURST,
    OPT_MAX_CONNECTIONS,
#define LIMIT_OPT(name, option, most, bytes, part, help) OPT_LIMIT_##name,
    LIMIT_ROWS(LIMIT_OPT)
};

/* clang-format off */
static const struct option options[] = {
    {"interfaces", required_argument, NULL, 'i'},
    {"datapath-id", required_argument, NULL, 'd'},
    {"local-port", required_argument, NULL, 'L'},
    {"tables", required_argument, NULL, OPT_TABLES},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"fanout", no_argument, NULL, OPT_FANOUT},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"io", required_argument, NULL, OPT_IO},
    {"ring-memory", required_argument, NULL, OPT_RING_MEMORY},
    {"socket-group", required_argument, NULL, OPT_SOCKET_GROUP},
    {"no-slicing", no_argument, NULL, OPT_NO_SLICING},
    {"qos-reset", no_argument, NULL, OPT_QOS_RESET},
    {"qos-keep", no_argument, NULL, OPT_QOS_KEEP},
    {"qos-foreign", required_argument, NULL, OPT_QOS_FOREIGN},
    {"packet-in-rate", required_argument, NULL, OPT_PACKET_IN_RATE},
    {"packet-in-burst", required_argument, NULL, OPT_PACKET_IN_BURST},
    {"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
    {"no-local-port", no_argument, NULL, OPT_NO_LOCAL_PORT},
    {"mfr-desc", required_argument, NULL, OPT_MFR_DESC},
    {"hw-desc", required_argument, NULL, OPT_HW_DESC},
    {"sw-desc", required_argument, NULL, OPT_SW_DESC},
    {"serial_num", required_argument, NULL, OPT_SERIAL_NUM},
    {"dp_desc", required_argument, NULL, OPT_DP_DESC},
    {"dp-desc", required_argument, NULL, OPT_DP_DESC},
    {"aux", required_argument, NULL, OPT_AUX},
    {"fail", required_argument, NULL, OPT_FAIL},
    {"inactivity-probe", required_argument, NULL, OPT_PROBE},
    {"max-backoff", required_argument, NULL, OPT_BACKOFF},
#define LIMIT_LONG(name, option, most, bytes, part, help)                                          \
    {option, required_argument, NULL, OPT_LIMIT_##name},
    LIMIT_ROWS(LIMIT_LONG)
    DAEMON_LONG_OPTIONS,
    STREAM_TLS_LONGS
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};
/* clang-format on */

static enum qos_foreign
parse_foreign(const char *s)
{
    static const char *const names[] = {[QOS_FOREIGN_ADOPT] = "adopt",
                                        [QOS_FOREIGN_REPORT] = "report",
                                        [QOS_FOREIGN_REPAIR] = "repair"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(s, names[i]))
            return (enum qos_foreign)i;
    daemon_die("--qos-foreign '%s': must be adopt, report or repair", s);
}

static void
take_group(const char *name)
{
    char why[256];
    if (stream_socket_group(name, why, sizeof why))
        daemon_die("--socket-group '%s': %s", name, why);
}

static uint64_t
parse_ring_memory(const char *s)
{
    uint64_t bytes;
    char why[256];
    if (qos_parse_size(s, &bytes, why, sizeof why))
        daemon_die("--ring-memory %s", why);
    if (bytes < 1 << 20 || bytes > UINT64_C(1) << 40)
        daemon_die("--ring-memory '%s': must be 1mb to 1024gb, such as 64mb", s);
    return bytes;
}

static bool
take_channel_option(struct args *a, int opt)
{
    struct channel_options *o = &a->sw.channel;
    switch (opt) {
    case OPT_AUX: o->aux = daemon_arg_number("--aux", optarg, 0, CHANNEL_AUX_MAX); return true;
    case OPT_FAIL: a->sw.fail_open = daemon_arg_fail(optarg); return true;
    case OPT_PROBE:
        o->probe_ms = daemon_arg_seconds("--inactivity-probe", optarg, ", or 0 for never");
        o->probe_ms = o->probe_ms ? o->probe_ms : CHANNEL_NEVER;
        return true;
    case OPT_BACKOFF:
        o->backoff_max_ms = daemon_arg_seconds("--max-backoff", optarg, "");
        return true;
    case OPT_PACKET_IN_RATE:
        o->packet_in_rate = daemon_arg_number("--packet-in-rate", optarg, 0, 1000000);
        return true;
    case OPT_PACKET_IN_BURST:
        o->packet_in_burst = daemon_arg_number("--packet-in-burst", optarg, 1, 1000000);
        return true;
    case OPT_MAX_CONNECTIONS:
        o->max_conns = daemon_arg_number("--max-connections", optarg, 16, 65536);
        return true;
    default: return stream_tls_option(&a->tls, opt, optarg);
    }
}

static bool
take_limit(struct limits *l, int opt)
{
    switch (opt) {
#define LIMIT_CASE(name, option, most, bytes, part, help)                                          \
    case OPT_LIMIT_##name: l->name = daemon_arg_number("--" option, optarg, 0, most); return true;
        LIMIT_ROWS(LIMIT_CASE)
    default: return false;
    }
}

static bool
take_description(struct args *a, int opt)
{
    struct sw_desc *d = &a->sw.desc;
    const char **text = opt == OPT_MFR_DESC     ? &d->mfr
                        : opt == OPT_HW_DESC    ? &d->hw
                        : opt == OPT_SW_DESC    ? &d->sw
                        : opt == OPT_SERIAL_NUM ? &d->serial
                        : opt == OPT_DP_DESC    ? &d->dp
                                                : NULL;
    if (text)
        *text = optarg;
    return text;
}

/* -i may be given again: its ports come after those before. */
static void
add_interfaces(struct args *a, char *more)
{
    char *all = more;
    if (a->interfaces && asprintf(&all, "%s,%s", a->interfaces, more) < 0)
        daemon_die("out of memory");
    a->interfaces = all;
}

static void
take_option(struct args *a, int opt)
{
    switch (opt) {
    case 'i': add_interfaces(a, optarg); break;
    case 'd': a->sw.datapath_id = parse_dpid(optarg); break;
    case 'L': a->sw.local_port = optarg; break;
    case OPT_TABLES: a->sw.n_tables = daemon_arg_number("--tables", optarg, 1, 254); break;
    case OPT_WORKERS: a->sw.n_workers = daemon_arg_number("--workers", optarg, 1, 64); break;
    case OPT_FANOUT: a->sw.fanout = true; break;
    case OPT_CACHE:
        a->sw.cache_entries = daemon_arg_number("--cache", optarg, 0, 1u << 22);
        if (a->sw.cache_entries & (a->sw.cache_entries - 1) || a->sw.cache_entries == 1)
            daemon_die("--cache '%s': must be 0 or a power of two from 2 up", optarg);
        break;
    case OPT_IO:
        if (strcmp(optarg, "packet") && strcmp(optarg, "pcap"))
            daemon_die("--io '%s': must be packet or pcap", optarg);
        a->sw.backend = optarg;
        break;
    case OPT_RING_MEMORY: a->ring_memory = parse_ring_memory(optarg); break;
    case OPT_SOCKET_GROUP: take_group(optarg); break;
    case OPT_NO_SLICING: a->sw.no_slicing = true; break;
    case OPT_QOS_RESET: a->qos_reset = true; break;
    case OPT_QOS_KEEP: a->sw.qos_keep = true; break;
    case OPT_QOS_FOREIGN: a->sw.qos_foreign = parse_foreign(optarg); break;
    case OPT_NO_LOCAL_PORT: a->sw.local_port = NULL; break;
    case 'h': fputs(usage_text, stdout); exit(0);
    case 'V': puts(SW_NAME " " OFQOS_VERSION); exit(0);
    default:
        if (take_channel_option(a, opt) || take_description(a, opt) ||
            take_limit(&a->sw.limits, opt) || daemon_option(&a->daemon, opt, optarg))
            break;
        fputs("try: ofdatapath --help\n", stderr);
        exit(1);
    }
}

static void
parse_args(int argc, char **argv, struct args *a)
{
    *a = (struct args){.sw = {
                           .n_tables = TABLES_DEFAULT,
                           .n_workers = 1,
                           .cache_entries = 16384,
                           .limits = limits_default(machine_memory()),
                       }};
    int opt;
    while ((opt = getopt_long(argc, argv, "i:d:L:hV" DAEMON_SHORT_OPTIONS, options, NULL)) != -1)
        take_option(a, opt);
    a->targets = argv + optind;
    a->n_targets = argc - optind;
    if (!a->n_targets)
        daemon_die("no connection given: such as punix: or tcp:127.0.0.1 (see --help)");
}

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

static void
add_ports(struct sw *sw, char *names, uint64_t ring_memory)
{
    char why[256];
    unsigned n = names ? 1 : 0;
    for (const char *p = names; p && *p; p++)
        n += *p == ',';
    port_rings_limit_set(ring_memory, n);
    for (char *name; (name = strsep(&names, ","));)
        if (sw_ports_add(sw, name, 0, why, sizeof why)) {
            sw_free(sw);
            daemon_die("%s", why);
        }
    if (sw->opt.local_port && sw_ports_add(sw, sw->opt.local_port, OFPP_LOCAL, why, sizeof why)) {
        sw_free(sw);
        daemon_die("%s", why);
    }
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
        log_line(LOG_WARN, "no interface to take a datapath id from: it is 1 (give one with -d)");
    sw->opt.datapath_id = id ? id : 1;
}

static void
add_targets(struct sw *sw, const struct args *a)
{
    char why[256];
    for (int i = 0; i < a->n_targets; i++)
        if (channel_add(sw->channel, a->targets[i], why, sizeof why)) {
            sw_free(sw);
            daemon_die("%s", why);
        }
    sw_fail_update(sw);
}

int
main(int argc, char **argv)
{
    struct args a;
    struct sw *sw;
    struct stream_tls *tls;
    struct loop_io *signals;
    char why[256];
    parse_args(argc, argv, &a);
    if (stream_tls_new(&a.tls, &tls, why, sizeof why))
        daemon_die("%s", why);
    daemon_begin(&a.daemon);
    int signal_fd = daemon_signals();
    port_global_init();
    if (sw_new(&a.sw, &sw, why, sizeof why))
        daemon_die("%s", why);
    add_ports(sw, a.interfaces, a.ring_memory);
    if (a.qos_reset)
        qos_clear_all(sw->qos, NULL);
    choose_dpid(sw);
    channel_set_tls(sw->channel, tls);
    add_targets(sw, &a);
    struct ending ending = {sw, &a.daemon, signal_fd};
    if (loop_io_add(sw->loop, signal_fd, EPOLLIN, on_signal, &ending, &signals))
        daemon_die("cannot wait for signals");
    daemon_ready(&a.daemon);
    int err = loop_run(sw->loop);
    loop_io_del(signals);
    sw_free(sw);
    stream_tls_free(tls);
    port_global_exit();
    daemon_end(&a.daemon);
    return err ? 1 : 0;
}
