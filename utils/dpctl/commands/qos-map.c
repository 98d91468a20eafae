/* SPDX-License-Identifier: Apache-2.0 */
/* qos-map: which traffic goes into which queue. */
#include <core/ask.h>
#include <core/command.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/map.h>

static bool
has_set(char **words, int n)
{
    bool set = false;
    for (int i = 0; i < n; i++)
        set |= !strncmp(words[i], "set=", 4);
    return set;
}

static bool
is_verb(char **words, int *n, const char *verb)
{
    if (!*n || strcmp(words[0], verb))
        return false;
    memmove(words, words + 1, (size_t)-- * n * sizeof *words);
    return true;
}

/* The flows of a set, or of all, as the switch shows them. */
static enum status
show_map(struct ctx *c, const char *set)
{
    struct of_mp_flow_request body = {.table_id = OFPTT_ALL,
                                      .out_port = OFPP_ANY,
                                      .out_group = OFPG_ANY,
                                      .cookie = set ? qos_map_cookie(set) : QOS_MAP_COOKIE,
                                      .cookie_mask = set ? UINT64_MAX : QOS_MAP_COOKIE_MASK};
    struct of_msg reply;
    int err = of_parse_match(&c->parse, "", &body.match);
    if (err)
        return say_parse(c, err);
    enum status st = ask_multipart(c, OFPMP_FLOW, &body, &reply);
    return st ? st : view_message(c, &reply);
}

static enum status
qos_map(struct ctx *c, const struct command *self, char **words, int n)
{
    struct qos_map m;
    struct steps steps = {0};
    bool del = is_verb(words, &n, "del"), list = !del && is_verb(words, &n, "show");
    bool replace = !del && !list && is_verb(words, &n, "replace");
    if (!del && !list && !replace)
        is_verb(words, &n, "add"); /* the default */
    qos_map_init(&m, "map");
    int err = qos_map_words(&c->parse, &m, words, (size_t)n);
    if (err)
        return say_parse(c, err);
    bool set = has_set(words, n);
    if (list)
        return show_map(c, set ? m.set : NULL);
    if (del && m.n)
        return say_usage(c, "del deletes a whole set: write del set=NAME, or del for all sets");
    if (!del && !replace && !m.n)
        return say_usage(c, "no rule given: write queue=10,dscp=ef");
    enum status st;
    if (del)
        st = map_delete(c, set ? m.set : NULL, &steps);
    else
        st = map_diff(c, &m, !replace, &steps);
    return st ? st : steps_run(c, &steps);
}

static const char map_help[] =
    "Flows that put kinds of traffic into queues.  A RULE is one word:\n"
    "  queue=N             the queue, of whichever port the packet leaves by\n"
    "  dscp=ef             traffic class: ef, va, le, be, cs0-cs7, af11-af43, 0-63, 8-15\n"
    "  ecn=yes             packets of senders that understand marks: ect0, ect1 or ce; no, 0-3\n"
    "  pcp=5               VLAN-tagged frames of this priority, 0-7, 4-5\n"
    "  app=sip             application by its ports: sip, rtp, http, https, quic, ssh, dns, ...\n"
    "  tcp=80, udp_dst=5000-5010, sctp_src=9\n"
    "                      ports, of either side or one\n"
    "  ip_proto=udp        protocol\n"
    "  src=10.0.0.0/8, dst=fd00::1\n"
    "                      addresses\n"
    "  in_port=N           only packets that enter by this port\n"
    "  remark=af41         packets leave with this DSCP (a name as for dscp, or 0-63)\n"
    "  set_pcp=5           frames leave with this PCP: in their VLAN tag, or in a priority tag (VID 0)\n"
    "  prio=N              priority (default: the more specific the rule, the higher)\n"
    "dscp, ecn, pcp, app and ports may be given several times in a rule; any of them fits.  A rule without an\n"
    "address makes flows for IPv4 and for IPv6.\n"
    "  table=N             where the flows are (default 0)\n"
    "  then=goto:N         where packets go next: table N (default 1), normal, flood, output:PORT\n"
    "  wash                the DSCP of all other packets becomes 0\n"
    "  beside              in a controller's own table: rules above its flows, and no other flow\n"
    "  set=NAME            the set that the flows belong to (default map; for a profile, its file's\n"
    "                      name)\n"
    "  --dry-run           shows the commands that would do it\n"
    "add adds rules to a set; replace makes them the whole set; del deletes a set (without set=, all\n"
    "sets); show lists the flows with their counters.";

static const struct command rows[] = {
    {.name = "qos-map",
     .args =
         "add|replace|del|show [RULE...] [wash] [beside] [set=NAME] [table=N] [then=...] [--dry-run]",
     .help = "puts traffic classes, applications, addresses into queues",
     .text = map_help,
     .examples =
         "qos-map queue=10,dscp=ef queue=20,app=ssh\n"
         "qos-map queue=20,app=https,remark=af41 wash then=normal\nqos-map show\nqos-map del",
     .run = qos_map,
     .offer = map_offer_rule,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_qos_map = COMMAND_TABLE(COMMANDS_QUEUES, rows);
