/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier-inside.h"

#include <classifier/nearest.h>

#include <string.h>

/* The places where a mask has bits; fields that share a place count once. */
struct place {
    uint8_t at, n;
};

struct places {
    unsigned n;
    struct place v[OXM_N];
};

static bool
has_bits(const struct flow_key *mask, struct place p)
{
    const uint8_t *m = (const uint8_t *)mask + p.at;
    for (unsigned i = 0; i < p.n; i++)
        if (m[i])
            return true;
    return false;
}

static struct place *
place_at(struct places *p, unsigned at)
{
    for (unsigned i = 0; i < p->n; i++)
        if (at >= p->v[i].at && at < p->v[i].at + p->v[i].n)
            return &p->v[i];
    return NULL;
}

static void
places_of(const struct flow_key *mask, struct places *out)
{
    out->n = 0;
    for (unsigned f = 0; f < OXM_N; f++) {
        struct place p = {key_offset[f], oxm_rows[f].bytes}, *same = place_at(out, p.at);
        if (same && same->at == p.at && same->n < p.n)
            same->n = p.n; /* an IPv6 address where an IPv4 one may be */
        else if (!same && has_bits(mask, p))
            out->v[out->n++] = p;
    }
}

static unsigned
differences(const struct places *places, const struct flow_key *mask, const struct flow_key *flow,
            const struct flow_key *key)
{
    unsigned n = 0;
    const uint8_t *m = (const uint8_t *)mask, *f = (const uint8_t *)flow;
    const uint8_t *k = (const uint8_t *)key;
    for (unsigned i = 0; i < places->n; i++) {
        const struct place *p = &places->v[i];
        uint8_t diff = 0;
        for (unsigned b = p->at; b < (unsigned)p->at + p->n; b++)
            diff |= m[b] & (f[b] ^ k[b]);
        n += diff != 0;
    }
    return n;
}

static bool
is_nearer(unsigned differs, const struct flow *f, const struct nearest *o, uint32_t i)
{
    return differs < o->differs[i] ||
           (differs == o->differs[i] && f->priority > o->flow[i]->priority);
}

static void
keep(struct nearest *o, struct flow *f, unsigned differs)
{
    uint32_t at = o->n;
    while (at > 0 && is_nearer(differs, f, o, at - 1))
        at--;
    if (at == NEAREST_MOST)
        return;
    if (o->n < NEAREST_MOST)
        o->n++;
    for (uint32_t i = o->n - 1; i > at; i--) {
        o->flow[i] = o->flow[i - 1];
        o->differs[i] = o->differs[i - 1];
    }
    o->flow[at] = f;
    o->differs[at] = differs;
}

/* How many flows of the subtable are above the priority. */
static uint32_t
count_above(const struct subtable *s, int above)
{
    uint32_t n = 0;
    for (uint32_t i = s->n_prios; i-- > 0 && s->prios[i].priority > above;)
        n += s->prios[i].n;
    return n;
}

/* Returns how many flows it has looked at; *compared: how many of these are above the priority. */
static uint32_t
compare_some(const struct subtable *s, const struct flow_key *key, int above, uint32_t budget,
             struct nearest *out, uint32_t *compared)
{
    struct places places;
    uint32_t pos = 0, below = 0;
    *compared = 0;
    places_of(&s->mask, &places);
    for (struct flow *head;
         below + *compared < budget && (head = ptr_hash_each(&s->heads, &pos));) {
        struct flow_key masked;
        unsigned differs;
        if (head->priority <= above) {
            below++;
            continue;
        }
        flow_key_of(head, &masked);
        differs = differences(&places, &s->mask, &masked, key);
        for (struct flow *f = head; f && f->priority > above; f = f->lower, ++*compared)
            if (change_set_sees(f->mark) && differs)
                keep(out, f, differs);
    }
    return below + *compared;
}

void
classifier_nearest(struct classifier *c, const struct flow_key *key, int above, uint32_t budget,
                   struct nearest *out)
{
    struct subtables_pos pos = {0};
    uint32_t masks = 0;
    *out = (struct nearest){0};
    for (const struct subtable *s; (s = subtables_each(c, &pos));)
        masks += s->n_flows && s->max_priority > above;
    pos = (struct subtables_pos){0};
    for (const struct subtable *s; (s = subtables_each(c, &pos));) {
        uint32_t n = count_above(s, above), share = masks ? budget / masks + 1 : 0, compared;
        if (!n)
            continue;
        uint32_t seen = compare_some(s, key, above, share, out, &compared);
        out->higher += n;
        if (seen >= share)
            out->not_compared += n > compared ? n - compared : 0;
        budget -= seen < budget ? seen : budget;
        masks -= masks > 0;
    }
}
