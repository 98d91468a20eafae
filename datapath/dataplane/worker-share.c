/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/worker-share.h>

void
share_mark(struct share_clocks *c, uint64_t now, uint64_t cpu)
{
    c->wall = now;
    c->cpu = cpu;
}

/* Since the last mark until the batch, the thread can't have run for longer than the time that
 * passed. */
uint64_t
share_took(struct share_clocks *c, uint64_t began, uint64_t now, uint64_t cpu)
{
    uint64_t ran = cpu - c->cpu, before = began > c->wall ? began - c->wall : 0;
    bool known = c->wall && now < c->wary_until;
    c->wary_until = now + SHARE_WARY_NS;
    share_mark(c, now, cpu);
    uint64_t least = ran > before ? ran - before : 0;
    return !known ? 0 : least < now - began ? least : now - began;
}

void
share_charge(struct share *s, unsigned n, uint32_t bytes, uint64_t took, uint64_t now)
{
    if (took <= share_slow(bytes) || !n)
        return;
    uint64_t each = took / n;
    uint64_t batch = SHARE_BATCH_NS / (each ? each : 1);
    s->batch = batch ? (uint32_t)batch : 1;
    s->small_until = now + SHARE_HOLD_NS;
    if (each > SHARE_BATCH_NS)
        s->rests_until = now + SHARE_RESTS * took;
}
