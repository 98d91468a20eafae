/* SPDX-License-Identifier: Apache-2.0 */
#include "law.h"

#include <stdbool.h>

#define SECOND     1000000
#define TURN_MAX   SECOND /* a turn that came later counts as this long */
#define DRAIN      (SECOND / 5)
#define IDLE_AFTER (2 * SECOND)

/* Thousandths: of a rate, and of a rate each second. */
#define CUT_LEAST 100
#define CUT_MORE  150
#define NEAR      120
#define FAR       700
#define BACK      100

static uint64_t
part(uint64_t rate, uint64_t thousandths)
{
    return rate / 1000 * thousandths + rate % 1000 * thousandths / 1000;
}

static uint64_t
between(uint64_t rate, uint64_t least, uint64_t most)
{
    return rate < least ? least : rate > most ? most : rate;
}

/* The part of a second's change that belongs to a turn of `took` microseconds. */
static uint64_t
change(uint64_t rate, uint64_t thousandths, int64_t took)
{
    return part(rate, thousandths) / SECOND * (uint64_t)took +
           part(rate, thousandths) % SECOND * (uint64_t)took / SECOND;
}

void
autorate_begin(struct autorate_law *law, const struct autorate_bounds *bounds)
{
    *law = (struct autorate_law){
        .bounds = *bounds, .rate = bounds->base, .idle_since = -1, .at = -1, .delay = -1};
}

/* What the link carried: no more than the class sent, less what made the delay grow meanwhile.
 * Both may be wrong for a moment, so at most half of the rate is taken away. */
static uint64_t
carried(const struct autorate_law *law, const struct autorate_turn *turn, int64_t took)
{
    uint64_t sent = turn->sent < law->rate ? turn->sent : law->rate;
    int64_t grew = law->delay < 0 ? 0 : turn->delay - law->delay;
    if (grew > 0 && took > 0)
        sent = part(sent, (uint64_t)(took * 1000 / (took + grew)));
    return between(sent, law->rate / 2, law->rate);
}

static void
lower(struct autorate_law *law, const struct autorate_turn *turn, int64_t took)
{
    int64_t limit = law->bounds.limit, over = turn->delay > limit ? turn->delay - limit : 0;
    uint64_t rate = carried(law, turn, took);
    uint64_t more =
        over >= 3 * limit ? CUT_MORE : CUT_MORE * (uint64_t)over / (3 * (uint64_t)limit);
    /* What it carried is a guess.  If that is close to the rate, the rate itself is the better
     * value to be careful near. */
    law->too_much = rate < part(law->rate, 750) ? rate : law->rate;
    law->rate = rate - part(rate, CUT_LEAST + more);
    law->drain_from = turn->delay;
    law->drain_least = turn->at + (turn->delay > SECOND ? SECOND : turn->delay) + DRAIN;
    law->drain_until = law->drain_least + turn->delay;
    law->bad = 0;
}

/* Does the link still empty its buffer?  Probes that are on their way were sent before the rate
 * was lowered; after them the delay must fall. */
static bool
drains(struct autorate_law *law, const struct autorate_turn *turn)
{
    bool falls = turn->delay < law->drain_from - law->drain_from / 4;
    if (!law->drain_until || turn->delay <= law->bounds.limit / 2) {
        law->drain_until = 0;
        return false;
    }
    if (turn->at < law->drain_least ||
        (turn->at < law->drain_until && turn->delay <= law->drain_from))
        return true;
    if (falls) {
        law->drain_from = turn->delay;
        law->drain_until = turn->at + DRAIN;
        return true;
    }
    law->drain_until = 0;
    law->bad = 2;
    return false;
}

static void
rise(struct autorate_law *law, int64_t took)
{
    uint64_t near = law->too_much;
    bool far = !near || law->rate < part(near, 900) || law->rate > part(near, 1100);
    law->rate += change(law->rate, far ? FAR : NEAR, took);
}

static enum autorate_state
rest(struct autorate_law *law, const struct autorate_turn *turn, int64_t took)
{
    uint64_t step = change(law->rate, BACK, took), base = law->bounds.base;
    if (law->idle_since < 0)
        law->idle_since = turn->at;
    if (turn->at - law->idle_since < IDLE_AFTER)
        return AUTORATE_HOLD;
    if (law->rate > base)
        law->rate = law->rate - base < step ? base : law->rate - step;
    else
        law->rate = base - law->rate < step ? base : law->rate + step;
    return AUTORATE_IDLE;
}

/* How bad the delay is: 2 is reason to act at once.  A growing delay counts if the next turn's
 * would be above the limit: until a lower rate shows, still more will have to wait. */
static unsigned
badness(const struct autorate_law *law, const struct autorate_turn *turn)
{
    int64_t limit = law->bounds.limit, grew = law->delay < 0 ? 0 : turn->delay - law->delay;
    if (turn->delay > 3 * limit)
        return 2;
    return turn->delay > limit || (turn->delay > limit / 2 && turn->delay + grew > limit);
}

static enum autorate_state
decide(struct autorate_law *law, const struct autorate_turn *turn, int64_t took)
{
    int64_t limit = law->bounds.limit;
    if (turn->delay < 0)
        return AUTORATE_HOLD;
    if (drains(law, turn))
        return AUTORATE_DRAIN;
    unsigned bad = badness(law, turn);
    law->bad = bad ? law->bad + bad : 0;
    if (turn->sent >= law->rate / 4)
        law->idle_since = -1;
    if (law->bad >= 2) {
        lower(law, turn, took);
        return AUTORATE_LOWER;
    }
    if (turn->sent < law->rate / 4)
        return rest(law, turn, took);
    if (turn->delay > limit / 2 || turn->sent < part(law->rate, 750))
        return AUTORATE_HOLD;
    rise(law, took);
    return AUTORATE_RAISE;
}

enum autorate_state
autorate_step(struct autorate_law *law, const struct autorate_turn *turn)
{
    int64_t took = law->at < 0 ? 0 : turn->at - law->at;
    enum autorate_state state = decide(law, turn, took > TURN_MAX ? TURN_MAX : took);
    law->rate = between(law->rate, law->bounds.min, law->bounds.max);
    law->at = turn->at;
    law->delay = turn->delay;
    return state;
}

const char *
autorate_state_name(enum autorate_state state)
{
    static const char *const names[] = {"hold", "raise", "lower", "drain", "idle"};
    return names[state];
}

void
autorate_baseline(int64_t *baseline, int64_t rtt)
{
    int64_t longer = rtt - *baseline < SECOND / 10 ? rtt - *baseline : SECOND / 10;
    if (!*baseline || rtt < *baseline)
        *baseline = rtt;
    else
        *baseline += longer / 1000;
}

int64_t
autorate_delay(int64_t *v, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        for (unsigned k = i; k && v[k] < v[k - 1]; k--) {
            int64_t x = v[k];
            v[k] = v[k - 1];
            v[k - 1] = x;
        }
    return n ? v[(n - 1) / 2] : -1;
}
