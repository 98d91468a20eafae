/* SPDX-License-Identifier: Apache-2.0 */
/* qos-map: which traffic goes into which queue. */
#include <core/ask.h>
#include <core/command.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/map.h>

#include <inttypes.h>

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

/* ------------------------------------------------------------------------- show */

static bool
same_heading(const struct qos_map_read *a, const struct qos_map_read *b)
{
    return a->cookie == b->cookie && a->table == b->table && !strcmp(a->then, b->then);
}

static void
print_rules(struct ctx *c, struct of_wr *w, const struct qos_map_reads *all)
{
    int width = 16;
    for (size_t i = 0; i < all->n; i++)
        width = (int)strlen(all->v[i].text) > width ? (int)strlen(all->v[i].text) : width;
    width = width > 60 ? 60 : width;
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_map_read *r = &all->v[i];
        if (!i || !same_heading(r, r - 1))
            of_printf(w, "%sset=%s table=%u%s%s%s%s\n", i ? "\n" : "",
                      qos_map_set_name(&c->parse, r->cookie), r->table, *r->then ? " then=" : "",
                      r->then, r->wash ? " wash" : "", r->beside ? " beside" : "");
        of_printf(w, "  %-*s  %" PRIu64 " packet%s, %" PRIu64 " bytes", width,
                  *r->text ? r->text : "(other packets)", r->packets, r->packets == 1 ? "" : "s",
                  r->bytes);
        if (r->missing)
            of_printf(w, ", %u of its %u flows are missing", (unsigned)r->missing,
                      (unsigned)(r->missing + r->flows));
        of_printf(w, i + 1 < all->n ? "\n" : "");
    }
    if (!all->n)
        of_printf(w, "no rules");
}

static void
json_rules(struct ctx *c, struct of_wr *w, const struct qos_map_reads *all)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_array(j, "rules");
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_map_read *r = &all->v[i];
        of_json_object(j, NULL);
        of_json_text(j, "set", qos_map_set_name(&c->parse, r->cookie));
        of_json_uint(j, "table", r->table);
        of_json_text(j, "then", r->then);
        of_json_bool(j, "wash", r->wash);
        of_json_bool(j, "beside", r->beside);
        if (*r->text)
            of_json_text(j, "rule", r->text); /* else: all other packets */
        if (r->queue)
            of_json_uint(j, "queue", r->queue);
        of_json_uint(j, "flows", r->flows);
        of_json_uint(j, "missing", r->missing);
        of_json_uint(j, "packets", r->packets);
        of_json_uint(j, "bytes", r->bytes);
        of_json_end_object(j);
    }
    of_json_end_array(j);
    of_json_end_object(j);
}

static enum status
show_map(struct ctx *c, const char *set)
{
    struct of_wr w = of_wr_grow(VIEW_MAX);
    struct of_list flows;
    struct qos_map_reads all;
    enum status st = map_flows(c, set, &flows);
    if (st)
        return st;
    if (qos_map_read(&c->parse, &flows, &all))
        return say_memory(c);
    if (c->json)
        json_rules(c, &w, &all);
    else
        print_rules(c, &w, &all);
    return view_line(c, &w);
}

/* --------------------------------------------------------------------- changing */

/* Deletes the flows of these rules.  Where the set has the word wash, rules are meant with it. */
static enum status
delete_rules(struct ctx *c, struct qos_map *m, char **words, int n, struct steps *steps)
{
    struct of_list flows;
    struct qos_map_reads now;
    enum status st = map_flows(c, m->set, &flows);
    if (!st && qos_map_read(&c->parse, &flows, &now))
        return say_memory(c);
    if (st)
        return st;
    bool wash = m->wash; /* its flows too */
    qos_map_init(m, m->set);
    m->wash = now.n && now.v[0].wash;
    int err = qos_map_rules(&c->parse, m, words, (size_t)n);
    err = err || !wash ? err : qos_map_finish(&c->parse, m);
    if (err)
        return say_parse(c, err);
    st = map_remove(c, m, false, steps);
    if (st || steps->n)
        return st;
    for (size_t i = 0; i < now.n; i++)
        if (*now.v[i].text)
            return say_failed(
                c, "set %s has no such rule in table %u; it has %s: qos-map show lists all", m->set,
                m->table, now.v[i].text);
    return say_failed(c, "set %s has no rules: qos-map show lists those of all sets", m->set);
}

