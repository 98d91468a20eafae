/* SPDX-License-Identifier: Apache-2.0 */
/* qos-names: rules for names, whose addresses are learned from the DNS answers that pass through. */
#include <core/ask.h>
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>
#include <core/words.h>
#include <queues/map.h>

#include <qos/profile/names.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SET         "names"
#define RULES_MAX   32
#define HOSTS_MAX   64 /* in all rules */
#define SERVERS_MAX 8
#define RULE_TEXT   512
#define COPY_S      300 /* a command that dies leaves the flows for answers for so long */
#define REFRESH_MS  100000
#define KEEP_BYTES  (16u << 20)

struct names {
    struct of_arena
        keep; /* lives as long as the command; the context's arena is reset for each message */
    struct of_parse parse;
    struct qos_map map; /* options, the flows for answers and the table-miss flow */
    char *rules[RULES_MAX];
    size_t n_rules;
    struct {
        const char *pattern;
        uint16_t rule;
    } hosts[HOSTS_MAX];
    size_t n_hosts;
    const char *servers[SERVERS_MAX];
    size_t n_servers;
    uint64_t queue;
    struct qos_names table;
    bool full; /* has been said */
};

/* ------------------------------------------------------------------------ words */

static char *
keep(struct names *s, const char *text)
{
    return of_arena_text(&s->keep, text, strlen(text));
}

static enum status
take_host(struct ctx *c, struct names *s, const char *pattern)
{
    if (!qos_dns_pattern(pattern))
        return say_usage(c,
                         "host must be a name such as video.example.org or *.example.org, not "
                         "'%.60s'",
                         pattern);
    if (s->n_hosts == HOSTS_MAX)
        return say_usage(c, "more than %d hosts", HOSTS_MAX);
    s->hosts[s->n_hosts].pattern = keep(s, pattern);
    s->hosts[s->n_hosts].rule = (uint16_t)s->n_rules;
    return s->hosts[s->n_hosts++].pattern ? DPCTL_OK : say_memory(c);
}

static bool
is_address_key(const char *word)
{
    static const char *const keys[] = {"src=", "dst=", "ip_src=", "ip_dst=", "in_port="};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strncmp(word, keys[i], strlen(keys[i])))
            return true;
    return false;
}

/* The flows of a rule, for an address, as seen from both sides. */
static int
make_flows(struct of_parse *p, const char *rule, const char *address, struct qos_map *m)
{
    char text[RULE_TEXT + INET6_ADDRSTRLEN + 8];
    snprintf(text, sizeof text, "%s,dst=%s", rule, address);
    return qos_map_rule(p, m, text, true);
}

/* "queue=20,host=*.example.org,tcp=443": the hosts, and the rule without them. */
static enum status
take_rule(struct ctx *c, struct names *s, const char *word)
{
    char copy[RULE_TEXT], rule[RULE_TEXT] = "", *save;
    struct qos_map trial = s->map;
    size_t before = s->n_hosts;
    enum status st = DPCTL_OK;
    if (strlen(word) >= sizeof copy - 1 || s->n_rules == RULES_MAX)
        return say_usage(c, "more than %d rules, or one longer than %zu characters", RULES_MAX,
                         sizeof copy - 2);
    strcpy(copy, word);
    for (char *w = strtok_r(copy, ",", &save); w && !st; w = strtok_r(NULL, ",", &save)) {
        if (!strncmp(w, "host=", 5))
            st = take_host(c, s, w + 5);
        else if (is_address_key(w))
            st = say_usage(
                c, "leave out %s: the host's addresses are the rule's, in both directions", w);
        else
            snprintf(rule + strlen(rule), sizeof rule - strlen(rule), "%s%s", *rule ? "," : "", w);
    }
    if (!st && s->n_hosts == before)
        st = say_usage(c, "%s has no host=; qos-map makes rules without", word);
    int err = st ? 0 : make_flows(&c->parse, rule, "192.0.2.1", &trial);
    if (st || err)
        return st ? st : say_parse(c, err);
    s->rules[s->n_rules] = keep(s, rule);
    return s->rules[s->n_rules++] ? DPCTL_OK : say_memory(c);
}

