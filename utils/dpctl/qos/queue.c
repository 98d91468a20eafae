/* SPDX-License-Identifier: Apache-2.0 */
/* The queue commands of BOFUSS's dpctl (docs/reference/extensions.md, Queue messages).  Thousandths are
 * sent in BOFUSS's message, which its switch understands too.  That message can't hold rates:
 * they are sent as a request of the QoS extension. */
#include <core/change.h>
#include <core/command.h>
#include <core/ports.h>
#include <core/say.h>
#include <queues/queues.h>

#include <qos/sched/units.h>

#include <string.h>

#define PPM 1000 /* of a thousandth */

/* A bandwidth: thousandths of the port's speed, or bit/s. */
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
        return say_usage(c, "a queue has a number of 1 to %u, not '%s'", QOS_CLASS_MAX, word);
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
            return say_usage(c, "%s", why);
        if (out->v % PPM || !out->v)
            return say_usage(c, "a share must be 0.1%% to 100%% in tenths of a percent, not '%s'",
                             word);
        out->v /= PPM;
        return DPCTL_OK;
    }
    if (!qos_parse_number(word, &out->v, NULL, 0)) {
        if (out->v < 1 || out->v > OFP_QUEUE_RATE_MAX)
            return say_usage(c,
                             "a number without a unit is thousandths of the port's speed, 1 to %d, "
                             "not '%s'; a rate has a unit, such as 500kbit or 6mbit",
                             OFP_QUEUE_RATE_MAX, word);
        return DPCTL_OK;
    }
    out->is_rate = true;
    if (qos_parse_rate(word, &out->v, why, sizeof why))
        return say_usage(c, "%s", why);
    qos_rate_doubt("rate", word, why, sizeof why);
    return say_doubt(c, why);
}

static enum status
parse_queue(struct ctx *c, char **words, int n, struct queue *q)
{
    enum status st = ports_number(c, words[0], &q->port_no);
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
        st = say_memory(c);
    } else {
        struct of_experimenter e = {OFP_OPENFLOW_EXPERIMENTER, exp_type, {w.buf, w.len}};
        st = change_send(c, OFPT_EXPERIMENTER, &e);
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
    return queues_send(c, &r);
}

/* `most`: words that the command takes at most. */
static enum status
change_queue(struct ctx *c, char **words, int n, int least, int most)
{
    struct queue q = {0};
    if (n < least || n > most)
        return say_usage(c, "write a port, a queue%s",
                         most == 2 ? ": 2 10"
                                   : " and its bandwidth, 80 (8 % of the port's speed) or 6mbit: "
                                     "2 10 80");
    enum status st = parse_queue(c, words, n, &q);
    if (st)
        return st;
    if (most == 2)
        return send_queue(c, &q, OFP_EXT_QUEUE_DELETE);
    return q.least.is_rate || q.most.is_rate ? send_rates(c, &q)
                                             : send_queue(c, &q, OFP_EXT_QUEUE_MODIFY);
}

static enum status
queue_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    return change_queue(c, words, n, 3, 4);
}

/* OpenFlow 1.0's: the bandwidth may be left out. */
static enum status
queue_add(struct ctx *c, const struct command *self, char **words, int n)
{
    return change_queue(c, words, n, 2, 3);
}

static enum status
queue_del(struct ctx *c, const struct command *self, char **words, int n)
{
    return change_queue(c, words, n, 2, 2);
}

static const char mod_help[] =
    "  PORT   the port's number or name\n"
    "  QUEUE  1 to 65519\n"
    "  BW     what the queue is guaranteed: thousandths of the port's speed (80 is 8 %), a share\n"
    "         (8%), or a rate (6mbit)\n"
    "  MOST   the most it may have, in the same units; without it the port's speed\n"
    "The queue becomes an HTB class, as by qos-htb cmd=replace.  Shares are shares of the port's total:\n"
    "where the port has no speed, or not that of the link behind it, set the total first with\n"
    "qos-htb cmd=add,port=PORT,class=0,rate=100mbit, or use rates.";

static const struct command rows[] = {
    {.name = "queue-mod",
     .alias = "mod-queue",
     .subject = SUBJECT_QOS,
     .args = "PORT QUEUE BW [MOST]",
     .help = "adds or changes a queue: 80 guarantees it 8 % of the port's speed, 6mbit that rate",
     .text = mod_help,
     .examples = "queue-mod 2 10 80\nqueue-mod 2 10 6mbit 10mbit",
     .run = queue_mod},
    {.name = "add-queue",
     .subject = SUBJECT_QOS,
     .args = "PORT QUEUE [BW]",
     .help = "as queue-mod; without BW a thousandth is guaranteed",
     .examples = "add-queue 2 10",
     .run = queue_add},
    {.name = "queue-del",
     .alias = "del-queue",
     .subject = SUBJECT_QOS,
     .args = "PORT QUEUE",
     .help = "deletes a queue",
     .examples = "queue-del 2 10",
     .run = queue_del},
};

const struct command_table commands_queue = COMMAND_TABLE(rows);
