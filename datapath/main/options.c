/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "apply.h"

#include <megaflow/megaflow.h>
#include <megaflow/plan.h>

#include <daemon/log.h>
#include <daemon/machine-memory.h>
#include <qos/sched/units.h>
#include <qos/wire/request.h>
#include <stream/stream.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fq_codel's own default of 1,024 flows takes 70 KB a queue. */
#define LEAF_DEFAULT "fq_codel,flows=128"

struct main_options main_options = {
    .sw = {.n_tables = TABLES_DEFAULT,
           .n_workers = 1,
           .cache_entries = 16384,
           .busy_poll_us = AWAKE_AUTO,
           .offload = {.mode = SW_OFFLOAD_AUTO},
           .channel = CHANNEL_OPTIONS_DEFAULT},
    .tls.warn = log_tls_warning,
};

/* ------------------------------------------------------------------ arguments of their own kind */

static bool
take_datapath_id(const char *arg, char *why, size_t n)
{
    main_options.sw.datapath_id = 0;
    if (!arg)
        return true;
    size_t len = strlen(arg), digits = strspn(arg, "0123456789abcdefABCDEF");
    main_options.sw.datapath_id = strtoull(arg, NULL, 16);
    if (digits == len && (len == 12 || len == 16) && main_options.sw.datapath_id)
        return true;
    snprintf(why, n, "must be 12 or 16 hexadecimal digits, not all 0, such as 000000000001");
    return false;
}

static bool
take_ring_memory(const char *arg, char *why, size_t n)
{
    char unused[256];
    main_options.ring_memory = 0;
    if (!arg)
        return true;
    snprintf(why, n, "must be a size from 1mb to 1024gb, such as 64mb");
    return !qos_parse_size(arg, &main_options.ring_memory, unused, sizeof unused) &&
           main_options.ring_memory >= 1 << 20 && main_options.ring_memory <= UINT64_C(1) << 40;
}

/* As a controller's request for a queue would be. */
static bool
check_leaf(const struct qos_request *r, char *why, size_t n)
{
    const struct qos_env env = {.mtu = 1500, .txqueuelen = 1000};
    struct qos_values values;
    struct qos_error e;
    qos_resolve_leaf(r->sched, &r->values, &env, &values);
    if (!r->sched->check || !r->sched->check(&values, &r->values, &e))
        return true;
    snprintf(why, n, "is refused: %s", e.text);
    return false;
}

static bool
take_leaf(const char *arg, char *why, size_t n)
{
    struct qos_request r = {0};
    char kind[32], text[256], reason[256] = "";
    arg = arg ? arg : LEAF_DEFAULT;
    main_options.sw.qos_leaf = NULL;
    if (!strcmp(arg, "none"))
        return true;
    size_t len = strcspn(arg, ",");
    snprintf(kind, sizeof kind, "%.*s", (int)(len < sizeof kind ? len : 0), arg);
    const struct qos_sched *sched = qos_sched_by_name(kind);
    if (!sched || sched->classful || sched->bands || sched->id == OFP_QOS_SCHED_NONE) {
        snprintf(why, n,
                 "must be none, or a scheduler without classes and its parameters, such as "
                 "fq_codel,flows=1024");
        return false;
    }
    int size = snprintf(text, sizeof text, "cmd=add,port=1,class=1%s", arg + len);
    if (size >= (int)sizeof text || qos_request_parse(&r, sched, text, reason, sizeof reason)) {
        snprintf(why, n, "is refused: %s", *reason ? reason : "it is too long");
        return false;
    }
    if (!check_leaf(&r, why, n))
        return false;
    main_options.sw.qos_leaf = sched;
    main_options.sw.qos_leaf_config = r.values;
    return true;
}

