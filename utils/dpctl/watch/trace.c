/* SPDX-License-Identifier: Apache-2.0 */
/* trace: what the switch would do with a packet, step by step (docs/how-to/trace.md). */
#include "trace-parts.h"

#include <core/ask.h>
#include <core/command.h>
#include <core/file.h>
#include <core/flow-words.h>
#include <core/frames.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_MAX      (64u << 20)
#define LIMIT_DEFAULT 10
#define DATA_SHOWN    256 /* bytes of each packet that leaves, with --json */

/* What may be typed beside a match. */
struct trace_words {
    uint32_t len, queue_id, limit;
    uint8_t ttl;
    struct of_match match;
};

#define FIELD(name_, kind_, size_, fmt_)                                                           \
    {                                                                                              \
        .name = #name_, .kind = kind_, .size = size_, .off = offsetof(struct trace_words, name_),  \
        .fmt = fmt_                                                                                \
    }
static const struct of_field_row word_fields[] = {
    FIELD(len, OFK_U32, 4, &of_fmt_DEC),      FIELD(ttl, OFK_U8, 1, &of_fmt_DEC),
    FIELD(queue_id, OFK_U32, 4, &of_fmt_DEC), FIELD(limit, OFK_U32, 4, &of_fmt_DEC),
    FIELD(match, OFK_MATCH, 0, NULL),
};
static const struct of_struct_row words_row = {.name = "trace",
                                               .fields = word_fields,
                                               .n_fields = sizeof word_fields / sizeof *word_fields,
                                               .size = sizeof(struct trace_words)};

/* A word without a value is a file's name, or "tcp" of a match where there is no such file. */
static bool
is_file(const char *word)
{
    const struct flow_part p = {.name = word, .name_len = (int)strcspn(word, ",")};
    return !strchr(word, '=') && (!flow_word_find(flow_words, &p) || !access(word, F_OK));
}

/* Takes the only file's name out of the words. */
static enum status
take_file(struct ctx *c, char **words, int *n, const char **file)
{
    int kept = 0;
    *file = NULL;
    for (int i = 0; i < *n; i++) {
        if (!is_file(words[i])) {
            words[kept++] = words[i];
        } else if (*file) {
            return say_usage(c, "one file at a time: '%s' is a second one", words[i]);
        } else {
            *file = words[i];
        }
    }
    *n = kept;
    return DPCTL_OK;
}

static enum status
check_words(struct ctx *c, const struct trace_words *w, const char *file)
{
    const struct of_oxm *in = of_match_find(&w->match, OXM_in_port);
    if (!in)
        return say_usage(c, "write the port that the packet comes in by: in_port=1");
    for (uint32_t i = 0; file && i < w->match.n; i++) {
        const struct oxm_row *row = w->match.v[i].row;
        if (row->field != OXM_in_port && row->field != OXM_metadata && row->field != OXM_tunnel_id)
            return say_usage(c,
                             "%s: the packets of %s have fields of their own; write in_port only",
                             row->name, file);
    }
    return w->len > TRACE_FRAME_MAX
               ? say_usage(c, "len: a packet has up to %u bytes", TRACE_FRAME_MAX)
               : DPCTL_OK;
}

/* ------------------------------------------------------------------ one packet */

static uint64_t
field(const struct trace_words *w, enum oxm_field f)
{
    const struct of_oxm *o = of_match_find(&w->match, f);
    return o ? oxm_number(o->row, o->value) : 0;
}

static enum status
ask_trace(struct ctx *c, const struct of_trace_request *r, struct of_list *events)
{
    struct of_wr request = of_wr_grow(OF_MSG_MAX);
    struct of_bytes reply;
    enum status st;
    if (of_encode_struct(&request, &of_row_trace_request, r))
        st = say_memory(c);
    else
        st =
            ask_experimenter(c, OFP_EXP_TRACE, (struct of_bytes){request.buf, request.len}, &reply);
    of_wr_free(&request);
    if (!st && of_decode_list(reply, &of_list_trace_events, &c->arena, events))
        st = say_malformed(c);
    return st;
}

static enum status
trace_one(struct ctx *c, const struct of_trace_request *r, struct trace_shown *t)
{
    struct of_list events;
    enum status st = ask_trace(c, r, &events);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    t->events = &events;
    if (!c->json && t->number > 1)
        of_printf(&w, "\n");
    (c->json ? trace_json : trace_print)(&w, t);
    return view_line(c, &w);
}

