/* SPDX-License-Identifier: Apache-2.0 */
#include "door.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two tenants' queues must not overlap: a packet keeps the sender's number until the receiver's flow writes another one.
 * Those of annotations' groups come behind (group.c), those that people make before. */
#define QUEUE_FIRST 16384u
#define QUEUE_END   32768u

/* A whole number of "tenant". */
struct number {
    const char *name;
    unsigned min, max, usual;
};
static const struct number numbers[] = {
    {"groups", 1, 64, 4}, {"transfers", 0, 16, 2}, {"connections", 0, 1024, 64}};
enum { GROUPS, TRANSFERS, CONNECTIONS, NUMBERS };

static int
failed(struct cni *c, const char *what, const char *name)
{
    return cni_fail(c, CNI_IO, "%s %s/%s: %s", what, c->conf.doors, name, strerror(errno));
}

/* ------------------------------------------------------------------------- configuration */

static int
take_number(struct cni *c, const json_t *from, const struct number *n, unsigned *out)
{
    const json_t *v = json_object_get(from, n->name);
    json_int_t is = json_integer_value(v);
    *out = v ? (unsigned)is : n->usual;
    return !v || (json_is_integer(v) && is >= n->min && is <= n->max)
               ? 0
               : cni_fail(c, CNI_BAD_CONFIG, "tenant.%s must be a number from %u to %u", n->name,
                          n->min, n->max);
}

int
door_conf(struct cni *c)
{
    const char *key;
    json_t *v, *tenant = json_object_get(c->conf.json, "tenant");
    c->conf.doors = DOOR_DIRECTORY;
    c->conf.tenant = json_is_object(tenant);
    json_object_foreach(tenant, key, v)
    {
        bool known = false;
        for (int i = 0; i < NUMBERS; i++)
            known |= !strcmp(key, numbers[i].name);
        if (!known)
            return cni_fail(c, CNI_BAD_CONFIG,
                            "tenant has no key %.40s: it has groups, transfers and connections",
                            key);
    }
    for (int i = 0; c->conf.tenant && i < NUMBERS; i++)
        if (take_number(c, tenant, &numbers[i], &c->conf.tenants[i]))
            return -1;
    const char *directory = json_string_value(json_object_get(c->conf.json, "directory"));
    if (directory && (*directory != '/' || strlen(directory) > 200))
        return cni_fail(c, CNI_BAD_CONFIG, "directory must be a path that begins with /");
    if (directory)
        c->conf.doors = directory;
    return 0;
}

int
door_needs(struct cni *c)
{
    const struct cni_conf *f = &c->conf;
    if (f->tenant && !f->in.rate && !f->out.rate)
        return cni_fail(
            c, CNI_BAD_CONFIG,
            "tenant: a tenant divides its total: give the container ingressRate, egressRate or both");
    if (f->tenant && !f->ipam)
        return cni_fail(c, CNI_BAD_CONFIG,
                        "tenant: groups go by the container's addresses: ipam is needed");
    if (f->tenant && f->n_groups)
        return cni_fail(
            c, CNI_BAD_CONFIG,
            "in a network with tenant containers divide their totals themselves: leave out the groups");
    return 0;
}

/* ------------------------------------------------------------------------- the pod */

/* A value of CNI_ARGS, "KEY=VALUE;KEY=VALUE"; NULL: there is none. */
static json_t *
argument(const struct cni *c, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = c->args; *p; p += strcspn(p, ";"), p += *p == ';')
        if (!strncmp(p, key, n) && p[n] == '=')
            return json_stringn(p + n + 1, strcspn(p + n + 1, ";"));
    return NULL;
}

/* Kubernetes' names of it; NULL: it is no pod. */
static json_t *
pod_of(const struct cni *c)
{
    return json_pack("{s:o, s:o}", "namespace", argument(c, "K8S_POD_NAMESPACE"), "name",
                     argument(c, "K8S_POD_NAME"));
}

/* ------------------------------------------------------------------------- files */

