/* SPDX-License-Identifier: Apache-2.0 */
/* capture: packets as the switch receives, sends, misses or drops them; to the terminal or a pcapng
 * file. */
#include "packet-text.h"
#include "pcapng.h"

#include <oflib/plural.h>

#include <core/ask.h>
#include <core/command.h>
#include <core/keys.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define END_MS 5000 /* how long the switch may take to end */

/* ------------------------------------------------------------------ what is wanted */

struct capture {
    struct ctx *c;
    struct of_capture q;
    struct of_list drops; /* the switch's reasons */
    uint64_t seconds;     /* 0: until a signal */
    const char *to;       /* NULL: lines on stdout */
    FILE *out;
    bool named;           /* a port or a queue was */
    uint32_t *interfaces; /* port numbers, as the file has them */
    size_t n_interfaces, room;
    uint64_t packets, lost;
    bool over; /* the switch has ended the capture */
};

static const struct key keys[];

static enum status
take_port(struct ctx *c, const struct key *key, char *value, void *to)
{
    ((struct capture *)to)->named = true;
    return key_port(c, key, value, to);
}

static enum status
take_queue(struct ctx *c, const struct key *key, char *value, void *to)
{
    struct capture *k = to;
    char *colon = strrchr(value, ':');
    uint64_t queue;
    if (!colon)
        return say_usage(c, "write queue=PORT:QUEUE, such as queue=2:10, not queue=%s", value);
    *colon = '\0';
    k->named = true;
    if (of_parse_number(&c->parse, "queue", colon + 1, &of_fmt_QUEUE, 32, &queue))
        return say_parse(c, -EINVAL);
    k->q.queue_id = (uint32_t)queue;
    return ports_number(c, value, &k->q.port_no);
}

static enum status
take_reason(struct ctx *c, const struct key *key, char *name, void *to)
{
    struct capture *k = to;
    const struct of_drop *d;
    enum status st = packet_drops_find(c, &k->drops, name, &d);
    if (st)
        return st;
    k->q.what |= OFPCAP_DROP;
    k->q.reason = d->reason;
    return DPCTL_OK;
}

/* "in", "eth1" */
static enum status
take_other(struct ctx *c, const struct key *key, char *word, void *to)
{
    static const struct {
        const char *word;
        uint32_t what;
    } kinds[] = {{"in", OFPCAP_IN},
                 {"out", OFPCAP_OUT},
                 {"table-miss", OFPCAP_MISS},
                 {"drop", OFPCAP_DROP},
                 {"all", OFPCAP_IN | OFPCAP_OUT}};
    struct capture *k = to;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(word, kinds[i].word)) {
            k->q.what |= kinds[i].what;
            return DPCTL_OK;
        }
    if (strchr(word, '='))
        return keys_unknown(c, keys, word);
    if (ports_is(c, word, &k->q.port_no)) {
        k->named = true;
        return DPCTL_OK;
    }
    return say_usage(c,
                     "unknown word '%s': write what to capture, such as eth1, queue=2:10, "
                     "table-miss, drop or all (%s)",
                     word, c->parse.why);
}

#define TO(member) KEY_TO(struct capture, member)
static const struct key keys[] = {
    {"port", take_port, TO(q.port_no)},
    {"queue", .take = take_queue},
    {"drop", .take = take_reason},
    {"count", key_number, TO(q.limit)},
    {"rate", key_number, TO(q.rate)},
    {"seconds", key_number, TO(seconds), .most = INT32_MAX},
    {"to", key_text, TO(to)},
    {"snaplen", key_number, TO(q.snaplen)},
    {.take = take_other},
};

static enum status
take_words(struct capture *k, char **words, int n)
{
    enum status st;
    if ((st = packet_drops_ask(k->c, &k->drops)) || (st = keys_take(k->c, keys, words, n, k)))
        return st;
    if (!k->named && !k->q.what)
        return say_usage(k->c, "write what to capture: eth1, queue=2:10, table-miss, drop or all");
    if (!k->q.what)
        k->q.what = k->q.queue_id == OFPQ_ALL ? OFPCAP_IN | OFPCAP_OUT : OFPCAP_OUT;
    return DPCTL_OK;
}

