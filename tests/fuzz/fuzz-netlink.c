/* SPDX-License-Identifier: Apache-2.0 */
/* Any answers of rtnetlink to the qos room's requests: no call crashes, each one ends, and what the model makes of
 * them can be dumped and cleared.
 *
 * Input: a byte that says what is asked, a byte of its own; then the answers, a head of 4 bytes before each:
 * length (16 bits, this machine's order), what the fake does to it (enum), a number for that. */
#include "../unit/qos/at-once.h"
#include "../unit/qos/fake-rtnetlink.c"
#include "structure.h"

#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>
#include <qos-netlink/upper.h>
#include <qos/model/model.h>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_NETLINK;

#define IFINDEX 2

enum {
    FITS = 1,  /* its sequence numbers are the request's (the number: of so many before the last) */
    CUT = 2,   /* it did not fit */
    OTHER = 4, /* it is not the kernel's */
    ERROR = 8, /* instead of it, errno */
    ENDLESS = 16 /* all is over: no acknowledgement comes when the answers have run out */
};

static struct of_bytes answers;
static bool endless;

static void
fit(uint8_t *p, size_t n, uint32_t seq)
{
    struct nlmsghdr h;
    for (size_t at = 0; at + sizeof h <= n; at += NLMSG_ALIGN(h.nlmsg_len)) {
        memcpy(&h, p + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > n - at)
            return;
        memcpy(p + at + offsetof(struct nlmsghdr, nlmsg_seq), &seq, sizeof seq);
        size_t inner = NLMSG_HDRLEN + offsetof(struct nlmsgerr, msg.nlmsg_seq);
        if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= inner + sizeof seq)
            memcpy(p + at + inner, &seq, sizeof seq);
    }
}

/* What the kernel says when all is well: it does what it is told, and has nothing of what it is asked for. */
static ssize_t
good_end(struct rtnetlink_datagram *d)
{
    bool get = rtnetlink_asked.type % 4 == RTM_GETLINK % 4,
         dump = get && rtnetlink_asked.flags & NLM_F_DUMP;
    struct {
        struct nlmsghdr h;
        struct nlmsgerr e;
    } end = {.h = {.nlmsg_len = sizeof end,
                   .nlmsg_type = dump ? NLMSG_DONE : NLMSG_ERROR,
                   .nlmsg_seq = rtnetlink_asked.seq},
             .e = {.error = !get || dump                          ? 0
                            : rtnetlink_asked.type == RTM_GETLINK ? -ENODEV
                                                                  : -ENOENT,
                   .msg = {.nlmsg_len = sizeof end.e.msg, .nlmsg_seq = rtnetlink_asked.seq}}};
    memcpy(d->buf, &end, sizeof end);
    return sizeof end;
}

static ssize_t
rtnetlink_answer(struct rtnetlink_datagram *d)
{
    uint16_t len;
    if (answers.n < 4 && endless) {
        errno = EAGAIN;
        return -1;
    }
    if (answers.n < 4) {
        endless = !(rtnetlink_asked.flags & NLM_F_REQUEST); /* nobody has asked: events */
        return endless ? (errno = EAGAIN, -1) : good_end(d);
    }
    memcpy(&len, answers.p, sizeof len);
    uint8_t how = answers.p[2], number = answers.p[3];
    size_t n = len < answers.n - 4 ? len : answers.n - 4, fits = n < d->room ? n : d->room;
    memcpy(d->buf, answers.p + 4, fits);
    answers = (struct of_bytes){answers.p + 4 + n, answers.n - 4 - n};
    if (how & FITS)
        fit(d->buf, fits, rtnetlink_asked.seq - number);
    d->cut = how & CUT || fits < n;
    d->from = how & OTHER ? 4242 : 0;
    endless |= (how & ENDLESS) != 0;
    if (how & ERROR) {
        errno = number ? number : ENOBUFS;
        return errno == EINTR ? (errno = EIO, -1) : -1; /* libnl tries again for ever */
    }
    return (ssize_t)fits;
}

/* ------------------------------------------------------------------ what is asked */

static struct qos_kernel *kernel;
static struct qos_link *links;
static struct qos_link_monitor *watch;
static unsigned heard;

