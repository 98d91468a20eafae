/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign.h"

#include <core/flow-words.h>
#include <core/local.h>
#include <core/remote.h>

#include <stream/address.h>

#include <ctype.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ commands */

#define OPTIONS "an option of ofdatapath, or a line of its configuration file: ofqos.conf(5)"
#define CONTROLLER                                                                                 \
    "write the controller's address behind ofdatapath's options, or controller = "                 \
    "tcp:HOST:PORT in its configuration file, then dpctl reload"
#define DATABASE "there is no database: ports and controllers are " OPTIONS
#define QDISC                                                                                      \
    "write qos-show for the queues, qos-htb cmd=add,port=eth1,class=10,rate=6mbit "                \
    "for a class, qos-fq_codel and others for what is in it"
#define BRIDGES                                                                                    \
    "each ofdatapath is one switch: dpctl status shows it, systemctl list-units "                  \
    "'ofdatapath@*' lists those of this machine"

static const struct foreign {
    const char *word, *instead;
} rows[] = {
    /* ovs-vsctl */
    {"add-br", "start a switch: ofdatapath -i eth1,eth2 punix: (systemctl start ofdatapath@NAME)"},
    {"del-br", "end its ofdatapath (systemctl stop ofdatapath@NAME)"},
    {"list-br", BRIDGES},
    {"br-exists", BRIDGES},
    {"add-port", "write port-add eth3"},
    {"del-port", "write port-del eth3"},
    {"add-bond", "there are no bonds: make one with ip link, then port-add bond0"},
    {"list-ports", "write port-desc"},
    {"list-ifaces", "write port-desc"},
    {"set-controller", CONTROLLER},
    {"get-controller", "write status"},
    {"del-controller", CONTROLLER},
    {"set-fail-mode", "fail = open or closed is " OPTIONS},
    {"get-fail-mode", "write status"},
    {"set-manager", "ofqos-ovsdb answers Open vSwitch's database protocol: ofqos-ovsdb(1)"},
    {"set", DATABASE},
    {"get", DATABASE},
    {"create", DATABASE},
    {"destroy", DATABASE},
    {"find", DATABASE},
    /* ovs-ofctl, ovs-appctl */
    {"snoop", "write monitor for messages, capture for packets"},
    {"replace-flows", "write -F FILE --atomic, beginning with del-flows"},
    {"diff-flows", "write stats-flow, and compare with diff"},
    {"bundle", "write -F FILE --atomic"},
    {"mod-table", "write table-mod table=N,conf=N"},
    {"insert-buckets",
     "write mod-group with all buckets (OpenFlow 1.3 changes a group as a whole)"},
    {"remove-buckets", "write mod-group with the buckets that stay"},
    {"ofproto/trace", "write trace in_port=1,tcp,nw_dst=10.0.0.1"},
    {"fdb/show",
     "addresses that NORMAL has learnt aren't shown; write stats-flow for flow entries"},
    {"coverage/show", "write counters, or why-dropped"},
    {"dpif/show", "write status, or port-desc"},
    {"ct-flush", "this switch tracks no connections"},
    {"dump-conntrack", "this switch tracks no connections"},
    /* brctl, bridge */
    {"addbr", "start a switch: ofdatapath -i eth1,eth2 punix: (systemctl start ofdatapath@NAME)"},
    {"delbr", "end its ofdatapath (systemctl stop ofdatapath@NAME)"},
    {"addif", "write port-add eth3"},
    {"delif", "write port-del eth3"},
    {"fdb", "addresses that NORMAL has learnt aren't shown; write stats-flow for flow entries"},
    {"showmacs",
     "addresses that NORMAL has learnt aren't shown; write stats-flow for flow entries"},
    {"showstp", "there is no spanning tree: a controller decides which ports flood"},
    {"stp", "there is no spanning tree: a controller decides which ports flood"},
    {"vlan", "write flow entries with vlan_vid=N, push_vlan and pop_vlan: dpctl help flow-mod"},
    {"link", "write port-desc, or port-mod"},
    /* tc */
    {"qdisc", QDISC},
    {"class", QDISC},
    {"filter", "write qos-map queue=10,dscp=ef then=normal"},
    {"add", QDISC},
    /* words that are near to one that is there */
    {"flows", "write stats-flow, or dump-flows"},
    {"flow", "write stats-flow, or flow-mod"},
    {"ports", "write port-desc, or stats-port for counters"},
    {"port", "write port-desc, port-add, port-del or port-mod"},
    {"groups", "write group-desc, or stats-group for counters"},
    {"meters", "write meter-config, or stats-meter for counters"},
    {"tables", "write stats-table"},
    {"queues", "write qos-show"},
    {"queue", "write qos-show, or qos-htb cmd=add,port=eth1,class=10,rate=6mbit"},
    {"qos", "write qos-show"},
    {"qos-list", "write qos-show"},
    {"qos-add", "write qos-htb cmd=add,port=eth1,class=10,rate=6mbit"},
    {"qos-set", "write qos-htb cmd=change,port=eth1,class=10,rate=6mbit"},
    {"qos-del", "write qos-clear port=eth1, or qos-clear port=eth1,class=10"},
    {"qos-delete", "write qos-clear port=eth1, or qos-clear port=eth1,class=10"},
    {"qos-remove", "write qos-clear port=eth1, or qos-clear port=eth1,class=10"},
    {"list",
     "dpctl --help=all lists the commands; port-desc, stats-flow and qos-show what there is"},
    {"drops", "write why-dropped"},
    {"tcpdump", "write capture eth1"},
    {"info", "write status"},
    {"stats", "write counters, stats-port, stats-flow or stats-queue"},
    {"version", "write --version"},
    {"start", "start ofdatapath (systemctl start ofdatapath@NAME)"},
    {"stop", "end ofdatapath (systemctl stop ofdatapath@NAME)"},
};

