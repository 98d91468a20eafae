/* SPDX-License-Identifier: Apache-2.0 */
/* QoS requests: a command for each scheduler row of the qos library, and qos-clear. */
#include "qos-cmd.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum status
send_qos(struct ctx *c, const struct qos_request *r)
{
    struct of_wr content = of_wr_grow(OF_MSG_MAX);
    enum status st;
    qos_request_encode(&content, r);
    if (content.overflow) {
        st = failed(c, "out of memory");
    } else if (c->experimenter) {
        struct of_experimenter m = {
            OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_REQUEST, {content.buf, content.len}};
        st = modify(c, OFPT_EXPERIMENTER, &m);
    } else {
        struct of_qos m = {{content.buf, content.len}};
        st = modify(c, OFPT_QOS_QUEUEING_DISCIPLINE, &m);
    }
    of_wr_free(&content);
    return st;
}

void
print_qos_command(struct of_wr *w, const struct qos_request *r)
{
    char text[QOS_REQUEST_TEXT];
    qos_request_print(r, text, sizeof text);
    of_printf(w, "qos-%s %s", r->sched->name, text);
}

bool
take_flag(char **words, int *n, const char *flag)
{
    int kept = 0;
    for (int i = 0; i < *n; i++)
        if (strcmp(words[i] + (strncmp(words[i], "--", 2) ? 0 : 2), flag))
            words[kept++] = words[i];
    bool found = kept < *n;
    *n = kept;
    return found;
}

/* The qos library knows ports by number: a name behind port= becomes one. */
static enum status
number_ports(struct ctx *c, const char *text, char *out, size_t size)
{
    struct of_wr w = of_wr_fixed(out, size - 1);
    enum status st;
    uint32_t no;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        const char *word = keep_text(c, text, n);
        if (!word)
            return failed(c, "out of memory");
        if (strncasecmp(word, "port=", 5) || !word[5] || !strcasecmp(word + 5, "all"))
            of_printf(&w, "%s,", word);
        else if ((st = port_number(c, word + 5, &no)))
            return st;
        else
            of_printf(&w, "port=%u,", (unsigned)no);
    }
    out[w.len] = '\0';
    return w.overflow ? bad_args(c, "more than %zu bytes", size) : DPCTL_OK;
}

static enum status
request(struct ctx *c, const struct qos_sched *sched, const char *text)
{
    struct qos_request r;
    char why[768] = "", numbered[4096];
    enum status st = number_ports(c, text, numbered, sizeof numbered);
    if (st)
        return st;
    text = numbered;
    if (qos_request_parse(&r, sched, text, why, sizeof why))
        return bad_args(c, "%s", why);
    st = doubt(c, why);
    return st ? st : send_qos(c, &r);
}

static enum status
qos_request(struct ctx *c, char **words, int n)
{
    const char *text = join_words(c, words, n, ',');
    return text ? request(c, c->command->more->sched, text) : failed(c, "out of memory");
}

static enum status
qos_clear(struct ctx *c, char **words, int n)
{
    char text[96];
    const char *all = join_words(c, words, n, ',');
    if (!all)
        return failed(c, "out of memory");
    if (!n || strlen(all) + 32 > sizeof text)
        return bad_args(c, "which port is to be cleared: port=N or port=any is right");
    bool bare = strcspn(all, "=") > strcspn(all, ",");
    int len =
        snprintf(text, sizeof text, "cmd=del,%s%s", bare || !strchr(all, '=') ? "port=" : "", all);
    enum status st = request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
    if (st || strstr(all, "direction="))
        return st;
    snprintf(text + len, sizeof text - (size_t)len, ",direction=in");
    return request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
}

const struct command *
scheduler_command(unsigned i)
{
    static char name[32], args[128];
    static struct command command;
    static struct command_more more;
    const struct qos_sched *s;
    /* The scheduler "none" has a command with a better name, qos-clear. */
    for (unsigned k = 0; (s = qos_sched_at(k)); k++)
        if (s->id != OFP_QOS_SCHED_NONE && i-- == 0)
            break;
    if (!s)
        return NULL;
    snprintf(name, sizeof name, "qos-%s", s->name);
    snprintf(args, sizeof args, "cmd=add|del|change|replace,port=N,class=N,...");
    more = (struct command_more){.sched = s};
    command = (struct command){name, NULL, args, s->help, qos_request, &more};
    return &command;
}

