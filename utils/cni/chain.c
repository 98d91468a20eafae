/* SPDX-License-Identifier: Apache-2.0 */
#include "chain.h"
#include "attach.h"
#include "classify.h"
#include "door.h"
#include "rules.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct chain {
    struct attachment names;
    struct links *here, *there; /* of the host, of the container */
    struct node_switch *s;
    int netns;
    struct link_there inside, host; /* the veth's ends */
    struct result result;           /* prevResult's */
};

/* ------------------------------------------------------------------------- the other plugin's interface */

/* Each end knows the other one's number. */
static int
find_host(struct cni *c, struct chain *a)
{
    int found = link_find(c, a->there, c->ifname, &a->inside);
    if (found <= 0)
        return found ? -1
                     : cni_fail(c, CNI_DIFFERS, "the container has no interface %s", c->ifname);
    found = a->inside.is_veth && a->inside.peer
                ? link_find_index(c, a->here, a->inside.peer, &a->host)
                : 0;
    if (found < 0)
        return -1;
    return found && a->host.is_veth && a->host.peer == a->inside.ifindex
               ? 0
               : cni_fail(c, CNI_BAD_CONFIG,
                          "chained needs a plugin that makes %s a veth whose other end is on this "
                          "machine, such as bridge, ptp, flannel or calico",
                          c->ifname);
}

static int
begin(struct cni *c, struct chain *a)
{
    if (!c->conf.prev)
        return cni_fail(
            c, CNI_BAD_CONFIG,
            "chained needs prevResult: put ofqos-cni behind another plugin in the list");
    return attach_name(c, c->id, c->ifname, &a->names) ||
                   result_read(c, "prevResult", c->conf.prev, &a->result) ||
                   link_open_netns(c, &a->netns) || link_open(c, -1, &a->here) ||
                   link_open(c, a->netns, &a->there) || find_host(c, a) ||
                   port_open_switch(c, CNI_TRY_AGAIN, &a->s)
               ? -1
               : 0;
}

static void
end(struct chain *a)
{
    port_close_switch(a->s);
    link_close(a->here);
    link_close(a->there);
    if (a->netns >= 0)
        close(a->netns);
}

/* ------------------------------------------------------------------------- removing */

/* An interface of the port's name may be another container's by now: then the port is, too. */
static int
is_others(struct cni *c, struct links *here, const struct door_port *p)
{
    struct link_there it;
    int found = link_find(c, here, p->name, &it);
    return found < 0 ? -1 : found && it.ifindex != p->ifindex;
}

static int
remove_port(struct cni *c, struct node_switch *s, const char *name)
{
    uint32_t no = 0;
    int found = port_settle(c, s) ? -1 : port_find(c, s, name, &no);
    return found > 0 ? port_del(c, s, no) : found;
}

/* Without a switch its queues go with the interface; only the IFB would stay. */
static int
remove_ifb(struct cni *c, struct links *here, const struct door_port *p)
{
    struct link_there it;
    char name[IFNAMSIZ];
    classify_in(p->ifindex, name);
    int found = link_find(c, here, name, &it);
    return found > 0 ? link_del(c, here, it.ifindex) : found;
}

int
chain_remove(struct cni *c, struct links *here, struct node_switch *s, const char *file)
{
    struct door_port p;
    int err = 0;
    if (door_port(c, file, &p)) {
        int others = is_others(c, here, &p);
        if (others)
            err = others < 0 ? -1 : 0;
        else
            err = s ? remove_port(c, s, p.name) : remove_ifb(c, here, &p);
    }
    return err ? -1 : door_close(c, file); /* last: a repeated DEL finds what is left */
}

/* A port of the name: of an interface that went without a DEL, whose name this one has now. */
struct stale {
    struct cni *c;
    const struct link_there *host;
    char file[IFNAMSIZ];
};

