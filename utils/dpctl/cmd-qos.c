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
request(struct ctx *c, const struct qos_sched *sched, const char *text)
{
    struct qos_request r;
    char why[768] = "";
    if (qos_request_parse(&r, sched, text, why, sizeof why))
        return bad_args(c, "%s", why);
    return send_request(c, &r);
}

static enum status
qos_request(struct ctx *c, char **words, int n)
{
    const char *text = join_words(c, words, n, ',');
    return text ? request(c, c->command->row, text) : failed(c, "out of memory");
}

static enum status
qos_clear(struct ctx *c, char **words, int n)
{
    char text[64];
    if (n != 1 || strlen(words[0]) + 16 > sizeof text)
        return bad_args(c, "which port is to be cleared: port=N or port=any is right");
    snprintf(text, sizeof text, "cmd=del,%s%s", strchr(words[0], '=') ? "" : "port=", words[0]);
    return request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
}

const struct command *
scheduler_command(unsigned i)
{
    static char name[32], args[128];
    static struct command command;
    const struct qos_sched *s;
    /* The scheduler "none" has a command with a better name, qos-clear. */
    for (unsigned k = 0; (s = qos_sched_at(k)); k++)
        if (s->id != OFP_QOS_SCHED_NONE && i-- == 0)
            break;
    if (!s)
        return NULL;
    snprintf(name, sizeof name, "qos-%s", s->name);
    snprintf(args, sizeof args, "cmd=add|del|change|replace,port=N,class=N,...");
    command = (struct command){name, NULL, args, s->help, qos_request, s};
    return &command;
}

void
print_scheduler_usage(const struct command *command)
{
    char text[4096];
    if (command->run == qos_request &&
        qos_sched_usage(command->row, text, sizeof text) < (int)sizeof text)
        printf("%s\n", text);
}

const struct command qos_commands[] = {
    {"qos-show", NULL, "[port=N] [class=N]", "the queues, their configuration and counters",
     qos_show, NULL},
    {"qos-clear", NULL, "port=N|any", "removes all that the switch has put on a port, or on all",
     qos_clear, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
