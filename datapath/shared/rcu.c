/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/rcu.h>

#include <malloc.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
char rcu_order;
#endif

struct deferred {
    void (*fn)(void *);
    void *arg;
};

#define BLOCK 1024

/* Deferred calls in blocks, in order: growing moves nothing. */
struct deferred_block {
    struct deferred_block *next;
    unsigned n;
    struct deferred call[BLOCK];
};

#define UNKNOWN 256 /* bytes that a call other than free is assumed to release */

static struct deferred_block *blocks, *last;
static size_t kept;
static void (*wait_also)(void *ctx);
static void *wait_also_ctx;

void
rcu_wait_also(void (*fn)(void *ctx), void *ctx)
{
    wait_also = fn;
    wait_also_ctx = ctx;
}

static void
defer(void (*fn)(void *), void *arg, size_t bytes)
{
    if (!blocks || last->n == BLOCK) {
        struct deferred_block *b = malloc(sizeof *b);
        if (!b) { /* no memory to defer it: wait now */
            rcu_wait();
            urcu_qsbr_synchronize_rcu();
            fn(arg);
            return;
        }
        b->n = 0;
        b->next = NULL;
        *(blocks ? &last->next : &blocks) = b;
        last = b;
    }
    last->call[last->n++] = (struct deferred){fn, arg};
    kept += bytes;
}

void
rcu_defer(void (*fn)(void *), void *arg)
{
    defer(fn, arg, UNKNOWN);
}

void
rcu_defer_free(void *p)
{
    defer(free, p, malloc_usable_size(p));
}

void
rcu_wait(void)
{
    struct deferred_block *b = blocks;
    blocks = NULL;
    kept = 0;
    if (wait_also)
        wait_also(wait_also_ctx);
    urcu_qsbr_synchronize_rcu();
    RCU_ORDER(acquire);
    while (b) {
        struct deferred_block *next = b->next;
        for (unsigned i = 0; i < b->n; i++)
            b->call[i].fn(b->call[i].arg);
        free(b);
        b = next;
    }
}

void
rcu_turn(void)
{
    if (blocks)
        rcu_wait();
}

void
rcu_relieve(void)
{
    if (kept > RCU_KEEP)
        rcu_wait();
}

size_t
rcu_kept(void)
{
    return kept;
}