static void
on_object(void *ctx, const struct qos_object *o)
{
    if (!memchr(o->kind, 0, sizeof o->kind) || o->n_tins > QOS_TINS_MAX)
        abort();
    heard += o->handle != 0;
}

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    if (!memchr(e->name, 0, sizeof e->name) || !e->ifindex != (e->kind == QOS_LINK_OVERRUN))
        abort();
}

static void
on_upper(void *ctx, int ifindex)
{
    heard += ifindex != 0;
}

/* A refusal has a sentence. */
static void
told(int err, const struct qos_error *e)
{
    if (err && !e->text[0])
        abort();
}

static void
ask_kernel(uint8_t n)
{
    struct qos_object o;
    struct qos_error e = {0};
    const struct qos_kernel_ops *ops = kernel->ops;
    uint32_t parent = n & 1 ? QOS_PARENT_ROOT : QOS_HANDLE_TX_QUEUES | 2;
    switch (n >> 1 & 3) {
    case 0: told(ops->root(kernel, IFINDEX, parent, &o, &e), &e); break;
    case 1: told(ops->each_qdisc(kernel, IFINDEX, on_object, NULL, &e), &e); break;
    case 2: told(ops->each_class(kernel, IFINDEX, QOS_HANDLE_TREE, on_object, NULL, &e), &e); break;
    default:
        told(n & 1 ? ops->get_class(kernel, IFINDEX, 0x1000a, &o, &e)
                   : ops->get_qdisc(kernel, IFINDEX, 0x1000a, &o, &e),
             &e);
    }
}

static void
ask_shaper(uint8_t n)
{
    struct qos_shaper s = {0};
    struct qos_error e = {0};
    if (n & 1)
        told(kernel->ops->shaper_add(kernel, IFINDEX, n & 2, &s, &e), &e);
    else
        kernel->ops->shaper_find(kernel, IFINDEX, n & 2, &s);
    kernel->ops->shaper_del(kernel, &s);
    const struct qos_sched *sched = qos_sched_by_id(n >> 1 & 31);
    if (sched)
        kernel->ops->has(kernel, sched, NULL);
}

/* The input is the interfaces that are there, events, addresses. */
static void
ask_uppers(void)
{
    struct qos_uppers *u;
    if (qos_uppers_open(&u, on_upper, NULL))
        return;
    qos_uppers_read(u);
    qos_uppers_hidden(u, on_upper, NULL);
    if (qos_uppers_of(u, IFINDEX) & ~(unsigned)(QOS_UPPER_ANY | QOS_UPPER_VLAN))
        abort();
    qos_uppers_close(u);
}

static void
ask_link(uint8_t n)
{
    struct qos_link_info info;
    switch (n & 3) {
    case 0: qos_link_get_by_name(links, "d1", &info); break;
    case 1: qos_link_get_stats(links, IFINDEX, &info.stats); break;
    case 2: ask_uppers(); break;
    default: qos_link_set_flag(links, IFINDEX, IFF_UP, n & 4); break;
    }
}

static bool
on_entry(void *ctx, const struct qos_entry *entry)
{
    char line[QOS_REQUEST_TEXT];
    if (qos_request_print(&entry->config, line, sizeof line) >= (int)sizeof line)
        abort();
    return ++heard < 100000;
}

