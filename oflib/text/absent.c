/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/absent.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CT                                                                                         \
    "this switch tracks no connections: write flow entries for both directions, or filter "        \
    "connections with nftables where packets are routed"
#define REGISTER     "write metadata=N/MASK, set by the instruction meta:N/MASK, instead of a register"
#define COPYING      "write set_field=FIELD:VALUE; no field is copied into another"
#define CHOICE       "a group chooses among ports: add-group group_id=1,type=select,bucket=..."
#define TUNNEL       "tunnels are interfaces of Linux (ip link add ... type vxlan) that are ports here"
#define NO_FIELD_1_3 "OpenFlow 1.3 can't match it"

/* Open vSwitch's own words, and what stands for them here.  A word that ends with "*" is a
 * beginning. */
static const struct absent {
    const char *word, *instead;
} rows[] = {
    {"ct", CT},
    {"ct_*", CT},
    {"nat", "there is no address translation: write set_field=ipv4_src:ADDRESS, or use nftables"},
    {"reg*", REGISTER},
    {"xreg*", REGISTER},
    {"xxreg*", REGISTER},
    {"pkt_mark", REGISTER},
    {"skb_priority", "write queue=N, the queue of the port"},
    {"recirc_id", REGISTER},
    {"dp_hash", CHOICE},
    {"learn", "write output=normal, which learns addresses; a controller learns anything else"},
    {"resubmit", "write the instruction goto:TABLE (goto_table:TABLE in add-flow)"},
    {"move", COPYING},
    {"load", COPYING},
    {"bundle_load", CHOICE},
    {"bundle", CHOICE},
    {"multipath", CHOICE},
    {"conjunction",
     "write a flow entry for each combination, or let a second table match the rest"},
    {"conj_id", "write a flow entry for each combination, or let a second table match the rest"},
    {"note", "write cookie=N to mark a flow entry"},
    {"clone", "each bucket of a group of type=all has its own copy of the packet"},
    {"sample", "dpctl capture shows packets, dpctl top rates"},
    {"fin_timeout", "write idle_timeout=SECONDS"},
    {"controller", "write controller, or controller:BYTES"},
    {"output", "write output:PORT"},
    {"enqueue", "write enqueue:PORT:QUEUE"},
    {"dec_ttl", "write dec_ttl alone"},
    {"exit", "actions end where their list ends"},
    {"pop_queue", "write queue=N before each output that needs one"},
    {"push", REGISTER},
    {"pop", REGISTER},
    {"write_actset", "write the instruction write:ACTIONS (write_actions(...) in add-flow)"},
    {"check_pkt_larger", "nothing here looks at a packet's length"},
    {"encap", TUNNEL},
    {"decap", TUNNEL},
    {"tun_src", TUNNEL},
    {"tun_dst", TUNNEL},
    {"tun_*", TUNNEL},
    {"tcp_flags", NO_FIELD_1_3},
    {"nw_ttl", NO_FIELD_1_3},
    {"nw_frag", "dpctl set-config flags=normal|drop decides about fragments"},
    {"ip_frag", "dpctl set-config flags=normal|drop decides about fragments"},
    {"vlan_tci", "write vlan_vid=N (none: untagged, any: tagged) and vlan_pcp=N"},
    {"actset_output", NO_FIELD_1_3},
    {"packet_type", NO_FIELD_1_3},
    {"nxm_*", "write the field's name, such as ipv4_src, tcp_dst or metadata, not NXM's"},
    {"oxm_*", "write the field's name, such as ipv4_src, tcp_dst or metadata, without OXM_OF_"},
};

static size_t
word_len(const char *text, size_t n)
{
    size_t len = 0;
    while (len < n && !strchr("=:([/", text[len]))
        len++;
    return len;
}

const char *
of_absent(const char *text, size_t n, char *buf, size_t size)
{
    size_t len = word_len(text, n);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *word = rows[i].word;
        size_t known = strlen(word), begins = word[known - 1] == '*' ? known - 1 : 0;
        if (begins ? len < begins || strncasecmp(word, text, begins)
                   : len != known || strncasecmp(word, text, len))
            continue;
        snprintf(buf, size, "there is no %.*s here, as Open vSwitch has it: %s", (int)len, text,
                 rows[i].instead);
        return buf;
    }
    return NULL;
}
