/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait, and for what: for what a task has locked (task/task.h); and those that are tasks themselves.  Packet-outs wait for room in the workers'
 * rings, and barriers for packet-outs: their rows say so. */
#include "rows.h"

#include <admission/request.h>

#include <control/deferred.h>
#include <requests/handlers.h>

#include <errno.h>
#include <stdlib.h>

bool
sw_request_allowed(void *sw, struct conn *c, struct of_bytes frame)
{
    const struct request *r = request_find(frame);
    if (!r)
        return true;
    return !(r->needs & tasks_locked(((struct sw *)sw)->tasks)) &&
           (!r->ready || r->ready(sw, c, frame));
}

bool
sw_request_blocks(void *sw, struct of_bytes frame)
{
    const struct request *r = request_find(frame);
    return r && r->blocks;
}

struct later {
    struct task task;
    struct deferred_copy *request;
};

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct later *l = ctx;
    deferred_copy_run(l->request);
    return TASK_OVER;
}

static void
end(void *ctx)
{
    struct later *l = ctx;
    deferred_copy_end(l->request);
    free(l);
}

int
sw_request_later(void *ctx, struct of_bytes frame, struct deferred_copy *r)
{
    static const struct task_kind of_queues = {.needs = QUEUES,
                                               .locks = QUEUES,
                                               .blocks = true,
                                               .run = run,
                                               .end = end,
                                               .stop = end},
                                  other = {.blocks = true, .run = run, .end = end, .stop = end};
    struct sw *sw = ctx;
    struct later *l = malloc(sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct later){.request = r};
    task_queue(sw->tasks, &l->task, request_find(frame)->needs & QUEUES ? &of_queues : &other, l);
    return 0;
}
