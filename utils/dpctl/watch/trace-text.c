/* SPDX-License-Identifier: Apache-2.0 */
/* A trace for people: a line for each event, then what comes of the packet. */
#include "trace-parts.h"

#include <oflib/plural.h>

#include <inttypes.h>

/* ------------------------------------------------------------------ fields */

static bool
same_value(const struct of_oxm *a, const struct of_oxm *b)
{
    return a && b && !memcmp(a->value, b->value, a->row->bytes);
}

static void
put_value(struct of_wr *w, const struct of_oxm *o)
{
    if (o)
        of_print_oxm_value(w, o);
    else
        of_printf(w, "absent");
}

/* "tcp_dst 80 -> 443, vlan_vid none -> 7"; returns whether anything differs. */
static bool
put_changes(struct of_wr *w, const char *before_it, const struct of_match *was,
            const struct of_match *is)
{
    const char *sep = before_it;
    for (int f = 0; f < OXM_N; f++) {
        const struct of_oxm *a = of_match_find(was, (enum oxm_field)f);
        const struct of_oxm *b = of_match_find(is, (enum oxm_field)f);
        if ((!a && !b) || same_value(a, b))
            continue;
        of_printf(w, "%s%s ", sep, oxm_rows[f].name);
        put_value(w, a);
        of_printf(w, " -> ");
        put_value(w, b);
        sep = ", ";
    }
    return sep != before_it;
}

static bool
satisfies(const struct of_oxm *wants, const struct of_oxm *has)
{
    uint8_t diff = 0;
    for (int i = 0; has && i < wants->row->bytes; i++)
        diff |= (wants->value[i] ^ has->value[i]) & wants->mask[i];
    return has && !diff;
}

/* Does the packet lack the field because a field that it needs differs?  Then that one is shown. */
static bool
is_consequence(const struct of_trace_missed *e, const struct of_oxm *o)
{
    int8_t needs = o->row->prereq->field;
    const struct of_oxm *wanted =
        needs < 0 ? NULL : of_match_find(&e->wants, (enum oxm_field)needs);
    return wanted && !satisfies(wanted, of_match_find(&e->has, (enum oxm_field)needs));
}

static void
put_mismatch(struct of_wr *w, const struct of_trace_missed *e)
{
    const char *sep = "";
    for (uint32_t i = 0; i < e->wants.n; i++) {
        const struct of_oxm *o = &e->wants.v[i];
        const struct of_oxm *has = of_match_find(&e->has, (enum oxm_field)o->row->field);
        if (satisfies(o, has) || is_consequence(e, o))
            continue;
        of_printf(w, "%s%s ", sep, o->row->name);
        if (has) {
            of_printf(w, "is ");
            of_print_oxm_value(w, has);
        } else {
            of_printf(w, "is not in the packet");
        }
        of_printf(w, ", the entry wants ");
        of_print_oxm_value(w, o);
        sep = "; ";
    }
}

/* The fields of `all` that were asked for, or those that were not. */
static void
put_fields(struct of_wr *w, const char *before_it, const struct of_match *all,
           const struct of_match *given, bool asked)
{
    const char *sep = before_it;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct of_oxm *o = &all->v[i];
        if ((of_match_find(given, (enum oxm_field)o->row->field) != NULL) != asked)
            continue;
        of_printf(w, "%s%s=", sep, o->row->name);
        of_print_oxm_value(w, o);
        sep = ",";
    }
}

/* ------------------------------------------------------------------ in the tables */

static void
put_packet(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_packet *e = event;
    of_printf(w, "packet");
    if (!t->given)
        of_printf(w, " %u", t->number);
    of_printf(w, ": %" PRIu32 " bytes", e->total_len);
    if (e->segments > 1)
        of_printf(w, " in %u segments", e->segments);
    if (e->ttl)
        of_printf(w, ", TTL %u", e->ttl);
    if (e->flags) {
        of_printf(w, ", ");
        of_print_number(w, &of_fmt_OFPTP, e->flags);
    }
    const struct of_match *given = t->given ? t->given : &e->fields;
    put_fields(w, ": ", &e->fields, given, true);
    put_fields(w, "\n  and, made up: ", &e->fields, given, false);
    if (t->cut)
        of_printf(w, "\n  the file has only its beginning");
}

static void
put_standalone(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    of_printf(w,
              "no flow sends it, no controller is connected, and the fail mode is open: it goes by "
              "NORMAL");
}

