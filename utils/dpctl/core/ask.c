/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

static enum status
lost(struct ctx *c)
{
    return say_failed(c, "%s", c->remote.why);
}

static enum status
send_msg(struct ctx *c, const struct of_msg *msg)
{
    struct of_wr w = of_wr_grow(2 * OF_MSG_MAX);
    enum status st = DPCTL_OK;
    if (of_encode(&w, msg))
        st = say_failed(c, "the message is longer than %d bytes", OF_MSG_MAX);
    else if (remote_send(&c->remote, w.buf, w.len))
        st = lost(c);
    of_wr_free(&w);
    return st;
}

enum status
ask_send(struct ctx *c, uint8_t type, const void *body)
{
    const struct of_msg_row *row = of_msg_row(type);
    struct of_msg m = {.version = OFP_VERSION,
                       .type = type,
                       .xid = ++c->remote.xid,
                       .row = row,
                       .body_row = row->body,
                       .body = (void *)(uintptr_t)body};
    return send_msg(c, &m);
}

static bool
is_async(uint8_t type)
{
    return type == OFPT_PACKET_IN || type == OFPT_FLOW_REMOVED || type == OFPT_PORT_STATUS;
}

static enum status
take_answer(struct ctx *c, struct of_bytes raw, struct of_msg *out)
{
    uint8_t *copy = of_arena_alloc(&c->arena, raw.n); /* the result points into it */
    if (!copy)
        return say_memory(c);
    memcpy(copy, raw.p, raw.n);
    int err = of_decode((struct of_bytes){copy, raw.n}, &c->arena, out);
    if (err > 0)
        return say_failed(c, "the switch's answer (type %u) is malformed: %s", raw.p[1],
                          of_error_code_name(of_err_type(err), of_err_code(err)));
    if (err)
        return say_memory(c);
    return raw.p[1] == OFPT_ERROR ? view_error(c, out) : DPCTL_OK;
}

enum status
ask_wait(struct ctx *c, uint32_t first, struct of_msg *out)
{
    int64_t until = remote_now_ms() + c->remote.timeout_ms;
    for (;;) {
        struct of_bytes raw;
        if (remote_recv(&c->remote, until, &raw))
            return lost(c);
        uint32_t xid = of_get32(raw.p + 4);
        bool error = raw.p[1] == OFPT_ERROR;
        if (is_async(raw.p[1]) || xid < first || xid > c->remote.xid ||
            (xid < c->remote.xid && !error))
            continue;
        return take_answer(c, raw, out);
    }
}

enum status
ask_message(struct ctx *c, uint8_t type, const void *body, struct of_msg *reply)
{
    enum status st = ask_send(c, type, body);
    return st ? st : ask_wait(c, c->remote.xid, reply);
}

/* Appends the queues of one more reply. */
static enum status
add_queues(struct ctx *c, struct of_list *all, const struct of_list *more)
{
    void **v = of_arena_array(&c->arena, (size_t)all->n + more->n + 1, sizeof *v);
    if (!v)
        return say_memory(c);
    for (uint32_t i = 0; i < all->n; i++)
        v[i] = all->v[i];
    for (uint32_t i = 0; i < more->n; i++)
        v[all->n + i] = more->v[i];
    *all = (struct of_list){.n = all->n + more->n, .v = v};
    return DPCTL_OK;
}