/* The directory's descriptor; locked, as long as it is open, against others that choose queues. */
static int
open_directory(struct cni *c)
{
    int fd = mkdir(c->conf.doors, 0700) && errno != EEXIST
                 ? -1
                 : open(c->conf.doors, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !flock(fd, LOCK_EX))
        return fd;
    failed(c, "making", "");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* NULL: there is none, or it can't be read. */
static json_t *
read_door(int dir, const char *host)
{
    int fd = openat(dir, host, O_RDONLY | O_CLOEXEC);
    json_t *door = fd < 0 ? NULL : json_loadfd(fd, 0, NULL);
    if (fd >= 0)
        close(fd);
    return door;
}

static int
write_door(struct cni *c, int dir, const char *host, const json_t *door)
{
    char part[IFNAMSIZ + 8];
    snprintf(part, sizeof part, ".%s.part", host);
    int fd = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int err = fd < 0 || json_dumpfd(door, fd, JSON_COMPACT);
    if (fd >= 0)
        close(fd);
    return err || renameat(dir, part, dir, host) ? failed(c, "writing", host) : 0;
}

static int
each_name(struct cni *c, int dir, void (*fn)(void *ctx, const char *host), void *ctx)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return failed(c, "listing", "");
    }
    while ((e = readdir(d)))
        if (*e->d_name != '.')
            fn(ctx, e->d_name);
    closedir(d);
    return 0;
}

int
door_each(struct cni *c, void (*fn)(void *ctx, const char *host), void *ctx)
{
    int dir = open(c->conf.doors, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : failed(c, "listing", "");
    int err = each_name(c, dir, fn, ctx);
    close(dir);
    return err;
}

int
door_close(struct cni *c, const char *host)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", c->conf.doors, host);
    return unlink(path) && errno != ENOENT ? failed(c, "removing", host) : 0;
}

/* ------------------------------------------------------------------------- queues */

struct taken {
    int dir;
    const char *host; /* of the door that looks for queues */
    bool is[QUEUE_END - QUEUE_FIRST];
};

static void
note_taken(void *ctx, const char *host)
{
    struct taken *t = ctx;
    json_t *door = strcmp(host, t->host) ? read_door(t->dir, host) : NULL;
    json_int_t first = json_integer_value(json_object_get(door, "queue"));
    json_int_t n = json_integer_value(json_object_get(door, "groups")) +
                   json_integer_value(json_object_get(door, "transfers"));
    if (first >= QUEUE_FIRST && first < QUEUE_END && n > 0)
        for (json_int_t q = first; q < first + n && q < QUEUE_END; q++)
            t->is[q - QUEUE_FIRST] = true;
    json_decref(door);
}

/* The first of so many that no other door has; 0: there are none. */
static unsigned
free_queues(struct cni *c, int dir, const char *host, unsigned n)
{
    static struct taken t;
    unsigned run = 0, found = 0;
    t = (struct taken){.dir = dir, .host = host};
    int err = each_name(c, dir, note_taken, &t);
    for (unsigned q = QUEUE_FIRST; !err && !found && q < QUEUE_END; q++) {
        run = t.is[q - QUEUE_FIRST] ? 0 : run + 1;
        found = run == n ? q - n + 1 : 0;
    }
    if (!err && !found)
        cni_fail(c, CNI_TRY_AGAIN, "all queues from %u to %u belong to other containers' tenants",
                 QUEUE_FIRST, QUEUE_END - 1);
    return found;
}

/* ------------------------------------------------------------------------- ADD, CHECK */

static json_t *
addresses_of(const struct result *r)
{
    char text[INET6_ADDRSTRLEN];
    json_t *all = json_array();
    for (unsigned i = 0; i < r->n_ips; i++) {
        const struct address *a = &r->ips[i].address;
        inet_ntop(a->family, a->bytes, text, sizeof text);
        json_array_append_new(all, json_string(text));
    }
    return all;
}

static json_t *
make_door(const struct cni *c, const struct stat *netns, const struct result *r, unsigned queue,
          json_t *pod)
{
    json_t *door = json_pack("{s:s, s:I, s:o}", "netns", c->netns, "inode",
                             (json_int_t)netns->st_ino, "addresses", addresses_of(r));
    if (pod)
        json_object_set_new(door, "pod", pod);
    if (!queue)
        return door;
    json_object_set_new(door, "queue", json_integer((json_int_t)queue));
    for (int i = 0; i < NUMBERS; i++)
        json_object_set_new(door, numbers[i].name, json_integer((json_int_t)c->conf.tenants[i]));
    return door;
}