static void
put_entry(struct of_wr *w, uint16_t priority, uint64_t cookie, const struct of_match *m)
{
    of_printf(w, "priority %u, ", priority);
    if (cookie)
        of_printf(w, "cookie 0x%" PRIx64 ", ", cookie);
    of_print_match(w, m);
    if (!m->n)
        of_printf(w, "any packet");
}

static void
put_table(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_table *e = event;
    of_printf(w, "table %u: ", e->table_id);
    if (e->result == OFPTR_NOTHING) {
        of_printf(w, e->active_count ? "no entry matches, and it has no table-miss entry"
                                     : "it has no entries");
    } else {
        if (e->result == OFPTR_MISS)
            of_printf(w, "the table-miss entry, ");
        put_entry(w, e->priority, e->cookie, &e->match);
        of_printf(w, "\n  -> ");
        of_print_list(w, &of_list_instructions, &e->instructions);
        if (!e->instructions.n)
            of_printf(w, "no instructions");
    }
    if (!e->higher)
        return;
    of_printf(w, "\n  %" PRIu32 " %s%s not match", e->higher, e->higher > 1 ? "entries" : "entry",
              e->result == OFPTR_NOTHING ? (e->higher > 1 ? " do" : " does")
              : e->higher > 1            ? " of higher priority do"
                                         : " of higher priority does");
    if (e->not_compared)
        of_printf(w, "; %" PRIu32 " of them were not compared", e->not_compared);
}

static void
put_missed(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_missed *e = event;
    of_printf(w, "  ");
    put_entry(w, e->priority, e->cookie, &e->match);
    of_printf(w, ":\n%*s", 2 * e->depth + 4, "");
    put_mismatch(w, e);
}

static void
put_band(struct of_wr *w, const struct of_trace_meter *m, const struct of_trace_band *b)
{
    const char *unit = m->flags & OFPMF_PKTPS ? "packets" : "kbit";
    of_printf(w, "%s above %" PRIu32 " %s/s: ", b->type == OFPMBT_DROP ? "drops" : "remarks",
              b->rate, unit);
    if (b->exceeded)
        of_printf(w, "exceeded, for %" PRIu64 ".%03" PRIu64 " ms more", b->wait_ns / 1000000,
                  b->wait_ns / 1000 % 1000);
    else
        of_printf(w, "%" PRIu64 ".%03" PRIu64 " %s left", b->tokens / 1000, b->tokens % 1000, unit);
    if (b->burst_size)
        of_printf(w, " of %" PRIu32, b->burst_size);
}

static void
put_meter(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    static const char *const verdicts[] = {
        [OFPTM_PASS] = "lets it pass", [OFPTM_DROP] = "drops it", [OFPTM_REMARK] = "remarks it"};
    const struct of_trace_meter *e = event;
    of_printf(w, "meter %" PRIu32 " %s", e->meter_id,
              e->verdict <= OFPTM_REMARK ? verdicts[e->verdict] : "?");
    put_changes(w, ": ", &e->before, &e->after);
    for (uint32_t i = 0; i < e->bands.n; i++) {
        of_printf(w, "\n%*s", 2 * e->depth + 2, "");
        put_band(w, e, OF_AT(&e->bands, i, struct of_trace_band));
    }
}

/* ------------------------------------------------------------------ actions */

static bool
forwards(const struct of_list *actions)
{
    uint16_t type = actions->n ? OF_AT(actions, 0, struct of_tagged)->row->type : OFPAT_OUTPUT;
    return type == OFPAT_OUTPUT || type == OFPAT_GROUP || type == OFPAT_SET_QUEUE;
}

static void
put_action(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_action *e = event;
    of_print_list(w, &of_list_actions, &e->actions);
    if (forwards(&e->actions))
        return;
    bool any = put_changes(w, ": ", &e->before, &e->after);
    if (e->ttl_before != e->ttl_after)
        of_printf(w, "%sTTL %u -> %u", any ? ", " : ": ", e->ttl_before, e->ttl_after);
    else if (!any)
        of_printf(w, ": changes nothing");
}

static void
put_action_set(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    static const char *const what[] = {[OFPTS_WRITTEN] = "the action set is now ",
                                       [OFPTS_CLEARED] = "the action set is cleared",
                                       [OFPTS_EXECUTED] = "action set, in this order: "};
    const struct of_trace_action_set *e = event;
    of_printf(w, "%s", e->what <= OFPTS_EXECUTED ? what[e->what] : "");
    of_print_list(w, &of_list_actions, &e->actions);
}

