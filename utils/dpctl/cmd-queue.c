/* SPDX-License-Identifier: Apache-2.0 */
/* Queues in the words of BOFUSS's dpctl (docs/extensions.md, Queue messages).  Thousandths go out as
 * its own message, which BOFUSS understands too; rates have no place in that and go out as a request
 * of the QoS extension. */
#include "qos-cmd.h"

#include <qos/sched/units.h>

#include <stdio.h>
#include <string.h>

#define PPM 1000 /* of a thousandth */

/* How much of the port: thousandths, or bit/s. */
struct amount {
    bool given, is_rate;
    uint64_t v;
};

struct queue {
    uint32_t port_no, id;
    struct amount least, most;
};

static enum status
queue_number(struct ctx *c, const char *word, uint32_t *out)
{
    uint64_t v;
    if (qos_parse_number(word, &v, NULL, 0) || v < 1 || v > QOS_CLASS_MAX)
        return bad_args(c, "'%s' is no queue: queues are 1 to %u", word, QOS_CLASS_MAX);
    *out = (uint32_t)v;
    return DPCTL_OK;
}

/* "80", "8%", "6mbit" */
static enum status
amount(struct ctx *c, const char *word, struct amount *out)
{
    char why[256];
    size_t len = strlen(word);
    *out = (struct amount){.given = true};
    if (len && word[len - 1] == '%') {
        if (qos_parse_ppm(word, &out->v, why, sizeof why))
            return bad_args(c, "%s", why);
        if (out->v % PPM || !out->v)
            return bad_args(c, "'%s' is not a number of tenths of a percent: 0.1%% to 100%%", word);
        out->v /= PPM;
        return DPCTL_OK;
    }
    if (!qos_parse_number(word, &out->v, NULL, 0)) {
        if (out->v < 1 || out->v > OFP_QUEUE_RATE_MAX)
            return bad_args(c,
                            "'%s': a number without a unit is thousandths of the port's speed, "
                            "1 to %d; write %skbit or %smbit for a rate",
                            word, OFP_QUEUE_RATE_MAX, word, word);
        return DPCTL_OK;
    }
    out->is_rate = true;
    return qos_parse_rate(word, &out->v, why, sizeof why) ? bad_args(c, "%s", why) : DPCTL_OK;
}

static enum status
parse_queue(struct ctx *c, char **words, int n, struct queue *q)
{
    enum status st = port_number(c, words[0], &q->port_no);
    if (!st)
        st = queue_number(c, words[1], &q->id);
    if (!st && n > 2)
        st = amount(c, words[2], &q->least);
    if (!st && n > 3)
        st = amount(c, words[3], &q->most);
    return st;
}

/* BOFUSS's message. */
static enum status
send_queue(struct ctx *c, const struct queue *q, uint32_t exp_type)
{
    struct of_queue_prop_rate min = {.row = of_tag_row(&of_list_queue_props, OFPQT_MIN_RATE),
                                     .rate = (uint16_t)q->least.v},
                              max = {.row = of_tag_row(&of_list_queue_props, OFPQT_MAX_RATE),
                                     .rate = (uint16_t)q->most.v};
    void *props[2];
    uint32_t n = 0;
    if (q->least.given)
        props[n++] = &min;
    if (q->most.given)
        props[n++] = &max;
    struct of_packet_queue queue = {
        .queue_id = q->id, .port = q->port_no, .properties = {.n = n, .v = props}};
    void *queues[] = {&queue};
    struct of_queue_command m = {.port = q->port_no, .queues = {.n = 1, .v = queues}};
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    enum status st = DPCTL_OK;
    if (of_encode_struct(&w, &of_row_queue_command, &m)) {
        st = failed(c, "out of memory");
    } else {
        struct of_experimenter e = {OFP_OPENFLOW_EXPERIMENTER, exp_type, {w.buf, w.len}};
        st = modify(c, OFPT_EXPERIMENTER, &e);
    }
    of_wr_free(&w);
    return st;
}

static void
put_amount(struct qos_values *v, const struct amount *a, unsigned rate, unsigned share)
{
    qos_put(v, rate, a->is_rate ? a->v : 0);
    if (!a->is_rate)
        qos_put(v, share, a->v * PPM);
}

/* The same as a request of the QoS extension. */
static enum status
send_rates(struct ctx *c, const struct queue *q)
{
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = OFP_QOS_REPLACE,
                            .port_no = q->port_no,
                            .class_id = q->id};
    struct amount most = q->most.given ? q->most : (struct amount){.v = OFP_QUEUE_RATE_MAX};
    put_amount(&r.values, &q->least, QOS_RATE, QOS_RATE_SHARE);
    put_amount(&r.values, &most, QOS_CEIL, QOS_CEIL_SHARE);
    qos_put(&r.values, QOS_PRIO, 0);
    return send_qos(c, &r);
}

static enum status
modify_queue(struct ctx *c, char **words, int n)
{
    struct queue q = {0};
    enum status st = parse_queue(c, words, n, &q);
    if (st)
        return st;
    return q.least.is_rate || q.most.is_rate ? send_rates(c, &q)
                                             : send_queue(c, &q, OFP_EXT_QUEUE_MODIFY);
}

enum status
queue_add(struct ctx *c, char **words, int n)
{
    if (n < 2 || n > 3)
        return bad_args(c, "a port, a queue, and what it is guaranteed: 80 (8 %% of the port's "
                           "speed) or 6mbit");
    return modify_queue(c, words, n);
}

static enum status
queue_mod(struct ctx *c, char **words, int n)
{
    if (n < 3 || n > 4)
        return bad_args(c, "a port, a queue, and what it is guaranteed: 80 (8 %% of the port's "
                           "speed) or 6mbit; then the most it may have, if that isn't all");
    return modify_queue(c, words, n);
}

static enum status
queue_del(struct ctx *c, char **words, int n)
{
    struct queue q = {0};
    if (n != 2)
        return bad_args(c, "a port, and a queue");
    enum status st = parse_queue(c, words, n, &q);
    return st ? st : send_queue(c, &q, OFP_EXT_QUEUE_DELETE);
}

static const char mod_help[] =
    "  PORT   the port's number or name\n"
    "  QUEUE  1 to 65519\n"
    "  BW     what the queue is guaranteed: thousandths of the port's speed (80 is 8 %), a share\n"
    "         (8%), or a rate (6mbit)\n"
    "  MOST   the most it may have, in the same units; without it the port's speed\n"
    "The queue becomes an HTB class, as with qos-htb cmd=replace.  Shares are of the port's total:\n"
    "where the port has no speed, or another one than the link behind it, say that first with\n"
    "qos-htb cmd=add,port=PORT,class=0,rate=100mbit, or use rates.";

const struct command queue_commands[] = {
    {"queue-mod", "mod-queue", "PORT QUEUE BW [MOST]",
     "adds or changes a queue: 80 guarantees it 8 % of the port's speed, 6mbit that rate",
     queue_mod, MORE(.text = mod_help)},
    {"queue-del", "del-queue", "PORT QUEUE", "deletes a queue", queue_del, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