/* ------------------------------------------------------------------ a file's packets */

static enum status
trace_bytes(struct ctx *c, struct of_bytes bytes, const char *name, struct of_trace_request *r,
            uint32_t limit)
{
    struct frames file;
    struct trace_shown t = {0};
    const char *why = NULL;
    enum status st = DPCTL_OK;
    int more = frames_begin(&file, bytes, &why) ? 1 : -1;
    while (!st && more > 0 && (!limit || t.number < limit)) {
        more = frames_next(&file, &r->data, &t.cut, &why);
        if (more <= 0)
            break;
        t.number++;
        if (r->data.n > TRACE_FRAME_MAX)
            st = say_failed(c, "%s: packet %u is longer than %u bytes", name, t.number,
                            TRACE_FRAME_MAX);
        else
            st = trace_one(c, r, &t);
        of_arena_reset(&c->arena);
    }
    if (!st && more < 0)
        return say_failed(c, "%s: %s", name, why);
    if (!st && !t.number)
        return say_failed(c, "%s has no packets", name);
    if (!st && more > 0 && !c->json && frames_next(&file, &r->data, &t.cut, &why) > 0)
        fprintf(stderr, "dpctl: %s has more packets than %u: limit=N traces more, limit=0 all\n",
                name, limit);
    return st;
}

static enum status
trace_file(struct ctx *c, const char *name, struct of_trace_request *r, uint32_t limit)
{
    struct of_wr w = {0};
    char *copy = strdup(name); /* words are in the arena, which is reset for each packet */
    enum status st = copy ? file_read(c, name, FILE_MAX, &w) : say_memory(c);
    if (!st) {
        st = trace_bytes(c, (struct of_bytes){w.buf, w.len}, copy, r, limit);
        of_wr_free(&w);
    }
    free(copy);
    return st;
}

/* ------------------------------------------------------------------ the command */

static enum status
trace(struct ctx *c, const struct command *self, char **words, int n)
{
    struct trace_words w = {.limit = LIMIT_DEFAULT};
    const char *file;
    enum status st;
    if ((st = take_file(c, words, &n, &file)) || (st = words_fields(c, &words_row, words, n, &w)) ||
        (st = check_words(c, &w, file)))
        return st;
    struct of_trace_request r = {.in_port = (uint32_t)field(&w, OXM_in_port),
                                 .queue_id = w.queue_id,
                                 .metadata = field(&w, OXM_metadata),
                                 .tunnel_id = field(&w, OXM_tunnel_id),
                                 .max_len = c->json ? DATA_SHOWN : 0};
    /* This connection is no controller: it is not to be shown as one that gets packets. */
    if ((st = ask_send(c, OFPT_SET_ASYNC, &(struct of_async){0})))
        return st;
    if (file)
        return trace_file(c, file, &r, w.limit);
    struct trace_made made = {w.len, w.ttl};
    struct trace_shown t = {.given = &w.match, .number = 1};
    st = trace_make_frame(c, &w.match, &made, &r.data);
    return st ? st : trace_one(c, &r, &t);
}

static const char trace_help[] =
    "Shows what the switch would do with a packet that comes in now: table by table the entry that\n"
    "matches and why those above it do not, actions, groups, meters, queues and ports.  Nothing is\n"
    "sent or counted.  The packet is made of the fields given, or it is each of FILE's (pcap or\n"
    "pcapng, Ethernet).\n"
    "  len=N    a made packet's length in bytes (default: as short as can be)\n"
    "  ttl=N    its TTL or hop limit (default 64)\n"
    "  queue=N  the queue that it has before an action sets one\n"
    "  limit=N  of FILE the first N packets (default 10, 0: all)";

static const struct command rows[] = {
    {.name = "trace",
     .subject = SUBJECT_WATCH,
     .first = {TASK_FIND, "trace in_port=1,tcp,tp_dst=80", "what becomes of a packet"},
     .args =
         "in_port=PORT[,FIELD=VALUE...] [len=N] [ttl=N] [queue=N] | in_port=PORT FILE [limit=N]",
     .help = "what would become of a packet, and why",
     .text = trace_help,
     .examples = "trace in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=80\n"
                 "trace in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80\n"
                 "trace in_port=1 web.pcap limit=3",
     .keys = &words_row,
     .bridge = 2,
     .run = trace,
     .asks = true},
};

const struct command_table commands_trace = COMMAND_TABLE(rows);
