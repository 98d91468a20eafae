/* SPDX-License-Identifier: Apache-2.0 */
/* A command for each scheduler of the qos library, and qos-clear. */
#include <core/complete.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/queues.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Replaces names behind port= by numbers: the qos library knows no names. */
static enum status
number_ports(struct ctx *c, const char *text, char *out, size_t size)
{
    struct of_wr w = of_wr_fixed(out, size - 1);
    enum status st;
    uint32_t no;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        const char *word = words_keep(c, text, n);
        if (!word)
            return say_memory(c);
        if (strncasecmp(word, "port=", 5) || !word[5] || !strcasecmp(word + 5, "all"))
            of_printf(&w, "%s,", word);
        else if ((st = ports_number(c, word + 5, &no)))
            return st;
        else
            of_printf(&w, "port=%u,", (unsigned)no);
    }
    out[w.len] = '\0';
    return w.overflow ? say_usage(c, "the request is longer than %zu characters", size - 1)
                      : DPCTL_OK;
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
        return say_usage(c, "%s", why);
    st = say_doubt(c, why);
    return st ? st : queues_send(c, &r);
}

static enum status
qos_request(struct ctx *c, const struct command *self, char **words, int n)
{
    const char *text = words_join(c, words, n, ',');
    return text ? request(c, self->sched, text) : say_memory(c);
}

static enum status
qos_clear(struct ctx *c, const struct command *self, char **words, int n)
{
    char text[96];
    const char *all = words_join(c, words, n, ',');
    if (!all)
        return say_memory(c);
    if (!n || strlen(all) + 32 > sizeof text)
        return say_usage(c, "write the port whose queues are to go: port=N or port=any");
    bool bare = strcspn(all, "=") > strcspn(all, ",");
    int len =
        snprintf(text, sizeof text, "cmd=del,%s%s", bare || !strchr(all, '=') ? "port=" : "", all);
    enum status st = request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
    if (st || strstr(all, "direction="))
        return st;
    snprintf(text + len, sizeof text - (size_t)len, ",direction=in");
    return request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
}

/* ------------------------------------------------------------------------- the rows */

/* The scheduler's parameters, as the qos library describes them. */
static void
scheduler_more(struct of_wr *w, const struct command *self)
{
    char text[4096];
    if (qos_sched_usage(self->sched, text, sizeof text) < (int)sizeof text)
        of_printf(w, "\n%s\n", text);
}

static void
scheduler_offer(struct complete *k, const struct command *self)
{
    const struct qos_field *f;
    char name[32];
    complete_key(k, "cmd", "add|del|change|replace", NULL);
    complete_key(k, "port", "PORT", NULL);
    complete_key(k, "class", "CLASS", NULL);
    complete_key(k, "object", "qdisc|class", NULL);
    if (self->sched->classful)
        complete_key(k, "default", "CLASS", "where packets without a queue go");
    for (unsigned i = 0; (f = qos_sched_field(self->sched, i)); i++)
        complete_key(k, qos_field_name(f, name, sizeof name), qos_field_hint(f), f->help);
}

static const char clear_help[] =
    "  port=N           the port; port=any: every port\n"
    "  direction=out    only the queues for outgoing packets (in: incoming); default: both";

static const struct command clear = {
    .name = "qos-clear",
    .args = "port=N|any [direction=out|in]",
    .help = "removes all queues of a port or of all ports, in one direction or in both",
    .text = clear_help,
    .examples = "qos-clear port=2\nqos-clear port=any",
    .run = qos_clear,
};

/* qos-clear, which stands for the scheduler "none", then a command for each other scheduler. */
static const struct command *
scheduler_row(size_t i)
{
    static struct {
        struct command row;
        char name[32];
    } made[256];
    const struct qos_sched *s;
    size_t n = 0;
    if (!i)
        return &clear;
    for (unsigned k = 0; (s = qos_sched_at(k)); k++)
        if (s->id != OFP_QOS_SCHED_NONE && ++n == i)
            break;
    if (!s)
        return NULL;
    snprintf(made[n].name, sizeof made[n].name, "qos-%s", s->name);
    made[n].row = (struct command){.name = made[n].name,
                                   .args = "cmd=add|del|change|replace,port=N,class=N,...",
                                   .help = s->help,
                                   .run = qos_request,
                                   .more = scheduler_more,
                                   .offer = scheduler_offer,
                                   .sched = s};
    return &made[n].row;
}

const struct command_table commands_qos_request = {.title = COMMANDS_QUEUES, .row = scheduler_row};
