/* SPDX-License-Identifier: Apache-2.0 */
/* GC: removes the attachments to this network that the runtime does not name.  It runs no ADD or DEL meanwhile.  Without
 * a list, or with null, it names none: libcni writes null for an empty list, and cnitool leaves it out. */
#include "attach.h"
#include "chain.h"
#include "conf.h"
#include "door.h"
#include "ipam.h"
#include "name.h"

#include <string.h>

struct stale {
    const char *network;
    json_t
        *names; /* host's ends: true, stale; false, of a valid attachment or of another network */
};

/* False wins. */
static void
note(struct stale *stale, const char *name, bool is_stale)
{
    const json_t *is = json_object_get(stale->names, name);
    if (!is || json_is_true(is))
        json_object_set_new(stale->names, name, json_boolean(is_stale));
}

static int
note_valid(struct cni *c, struct stale *stale)
{
    struct attachment names;
    const json_t *v;
    size_t i;
    json_array_foreach(c->conf.valid, i, v)
    {
        const char *id = json_string_value(json_object_get(v, "containerID"));
        const char *ifname = json_string_value(json_object_get(v, "ifname"));
        if (!id || !conf_is_word(id) || !ifname || !conf_is_interface(ifname))
            return cni_fail(c, CNI_BAD_CONFIG,
                            "cni.dev/valid-attachments[%zu] must have a containerID and an ifname",
                            i);
        if (attach_name(c, id, ifname, &names))
            return -1;
        note(stale, names.host, false);
    }
    return 0;
}

static void
note_link(void *ctx, const struct link_there *it)
{
    struct stale *stale = ctx;
    if (name_is_of(it->name, stale->network))
        note(stale, it->name,
             it->is_veth && (!*it->alias || name_alias_is_of(it->alias, stale->network)));
}

/* Of a port, and of a door. */
static void
note_named(void *ctx, const char *name)
{
    struct stale *stale = ctx;
    if (name_is_of(name, stale->network))
        note(stale, name, true);
}

static int
remove_one(struct cni *c, struct links *here, struct node_switch *s, const char *name)
{
    struct link_there it;
    if (c->conf.chained)
        return chain_remove(c, here, s, name);
    int found = link_find(c, here, name, &it);
    return found < 0 || attach_remove_named(c, here, s, name, found ? it.ifindex : 0) < 0 ? -1 : 0;
}

/* Goes on after an error, as the specification wants it. */
static int
remove_all(struct cni *c, struct links *here, struct node_switch *s, const struct stale *stale)
{
    const char *name;
    json_t *is;
    int err = 0;
    json_object_foreach(stale->names, name,
                        is) if (json_is_true(is) && remove_one(c, here, s, name)) err = -1;
    return err;
}

int
cni_gc(struct cni *c)
{
    struct stale stale = {c->conf.name, json_object()};
    struct links *here = NULL;
    struct node_switch *s = NULL;
    json_t *none;
    bool failed = note_valid(c, &stale) || link_open(c, -1, &here) ||
                  port_open_switch(c, CNI_TRY_AGAIN, &s) || link_each(c, here, note_link, &stale) ||
                  port_each(c, s, note_named, &stale) || door_each(c, note_named, &stale) ||
                  remove_all(c, here, s, &stale);
    port_close_switch(s);
    link_close(here);
    json_decref(stale.names);
    const struct cni_error first = c->error;
    if (ipam_run(c, "GC", &none) && !failed)
        return -1;
    c->error = first;
    return failed ? -1 : 0;
}
