/* SPDX-License-Identifier: Apache-2.0 */
/* Events, and fields of packets in them. */
#include "trace-inside.h"

#include <packet/headers.h>

#include <string.h>

bool
trace_enough(const struct step *s)
{
    return trace_of(s)->full;
}

static void
put(struct trace *t, enum ofp_trace_event type, void *event)
{
    struct of_tagged *tagged = event;
    void *v[] = {event};
    struct of_list one = {.n = 1, .v = v};
    size_t start = t->out->len;
    tagged->row = of_tag_row(&of_list_trace_events, (uint16_t)type);
    if (of_encode_list(t->out, &of_list_trace_events, &one))
        t->out->len = start;
}

void
trace_put(struct trace *t, enum ofp_trace_event type, void *event)
{
    if (t->full)
        return;
    put(t, type, event);
    t->full = t->out->overflow || t->out->len - t->start >= TRACE_BYTES_MAX;
    if (t->full)
        put(t, OFPTE_TRUNCATED, &(struct of_trace_mark){.depth = 0});
}

void
trace_drop(const struct step *s, enum drop_reason why, uint32_t to)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
#define DROP_ROW(name, text, ...) {"drop." #name, text},
        DROP_ROWS(DROP_ROW)};
    bool of_table =
        why == DROP_no_match || why == DROP_no_action || why == DROP_meter || why == DROP_fragment;
    struct of_trace_drop e = {.depth = (uint8_t)(depth_of(s) + !of_table)};
    strncpy(e.reason, rows[why].name, sizeof e.reason - 1);
    strncpy(e.text, rows[why].text, sizeof e.text - 1);
    trace_put(trace_of(s), OFPTE_DROP, &e);
}

void
trace_standalone(const struct step *s)
{
    trace_put(trace_of(s), OFPTE_STANDALONE, &(struct of_trace_mark){.depth = 0});
}

/* ------------------------------------------------------------------ fields */

static void
fields_init(struct fields *f)
{
    f->match = (struct of_match){.n = 0, .v = f->v};
}

static void
add(struct fields *f, const struct of_oxm *o)
{
    f->v[f->match.n++] = *o;
}

static bool
is_worth_it(const struct flow_key *key, const struct of_oxm *o)
{
    switch (o->row->field) {
    case OXM_metadata:
    case OXM_tunnel_id: return oxm_number(o->row, o->value) != 0;
    case OXM_in_phy_port: return memcmp(key->in_port, key->in_phy_port, 4) != 0;
    default: return true;
    }
}

void
trace_fields(const struct flow_key *key, struct fields *out)
{
    struct flow_key all;
    uint32_t n = 0;
    memset(&all, 0xff, sizeof all);
    fields_init(out);
    key_to_match(key, &all, &out->match);
    for (uint32_t i = 0; i < out->match.n; i++)
        if (is_worth_it(key, &out->v[i]))
            out->v[n++] = out->v[i];
    out->match.n = n;
}

static bool
same_value(const struct of_oxm *a, const struct of_oxm *b)
{
    return a && b && !memcmp(a->value, b->value, a->row->bytes);
}

/* Marks the field and what it needs to be a valid match. */
static uint64_t
with_prerequisites(uint8_t field)
{
    uint64_t set = UINT64_C(1) << field;
    for (const struct oxm_prereq *p = oxm_rows[field].prereq; p->field >= 0;
         p = oxm_rows[p->field].prereq)
        set |= UINT64_C(1) << p->field;
    return set;
}

/* Keeps these fields only. */
static void
keep(struct fields *f, uint64_t set)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->match.n; i++)
        if (set >> f->v[i].row->field & 1)
            f->v[n++] = f->v[i];
    f->match.n = n;
}

static uint64_t
differing(const struct fields *of, const struct fields *from)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < of->match.n; i++) {
        const struct of_oxm *o = &of->v[i];
        if (!same_value(o, of_match_find(&from->match, (enum oxm_field)o->row->field)))
            set |= with_prerequisites(o->row->field);
    }
    return set;
}

void
trace_changes(const struct flow_key *before, const struct flow_key *after, struct fields *was,
              struct fields *is)
{
    fields_init(was);
    fields_init(is);
    if (!memcmp(before, after, sizeof *before))
        return;
    trace_fields(before, was);
    trace_fields(after, is);
    uint64_t set = differing(was, is) | differing(is, was);
    keep(was, set);
    keep(is, set);
}

static bool
satisfies(const struct of_oxm *wanted, const struct of_oxm *has)
{
    uint8_t diff = 0;
    for (int i = 0; has && i < wanted->row->bytes; i++)
        diff |= (wanted->value[i] ^ has->value[i]) & wanted->mask[i];
    return has && !diff;
}

void
trace_mismatch(const struct of_match *flow, const struct flow_key *key, struct fields *wants,
               struct fields *has)
{
    uint64_t set = 0;
    struct flow_key all;
    memset(&all, 0xff, sizeof all);
    fields_init(has);
    fields_init(wants);
    key_to_match(key, &all, &has->match);
    for (uint32_t i = 0; i < flow->n; i++) {
        const struct of_oxm *o = &flow->v[i];
        if (!satisfies(o, of_match_find(&has->match, (enum oxm_field)o->row->field)))
            set |= with_prerequisites(o->row->field);
    }
    for (uint32_t i = 0; i < flow->n; i++)
        add(wants, &flow->v[i]);
    keep(wants, set);
    keep(has, set);
}

uint8_t
trace_ttl(const struct packet *p)
{
    uint16_t type = of_get16(p->key.eth_type);
    uint32_t at = type == TYPE_IPV4    ? IPV4_TTL_AT
                  : type == TYPE_IPV6  ? IPV6_HOPS_AT
                  : is_mpls_type(type) ? MPLS_TTL_AT
                                       : 0;
    return p->l3 && at && p->l3 + at < p->len ? p->data[p->l3 + at] : 0;
}
