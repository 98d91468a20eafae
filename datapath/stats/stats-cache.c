/* SPDX-License-Identifier: Apache-2.0 */
/* STATS_CACHE (docs/reference/extensions.md): what the kernel handles, what it does not and why, and what the
 * workers' caches have. */
#include "stats-cache.h"

#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <megaflow/plan.h>
#include <shared/reply.h>
#include <table/flow-cache.h>

#include <stdio.h>
#include <string.h>

#define MOST 4096 /* entries, and refused keys, in a reply */

#define FITS(name, text)                                                                           \
    _Static_assert(sizeof #name <= OFP_CACHE_REASON_LEN && sizeof(text) <= OFP_CACHE_TEXT_LEN,     \
                   #name " is too long");
OFFLOAD_REASONS(FITS)
SW_OFFLOAD_REASONS(FITS)

struct dump {
    const struct sw *sw;
    struct of_wr *w;
    uint32_t port; /* OFPP_ANY: all */
    int ifindex;   /* its interface's */
    uint32_t most, n_entries, n_refused, left_out;
    uint64_t now;
};

static void
put(struct dump *d, enum ofp_stats_cache type, void *part)
{
    void *one[] = {part};
    struct of_tagged *tagged = part;
    tagged->row = of_tag_row(&of_list_cache_parts, (uint16_t)type);
    of_encode_list(d->w, &of_list_cache_parts, &OF_LIST(one, 1));
}

static void
copy(char *to, size_t n, const char *text)
{
    snprintf(to, n, "%s", text ? text : "");
}

/* ------------------------------------------------------------------ entries and refusals */

static uint64_t
since(const struct dump *d, uint64_t when)
{
    return !when ? UINT64_MAX : d->now > when ? d->now - when : 0;
}

/* What the programs don't read tells nothing of the entry. */
static void
match_of(const struct sw_offload_view *v, struct of_match *out)
{
    struct flow_key mask = {0};
#define READ_WORD(i, at) mask.w[at] = v->mask.w[at];
    OFFLOAD_WORD_ROWS(READ_WORD)
    if (key_is_arp(&v->key)) {
        memcpy(mask.nd_sll, v->mask.nd_sll, sizeof mask.nd_sll);
        memcpy(mask.nd_tll, v->mask.nd_tll, sizeof mask.nd_tll);
    }
    memset(mask.in_phy_port, 0, sizeof mask.in_phy_port);
    key_to_match(&v->key, &mask, out);
}

static void
put_entry(struct dump *d, const struct sw_offload_view *v)
{
    struct of_oxm fields[OXM_N];
    struct cache_actions a;
    struct of_cache_entry e = {.in_port = of_get32(v->key.in_port),
                               .packets = v->hits.packets,
                               .bytes = v->hits.bytes,
                               .frames = v->hits.frames,
                               .dropped = v->hits.dropped,
                               .dropped_bytes = v->hits.dropped_bytes,
                               .age_ns = since(d, v->created),
                               .idle_ns = since(d, v->used),
                               .meter_id = v->meter_id,
                               .match.v = fields};
    match_of(v, &e.match);
    cache_actions(d->sw, v, &a);
    e.actions = OF_LIST(a.list, a.n);
    put(d, OFPSC_ENTRY, &e);
}

static void
put_refused(struct dump *d, const struct sw_offload_view *v)
{
    struct of_oxm fields[OXM_N];
    struct of_cache_refused e = {.in_port = of_get32(v->key.in_port), .match.v = fields};
    copy(e.reason, sizeof e.reason, sw_offload_reason_name(v->why));
    key_describe(&v->key, &e.match);
    put(d, OFPSC_REFUSED, &e);
}

static bool
put_view(void *ctx, const struct sw_offload_view *v)
{
    struct dump *d = ctx;
    uint32_t *n = v->why == OFFLOADED ? &d->n_entries : &d->n_refused;
    if (d->port != OFPP_ANY && of_get32(v->key.in_port) != d->port &&
        (!d->ifindex || !cache_sends_to(v, d->ifindex)))
        return true;
    if (*n == d->most) {
        d->left_out++;
        return true;
    }
    ++*n;
    if (v->why == OFFLOADED)
        put_entry(d, v);
    else
        put_refused(d, v);
    return true;
}

/* ------------------------------------------------------------------ totals */

static void
put_reasons(struct dump *d, const struct sw_offload_counts *n)
{
    for (unsigned i = 1; i < SW_OFFLOAD_N; i++) {
        struct of_cache_reason e = {.requests = n->refused[i]};
        copy(e.reason, sizeof e.reason, sw_offload_reason_name(i));
        copy(e.text, sizeof e.text, sw_offload_reason_text(i));
        put(d, OFPSC_REASON, &e);
    }
}

static void
put_ports(struct dump *d)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(d->sw, no)); no = p->no) {
        struct sw_offload_why why = sw_offload_port_why(d->sw, p);
        struct of_cache_port e = {.port_no = p->no};
        copy(e.reason, sizeof e.reason, why.name);
        copy(e.text, sizeof e.text, why.text);
        if (d->port == OFPP_ANY || d->port == p->no)
            put(d, OFPSC_PORT, &e);
    }
}