static bool
take_reserved(const char *value, char *why, size_t n)
{
    static const struct {
        const char *name;
        uint16_t bits;
    } words[] = {
        {"pause", 1 << 1}, {"lacp", 1 << 2}, {"eapol", 1 << 3}, {"lldp", 1 << 14}, {"all", 0xffff}};
    uint16_t bits = 0;
    main_options.sw.reserved = 0;
    for (const char *p = value; p; p++) {
        size_t len = strcspn(p, ","), i = 0;
        while (i < sizeof words / sizeof *words &&
               (strlen(words[i].name) != len || memcmp(words[i].name, p, len)))
            i++;
        if (i < sizeof words / sizeof *words)
            bits |= words[i].bits;
        else if (len == 2 && *p == '0' && isxdigit((unsigned char)p[1]))
            bits |= (uint16_t)(1u << strtoul(p, NULL, 16));
        else {
            snprintf(why, n, "has words such as lldp,eapol, not '%.*s'", (int)len, p);
            return false;
        }
        p += len;
        if (!*p)
            break;
    }
    main_options.sw.reserved = bits;
    return true;
}

/* ------------------------------------------------------------------ the options */

static const struct daemon_word fail_words[] = {
    {"closed", false}, {"open", true}, {"secure", false}, {"standalone", true}, {0}};

static const struct daemon_word foreign_words[] = {{"adopt", QOS_FOREIGN_ADOPT},
                                                   {"report", QOS_FOREIGN_REPORT},
                                                   {"repair", QOS_FOREIGN_REPAIR},
                                                   {0}};

static const struct daemon_word refused_words[] = {{"run", REFUSED_RUN}, {"end", REFUSED_END}, {0}};

static const struct daemon_word offload_words[] = {
    {"auto", SW_OFFLOAD_AUTO}, {"off", SW_OFFLOAD_OFF}, {0}};
static const struct daemon_word latency_words[] = {{"on", 0}, {"off", 1}, {0}};

static const struct daemon_word openflow_words[] = {{"1.0,1.3", OFP_BITMAP_1_0 | OFP_BITMAP_1_3},
                                                    {"1.3", OFP_BITMAP_1_3},
                                                    {"1.0", OFP_BITMAP_1_0},
                                                    {0}};

static const struct daemon_word plain_words[] = {
    {"warn", PLAIN_WARN}, {"allow", PLAIN_ALLOW}, {"refuse", PLAIN_REFUSE}, {0}};

static const struct daemon_word confine_words[] = {
    {"on", CONFINE_ON}, {"strict", CONFINE_STRICT}, {"off", CONFINE_OFF}, {0}};

static const struct daemon_word backend_words[] = {{"packet", 0}, {"pcap", 1}, {0}};

#define LIMIT_OPTION(name, option, most, bytes, part, help)                                        \
    {option,                                                                                       \
     0,                                                                                            \
     "N",                                                                                          \
     help,                                                                                         \
     "by the memory there is",                                                                     \
     OPTION_NUMBER(main_options.sw.limits.name, 0, most),                                          \
     .apply = apply_limits},