static enum status
take_server(struct ctx *c, const struct key *k, char *text, void *to)
{
    struct names *s = to;
    uint8_t bytes[16];
    if (inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text, bytes) != 1)
        return say_usage(c, "server must be an address such as 192.0.2.53, not '%.60s'", text);
    if (s->n_servers == SERVERS_MAX)
        return say_usage(c, "more than %d servers", SERVERS_MAX);
    s->servers[s->n_servers] = keep(s, text);
    return s->servers[s->n_servers++] ? DPCTL_OK : say_memory(c);
}

static enum status
take_place(struct ctx *c, const struct key *k, char *word, void *to)
{
    struct names *s = to;
    int err = qos_map_place(&s->parse, &s->map, word);
    if (err < 0)
        return say_usage(c, "%s", s->parse.why);
    return err ? DPCTL_OK
               : say_usage(c,
                           "unknown word '%.80s': a rule has queue= or remark=, and host=; "
                           "options are server=, min=, max=, addresses=, all=, answers=, table=, "
                           "then=",
                           word);
}

#define TO(member) KEY_TO(struct names, member)
static const struct key keys[] = {
    {"server", .take = take_server},
    {"min", key_number, TO(table.limits.min_s), .least = 10, .most = 3600},
    {"max", key_number, TO(table.limits.max_s), .least = 10, .most = UINT16_MAX},
    {"addresses", key_number, TO(table.limits.per_name), .least = 1, .most = 4096},
    {"all", key_number, TO(table.limits.all), .least = 1, .most = 65536},
    {"answers", key_number, TO(queue), .least = 1, .most = OFP_QOS_QUEUE_MAX},
    {.take = take_place},
};

static enum status
take_words(struct ctx *c, struct names *s, char **words, int n)
{
    enum status st = DPCTL_OK;
    const struct qos_names_limits *t = &s->table.limits;
    for (int i = 0; !st && i < n; i++)
        if (!qos_map_is_rule(words[i]))
            st = keys_take(c, keys, &words[i], 1, s);
    for (int i = 0; !st && i < n; i++)
        if (qos_map_is_rule(words[i]))
            st = take_rule(c, s, words[i]);
    if (!st && !s->n_rules)
        return say_usage(c, "no rule given: write queue=20,host=*.example.org");
    if (!st && t->max_s < t->min_s)
        return say_usage(c, "max=%u is below min=%u", (unsigned)t->max_s, (unsigned)t->min_s);
    return st;
}

/* ----------------------------------------------------------------- what is learned */

static enum status
show(struct ctx *c, const char *what, const char *name, const char *address, uint32_t seconds,
     const char *rule)
{
    struct of_wr w = of_wr_grow(1 << 12);
    if (c->json) {
        struct of_json json = of_json(&w), *j = &json;
        of_json_object(j, NULL);
        of_json_text(j, "event", what);
        of_json_text(j, "name", name);
        of_json_text(j, "address", address);
        of_json_uint(j, "seconds", seconds);
        of_json_text(j, "rule", rule);
        of_json_end_object(j);
    } else {
        of_printf(&w, "%s %s %s %us %s", what, name, address, (unsigned)seconds, rule);
    }
    enum status st = view_line(c, &w);
    fflush(stdout);
    return st;
}

/* Sends the flows of an address.  A refusal comes as a message later. */
static enum status
send_flows(struct ctx *c, struct names *s, uint16_t rule, const char *address, uint32_t idle_s)
{
    struct qos_map m = {.set = s->map.set, .table = s->map.table, .then = s->map.then};
    enum status st = DPCTL_OK;
    int err = make_flows(&c->parse, s->rules[rule], address, &m);
    err = err ? err : qos_map_way(&c->parse, &m, &(struct of_list){0});
    if (err)
        return say_parse(c, err);
    for (size_t i = 0; !st && i < m.n; i++) {
        m.v[i].idle_s = (uint16_t)idle_s;
        m.v[i].hard_s = (uint16_t)s->table.limits.max_s;
        struct of_flow_mod fm = qos_map_addition(&m, &m.v[i]);
        st = ask_send(c, OFPT_FLOW_MOD, &fm);
    }
    return st;
}