static void
put_workers(struct dump *d)
{
    for (unsigned i = 0; i < d->sw->dp.n_workers; i++) {
        const struct worker *w = d->sw->dp.workers[i];
        struct flow_cache_counts n = {0};
        if (w->cache)
            n = flow_cache_counts(w->cache);
        struct of_cache_worker e = {.worker = i,
                                    .packets = counter_read(&w->packets),
                                    .hits = n.hits,
                                    .misses = n.misses,
                                    .bypassed = n.bypassed,
                                    .withdrawn = n.withdrawn,
                                    .masks = (uint32_t)n.masks,
                                    .used = (uint32_t)n.used,
                                    .entries = w->cache ? d->sw->dp.cache_entries : 0};
        put(d, OFPSC_WORKER, &e);
    }
}

static void
put_kernel(struct dump *d, const struct sw_offload_counts *n)
{
    struct sw_offload_why why = sw_offload_why(d->sw);
    struct of_cache_kernel e = {.entries = (uint32_t)n->kernel.entries,
                                .most = d->sw->offload ? d->sw->opt.offload.entries : 0,
                                .masks = (uint32_t)n->kernel.masks,
                                .left_out = d->left_out};
#define COPY_KERNEL(name) e.name = n->kernel.name;
    OFFLOAD_COUNTS(COPY_KERNEL)
#define COPY_COUNT(name) e.name = n->name;
    SW_OFFLOAD_COUNTS(COPY_COUNT)
    copy(e.reason, sizeof e.reason, why.name);
    copy(e.text, sizeof e.text, why.text);
    put(d, OFPSC_KERNEL, &e);
}

/* ------------------------------------------------------------------ the request */

static int
handle_stats_cache(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *q = m->body;
    uint32_t most = of_get32(q->data.p + 4);
    struct of_wr w = of_wr_grow(16u << 20);
    struct dump d = {.sw = sw,
                     .w = &w,
                     .port = of_get32(q->data.p),
                     .most = most && most < MOST ? most : MOST,
                     .now = loop_clock()};
    struct sw_offload_counts n = sw_offload_counts(sw);
    const struct sw_port *p = d.port == OFPP_ANY ? NULL : sw_ports_find(sw, d.port);
    if (d.port != OFPP_ANY && !p)
        return OF_BAD_REQUEST(BAD_PORT);
    d.ifindex = p && p->port ? p->link.ifindex : 0;
    sw_offload_each(sw, put_view, &d);
    put_reasons(&d, &n);
    put_ports(&d);
    put_workers(&d);
    put_kernel(&d, &n);
    return conn_dump_encoded(c, m, &w, conn_dump_tagged);
}

const struct request request_stats_cache = {
    .access = ACCESS_READ, .needs = TABLES, .least = 8, .most = 8, .run = handle_stats_cache};
