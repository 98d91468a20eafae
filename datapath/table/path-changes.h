/* SPDX-License-Identifier: Apache-2.0 */
/* Whether packets still take a path through the tables: for the flow cache's entries and those
 * that the kernel has. */
#ifndef TABLE_PATH_CHANGES_H
#define TABLE_PATH_CHANGES_H

#include "change-log.h"

#include <flow/actions.h>
#include <table/flow-cache.h>

/* Whether no change after `from`, up to `to`, concerns the packets in any of the path's tables.  now:
 * their key as it came in, and which bits of it they agree in.  Up to `from`, the path's programs
 * are still in memory. */
static inline bool
path_is_unchanged(const struct change_log *l, const struct known_path *path, struct rekeyed *now,
                  change_number from, change_number to)
{
    struct flow_key ignored = {0};
    now->wc = &ignored;
    for (unsigned i = 0, next; i < path->n; i = next) {
        next = i + 1; /* steps with the same key are looked at together */
        while (next < path->n && !(path->rekeys >> (next - 1) & 1))
            next++;
        struct change_query q = {&now->key, &now->known, path->table + i, next - i};
        if (change_log_concerns(l, from, to, &q)) {
            now->wc = NULL;
            return false;
        }
        if (next < path->n)
            program_rekey(path->step[next - 1].program, now);
    }
    now->wc = NULL;
    return true;
}

#endif
