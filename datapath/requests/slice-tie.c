/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection has which slice. */
#include <punt/capture.h>
#include <requests/handlers.h>
#include <stream/stream.h>
#include <switch/switch.h>

#include <daemon/log.h>

#include <stdio.h>
#include <string.h>

void
sw_slices_untie(struct conn *c)
{
    struct conn_own *own = conn_own(c);
    slice_put(own->slice);
    own->slice = NULL;
    own->roles = NULL;
}

/* Ends its subscriptions: what it subscribed to before may be beyond the slice. */
static void
end_subscriptions(struct sw *sw, struct conn *c)
{
    sw_capture_forget(sw, c);
    conn_state(c)->monitor = 0;
}

/* Whoever had a slice until now gets no more rights by a reload than it had. */
static bool
find(const struct sw *sw, struct conn *c, struct slice **out)
{
    char name[STREAM_NAME_MAX], why[STREAM_NAME_MAX + 128];
    bool named = conn_common_name(c, name, sizeof name);
    struct slice_peer peer = {conn_target(c), conn_is_tls(c), named ? name : NULL};
    bool there = slices_find(&sw->slices, &peer, out);
    if (there && (*out || !conn_own(c)->slice))
        return true;
    if (there)
        log_warning(CONN, "%s: no slice is for it any more: who connects there may do everything",
                    conn_target(c));
    if (there)
        snprintf(why, sizeof why, "no slice is its any more");
    else if (named)
        snprintf(why, sizeof why, "no slice is for the common name '%s'", name);
    else
        snprintf(why, sizeof why,
                 "no slice is its: its certificate has no common name, several, or one that isn't "
                 "text");
    conn_refuse(c, why);
    return false;
}

void
sw_slices_tie(struct sw *sw, struct conn *c)
{
    struct conn_own *own = conn_own(c);
    struct slice *s;
    own->roles = NULL; /* a reload's are others */
    if (!find(sw, c, &s))
        return;
    if (s && !s->may_all && !own->slice)
        end_subscriptions(sw, c);
    sw_slices_untie(c);
    for (size_t i = 0; s && !s->may_all && i < sw->slices.n; i++)
        if (sw->slices.v[i] == s)
            own->roles = &sw->slice_roles[i];
    own->slice = s && s->may_all ? NULL : slice_hold(s);
    if (s)
        log_info_by(CONN, LOG_PEER(conn_peer(c)), "has the slice %s", s->name);
}

bool
sw_slices_see(struct sw *sw, struct conn *c, struct of_bytes message)
{
    return slice_sees(conn_own(c)->slice, message, &sw->slice_arena);
}

/* The last generation id is known as long as the switch runs (6.3.5), so a slice takes its own along. */
static void
keep_roles(struct sw *sw, const struct slices *old)
{
    struct conn_roles kept[SLICES_MAX] = {0};
    for (size_t i = 0; i < sw->slices.n; i++)
        for (size_t k = 0; k < old->n; k++)
            if (!strcmp(sw->slices.v[i]->name, old->v[k]->name))
                kept[i] = sw->slice_roles[k];
    memcpy(sw->slice_roles, kept, sizeof kept);
}

void
sw_slices_set(struct sw *sw, struct slices *new)
{
    struct slices old = sw->slices;
    sw->slices = *new;
    *new = (struct slices){0};
    keep_roles(sw, &old);
    for (struct conn *c = NULL; (c = channel_next(sw->channel, c));)
        sw_slices_tie(sw, c);
    slices_clear(&old);
}