static void
put_metadata(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    of_printf(w, "metadata is now 0x%" PRIx64, ((const struct of_trace_metadata *)event)->metadata);
}

static void
put_group(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_group *e = event;
    if (!e->found) {
        of_printf(w, "there is no group %" PRIu32, e->group_id);
        return;
    }
    of_printf(w, "group %" PRIu32 ", ", e->group_id);
    of_print_number(w, &of_fmt_OFPGT, e->group_type);
    of_printf(w, ", %" PRIu32 " bucket%s", e->buckets, OF_S(e->buckets));
    if (e->group_type == OFPGT_SELECT)
        of_printf(w, ": hash 0x%08" PRIx32 " is %" PRIu64 " of weights 0 to %" PRIu32, e->hash,
                  (uint64_t)e->hash * e->total_weight >> 32,
                  e->total_weight ? e->total_weight - 1 : 0);
}

static void
put_watched(struct of_wr *w, const struct of_trace_bucket *e)
{
    if (e->watch_port != OFPP_ANY) {
        of_printf(w, ", watches port ");
        of_print_number(w, &of_fmt_PORT, e->watch_port);
    }
    if (e->watch_group != OFPG_ANY)
        of_printf(w, ", watches group %" PRIu32, e->watch_group);
}

static void
put_bucket(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    static const char *const states[] = {[OFPTB_CHOSEN] = "",
                                         [OFPTB_DEAD] = ", not live",
                                         [OFPTB_NOT_CHOSEN] = ", not taken",
                                         [OFPTB_LIMIT] = ", not run: too many buckets before it"};
    const struct of_trace_bucket *e = event;
    of_printf(w, "bucket %" PRIu32, e->bucket);
    if (e->weight)
        of_printf(w, ", weight %u", e->weight);
    put_watched(w, e);
    of_printf(w, "%s: ", e->state <= OFPTB_LIMIT ? states[e->state] : "");
    of_print_list(w, &of_list_actions, &e->actions);
    if (!e->actions.n)
        of_printf(w, "drop");
}

/* ------------------------------------------------------------------ where it leaves */

static void
put_flood(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_flood *e = event;
    of_printf(w, "to every port that takes it but ");
    of_print_number(w, &of_fmt_PORT, e->in_port);
    of_printf(w, ": %" PRIu32, e->ports);
}

static void
put_normal(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_normal *e = event;
    of_printf(w, "NORMAL, VLAN %u: ", e->vid);
    of_print_mac(w, e->eth_dst);
    if (e->port_no != OFPP_ANY) {
        of_printf(w, " was learnt at port ");
        of_print_number(w, &of_fmt_PORT, e->port_no);
    } else {
        of_printf(w, e->eth_dst[0] & 1 ? " is a group address" : " was not learnt yet");
    }
    if (e->learns)
        of_printf(w, "; the packet's own eth_src would be learnt");
}

/* Ethernet's header and a VLAN tag don't count. */
static bool
is_too_long(const struct of_trace_output *e)
{
    return e->mtu && e->segments <= 1 && e->total_len > e->mtu + 18;
}

static void
put_output(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_output *e = event;
    trace_put_port(w, e);
    of_printf(w, e->goes ? ": " : " does not take it: ");
    of_printf(w, "%" PRIu32 " bytes", e->total_len);
    if (e->segments > 1)
        of_printf(w, " in %u segments", e->segments);
    if (trace_is_led(t->events, e))
        of_printf(w, ", queue %" PRIu32 ": class %" PRIu32 " below it takes it", e->queue_id,
                  e->class_id);
    else if (e->queue_id && e->queue_id != e->class_id)
        of_printf(w, ", queue %" PRIu32 " is not there", e->queue_id);
    else if (e->queue_id)
        of_printf(w, ", queue %" PRIu32, e->queue_id);
    if (e->config) {
        of_printf(w, ", config ");
        of_print_number(w, &of_fmt_OFPPC, e->config);
    }
    if (e->state) {
        of_printf(w, ", ");
        of_print_number(w, &of_fmt_OFPPS, e->state);
    }
    if (e->curr_speed) {
        of_printf(w, ", ");
        trace_put_rate(w, (uint64_t)e->curr_speed * 1000);
    }
    if (e->mtu)
        of_printf(w, ", MTU %" PRIu32, e->mtu);
    if (is_too_long(e))
        of_printf(w, ": longer than that, so the interface will refuse it (drop.too_long)");
    of_printf(w, "\n%*s", 2 * e->depth + 2, "");
    if (!put_changes(w, "changed since it came in: ", &e->before, &e->after))
        of_printf(w, "no field changed since it came in");
}