static const char show_help[] =
    "  port=N, class=N  only these (class=0: the port's root)\n"
    "  --kernel         which schedulers the switch's kernel has, with the names of the kernel\n"
    "                   module and of OpenWrt's package that has it\n"
    "Of a class: its configuration, a share with what it comes to; then the kernel's counters.\n"
    "Ports with queues for what enters by them have two trees.  --json shows everything.";

static const char apply_help[] =
    "  FILE             the profile (-: stdin); docs/dpctl-qos.md describes it, examples/ has some\n"
    "  port=1,3,5-8     the ports whose queues are to be as it says; port=all: every one\n"
    "  NAME=VALUE       for a variable $NAME of the profile\n"
    "  --dry-run        shows the commands that would do it, and does nothing\n"
    "What is there and not in the profile is removed.  All ports are changed in one step, or, where\n"
    "the switch refuses anything, none.  Applying a profile again changes nothing.\n\n"
    "A profile:\n"
    "  set up=20mbit                                  # $up, unless the command line says it\n"
    "  htb class=0,rate=$up                           # the port's total\n"
    "  htb class=10,name=voice,rate=10%,ceil=100%,prio=0\n"
    "  htb class=20,name=rest,rate=90%,ceil=100%,prio=1\n"
    "  fq_codel class=rest\n"
    "  map queue=voice,dscp=ef,app=sip                # see: dpctl help qos-map\n"
    "  in                                             # what follows: for what enters by the port\n"
    "  htb class=0,rate=50mbit";

static const char map_help[] =
    "Flows that put kinds of traffic into queues.  A RULE is one word:\n"
    "  queue=N             the queue, of whichever port the packet leaves by\n"
    "  dscp=ef             traffic class: ef, va, le, be, cs0-cs7, af11-af43, 0-63, 8-15\n"
    "  app=sip             application by its ports: sip, rtp, http, https, quic, ssh, dns, ...\n"
    "  tcp=80, udp_dst=5000-5010, sctp_src=9\n"
    "                      ports, of either side or one\n"
    "  ip_proto=udp        protocol\n"
    "  src=10.0.0.0/8, dst=fd00::1\n"
    "                      addresses\n"
    "  in_port=N           only what enters by this port\n"
    "  prio=N              priority (default: the more a rule says the higher)\n"
    "dscp, app and ports may be given several times in a rule: any of them.  Where no address is\n"
    "given there are flows for IPv4 and for IPv6.\n"
    "  table=N             where the flows are (default 0)\n"
    "  then=goto:N         what happens next: on to table N (default 1), normal, flood, output:PORT\n"
    "  set=NAME            the flows belong to this set (default map); a profile's to the set of the\n"
    "                      file's name\n"
    "  --dry-run           shows the commands that would do it\n"
    "add adds rules to a set; replace makes the set what the rules say; del deletes a set (del alone:\n"
    "all sets); show lists them with their counters.";

static const char watch_help[] =
    "  port=N           only this port\n"
    "  interval=1s      time between two looks (at least 100ms)\n"
    "  count=N          ends after N of them; else SIGINT (^C) does\n"
    "Columns: what the queue sends now, as a bar of what it may at most ('=' within its guaranteed\n"
    "rate, '+' borrowed, '|' where the guaranteed rate ends), what it is guaranteed and its ceiling,\n"
    "what waits, packets dropped in the interval.  Without a terminal each look is a block of lines;\n"
    "with --json a line for each queue.  Colours: on a terminal, unless NO_COLOR is set.";

static const char clear_help[] =
    "  port=N           the port; port=any: every port\n"
    "  direction=out    only the queues for what leaves by it (in: enters); default: both";

const struct command qos_commands[] = {
    {"qos-show", NULL, "[port=N] [class=N] | --kernel",
     "the queues, their configuration and counters", qos_show, MORE(.text = show_help)},
    {"qos-watch", NULL, "[port=N] [interval=TIME] [count=N]",
     "the queues' rates, backlog and drops as they change", qos_watch, MORE(.text = watch_help)},
    {"qos-apply", NULL, "FILE port=N,...|all [NAME=VALUE...] [--dry-run]",
     "makes ports' queues what a profile says", qos_apply, MORE(.text = apply_help)},
    {"qos-map", NULL, "add|replace|del|show [RULE...] [set=NAME] [table=N] [then=...] [--dry-run]",
     "puts traffic classes, applications, addresses into queues", qos_map, MORE(.text = map_help)},
    {"qos-clear", NULL, "port=N|any [direction=out|in]",
     "removes all queues of a port, or of all; or only those for what leaves or enters", qos_clear,
     MORE(.text = clear_help)},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