/* ------------------------------------------------------------------ the file */

static enum status
add_interface(struct capture *k, uint32_t no, const char *name)
{
    if (k->n_interfaces == k->room) {
        size_t room = k->room ? 2 * k->room : 16;
        uint32_t *more = reallocarray(k->interfaces, room, sizeof *more);
        if (!more)
            return say_memory(k->c);
        k->interfaces = more;
        k->room = room;
    }
    k->interfaces[k->n_interfaces++] = no;
    pcapng_interface(k->out, name, k->q.snaplen);
    return DPCTL_OK;
}

static enum status
open_file(struct capture *k)
{
    struct of_list ports = {0};
    enum status st = ports_ask(k->c, &ports);
    if (st)
        return st;
    if (!strcmp(k->to, "-")) {
        if (isatty(STDOUT_FILENO))
            return say_usage(k->c,
                             "pcapng is a binary format: write --to FILE, or pipe --to - into a "
                             "program, such as | wireshark -k -i -");
        k->out = stdout;
    } else if (!(k->out = fopen(k->to, "we"))) {
        return say_failed(k->c, "%s: %s", k->to, strerror(errno));
    }
    pcapng_begin(k->out, "dpctl capture");
    for (uint32_t i = 0; !st && i < ports.n; i++) {
        const struct of_port *p = ports.v[i];
        st = add_interface(k, p->port_no, p->name);
    }
    fflush(k->out);
    return st;
}

/* The place of the port's interface in the file; a port that is new there is added. */
static enum status
find_interface(struct capture *k, uint32_t no, uint32_t *place)
{
    struct of_wr w = of_wr_grow(64);
    enum status st = DPCTL_OK;
    for (*place = 0; *place < k->n_interfaces; ++*place)
        if (k->interfaces[*place] == no)
            return st;
    of_printf(&w, "port ");
    of_print_number(&w, &of_fmt_PORT, no);
    of_wr8(&w, 0);
    st = add_interface(k, no, (const char *)w.buf);
    of_wr_free(&w);
    return st;
}

static struct packet_place
place_of(const struct capture *k, const struct of_captured *m)
{
    const struct of_drop *d =
        m->point == OFPCAP_DROP ? packet_drops_row(&k->drops, m->reason) : NULL;
    return (struct packet_place){.cookie = m->cookie,
                                 .in_port = m->in_port,
                                 .out_port = m->out_port,
                                 .queue_id = m->queue_id,
                                 .table_id = m->table_id,
                                 .reason = d ? d->name : NULL};
}

static void
print_comment(struct of_wr *w, const struct capture *k, const struct of_captured *m)
{
    struct packet_place place = place_of(k, m);
    if (m->point == OFPCAP_MISS)
        of_printf(w, "table-miss ");
    packet_print_place(w, &place);
    if (m->segment)
        of_printf(w, " segment=%u", m->segment);
    if (m->unfinished)
        of_printf(w, " checksum=unfinished");
}

static enum status
write_packet(struct capture *k, const struct of_captured *m)
{
    bool leaves = m->out_port != OFPP_ANY && m->point != OFPCAP_IN;
    struct of_wr w = of_wr_grow(1024);
    struct pcapng_packet p = {
        .time = m->time, .data = m->data, .len = m->total_len, .direction = leaves ? 2 : 1};
    enum status st = find_interface(k, leaves ? m->out_port : m->in_port, &p.interface);
    print_comment(&w, k, m);
    p.comment = (struct of_bytes){w.buf, w.len};
    if (!st)
        pcapng_write(k->out, &p);
    of_wr_free(&w);
    if (!st && ferror(k->out)) {
        if (errno == EPIPE) /* Wireshark was closed */
            k->over = true;
        else
            st = say_failed(k->c, "%s: %s", k->to, strerror(errno));
    }
    return st;
}