/* Nothing in a reply says whether it is the last one, so a barrier's reply marks the end. */
enum status
ask_queue_config(struct ctx *c, const void *body, struct of_msg *reply)
{
    enum status st = ask_send(c, OFPT_QUEUE_GET_CONFIG_REQUEST, body);
    uint32_t xid = c->remote.xid;
    st = st ? st : ask_send(c, OFPT_BARRIER_REQUEST, NULL);
    int64_t until = remote_now_ms() + c->remote.timeout_ms;
    for (bool first = true; !st;) {
        struct of_bytes raw;
        struct of_msg m;
        if (remote_recv(&c->remote, until, &raw))
            return lost(c);
        if (raw.p[1] == OFPT_BARRIER_REPLY && of_get32(raw.p + 4) == c->remote.xid && !first)
            break;
        if (is_async(raw.p[1]) || of_get32(raw.p + 4) != xid)
            continue;
        st = take_answer(c, raw, &m);
        if (!st && m.type != OFPT_QUEUE_GET_CONFIG_REPLY)
            st = say_unexpected(c);
        else if (!st && first)
            *reply = m;
        else if (!st)
            st = add_queues(c, &((struct of_queue_get_config_reply *)reply->body)->queues,
                            &((struct of_queue_get_config_reply *)m.body)->queues);
        first = false;
    }
    return st;
}

/* ---------------------------------------------------------------- multipart */

struct parts {
    void **body;
    size_t n, room;
};

static bool
add_part(struct ctx *c, struct parts *parts, void *body)
{
    void **v = words_room(c, parts->body, parts->n, &parts->room, sizeof *v);
    if (!v)
        return false;
    parts->body = v;
    v[parts->n++] = body;
    return true;
}

#define FIELD(parts, i, f) ((void *)((uint8_t *)(parts)->body[i] + (f)->off))

static bool
join_lists(struct ctx *c, const struct parts *parts, const struct of_field_row *f)
{
    struct of_list all = {0};
    for (size_t i = 0; i < parts->n; i++)
        all.n += ((const struct of_list *)FIELD(parts, i, f))->n;
    void **to = all.v = of_arena_array(&c->arena, all.n, sizeof *all.v);
    if (!to)
        return false;
    for (size_t i = 0; i < parts->n; i++) {
        const struct of_list *l = FIELD(parts, i, f);
        if (l->n)
            memcpy(to, l->v, l->n * sizeof *to);
        to += l->n;
    }
    *(struct of_list *)FIELD(parts, 0, f) = all;
    return true;
}

static bool
join_bytes(struct ctx *c, const struct parts *parts, const struct of_field_row *f)
{
    size_t n = 0;
    for (size_t i = 0; i < parts->n; i++)
        n += ((const struct of_bytes *)FIELD(parts, i, f))->n;
    uint8_t *all = of_arena_alloc(&c->arena, n + 1), *to = all;
    if (!all)
        return false;
    for (size_t i = 0; i < parts->n; i++) {
        const struct of_bytes *b = FIELD(parts, i, f);
        if (b->n)
            memcpy(to, b->p, b->n);
        to += b->n;
    }
    *(struct of_bytes *)FIELD(parts, 0, f) = (struct of_bytes){all, n};
    return true;
}

/* Joins the lists and the bytes of all parts in the first one. */
static bool
join_parts(struct ctx *c, const struct parts *parts, const struct of_struct_row *row)
{
    bool ok = true;
    for (int i = 0; i < row->n_fields && ok && parts->n > 1; i++) {
        if (row->fields[i].kind == OFK_LIST)
            ok = join_lists(c, parts, &row->fields[i]);
        else if (row->fields[i].kind == OFK_REST)
            ok = join_bytes(c, parts, &row->fields[i]);
    }
    return ok;
}

enum status
ask_multipart_send(struct ctx *c, uint16_t mp, const void *body)
{
    const struct of_mp_row *row = of_mp_row(mp);
    struct of_msg m = {.version = OFP_VERSION,
                       .type = OFPT_MULTIPART_REQUEST,
                       .xid = ++c->remote.xid,
                       .row = of_msg_row(OFPT_MULTIPART_REQUEST),
                       .mp = row,
                       .body_row = row->request,
                       .body = (void *)(uintptr_t)body};
    return send_msg(c, &m);
}

