/* SPDX-License-Identifier: Apache-2.0 */
/* QoS requests: a command for each scheduler row of the qos library, and qos-clear. */
#include "commands.h"

#include <qos/request.h>

#include <stdio.h>
#include <string.h>

static enum status
send_request(struct ctx *c, const struct qos_request *r)
{
    struct of_wr content = of_wr_grow(OF_MSG_MAX);
    enum status st;
    qos_request_encode(&content, r);
    if (content.overflow) {
        st = failed(c, "out of memory");
    } else if (c->experimenter) {
        struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_REQUEST,
                                    {content.buf, content.len}};
        st = modify(c, OFPT_EXPERIMENTER, &m);
    } else {
        struct of_qos m = {{content.buf, content.len}};
        st = modify(c, OFPT_QOS_QUEUEING_DISCIPLINE, &m);
    }
    of_wr_free(&content);
    return st;
}

static enum status
request(struct ctx *c, char **words, int n)
{
    struct qos_request r;
    char why[512];
    const char *text = join_words(c, words, n, ',');
    if (!text)
        return failed(c, "out of memory");
    if (qos_request_parse(&r, c->command->row, text, why, sizeof why))
        return bad_args(c, "%s", why);
    return send_request(c, &r);
}

static enum status
clear(struct ctx *c, char **words, int n)
{
    char word[64];
    char *text = word;
    if (n != 1 || strlen(words[0]) + 16 > sizeof word)
        return bad_args(c, "which port is to be cleared: port=N or port=any is right");
    snprintf(word, sizeof word, "cmd=del,%s%s", strchr(words[0], '=') ? "" : "port=", words[0]);
    return request(c, &text, 1);
}

const struct command *
scheduler_command(unsigned i)
{
    static char name[32];
    static char args[256];
    static struct command command;
    const struct qos_sched *s;
    /* SCHED_NONE has its own command, qos-clear. */
    for (unsigned k = 0; (s = qos_sched_at(k)); k++)
        if (s->id != OFP_QOS_SCHED_NONE && i-- == 0)
            break;
    if (!s)
        return NULL;
    snprintf(name, sizeof name, "qos-%s", s->name);
    snprintf(args, sizeof args, "cmd=add|del|change|replace,port=N,%s%s...",
             s->classful ? "class=N," : "[class=N,]", s->classful ? "" : "");
    command = (struct command){name, NULL, args, s->help, request, s};
    return &command;
}

extern enum status qos_show(struct ctx *c, char **words, int n);

/* The row that qos-clear parses with. */
static const struct command clear_row = {
    "qos-clear", NULL, "port=N|any", "removes all that the switch has put on a port, or on all",
    clear, NULL};

static const struct command show_row = {"qos-show", NULL, "[port=N] [class=N]",
                                        "the queues: configuration and counters", qos_show, NULL};