static enum status
change_map(struct ctx *c, struct qos_map *m, char **words, int n, const char *verb)
{
    struct steps steps = {0};
    bool del = !strcmp(verb, "del"), replace = !strcmp(verb, "replace");
    enum status st;
    if (!del && !replace && !m->n)
        return say_usage(c, "no rule given: write queue=10,dscp=ef");
    if (del && m->n)
        st = delete_rules(c, m, words, n, &steps);
    else if (del)
        st = map_delete(c, has_set(words, n) ? m->set : NULL, &steps);
    else
        st = map_diff(c, m, !replace, &steps);
    st = st || del ? st : map_doubt_queues(c, m, NULL);
    return st ? st : steps_run(c, &steps);
}

static enum status
qos_map(struct ctx *c, const struct command *self, char **words, int n)
{
    static const char *const verbs[] = {"add", "del", "show", "replace"};
    const char *verb = verbs[0]; /* the default */
    struct qos_map m;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (!is_verb(words, &n, verbs[i]))
            continue;
        verb = verbs[i];
        break;
    }
    qos_map_init(&m, "map");
    int err = qos_map_words(&c->parse, &m, words, (size_t)n);
    if (err)
        return say_parse(c, err);
    return !strcmp(verb, "show") ? show_map(c, has_set(words, n) ? m.set : NULL)
                                 : change_map(c, &m, words, n, verb);
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
    "  in_port=N           only packets that enter by this port (local: from the host itself)\n"
    "  remark=af41         packets leave with this DSCP (a name as for dscp, or 0-63)\n"
    "  set_pcp=5           frames leave with this PCP: in their VLAN tag, or in a priority tag (VID 0)\n"
    "  prio=N              priority (default: the more specific the rule, the higher)\n"
    "dscp, ecn, pcp, app and ports may be given several times in a rule; any of them fits.  A rule without an\n"
    "address makes flows for IPv4 and for IPv6.\n"
    "  table=N             where the flows are (default 0)\n"
    "  then=goto:N         where packets go next: table N, normal, flood, output:PORT (default: as now,\n"
    "                      else table 1)\n"
    "  wash                the DSCP of all other packets becomes 0\n"
    "  beside              in a controller's own table: rules above its flows, and no other flow\n"
    "  set=NAME            the set that the flows belong to (default map; for a profile, its file's\n"
    "                      name)\n"
    "  --dry-run           shows the commands that would do it\n"
    "add adds rules to a set; replace makes them the whole set; del deletes these rules, or without rules\n"
    "a set (without set=, all sets); show lists the rules with what they counted.  then= stays as it is\n"
    "if it isn't given.  A command that would send packets to an empty table is refused.";

static const struct command rows[] = {
    {.name = "qos-map",
     .subject = SUBJECT_QOS,
     .first = {TASK_SHAPE, "qos-map add queue=10,dscp=ef", "which traffic takes a queue"},
     .args =
         "add|replace|del|show [RULE...] [wash] [beside] [set=NAME] [table=N] [then=...] [--dry-run]",
     .help = "puts traffic classes, applications, addresses into queues",
     .text = map_help,
     .examples =
         "qos-map queue=10,dscp=ef queue=20,app=ssh\n"
         "qos-map queue=20,app=https,remark=af41 wash then=normal\nqos-map show\nqos-map del queue=20,app=ssh\nqos-map del",
     .run = qos_map,
     .offer = map_offer_rule,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_qos_map = COMMAND_TABLE(rows);