/* ------------------------------------------------------------------ lines */

static enum status
show_packet(struct capture *k, const struct of_captured *m)
{
    static const char *const points[] = {[OFPCAP_IN] = "in  ",
                                         [OFPCAP_OUT] = "out ",
                                         [OFPCAP_MISS] = "miss",
                                         [OFPCAP_DROP] = "drop"};
    struct of_wr w = of_wr_grow(1u << 18);
    if (k->c->json) {
        struct of_json j = of_json(&w);
        struct packet_place place = place_of(k, m);
        of_json_object(&j, NULL);
        if (place.reason)
            of_json_text(&j, "drop", place.reason);
        of_json_struct(&j, "packet", &of_row_captured, m);
        of_json_end_object(&j);
        return view_line(k->c, &w);
    }
    packet_print_time(&w, m->time);
    of_printf(&w, " %s ", m->point <= OFPCAP_DROP && points[m->point] ? points[m->point] : "?   ");
    print_comment(&w, k, m);
    of_printf(&w, " %" PRIu32 " bytes: ", m->total_len);
    of_print_match(&w, &m->match);
    return view_line(k->c, &w);
}

/* ------------------------------------------------------------------ the messages */

static enum status
take_captured(struct capture *k, const struct of_captured *m)
{
    k->lost = m->lost;
    if (m->point == OFPCAP_END) {
        k->over = true;
        return DPCTL_OK;
    }
    k->packets++;
    return k->out ? write_packet(k, m) : show_packet(k, m);
}

static enum status
take_message(struct capture *k, struct of_bytes raw)
{
    struct ctx *c = k->c;
    struct of_msg msg;
    void *body;
    if (of_decode(raw, &c->arena, &msg))
        return say_malformed(c);
    if (msg.type == OFPT_ERROR)
        return view_error(c, &msg);
    if (msg.type == OFPT_BARRIER_REPLY && !k->over)
        fprintf(stderr, "%s: capturing; ^C ends it\n", c->where);
    if (msg.type != OFPT_EXPERIMENTER)
        return DPCTL_OK;
    const struct of_experimenter *m = msg.body;
    const struct of_exp_row *x = of_exp_row(m);
    if (!x || x->body != &of_row_captured)
        return DPCTL_OK;
    return of_decode_struct(m->data, x->body, &c->arena, &body) ? say_malformed(c)
                                                                : take_captured(k, body);
}

/* Until the switch ends the capture, a signal comes (if that counts) or the time is over. */
static enum status
receive(struct capture *k, int64_t until, bool signals)
{
    struct ctx *c = k->c;
    struct of_arena kept = c->arena; /* the reasons stay */
    enum status st = DPCTL_OK;
    of_arena_init(&c->arena, kept.max);
    while (!st && !k->over && !(signals && signals_pending())) {
        struct of_bytes raw;
        int err = remote_recv(&c->remote, until, &raw);
        if (err == -ETIMEDOUT)
            break;
        if (err == -EINTR)
            continue;
        st = err ? say_failed(c, "%s", c->remote.why) : take_message(k, raw);
        of_arena_reset(&c->arena);
    }
    of_arena_free(&c->arena);
    c->arena = kept;
    return st;
}

static enum status
send_request(struct capture *k, uint32_t what)
{
    struct of_wr w = of_wr_grow(256);
    struct of_capture q = k->q;
    q.what = what;
    of_encode_struct(&w, &of_row_capture, &q);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_CAPTURE, {w.buf, w.len}};
    enum status st = ask_send(k->c, OFPT_EXPERIMENTER, &m);
    of_wr_free(&w);
    return st ? st : ask_send(k->c, OFPT_BARRIER_REQUEST, NULL);
}

