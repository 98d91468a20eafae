/* SPDX-License-Identifier: Apache-2.0 */
/* The flows.  A switch may have millions, so a look takes in TOP_FLOWS_MAX of them.  OpenFlow
 * 1.3 can't limit a reply: dpctl closes the connection, and the switch drops the rest of its
 * answer.  Only the flows that are shown are decoded. */
#include "top-inside.h"

#include <core/ask.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

#include <oflib/text.h>

#include <stdio.h>

#define HEAD  48 /* struct ofp_flow_stats without its match */
#define MATCH 4  /* the head of struct ofp_match */

/* One entry; 0: it is malformed, or there is no memory. */
static size_t
take_flow(struct top *t, const uint8_t *p, size_t left)
{
    size_t length = left >= HEAD + 8 ? of_get16(p) : 0;
    size_t match = length >= HEAD + 8 ? of_get16(p + HEAD + 2) : 0;
    if (length > left || match < MATCH || HEAD + match > length)
        return 0;
    struct top_item *i = top_add(t);
    if (!i)
        return 0;
    top_hash(p + HEAD, match, i->key);
    i->key[0] ^= (uint64_t)p[2] << 16 | of_get16(p + 12); /* table and priority */
    i->age_us = (uint64_t)of_get32(p + 4) * 1000000 + of_get32(p + 8) / 1000;
    i->v[0] = of_get64(p + 40);
    i->v[1] = of_get64(p + 32);
    i->detail = NULL;
    i->wire = p;
    return length;
}

static enum status
take_part(struct top *t, struct of_bytes raw, bool *more)
{
    enum { AT = 16 }; /* header, type, flags, pad */
    if (raw.n < AT || of_get16(raw.p + 8) != OFPMP_FLOW)
        return say_unexpected(t->c);
    uint8_t *copy = of_arena_alloc(&t->c->arena, raw.n);
    if (!copy)
        return say_memory(t->c);
    memcpy(copy, raw.p, raw.n);
    *more = of_get16(raw.p + 10) & OFPMPF_REPLY_MORE;
    for (size_t at = AT, n; at < raw.n; at += n)
        if (!(n = take_flow(t, copy + at, raw.n - at)))
            return say_malformed(t->c);
    return DPCTL_OK;
}

static enum status
take_error(struct top *t, struct of_bytes raw)
{
    struct of_msg msg;
    if (of_decode(raw, &t->c->arena, &msg))
        return say_malformed(t->c);
    return view_error(t->c, &msg);
}

/* "0 100": table and priority */
static void
name_flows(struct top *t)
{
    for (size_t k = 0; k < t->n; k++) {
        char name[32];
        snprintf(name, sizeof name, "%5u %5u", t->v[k].wire[2], of_get16(t->v[k].wire + 12));
        const char *kept = words_keep(t->c, name, strlen(name));
        t->v[k].name = kept ? kept : "";
    }
}

static enum status
stop_early(struct top *t)
{
    struct remote *r = &t->c->remote;
    snprintf(t->note, sizeof t->note,
             "only the first %zu flows; to see others name a match: dpctl top flows in_port=1",
             t->n);
    return remote_reopen(r) ? say_failed(t->c, "%s", r->why) : DPCTL_OK;
}

/* The request for t->match, in the arena. */
static enum status
make_request(struct top *t, struct of_mp_flow_request *request)
{
    *request = (struct of_mp_flow_request){
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    char *words[] = {t->match ? words_keep(t->c, t->match, strlen(t->match)) : NULL};
    if (t->match && !words[0])
        return say_memory(t->c);
    return words_fields(t->c, of_mp_row(OFPMP_FLOW)->request, words, t->match ? 1 : 0, request);
}

enum status
top_check_match(struct top *t)
{
    struct of_mp_flow_request request;
    return make_request(t, &request);
}

enum status
top_collect_flows(struct top *t)
{
    struct remote *r = &t->c->remote;
    struct of_mp_flow_request request;
    struct of_bytes raw;
    bool more = true;
    enum status st = make_request(t, &request);
    st = st ? st : ask_multipart_send(t->c, OFPMP_FLOW, &request);
    while (!st && more && t->n < TOP_FLOWS_MAX) {
        if (remote_recv(r, remote_now_ms() + r->timeout_ms, &raw))
            return say_failed(t->c, "%s", r->why);
        if (of_get32(raw.p + 4) != r->xid)
            continue;
        st = raw.p[1] == OFPT_ERROR ? take_error(t, raw) : take_part(t, raw, &more);
    }
    if (!st && more)
        st = stop_early(t);
    if (!st)
        name_flows(t);
    return st;
}

const char *
top_flow_text(struct top *t, const struct top_item *i)
{
    struct of_wr w = of_wr_grow(1 << 16);
    void *body = NULL;
    struct of_bytes raw = {i->wire, of_get16(i->wire)};
    const char *out = "?";
    if (!of_decode_struct(raw, &of_row_flow_stats, &t->c->arena, &body)) {
        const struct of_flow_stats *s = body;
        of_print_match(&w, &s->match);
        of_printf(&w, " -> ");
        of_print_list(&w, &of_list_instructions, &s->instructions);
        out = words_keep(t->c, (const char *)w.buf, w.len);
    }
    of_wr_free(&w);
    return out ? out : "?";
}