enum status
ask_multipart(struct ctx *c, uint16_t mp, const void *body, struct of_msg *reply)
{
    const struct of_mp_row *row = of_mp_row(mp);
    struct parts parts = {0};
    enum status st = ask_multipart_send(c, mp, body);
    for (bool more = true; !st && more;) {
        if ((st = ask_wait(c, c->remote.xid, reply)))
            return st;
        if (reply->mp != row || reply->type != OFPT_MULTIPART_REPLY)
            return say_unexpected(c);
        if (!add_part(c, &parts, reply->body))
            return say_memory(c);
        more = reply->mp_flags & OFPMPF_REPLY_MORE;
    }
    if (!st && !join_parts(c, &parts, row->reply))
        st = say_memory(c);
    if (!st)
        reply->body = parts.body[0];
    return st;
}

const void *
ask_all(uint16_t mp)
{
    static const struct of_mp_flow_request flows = {
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    static const struct of_mp_port_request ports = {.port_no = OFPP_ANY};
    static const struct of_mp_queue_request queues = {.port_no = OFPP_ANY, .queue_id = OFPQ_ALL};
    static const struct of_mp_group_request groups = {.group_id = OFPG_ALL};
    static const struct of_mp_meter_request meters = {.meter_id = OFPM_ALL};
    switch (mp) {
    case OFPMP_FLOW:
    case OFPMP_AGGREGATE: return &flows;
    case OFPMP_PORT_STATS: return &ports;
    case OFPMP_QUEUE: return &queues;
    case OFPMP_GROUP: return &groups;
    case OFPMP_METER:
    case OFPMP_METER_CONFIG: return &meters;
    default: return NULL;
    }
}

enum status
ask_list(struct ctx *c, uint16_t mp, const void *body, struct of_list *list)
{
    struct of_msg reply;
    enum status st = ask_multipart(c, mp, body ? body : ask_all(mp), &reply);
    *list = st ? (struct of_list){0} : *(const struct of_list *)reply.body;
    return st;
}

enum status
ask_experimenter(struct ctx *c, uint32_t exp_type, struct of_bytes request, struct of_bytes *out)
{
    struct of_mp_experimenter body = {OFP_QOS_EXPERIMENTER, exp_type, request};
    struct of_msg reply;
    enum status st = ask_multipart(c, OFPMP_EXPERIMENTER, &body, &reply);
    if (st)
        return st;
    const struct of_mp_experimenter *answer = reply.body;
    if (answer->experimenter != OFP_QOS_EXPERIMENTER || answer->exp_type != exp_type)
        return say_unexpected(c);
    *out = answer->data;
    return DPCTL_OK;
}

enum status
ask_status(struct ctx *c, char **lines)
{
    struct of_bytes raw = {0};
    enum status st = ask_experimenter(c, OFP_EXP_STATUS, (struct of_bytes){NULL, 0}, &raw);
    if (st)
        return st;
    while (raw.n && raw.p[raw.n - 1] == '\n')
        raw.n--;
    char *text = words_keep(c, (const char *)raw.p, raw.n);
    if (!text)
        return say_memory(c);
    for (size_t i = 0; i < raw.n; i++) /* it goes to a terminal */
        if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
            text[i] = '?';
    *lines = text;
    return DPCTL_OK;
}

/* Nothing is said until unhush. */
struct hushed {
    char swallowed[CTX_SAID], *said;
    bool quiet;
};

static void
hush(struct ctx *c, struct hushed *h)
{
    h->said = c->said;
    h->quiet = c->quiet;
    c->quiet = true;
    c->said = h->swallowed;
}

static void
unhush(struct ctx *c, const struct hushed *h)
{
    c->quiet = h->quiet;
    c->said = h->said;
}

bool
ask_experimenter_if_known(struct ctx *c, uint32_t exp_type, struct of_bytes request,
                          struct of_bytes *reply)
{
    struct hushed h;
    hush(c, &h);
    enum status st = ask_experimenter(c, exp_type, request, reply);
    unhush(c, &h);
    return !st;
}

bool
ask_status_if_known(struct ctx *c, char **lines)
{
    struct hushed h;
    hush(c, &h);
    enum status st = ask_status(c, lines);
    unhush(c, &h);
    return !st;
}
