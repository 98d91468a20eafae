/* SPDX-License-Identifier: Apache-2.0 */
#include "passive.h"

#include "law.h"

void
passive_begin(struct passive *p, int64_t now)
{
    p->heard_at = now;
    for (unsigned i = 0; i < PASSIVE_PAIRS; i++)
        p->v[i].heard_at = -1;
}

void
passive_turn(struct passive *p)
{
    for (unsigned i = 0; i < PASSIVE_PAIRS; i++)
        p->v[i].delay = -1;
}

/* Its place, or the one of the pair that was not heard of for longest. */
static struct passive_pair *
place_of(struct passive *p, uint32_t id)
{
    struct passive_pair *oldest = p->v;
    for (struct passive_pair *v = p->v; v < p->v + PASSIVE_PAIRS; v++) {
        if (v->heard_at >= 0 && v->id == id)
            return v;
        if (v->heard_at < oldest->heard_at)
            oldest = v;
    }
    *oldest = (struct passive_pair){.id = id, .delay = -1};
    return oldest;
}

void
passive_take(struct passive *p, uint32_t pair, int64_t rtt, int64_t wait, int64_t now)
{
    struct passive_pair *v = place_of(p, pair);
    int64_t alone = rtt > wait ? rtt - wait : 0, delay;
    if (v->delay < 0 || rtt < v->baseline) /* it rises no faster than a reflector's */
        autorate_baseline(&v->baseline, rtt);
    delay = alone > v->baseline ? alone - v->baseline : 0;
    if (v->delay < 0 || delay < v->delay)
        v->delay = delay;
    v->heard_at = p->heard_at = now;
}

int64_t
passive_delay(const struct passive *p, unsigned *pairs, int64_t *baseline)
{
    int64_t v[PASSIVE_PAIRS];
    *pairs = 0;
    *baseline = 0;
    for (unsigned i = 0; i < PASSIVE_PAIRS; i++) {
        if (p->v[i].heard_at < 0 || p->v[i].delay < 0)
            continue;
        v[(*pairs)++] = p->v[i].delay;
        if (!*baseline || p->v[i].baseline < *baseline)
            *baseline = p->v[i].baseline;
    }
    return autorate_delay(v, *pairs);
}