static bool
same(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (tolower((unsigned char)*a) != *b && !(*a == '_' && *b == '-'))
            return false;
    return *a == *b;
}

const char *
foreign_instead(const char *word)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (same(word, rows[i].word))
            return rows[i].instead;
    return NULL;
}

/* ------------------------------------------------------------------ a bridge's name */

/* Could the word be a name, rather than a number, a key with its value or a flow's "tcp"? */
static bool
is_plain(const char *word)
{
    struct flow_part p = flow_part(word, strlen(word), "=");
    return isalpha((unsigned char)*word) && !strpbrk(word, "=,:/ ") &&
           !flow_word_find(flow_words, &p);
}

/* A name that bridges usually have: br0, br-int, ovs-br1, s1 of Mininet. */
static bool
is_usual(const char *word)
{
    return !strncmp(word, "br", 2) || !strncmp(word, "ovs-br", 6) ||
           (*word == 's' && word[1] && strspn(word + 1, "0123456789") == strlen(word + 1));
}

bool
foreign_bridge(const struct command *k, char *const *words, int n)
{
    struct stat st;
    char path[300];
    int bare = 0, own = k->bridge || k->args ? k->bridge : 1;
    if (!own || n < 1 || !is_plain(words[0]))
        return false;
    for (int i = 0; i < n; i++)
        bare += is_plain(words[i]) || isdigit((unsigned char)*words[i]);
    if (bare > own - 1 || local_switch(words[0], path, sizeof path))
        return true;
    /* It could be an argument: a port's name, a file's. */
    return is_usual(words[0]) && !if_nametoindex(words[0]) && stat(words[0], &st);
}

bool
foreign_bridge_first(const char *word)
{
    return is_plain(word) && is_usual(word);
}

const char *
foreign_address(const char *name, char *why, size_t size)
{
    char path[300], names[256];
    struct stat st;
    const char *usual = getenv(REMOTE_VARIABLE), *slash = strrchr(stream_default_socket, '/');
    unsigned n = local_switches(names, sizeof names);
    if (local_switch(name, path, sizeof path))
        return name;
    if (is_usual(name) && usual && *usual)
        return usual;
    /* A switch that has a name of its own is never meant by another one. */
    if (is_usual(name) && n < 2 && !stat(stream_default_socket, &st))
        return remote_usual();
    if (n)
        snprintf(why, size, "%s isn't running; running here: %s", name, names);
    else
        snprintf(why, size, "%s isn't running: no switch has a socket in %.*s", name,
                 slash ? (int)(slash - stream_default_socket) : 0, stream_default_socket);
    return NULL;
}