/* The service can't be reached by a route: the address is the container's own. */
static int
loopback(struct cni *c, struct links *there, struct link_there *lo, struct address *a)
{
    address_parse(DOOR_ADDRESS, false, a);
    int found = link_find(c, there, "lo", lo);
    return found > 0   ? 0
           : found < 0 ? -1
                       : cni_fail(c, CNI_KERNEL_REFUSED, "the container has no interface lo");
}

static int
give_address(struct cni *c, struct links *there)
{
    struct link_there lo;
    struct address a;
    return loopback(c, there, &lo, &a) || link_set_up(c, there, &lo) ||
                   link_add_address(c, there, &lo, &a, true)
               ? -1
               : 0;
}

/* Takes over `pod`. */
static int
put_door(struct cni *c, int dir, const struct stat *netns, const char *host, const struct result *r,
         json_t *pod)
{
    unsigned n = c->conf.tenants[GROUPS] + c->conf.tenants[TRANSFERS], queue = 0;
    if (c->conf.tenant && !(queue = free_queues(c, dir, host, n))) {
        json_decref(pod);
        return -1;
    }
    json_t *door = make_door(c, netns, r, queue, pod);
    int err = door ? write_door(c, dir, host, door) : cni_no_memory(c);
    json_decref(door);
    return err;
}

int
door_open(struct cni *c, struct links *there, int netns, const char *host, const struct result *r)
{
    struct stat st;
    json_t *pod = pod_of(c);
    if (!c->conf.tenant && !pod)
        return 0;
    int dir = c->conf.tenant && give_address(c, there) ? -1
              : fstat(netns, &st)                      ? failed(c, "looking for", host)
                                                       : open_directory(c);
    if (dir < 0) {
        json_decref(pod);
        return -1;
    }
    int err = put_door(c, dir, &st, host, r, pod);
    close(dir);
    return err;
}

int
door_record(struct cni *c, int netns, const char *host, const struct result *r,
            const struct door_port *port)
{
    struct stat st;
    int dir = fstat(netns, &st) ? failed(c, "looking for", host) : open_directory(c);
    if (dir < 0)
        return -1;
    json_t *door = make_door(c, &st, r, 0, pod_of(c));
    if (door) {
        json_object_set_new(door, "port", json_string(port->name));
        json_object_set_new(door, "ifindex", json_integer(port->ifindex));
    }
    int err = door ? write_door(c, dir, host, door) : cni_no_memory(c);
    json_decref(door);
    close(dir);
    return err;
}

bool
door_port(const struct cni *c, const char *host, struct door_port *out)
{
    int dir = open(c->conf.doors, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_t *door = dir < 0 ? NULL : read_door(dir, host);
    const char *name = json_string_value(json_object_get(door, "port"));
    *out = (struct door_port){.ifindex = (int)json_integer_value(json_object_get(door, "ifindex"))};
    snprintf(out->name, sizeof out->name, "%s", name ? name : "");
    json_decref(door);
    if (dir >= 0)
        close(dir);
    return *out->name;
}

int
door_check(struct cni *c, struct links *there, int netns, const char *host)
{
    struct stat st;
    struct link_there lo;
    struct address a;
    if (!c->conf.tenant)
        return 0;
    int dir = open(c->conf.doors, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_t *door = dir < 0 ? NULL : read_door(dir, host);
    json_int_t inode = json_integer_value(json_object_get(door, "inode"));
    json_decref(door);
    if (dir >= 0)
        close(dir);
    if (fstat(netns, &st) || inode != (json_int_t)st.st_ino)
        return cni_fail(c, CNI_DIFFERS, "%s/%s, the tenant's door, is gone, or another container's",
                        c->conf.doors, host);
    int has = loopback(c, there, &lo, &a) ? -1 : link_has_address(c, there, &lo, &a);
    return has ? has < 0 ? -1 : 0
               : cni_fail(c, CNI_DIFFERS, "the container's interface lo lacks the address %s",
                          DOOR_ADDRESS);
}