static enum status
learn(struct ctx *c, struct names *s, uint16_t rule, const char *name,
      const struct qos_dns_address *a)
{
    char address[INET6_ADDRSTRLEN];
    uint32_t idle_s = qos_names_seconds(&s->table, a->ttl);
    inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->bytes, address, sizeof address);
    enum qos_names_news news =
        qos_names_learn(&s->table, rule, name, a, (uint64_t)remote_now_ms() / 1000);
    if (news == QOS_NAMES_SAME || (news == QOS_NAMES_FULL && s->full))
        return DPCTL_OK;
    s->full |= news == QOS_NAMES_FULL;
    if (news == QOS_NAMES_FULL)
        return show(c, "full", name, address, 0, s->rules[rule]);
    enum status st = send_flows(c, s, rule, address, idle_s);
    return st ? st
              : show(c, news == QOS_NAMES_NEW ? "learned" : "again", name, address, idle_s,
                     s->rules[rule]);
}

/* The first of the names that lead to the address and fit. */
static const char *
fitting(const struct qos_dns_answer *answer, size_t last, const char *pattern)
{
    for (size_t i = 0; i <= last; i++)
        if (qos_dns_fits(pattern, answer->names[i]))
            return answer->names[i];
    return NULL;
}

static enum status
take_packet(struct ctx *c, struct names *s, const struct of_packet_in *in)
{
    struct qos_dns_answer answer;
    enum status st = DPCTL_OK;
    if (in->cookie != qos_map_cookie(s->map.set) || !qos_dns_read(qos_dns_find(in->data), &answer))
        return DPCTL_OK;
    for (size_t i = 0; i < answer.n; i++) {
        uint32_t done = 0; /* by rule */
        for (size_t h = 0; !st && h < s->n_hosts; h++) {
            uint16_t rule = s->hosts[h].rule;
            const char *name = fitting(&answer, answer.v[i].name, s->hosts[h].pattern);
            if (!name || done >> rule & 1)
                continue;
            done |= 1u << rule;
            st = learn(c, s, rule, name, &answer.v[i]);
        }
    }
    return st;
}

/* A table that is full, say; a later answer tries again. */
static void
report_refusal(struct ctx *c, const struct of_msg *msg)
{
    bool json = c->json;
    c->json = false;
    view_error(c, msg);
    c->json = json;
    fflush(stderr);
}

static enum status
take_message(struct ctx *c, struct names *s, struct of_bytes raw)
{
    struct of_msg msg;
    if (of_decode(raw, &c->arena, &msg))
        return DPCTL_OK;
    if (msg.type == OFPT_ERROR)
        report_refusal(c, &msg);
    return msg.type == OFPT_PACKET_IN ? take_packet(c, s, msg.body) : DPCTL_OK;
}

/* ------------------------------------------------------------------- the command */

/* Renews the flows for DNS answers before they expire. */
static enum status
refresh(struct ctx *c, const struct names *s)
{
    enum status st = DPCTL_OK;
    for (size_t i = 0; !st && i < s->map.n; i++) {
        struct of_flow_mod fm = qos_map_addition(&s->map, &s->map.v[i]);
        if (fm.hard_timeout)
            st = ask_send(c, OFPT_FLOW_MOD, &fm);
    }
    return st;
}

static enum status
listen_to_answers(struct ctx *c, struct names *s)
{
    int64_t now = remote_now_ms(), next = now + REFRESH_MS;
    int64_t until = c->timeout_s >= 0 ? now + (int64_t)c->timeout_s * 1000 : INT64_MAX;
    struct of_bytes raw;
    enum status st = DPCTL_OK;
    while (!st && !signals_pending()) {
        int err = remote_recv(&c->remote, next < until ? next : until, &raw);
        if (!err)
            st = take_message(c, s, raw);
        else if (err != -EINTR && err != -ETIMEDOUT)
            st = say_failed(c, "%s", c->remote.why);
        of_arena_reset(&c->arena);
        now = remote_now_ms();
        if (now >= until)
            break;
        if (!st && now >= next) {
            st = refresh(c, s);
            next = now + REFRESH_MS;
        }
    }
    return st;
}

