/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that fill a bundle (control/bundle.h); bundle.c commits it. */
#include <admission/request.h>

static int
handle_bundle(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return bundle_handle(&sw->bundles, c, m);
}

/* A bundle may be filled while a task is under way, but not committed. */
static bool
control_ready(struct sw *sw, struct conn *c, struct of_bytes frame)
{
    bool commits = frame.n < 24 || of_get16(frame.p + 20) == OFPBCT_COMMIT_REQUEST;
    return !commits || !(tasks_locked(sw->tasks) & QUEUES);
}

const struct request request_bundle_add = {.access = ACCESS_WRITE,
                                           .also_read_only = true,
                                           .slice = slice_anything,
                                           .most = ANY_LENGTH,
                                           .run = handle_bundle};

const struct request request_bundle_control = {.access = ACCESS_WRITE,
                                               .also_read_only = true,
                                               .slice = slice_anything,
                                               .ready = control_ready,
                                               .most = ANY_LENGTH,
                                               .run = handle_bundle};