static enum status
run(struct capture *k)
{
    struct ctx *c = k->c;
    /* Nothing but captured packets is to come. */
    enum status st = ask_send(c, OFPT_SET_ASYNC, &(struct of_async){0});
    sigset_t before;
    signals_hold(&before);
    c->remote.sigmask = &before;
    if (!st)
        st = send_request(k, k->q.what);
    if (!st)
        st = receive(k, k->seconds ? remote_now_ms() + (int64_t)k->seconds * 1000 : -1, true);
    c->remote.sigmask = NULL;
    if (!st && !k->over && !(st = send_request(k, 0)))
        st = receive(k, remote_now_ms() + END_MS, false);
    if (!st)
        fprintf(stderr, "%s: %" PRIu64 " packet%s captured, %" PRIu64 " lost\n", c->where,
                k->packets, OF_S(k->packets), k->lost);
    signals_release(&before);
    return st;
}

/* A port may come later, but mostly its number is wrong, and nothing would ever come. */
static enum status
doubt_port(struct capture *k)
{
    char remark[80];
    struct of_list ports;
    if (k->q.port_no >= OFPP_MAX)
        return DPCTL_OK;
    enum status st = ports_ask(k->c, &ports);
    if (st || ports_desc(&ports, k->q.port_no))
        return st;
    snprintf(remark, sizeof remark, "the switch has no port %u: nothing comes until it has",
             (unsigned)k->q.port_no);
    return say_doubt(k->c, remark);
}

static enum status
capture(struct ctx *c, const struct command *self, char **words, int n)
{
    struct capture k = {.c = c,
                        .to = c->to,
                        .q = {.port_no = OFPP_ANY, .queue_id = OFPQ_ALL, .reason = OFPCAP_ANY}};
    enum status st = take_words(&k, words, n);
    st = st ? st : doubt_port(&k);
    if (!st && k.to)
        st = open_file(&k);
    if (!st) {
        signal(SIGPIPE, SIG_IGN);
        st = run(&k);
    }
    if (k.out && k.out != stdout && fclose(k.out) && !st)
        st = say_failed(c, "%s: %s", k.to, strerror(errno));
    free(k.interfaces);
    return st;
}

static const char capture_help[] =
    "  port=PORT       packets that the port receives and sends; eth1 alone is port=eth1\n"
    "  in              only packets that a port receives\n"
    "  out             only packets that a port sends\n"
    "  queue=PORT:N    packets that leave by queue N of the port\n"
    "  table-miss      packets that meet a table-miss flow, or none at all\n"
    "  drop            packets that the switch drops\n"
    "  drop=REASON     only these of them (why-dropped all=yes lists the reasons)\n"
    "  all             packets that any port receives or sends\n"
    "  count=N         ends after N packets\n"
    "  seconds=N       ends after N seconds; else ^C ends it\n"
    "  snaplen=BYTES   only so much of each packet\n"
    "  rate=N          at most N packets a second; the others count as lost\n"
    "  to=FILE         the same as --to FILE\n"
    "With --to FILE the packets are written as pcapng, each with a comment that says where the\n"
    "switch had it; --to - writes to stdout, for a program that reads while it goes on.  Without\n"
    "--to each packet is a line; with --json, an object.  A super-packet (GSO) is captured whole;\n"
    "its comment says how long its segments will be.";

static const struct command rows[] = {
    {.name = "capture",
     .subject = SUBJECT_WATCH,
     .args = "PORT|WHAT... [KEY=VALUE]... [--to FILE|-]",
     .help = "packets that a port receives or sends, a queue takes, or the switch drops",
     .text = capture_help,
     .examples = "capture eth1 count=10\n"
                 "capture queue=2:10 seconds=5 --to queue.pcapng\n"
                 "capture table-miss\n"
                 "capture drop=meter",
     .options = COMMAND_TO,
     .run = capture,
     .asks = true},
};

const struct command_table commands_capture = COMMAND_TABLE(rows);