static enum status
make_base(struct ctx *c, struct names *s, struct steps *steps)
{
    struct of_list table;
    int err = 0;
    size_t i = 0;
    do
        err = qos_map_answers(&s->parse, &s->map, s->n_servers ? s->servers[i] : NULL,
                              (uint32_t)s->queue, COPY_S);
    while (!err && ++i < s->n_servers);
    err = err ? err : qos_map_finish(&s->parse, &s->map);
    if (err)
        return err == -ENOMEM ? say_memory(c) : say_usage(c, "%s", s->parse.why);
    enum status st = map_way(c, &s->parse, &s->map, &table);
    return st ? st : map_diff(c, &s->map, false, steps);
}

static enum status
run(struct ctx *c, struct names *s)
{
    struct of_async async = {.packet_in_mask0 = 1u << OFPR_ACTION,
                             .packet_in_mask1 = 1u << OFPR_ACTION};
    struct steps steps = {0}, away = {0};
    sigset_t before;
    enum status st = make_base(c, s, &steps);
    if (st || c->dry_run)
        return st ? st : steps_run(c, &steps);
    st = ask_send(c, OFPT_SET_ASYNC, &async);
    st = st ? st : steps_run(c, &steps);
    if (st)
        return st;
    fflush(stdout);
    signals_hold(&before);
    c->remote.sigmask = &before;
    st = listen_to_answers(c, s);
    c->remote.sigmask = NULL;
    enum status gone = st ? st : map_delete(c, SET, &away);
    gone = gone || !away.n ? gone : steps_run(c, &away);
    signals_release(&before);
    return gone;
}

static enum status
qos_names(struct ctx *c, const struct command *self, char **words, int n)
{
    struct names s = {.table.limits = {.min_s = 60, .max_s = 3600, .per_name = 128, .all = 4096}};
    if (c->bundle)
        return say_usage(c, "qos-names runs until SIGINT, so it can't be part of --atomic");
    of_arena_init(&s.keep, KEEP_BYTES);
    s.parse = c->parse;
    s.parse.arena = &s.keep;
    qos_map_init(&s.map, SET);
    enum status st = take_words(c, &s, words, n);
    s.table.v = st ? NULL : calloc(s.table.limits.all, sizeof *s.table.v);
    if (!st)
        st = s.table.v ? run(c, &s) : say_memory(c);
    free(s.table.v);
    of_arena_free(&s.keep);
    return st;
}

static const char names_help[] =
    "Learns the addresses of names from the DNS answers that pass through the switch, A and AAAA, also\n"
    "behind CNAMEs, and makes flows for packets to them and from them.  Runs until SIGINT (^C), or for\n"
    "--timeout seconds; then the flows go.  A RULE is one word, as of qos-map, with\n"
    "  host=NAME           video.example.org, or *.example.org: every name below it; several may be\n"
    "                      given\n"
    "and without addresses.  Flows go when no packet has used them for the TTL, or when the name had no\n"
    "answer for max=; an answer makes them again.\n"
    "  server=ADDRESS      believes only answers of this server; several may be given\n"
    "  min=60, max=3600    seconds: bounds of a TTL\n"
    "  addresses=128       the most for a name\n"
    "  all=4096            the most in all\n"
    "  answers=N           the queue of DNS answers themselves\n"
    "  then=goto:N         where packets go next: table N, normal, flood, output:PORT (default: as now,\n"
    "                      else table 1)\n"
    "  table=N             where the flows are (default 0)\n"
    "  --dry-run           shows the flows that bring the answers, and does nothing\n"
    "Each address that is learned is a line; with --json, an object.";

static const struct command rows[] = {
    {.name = "qos-names",
     .subject = SUBJECT_QOS,
     .args = "RULE... [server=ADDRESS] [min=N] [max=N] [addresses=N] [all=N] [answers=N] [table=N] "
             "[then=...] [--dry-run]",
     .help = "puts names into queues, with the addresses that DNS answers give",
     .text = names_help,
     .examples = "qos-names queue=20,host=*.example.org then=normal --dry-run",
     .run = qos_names,
     .offer = map_offer_rule,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_qos_names = COMMAND_TABLE(rows);