static const char *const requests[][2] = {
    {"htb", "cmd=add,port=1,class=10,rate=6mbit"},
    {"htb", "cmd=change,port=1,class=10,rate=5mbit"},
    {"htb", "cmd=del,port=1,class=10"},
    {"hfsc", "cmd=add,port=1,class=10,rsc=1mbit"},
    {"drr", "cmd=add,port=1,class=10,quantum=1500"},
    {"fq_codel", "cmd=add,port=1,class=0"},
    {"cake", "cmd=add,port=1,class=0,rate=9mbit,diffserv=diffserv4"},
    {"mq", "cmd=add,port=1,class=0"},
    {"ets", "cmd=add,port=1,class=0,bands=4"},
    {"sfq", "cmd=add,port=1,class=10"},
    {"htb", "cmd=add,port=1,class=11,rate=6mbit,direction=in"},
    {"none", "cmd=del,port=1,class=0"},
    /* These are asked for by first bytes from 5 on. */
    {"htb", "cmd=add,port=1,class=0,rate=90mbit,direction=in"},
    {"cake", "cmd=add,port=1,class=0,rate=9mbit,overhead=18,mpu=64,ack_filter=filter,nat=yes"},
    {"cake", "cmd=change,port=1,class=0,rate=8mbit,rtt=20ms"},
    {"pfifo", "cmd=add,port=1,class=0,limit=10"},
    {"bfifo", "cmd=add,port=1,class=0,limit=10kb"},
    {"gred", "cmd=add,port=1,class=0,dp0=10kb/30kb/60kb/2%,dp1=5kb/20kb/60kb/5%"},
    {"red", "cmd=add,port=1,class=0,threshold=10kb,limit=400kb,ecn=yes"},
    {"choke", "cmd=add,port=1,class=0,limit=1000"},
    {"tbf", "cmd=add,port=1,class=0,rate=9mbit,peak_rate=20mbit"},
    {"prio", "cmd=add,port=1,class=0,bands=4"},
    {"netem", "cmd=add,port=1,class=0,delay=20ms,jitter=5ms,loss=1%,rate=9mbit"},
    {"codel", "cmd=add,port=1,class=0,target=5ms"},
    {"pie", "cmd=add,port=1,class=0,target=15ms"},
    {"fq", "cmd=add,port=1,class=0"},
    {"fq_pie", "cmd=add,port=1,class=0"},
    {"cbs", "cmd=add,port=1,class=0,rate=9mbit"},
    {"etf", "cmd=add,port=1,class=0"},
    {"mqprio", "cmd=add,port=1,class=0"},
    {"taprio", "cmd=add,port=1,class=0"},
    {"dualpi2", "cmd=add,port=1,class=0"},
    {"bpf", "cmd=add,port=1,class=0,kind=bpf_fq"},
};
#define REQUESTS_OLD 12
#define REQUESTS     (sizeof requests / sizeof requests[0])

static void
request(struct qos *q, size_t i)
{
    struct qos_request r;
    struct qos_error e = {0};
    char why[512];
    if (!qos_request_parse(&r, qos_sched_by_name(requests[i][0]), requests[i][1], why, sizeof why))
        told(qos_execute(q, &r, &e), &e);
}

/* A port whose queues an earlier daemon left. */
static void
ask_model(uint8_t n, size_t from)
{
    struct qos *q;
    struct qos_error e = {0};
    struct qos_port port = {1, IFINDEX, "d1", 1500, 1000, 100000000, n & 1 ? 4 : 1, false};
    if (qos_new(&q, kernel, NULL))
        abort();
    qos_set_foreign(q, (enum qos_foreign)(n >> 1 & 3) % 3);
    if (!qos_port_add(q, &port)) {
        qos_each_entry(q, 1, on_entry, NULL);
        request(q, from ? from % REQUESTS : n % REQUESTS_OLD);
        qos_port_sync(q, 1, &e);
        qos_dump(q, OFPP_ANY, QOS_ALL_CLASSES, on_entry, NULL, &e);
        request(q, from ? (n + 1u) % REQUESTS : (n + 1u) % REQUESTS_OLD);
        port.speed *= 2;
        port_update(q, &port, &e);
        qos_port_absent(q, 1);
        port_back(q, &port, &e);
        qos_clear_all(q, &e);
    }
    qos_free(q);
}

static void
set_up(void)
{
    if (qos_netlink_new(&kernel) || qos_link_open(&links) ||
        qos_link_monitor_open(&watch, on_event, NULL))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (!kernel)
        set_up();
    answers = (struct of_bytes){data + 2, size - 2};
    endless = false;
    heard = 0;
    rtnetlink_asked.flags = 0;
    switch (data[0] % 5) {
    case 0: ask_kernel(data[1]); break;
    case 1: ask_shaper(data[1]); break;
    case 2: ask_link(data[1]); break;
    case 3:
        if (qos_link_monitor_read(watch) > 0)
            abort();
        break;
    default: ask_model(data[1], data[0] / 5u);
    }
    return 0;
}