static void
note_stale(void *ctx, const char *file)
{
    struct stale *stale = ctx;
    struct door_port p;
    if (door_port(stale->c, file, &p) && !strcmp(p.name, stale->host->name) &&
        p.ifindex != stale->host->ifindex)
        snprintf(stale->file, sizeof stale->file, "%s", file);
}

static int
remove_stale(struct cni *c, struct chain *a)
{
    struct stale stale = {.c = c, .host = &a->host};
    uint32_t no;
    int found = port_find(c, a->s, a->host.name, &no);
    if (found <= 0 || door_each(c, note_stale, &stale))
        return found ? -1 : 0;
    return *stale.file && (remove_port(c, a->s, a->host.name) || door_close(c, stale.file)) ? -1
                                                                                            : 0;
}

/* ------------------------------------------------------------------------- commands */

/* What the other plugin has given, as this one's result; libcni has translated it to the configuration's version. */
static int
print(struct cni *c)
{
    json_t *result = json_deep_copy(c->conf.prev);
    if (!result || json_object_set_new(result, "cniVersion",
                                       json_string(cni_version_names[c->conf.version]))) {
        json_decref(result);
        return cni_no_memory(c);
    }
    int err = cni_print(c, result);
    json_decref(result);
    return err;
}

/* The file first: what follows can be found again by it. */
static int
add_all(struct cni *c, struct chain *a)
{
    struct door_port p = {.ifindex = a->host.ifindex};
    memcpy(p.name, a->host.name, sizeof p.name);
    return chain_remove(c, a->here, a->s, a->names.host) || remove_stale(c, a) ||
                   door_record(c, a->netns, a->names.host, &a->result, &p) ||
                   port_add(c, a->s, a->host.name, &a->result) ||
                   classify_set(c, a->here, &a->host) || print(c)
               ? -1
               : 0;
}

int
chain_add(struct cni *c)
{
    static struct chain a;
    a = (struct chain){.netns = -1};
    bool failed = begin(c, &a), begun = !failed;
    failed = failed || add_all(c, &a);
    if (failed && begun) {
        const struct cni_error first = c->error;
        chain_remove(c, a.here, a.s, a.names.host);
        c->error = first;
    }
    end(&a);
    return failed ? -1 : 0;
}

/* Always succeeds, as a runtime repeats a DEL that fails for ever: GC removes what could not be. */
int
chain_del(struct cni *c)
{
    struct attachment names;
    struct links *here = NULL;
    struct node_switch *s = NULL;
    if (attach_name(c, c->id, c->ifname, &names) || link_open(c, -1, &here))
        return -1;
    if (port_open_switch(c, CNI_TRY_AGAIN, &s))
        fprintf(stderr, "ofqos-cni: %s\n", c->error.msg);
    if (chain_remove(c, here, s, names.host))
        fprintf(stderr, "ofqos-cni: %s\n", c->error.msg);
    port_close_switch(s);
    link_close(here);
    return 0;
}

static int
check_all(struct cni *c, struct chain *a)
{
    struct door_port p;
    uint32_t no = 0;
    if (!door_port(c, a->names.host, &p) || p.ifindex != a->host.ifindex)
        return cni_fail(c, CNI_DIFFERS, "%s/%s, which says that %s is the port, is gone or old",
                        c->conf.doors, a->names.host, a->host.name);
    int found = port_find(c, a->s, a->host.name, &no);
    if (found <= 0)
        return found ? -1
                     : cni_fail(c, CNI_DIFFERS, "interface %s is no port of the switch",
                                a->host.name);
    return port_check_rates(c, a->s, no) || rules_check(c, a->s, a->host.name, no, &a->result) ||
                   classify_check(c, a->here, &a->host)
               ? -1
               : 0;
}

int
chain_check(struct cni *c)
{
    static struct chain a;
    a = (struct chain){.netns = -1};
    bool failed = begin(c, &a) || check_all(c, &a);
    end(&a);
    return failed ? -1 : 0;
}
