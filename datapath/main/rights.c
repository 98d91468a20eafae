/* SPDX-License-Identifier: Apache-2.0 */
#include "rights.h"

#include "options.h"

#include <ports/ports.h>
#include <stream/stream.h>

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRIVILEGED_PORTS 1024

struct list {
    struct daemon_settings *s;
    struct confine_path *v;
    size_t n, room;
    uint64_t capabilities;
};

/* Adds n characters of the path.  Out of memory it is left out, and reported when it is used. */
static void
add(struct list *l, const char *path, size_t n, enum confine_use use)
{
    void *v = of_arena_room(&l->s->arena, l->v, l->n, &l->room, sizeof *l->v);
    char *text = of_arena_text(&l->s->arena, path, n);
    if (!v || !text || !n)
        return;
    l->v = v;
    l->v[l->n++] = (struct confine_path){text, use};
}

static void
add_whole(struct list *l, const char *path, enum confine_use use)
{
    if (path)
        add(l, path, strlen(path), use);
}

static void
add_connections(struct list *l, const char *name)
{
    struct stream_address a;
    char why[256];
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(l->s, name, t));) {
        if (stream_parse(t->value, &a, why, sizeof why))
            continue;
        if (a.local)
            add_whole(l, a.host, a.passive ? CONFINE_WRITE : CONFINE_CONNECT);
        else if (a.passive && atoi(a.port) < PRIVILEGED_PORTS && strcmp(a.port, "0") != 0)
            l->capabilities |= CONFINE_CAP(CAP_NET_BIND_SERVICE);
    }
}

/* "eth1:/etc/ofqos/wan.profile rate=10mbit" */
static void
add_profiles(struct list *l)
{
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(l->s, "profile", t));) {
        const char *colon = strchr(t->value, ':');
        if (colon)
            add(l, colon + 1, strcspn(colon + 1, " "), CONFINE_READ);
    }
}

/* pcap:IN:OUT */
static void
add_port_files(struct list *l, const struct wanted *w)
{
    for (size_t i = 0; i < w->n_ports; i++) {
        const char *in = w->ports[i].files ? strchr(w->ports[i].files, ':') : NULL;
        if (!in++)
            continue;
        size_t n = strcspn(in, ":");
        add(l, in, n, CONFINE_READ);
        if (in[n])
            add(l, in + n + 1, strcspn(in + n + 1, ":"), CONFINE_WRITE);
    }
}

static void
add_files(struct list *l, const struct wanted *w, const struct daemon *d)
{
    const struct main_options *o = &main_options;
    add_connections(l, "listen");
    add_connections(l, "controller");
    add_profiles(l);
    add_port_files(l, w);
    add_whole(l, l->s->file, CONFINE_READ);
    add_whole(l, o->saved.restore, CONFINE_READ);
    for (int i = 0; i < STREAM_TLS_FILES; i++)
        add_whole(l, o->tls.values[i], CONFINE_READ);
    add_whole(l, o->saved.state, CONFINE_WRITE);
    add_whole(l, o->socket, CONFINE_WRITE);
    add_whole(l, d->log_file, CONFINE_WRITE);
    add_whole(l, d->pidfile, CONFINE_OPEN);
    if (o->sw.local_port)
        add_whole(l, "/dev/net/tun", CONFINE_OPEN);
}

/* Makes the default directory of punix:, so that only this directory, and not all of /run, stays
 * writable. */
static void
make_own_directory(const struct list *l, uid_t uid, gid_t gid)
{
    char directory[sizeof((struct stream_address *)0)->host];
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->v[i].path, stream_default_socket) != 0)
            continue;
        strcpy(directory, stream_default_socket);
        *strrchr(directory, '/') = '\0';
        if (!mkdir(directory, 0755) && chown(directory, uid, gid))
            rmdir(directory);
    }
}

void
rights_give_up(struct daemon_settings *s, const struct wanted *w, const struct daemon *d)
{
    const struct confine *c = &main_options.confine;
    struct list l = {.s = s, .capabilities = CONFINE_CAP(CAP_NET_ADMIN) | CONFINE_CAP(CAP_NET_RAW)};
    const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    uid_t uid = geteuid();
    gid_t gid = getegid();
    add_files(&l, w, d);
    if (c->user && !confine_user(c, &uid, &gid))
        daemon_give(d, uid, gid);
    make_own_directory(&l, uid, gid);
    l.capabilities |= confine_bpf_capabilities();
    setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before Linux 5.11 maps count */
    const struct confine_needs needs = {.capabilities = l.capabilities,
                                        .paths = l.v,
                                        .n_paths = l.n,
                                        .group = stream_socket_group_id(),
                                        .bpf = true,
                                        .pcap = main_options.backend,
                                        .again = d->takes_over};
    confine_process(c, &needs);
}