#define TLS_OPTION(id, name, arg, help)                                                            \
    {name, 0, arg, help, NULL, OPTION_TEXT(main_options.tls.values[STREAM_TLS_##id])},

static const struct daemon_option options[] = {
    OPTION_GROUP("Ports and packets"),
    {"interfaces", 'i', "IF[,IF]...",
     "the switch's ports 1, 2, ... in this order; may be given again; instead of an interface "
     "pcap:IN:OUT, which are files",
     NULL, OPTION_LIST, .apply = apply_ports},
    {"wait-for-interfaces", 0, NULL,
     "start although some of them are not there: their ports are down until they come", NULL,
     OPTION_FLAG(main_options.wait_for_interfaces), .apply = apply_ports},
    {"port", 0, "IF[:NUMBER][,vlan=VLAN][,trunk=VLAN[:VLAN]...]",
     "a port of this number, or of the lowest free one, with these VLANs; may be given again", NULL,
     OPTION_LIST, .section = "port", .key = "number", .apply = apply_ports},
    {"port-vlan", 0, "IF:VLAN",
     "an access port of NORMAL: its untagged frames are of this VLAN; beside a trunk, its native one; also "
     "--port=IF,vlan=VLAN",
     "all VLANs, with their tags", OPTION_LIST, .section = "port", .key = "vlan",
     .apply = apply_ports},
    {"port-trunk", 0, "IF:VLAN[:VLAN]...",
     "a trunk of NORMAL: the VLANs, such as 10:20-29, whose tagged frames the port has; also "
     "--port=IF,trunk=VLAN:VLAN",
     "all VLANs, with their tags", OPTION_LIST, .section = "port", .key = "trunk",
     .apply = apply_ports},
    {"port-inside", 0, "IF:KIND[:KIND]",
     "what comes in by the port in PPPoE sessions (pppoe) or behind MPLS labels (mpls) matches as the IP packet in it; "
     "its frames keep their headers",
     "tables see PPPoE and MPLS", OPTION_LIST, .section = "port", .key = "inside"},
    {"datapath-id", 'd', "ID", "12 or 16 hexadecimal digits",
     "the first interface's address, or 1 without interfaces", OPTION_CALL(take_datapath_id)},
    {"local-port", 'L', "NAME", "make a tap interface of this name the port OFPP_LOCAL", NULL,
     OPTION_TEXT(main_options.sw.local_port)},
    {"no-local-port", 0, NULL, "make none, as without --local-port", NULL,
     OPTION_FLAG(main_options.no_local_port)},
    {"workers", 0, "N", "packet threads", NULL, OPTION_NUMBER(main_options.sw.n_workers, 1, 64)},
    {"fanout", 0, NULL, "every worker reads every port, each its share of the flows", NULL,
     OPTION_FLAG(main_options.sw.fanout)},
    {"cache", 0, "N", "entries of each worker's flow cache; 0, or a power of two", NULL,
     OPTION_NUMBER(main_options.sw.cache_entries, 0, 1u << 22)},
    {"busy-poll", 0, "US",
     "workers stay awake for so many microseconds after a packet; a busy one never sleeps then, and "
     "needs a processor",
     "by what it gains", OPTION_NUMBER(main_options.sw.busy_poll_us, 0, AWAKE_MOST_US),
     .apply = apply_busy_poll},
    {"offload", 0, "auto|off",
     "whether the kernel handles packets by itself, as the tables would, where it can", NULL,
     OPTION_WORD(main_options.sw.offload.mode, offload_words)},
    {"latency", 0, "on|off",
     "whether the round trips of connections that pass are measured, by queue", NULL,
     OPTION_WORD(main_options.sw.no_latency, latency_words)},
    {"offload-entries", 0, "N", "kinds of packets that the kernel handles at once; a power of two",
     "by the memory there is, and the processors there may be",
     OPTION_NUMBER(main_options.sw.offload.entries, 16, 1u << 20)},
    {"offload-linger", 0, "SECS",
     "seconds for which the kernel goes on forwarding after this process was killed", "0",
     OPTION_SECONDS_OR(main_options.sw.offload.linger_ms, 0)},
    {"port-offload", 0, "IF:auto|off",
     "the same as --offload for what comes in by one port; may be given again", "as --offload says",
     OPTION_LIST, .section = "port", .key = "offload", .apply = apply_offload},
    {"fail-to-wire", 0, "IF:IF[:unshaped]",
     "two ports that the kernel forwards between while no switch serves them: it has ended, was killed, hangs, or "
     "starts; by the queues that it left, or past them (docs/how-to/fail-to-wire.md); may be given again",
     NULL, OPTION_LIST, .section = "port", .key = "fail-to-wire"},
    {"io", 0, "packet|pcap", "how packets are read and sent", NULL,
     OPTION_WORD(main_options.backend, backend_words)},
    {"ring-memory", 0, "SIZE", "memory for the receive rings of all ports, such as 64mb",
     "a sixteenth of main memory, at most 256mb, less what other switches' rings have; with "
     "--offload=auto they begin with 4mb each and grow when they fill",
     OPTION_CALL(take_ring_memory)},

    OPTION_GROUP("Flow tables, and how much controllers may put into them"),
    {"tables", 0, "N", "flow tables", NULL, OPTION_NUMBER(main_options.sw.n_tables, 1, 254)},
    LIMIT_ROWS(LIMIT_OPTION)

        OPTION_GROUP("Queues"),
    {"no-slicing", 0, NULL, "leave the interfaces' traffic control alone", NULL,
     OPTION_FLAG(main_options.sw.no_slicing)},
    {"qos-reset", 0, NULL, "start without the queues that an earlier run left", NULL,
     OPTION_FLAG(main_options.qos_reset)},
    {"qos-keep", 0, NULL, "leave the queues where they are at the end", NULL,
     OPTION_FLAG(main_options.sw.qos_keep), .apply = apply_queue_options},
    {"qos-foreign", 0, "adopt|report|repair",
     "what to do when somebody else's tc changes the queues", NULL,
     OPTION_WORD(main_options.foreign, foreign_words), .apply = apply_queue_options},
    {"qos-refused", 0, "run|end",
     "what to do at the start when the kernel refuses queues of the configuration: run without them, as the log and "
     "dpctl status say, or end",
     NULL, OPTION_WORD(main_options.qos_refused, refused_words), .apply = daemon_applied},
    {"leaf", 0, "KIND[,KEY=VALUE]...",
     "the scheduler of each queue that nobody gave one; none for the kernel's own FIFO",
     LEAF_DEFAULT ", where the kernel has it", OPTION_CALL(take_leaf),
     .apply = apply_queue_options},
    {"profile", 0, "IF:FILE[ NAME=VALUE]...",
     "make the port's queues what this profile says, as dpctl qos-apply does; may be given again",
     NULL, OPTION_LIST, .section = "port", .apply = apply_queues},
    {"queue", 0, "IF:LINE",
     "a line of the port's profile, instead of a file, such as 'eth1:htb class=10,rate=6mbit'; may "
     "be given again",
     NULL, OPTION_LIST, .section = "port", .apply = apply_queues},
    {"map", 0, "WORD[ WORD]...",
     "rules and options of dpctl qos-map, such as 'then=normal queue=10,dscp=ef'; may be given again",
     NULL, OPTION_LIST, .apply = apply_queues},

    OPTION_GROUP("State"),
    {"state", 0, "FILE",
     "start with the flows, groups, meters and queues that FILE has, if it is there, and write them "
     "to it at the end",
     NULL, OPTION_TEXT(main_options.saved.state)},
    {"restore", 0, "FILE", "start with those that dpctl save FILE format=bytes has written", NULL,
     OPTION_TEXT(main_options.saved.restore)},

#define SLICE_OPTION(option, name, arg, text)                                                      \
    {option,                                                                                       \
     0,                                                                                            \
     "NAME:" arg,                                                                                  \
     text,                                                                                         \
     NULL,                                                                                         \
     OPTION_LIST,                                                                                  \
     .section = "slice",                                                                           \
     .key = name,                                                                                  \
     .apply = apply_slices},

    OPTION_GROUP("Controllers and other peers"),
    /* Before the connections, which are tied to them. */
    SLICE_OPTION(
        "slice", "may", "ask|change|all",
        "a slice: what some connections may touch and see, and nothing else (docs/how-to/slices.md)")
        SLICE_OPTION(
            "slice-connection", "connection", "CONNECTION",
            "the slice is of those who connect here, as listen or controller has it; may be given "
            "again") SLICE_OPTION("slice-common-name", "common-name", "CN",
                                  "the slice is of those whose certificate has this common name")
            SLICE_OPTION(
                "slice-ports", "ports", "NUMBERS",
                "its ports, such as 1-3,7") SLICE_OPTION("slice-tables", "tables", "NUMBERS",
                                                         "its tables, where all flows are its own")
                SLICE_OPTION(
                    "slice-shared-tables", "shared-tables", "NUMBERS",
                    "tables where those flows are its own that match one of its ports as in_port")
                    SLICE_OPTION("slice-queues", "queues", "NUMBERS",
                                 "its queues, at each of its ports; 0 is the port's whole tree")
                        SLICE_OPTION("slice-below", "below", "NUMBERS",
                                     "classes that its own may be below, within their rates")
                            SLICE_OPTION("slice-groups", "groups", "NUMBERS",
                                         "its groups") SLICE_OPTION("slice-meters", "meters",
                                                                    "NUMBERS", "its meters")
                                SLICE_OPTION(
                                    "slice-metadata", "metadata", "MASK",
                                    "the bits of metadata that it may write, such as 0xff00; none without it"){
                                    "listen", 0, "CONNECTION",
                                    "accept connections at punix:[PATH], ptcp:[PORT][:IP] or ptls:[PORT][:IP]; may be given again",
                                    NULL, OPTION_LIST, .apply = apply_connections},
    {"controller", 0, "CONNECTION",
     "connect to a controller at unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT]; may be given again",
     NULL, OPTION_LIST, .apply = apply_connections},
    {"socket", 0, "PATH", "also listen at this Unix socket, whatever --config says", NULL,
     OPTION_TEXT(main_options.socket), .line_only = true},
    {"plain-listen", 0, "warn|allow|refuse",
     "what to do about a ptcp: address that other machines can reach: anybody there can change the switch",
     NULL, OPTION_WORD(main_options.plain_listen, plain_words), .apply = daemon_applied},
    {"fail", 0, "closed|open",
     "what becomes of packets that match no flow while no controller is connected: closed drops them, "
     "open forwards them as a learning switch does",
     NULL, OPTION_WORD(main_options.fail, fail_words), .apply = apply_fail},
    {"forward-reserved", 0, "WORD[,WORD]...",
     "addresses that NORMAL forwards though bridges keep them to themselves: pause, lacp, eapol, lldp, or "
     "the last byte of 01:80:c2:00:00:00 to 0f as 2 hexadecimal digits; or all",
     "none, as a Linux bridge", OPTION_CALL(take_reserved), .apply = apply_reserved},
    {"openflow", 0, "1.0,1.3|1.3|1.0",
     "the versions of OpenFlow that new connections may speak (openflow10.md)", NULL,
     OPTION_WORD(main_options.sw.channel.versions, openflow_words), .apply = apply_channel},
    {"aux", 0, "N", "auxiliary connections to each controller", NULL,
     OPTION_NUMBER(main_options.sw.channel.aux, 0, CHANNEL_AUX_MAX)},
    {"packet-in-rate", 0, "N", "packet-ins a second to each controller", "0, as many as it reads",
     OPTION_NUMBER(main_options.sw.channel.packet_in_rate, 0, 1000000), .apply = apply_channel},
    {"packet-in-burst", 0, "N", "and so many at once", "a quarter of the rate",
     OPTION_NUMBER(main_options.sw.channel.packet_in_burst, 1, 1000000), .apply = apply_channel},
    {"inactivity-probe", 0, "SECS",
     "seconds of silence before an echo request, and again before the connection is closed", NULL,
     OPTION_SECONDS_OR(main_options.sw.channel.probe_ms, CHANNEL_NEVER), .apply = apply_channel},
    {"max-backoff", 0, "SECS", "the longest wait before connecting again", NULL,
     OPTION_SECONDS(main_options.sw.channel.backoff_max_ms), .apply = apply_channel},
    {"max-connections", 0, "N",
     "accepted connections, shared by the addresses and local users that they come from", NULL,
     OPTION_NUMBER(main_options.sw.channel.max_conns, 16, 65536), .apply = apply_channel},
    {"socket-group", 0, "GROUP", "who may use the Unix sockets, beside root", "root's group",
     OPTION_TEXT(main_options.socket_group)},
    {"dp-desc", 0, "TEXT", "the description that controllers read", NULL,
     OPTION_TEXT(main_options.sw.desc.dp), .apply = apply_descriptions},
    {"dp_desc", 0, "TEXT", NULL, NULL, OPTION_TEXT(main_options.sw.desc.dp),
     .apply = apply_descriptions}, /* BOFUSS's spelling */
    {"mfr-desc", 0, "TEXT", "the manufacturer that they read", NULL,
     OPTION_TEXT(main_options.sw.desc.mfr), .apply = apply_descriptions},
    {"hw-desc", 0, "TEXT", "the hardware that they read", NULL,
     OPTION_TEXT(main_options.sw.desc.hw), .apply = apply_descriptions},
    {"sw-desc", 0, "TEXT", "the software that they read", NULL,
     OPTION_TEXT(main_options.sw.desc.sw), .apply = apply_descriptions},
    {"serial_num", 0, "TEXT", "the serial number that they read", NULL,
     OPTION_TEXT(main_options.sw.desc.serial), .apply = apply_descriptions},

    OPTION_GROUP("TLS"),
    STREAM_TLS_OPTIONS(TLS_OPTION)

        OPTION_GROUP("Rights"),
    {"user", 0, "USER[:GROUP]",
     "run as this user, with the capabilities that a switch needs (security.md)", "who started it",
     OPTION_TEXT(main_options.confine.user)},
    {"confine", 0, "on|strict|off",
     "give up what a switch doesn't need: capabilities, system calls, writing to other directories; "
     "strict: another system call ends it",
     NULL, OPTION_WORD(main_options.confine.how, confine_words)},
    {"core-dumps", 0, NULL, "allow core dumps, which have our private key in them", NULL,
     OPTION_FLAG(main_options.confine.core_dumps)},

    DAEMON_OPTIONS(
        main_options.daemon,
        "start even if another one with the --pidfile runs, and take interfaces that another switch has or "
        "that are in a bridge, a bond or Open vSwitch: their packets are then forwarded twice",
        apply_ports),

    OPTION_GROUP("Configuration file"),
    {"config", 'c', "FILE",
     "read these options from FILE; what the command line gives wins over it", NULL,
     OPTION_TEXT(main_options.config), .line_only = true},
    {"check", 0, "[FILE]", "say what is wrong with the options and FILE, or --config, and end",
     NULL, OPTION_TEXT(main_options.check), .line_only = true},
    OPTION_END,
};

const struct daemon_program main_program = {
    .name = "ofdatapath",
    .version = SW_NAME " " OFQOS_VERSION,
    .before =
        "usage: ofdatapath [OPTION]... CONNECTION...\n"
        "       ofdatapath --config=FILE [OPTION]... [CONNECTION]...\n"
        "An OpenFlow 1.3 switch over network interfaces, with packet schedulers set over OpenFlow.\n"
        "\n"
        "CONNECTION is one of\n"
        "  punix:[PATH]        listen on a Unix socket (default: where dpctl looks for it)\n"
        "  ptcp:[PORT][:IP]    listen on TCP (6653, 127.0.0.1; all addresses: 0.0.0.0 or [::])\n"
        "  unix:PATH           connect to a Unix socket\n"
        "  tcp:HOST[:PORT]     connect to a controller (6653), again and again until it is there\n"
        "  ptls:, tls:         the same with TLS (also pssl:, ssl:); ptls: alone: all addresses\n",
    .after =
        "\n"
        "SIGTERM, SIGINT and SIGQUIT end it; what it put on the interfaces is removed (but see\n"
        "--qos-keep), and nothing else.  SIGHUP opens the --log-file anew, and applies what was\n"
        "changed in the --config.\n",
    .words = "punix:|ptcp:|ptls:|unix:|tcp:|tls:",
    .options = options,
};

void
main_options_init(void)
{
    main_options.sw.limits = limits_default(machine_memory());
    main_options.sw.offload.entries = sw_offload_entries_default(machine_memory());
    char why[256];
    take_leaf(NULL, why, sizeof why);
}

void
main_options_complete(struct daemon_settings *s)
{
    struct main_options *o = &main_options;
    uint32_t cache = o->sw.cache_entries;
    uid_t uid;
    gid_t gid;
    if (cache & (cache - 1) || cache == 1)
        daemon_settings_fault(s, daemon_settings_next(s, "cache", NULL),
                              "must be 0 or a power of two from 2 up, such as 16384, not '%u'",
                              cache);
    if (o->sw.offload.entries & (o->sw.offload.entries - 1))
        daemon_settings_fault(s, daemon_settings_next(s, "offload-entries", NULL),
                              "must be a power of two from 16 up, such as 16384, not '%u'",
                              o->sw.offload.entries);
    if (o->socket_group && stream_group_of(o->socket_group, &gid))
        daemon_settings_fault(s, daemon_settings_next(s, "socket-group", NULL),
                              "must be the name or number of a group, such as getent group lists, "
                              "not '%s'",
                              o->socket_group);
    if (confine_user(&o->confine, &uid, &gid))
        daemon_settings_fault(s, daemon_settings_next(s, "user", NULL),
                              "must be USER or USER:GROUP, names or numbers that getent passwd and "
                              "getent group list, not '%s'",
                              o->confine.user);
    if (o->no_local_port)
        o->sw.local_port = NULL;
    o->sw.force = o->daemon.force;
    o->sw.fail_open = o->fail;
    o->sw.qos_foreign = (enum qos_foreign)o->foreign;
    o->sw.backend = backend_words[o->backend].word;
}