static void
put_queue(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    trace_print_queue(w, event);
}

static void
put_packet_in(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_packet_in *e = event;
    if (e->suppressed) {
        of_printf(w, "no packet-in: the ingress port is configured so (no_packet_in)");
        return;
    }
    of_printf(w, "to the controllers: reason ");
    of_print_number(w, &of_fmt_OFPR, e->reason);
    of_printf(w, ", max_len ");
    of_print_number(w, &of_fmt_MAX_LEN, e->max_len);
    of_printf(w, ", %" PRIu32 " bytes", e->total_len);
    put_changes(w, "; changed since it came in: ", &e->before, &e->after);
}

static void
put_controller(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_controller *e = event;
    of_print_text(w, e->peer, strnlen(e->peer, sizeof e->peer));
    of_printf(w, ", ");
    of_print_number(w, &of_fmt_OFPCR_ROLE, e->role);
    of_printf(w, e->wanted ? ": gets it" : ": does not want it");
}

static void
put_ingress(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_ingress *e = event;
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, e->port_no);
    of_printf(w, " has queues for what enters: ");
    if (e->goes)
        of_printf(w, "it waits in queue %" PRIu32 " first", e->queue_id);
    else
        of_printf(w, "it takes no place in them, as it will not leave the switch");
}

static void
put_drop(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_drop *e = event;
    of_printf(w, "dropped: ");
    of_print_text(w, e->text, strnlen(e->text, sizeof e->text));
    of_printf(w, " (");
    of_print_text(w, e->reason, strnlen(e->reason, sizeof e->reason));
    of_printf(w, ")");
}

static void
put_truncated(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    of_printf(w, "... and so on: the switch tells no more than 2 MB of one packet");
}

static void
put_kernel(struct of_wr *w, const void *event, const struct trace_shown *t)
{
    const struct of_trace_kernel *e = event;
    if (e->handled) {
        of_printf(w, "the kernel can handle such packets by itself");
        return;
    }
    of_printf(w, "not handled in the kernel: ");
    of_print_text(w, e->text, strnlen(e->text, sizeof e->text));
    of_printf(w, " (");
    of_print_text(w, e->reason, strnlen(e->reason, sizeof e->reason));
    of_printf(w, ")");
}

typedef void put_fn(struct of_wr *w, const void *event, const struct trace_shown *t);

#define PUT_ROW(constant, number, name, S) [number] = put_##name,
static put_fn *const puts_[] = {OFPTE_ROWS(PUT_ROW)};

/* ------------------------------------------------------------------ all of it */

void
trace_print(struct of_wr *w, const struct trace_shown *t)
{
    struct of_wr sum = of_wr_grow(1u << 24);
    for (uint32_t i = 0; i < t->events->n; i++) {
        /* Each structure begins with row and depth. */
        const struct of_trace_mark *e = t->events->v[i];
        of_printf(w, "%*s", 2 * e->depth, "");
        puts_[e->row->type](w, e, t);
        of_printf(w, "\n");
    }
    trace_sum_up(&sum, t->events);
    if (sum.len)
        of_wr_bytes(w, sum.buf, sum.len - 1);
    of_wr_free(&sum);
}

void
trace_json(struct of_wr *w, const struct trace_shown *t)
{
    struct of_json json = of_json(w), *j = &json;
    struct of_wr sum = of_wr_grow(1u << 24);
    of_json_object(j, NULL);
    of_json_uint(j, "packet", t->number);
    of_json_array(j, "events");
    for (uint32_t i = 0; i < t->events->n; i++) {
        if (OF_AT(t->events, i, struct of_tagged)->row->type == OFPTE_QUEUE)
            trace_json_queue(j, t->events->v[i]);
        else
            of_json_tagged(j, NULL, t->events->v[i]);
    }
    of_json_end_array(j);
    of_json_array(j, "summary");
    trace_sum_up(&sum, t->events);
    for (size_t at = 0, n; at < sum.len; at += n + 1) {
        const uint8_t *p = sum.buf + at, *end = memchr(p, '\n', sum.len - at);
        n = end ? (size_t)(end - p) : sum.len - at;
        of_json_string(j, NULL, (const char *)p, n);
    }
    of_json_end_array(j);
    of_json_end_object(j);
    of_wr_free(&sum);
}
