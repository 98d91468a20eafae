/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/worker-awake.h>

#include <shared/atomics.h>

#define WAKE_FIRST   20000   /* ns, until it has been measured */
#define WAKE_MOST    1000000 /* a longer wait was due to the machine, not the wake-up */
#define WINDOW_LEAST 50000
#define WINDOW_MOST  200000
/* The answer can't come before the other side has woken up, and has worked. */
#define WINDOW(wake) (2 * (uint64_t)(wake) + 10000)

#define ONE          65536u
#define CLOSE_ENOUGH (ONE * 5 / 8) /* requests far apart have their answers close: a half */

#define TRIAL_FIRST_NS  UINT64_C(50000000)
#define TRIAL_LAST_NS   UINT64_C(1600000000)
#define AGAIN_NS        UINT64_C(1000000000)
#define EPOCH_LONGEST   (8 * AWAKE_EPOCH_NS) /* the machine or the sender had a pause */
#define BETTER_TO_BEGIN 7                    /* pairs; chance alone has so many 1 time in 28 */
#define BETTER_TO_STAY  6

void
awake_init(struct awake *a, uint32_t fixed_us, bool spare)
{
    *a = (struct awake){
        .fixed_us = fixed_us, .spare = spare, .wake_ns = WAKE_FIRST, .pause = TRIAL_FIRST_NS};
}

void
awake_set(struct awake *a, uint32_t fixed_us)
{
    store_relaxed(&a->fixed_us, fixed_us);
}

uint64_t
awake_window(const struct awake *a)
{
    uint32_t fixed = load_relaxed(&a->fixed_us);
    if (fixed != AWAKE_AUTO)
        return (uint64_t)fixed * 1000;
    uint64_t ns = WINDOW(a->wake_ns);
    return ns < WINDOW_LEAST ? WINDOW_LEAST : ns > WINDOW_MOST ? WINDOW_MOST : ns;
}

/* Steps towards each measurement, of a size that doesn't depend on it: so it follows the median, and
 * one that the machine has disturbed counts no more than another. */
void
awake_woken(struct awake *a, uint64_t now, uint64_t waited)
{
    uint32_t step = a->wake_ns / 16 + 1;
    if (waited > WAKE_MOST || waited > now - a->resting) /* it came before the sleep */
        return;
    store_relaxed(&a->wake_ns, waited > a->wake_ns   ? a->wake_ns + step
                               : waited < a->wake_ns ? a->wake_ns - step
                                                     : a->wake_ns);
}

/* ------------------------------------------------------------------ the trial */

static void
end_trial(struct awake *a, uint64_t now, bool yes, uint64_t pause)
{
    a->state = yes ? AWAKE_YES : AWAKE_NO;
    a->next_trial = now + pause;
}

/* Awake must bring a tenth more bytes a second than asleep to begin, and half of that to go on. */
static void
judge(struct awake *a, uint64_t now)
{
    uint64_t asleep = a->bytes[0] * a->ns[1], awake = a->bytes[1] * a->ns[0];
    bool yes = a->pays ? a->better >= BETTER_TO_STAY && awake >= asleep / 20 * 21
                       : a->better >= BETTER_TO_BEGIN && awake >= asleep / 20 * 22;
    if (yes)
        a->pause = AGAIN_NS;
    else if (a->pays)
        a->pause = TRIAL_FIRST_NS;
    else
        a->pause = a->pause * 2 > TRIAL_LAST_NS ? TRIAL_LAST_NS : a->pause * 2;
    a->pays = yes;
    end_trial(a, now, yes, a->pause);
}

static void
end_epoch(struct awake *a, uint64_t now)
{
    uint64_t ns = now - a->epoch_start;
    unsigned awake = a->epoch & 1;
    if (ns > EPOCH_LONGEST) {
        end_trial(a, now, false, TRIAL_FIRST_NS);
        return;
    }
    uint64_t rate = a->epoch_bytes * UINT64_C(1000000000) / ns;
    if (awake)
        a->better += rate > a->rate;
    a->rate = rate;
    a->bytes[awake] += a->epoch_bytes;
    a->ns[awake] += ns;
    a->epoch_bytes = 0;
    a->epoch_start = now;
    if (++a->epoch == 2 * AWAKE_PAIRS)
        judge(a, now);
}

static void
begin_trial(struct awake *a, uint64_t now)
{
    a->state = AWAKE_TRIAL;
    a->epoch_start = now;
    a->epoch = a->epoch_bytes = a->better = 0;
    a->bytes[0] = a->bytes[1] = a->ns[0] = a->ns[1] = 0;
}

/* ------------------------------------------------------------------ each round */

static void
follow(struct awake *a, uint64_t now, uint32_t bytes)
{
    a->epoch_bytes += bytes;
    if (a->state == AWAKE_TRIAL) {
        if (now - a->epoch_start >= AWAKE_EPOCH_NS)
            end_epoch(a, now);
    } else if (a->close < CLOSE_ENOUGH) {
        a->state = AWAKE_NO;
    } else if (now >= a->next_trial) {
        begin_trial(a, now);
    }
}

void
awake_worked(struct awake *a, uint64_t now, uint32_t bytes)
{
    uint64_t gap = a->resting ? now - a->resting : 0, late = 0;
    if (!a->slept)
        counter_add(&a->waited, gap);
    else
        late = gap < a->wake_ns ? gap : a->wake_ns;
    gap -= late; /* until the packet came */
    a->resting = 0;
    a->slept = false;
    a->close += (gap < awake_window(a) ? ONE / 16 : 0) - a->close / 16;
    if (a->spare && load_relaxed(&a->fixed_us) == AWAKE_AUTO)
        follow(a, now - late, bytes);
}

static bool
wants(const struct awake *a)
{
    if (load_relaxed(&a->fixed_us) != AWAKE_AUTO)
        return true;
    return a->state == AWAKE_YES || (a->state == AWAKE_TRIAL && a->epoch & 1);
}

bool
awake_stays(struct awake *a, uint64_t now)
{
    if (!a->resting)
        a->resting = now;
    if (!a->slept && wants(a) && now - a->resting < awake_window(a))
        return true;
    if (!a->slept)
        counter_add(&a->waited, now - a->resting);
    a->slept = true;
    return false;
}
