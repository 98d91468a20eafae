/* SPDX-License-Identifier: Apache-2.0 */
/* A switch owns an interface by a listening Unix socket whose abstract name has the interface's number: the
 * kernel allows one such socket in each network namespace, and removes it when the process ends, however
 * that happens.  Nobody else knows such names, so bridges and the like are found by the interface's
 * master. */
#include "port-owner.h"

#include <ports/ports.h>

#include <daemon/log.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG     4096
#define ASK_TRIES   3 /* its owner may be between bind() and listen() */
#define ASK_WAIT_MS 10

/* ------------------------------------------------------------------ another switch */

static socklen_t
name_lock(struct sockaddr_un *a, int ifindex)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "ofqos-port-%d", ifindex);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* -> bytes read */
static size_t
read_proc(pid_t pid, const char *name, char *buf, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, buf, n - 1);
    if (fd >= 0)
        close(fd);
    got = got < 0 ? 0 : got;
    buf[got] = '\0';
    return (size_t)got;
}

/* Anybody may make such a socket, so it counts only as that of who could have a switch: root, our own user, a
 * process that may change the network, or one in another container that can't be looked at. */
static bool
may_have_switch(const struct ucred *who)
{
    char text[4096];
    if (!who->uid || who->uid == geteuid() || !who->pid)
        return true;
    read_proc(who->pid, "status", text, sizeof text);
    const char *caps = strstr(text, "\nCapEff:");
    return caps && strtoull(caps + 8, NULL, 16) >> CAP_NET_ADMIN & 1;
}

/* "process 4711 (ofdatapath -i eth1,eth2 punix:/run/br0.sock)": its words tell the socket or the configuration. */
static void
name_process(const struct ucred *who, char *out, size_t n)
{
    char line[128];
    size_t len = read_proc(who->pid, "cmdline", line, sizeof line);
    if (!who->pid) {
        snprintf(out, n, "another switch, in another container");
        return;
    }
    for (size_t i = 0; i < len; i++)
        line[i] = isprint((unsigned char)line[i]) ? line[i] : i + 1 < len ? ' ' : '\0';
    const char *dir = strchr(line, ' '), *program = line;
    for (const char *p = line; *p && (!dir || p < dir); p++)
        program = *p == '/' ? p + 1 : program;
    snprintf(out, n, len ? "process %d (%s%s)" : "process %d", (int)who->pid, program,
             len + 1 == sizeof line ? "..." : "");
}

/* Whose the lock is.  false: nobody's who could have a switch. */
static bool
ask_lock(const struct sockaddr_un *a, socklen_t len, char *owner, size_t n)
{
    struct ucred who = {0};
    socklen_t size = sizeof who;
    bool known = false;
    for (int tries = 0; !known && tries < ASK_TRIES; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            break;
        known = !connect(fd, (const struct sockaddr *)a, len) &&
                !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
        close(fd);
        if (!known)
            poll(NULL, 0, ASK_WAIT_MS);
    }
    if (!known) {
        snprintf(owner, n, "a socket of the name %s that doesn't answer", a->sun_path + 1);
        return false;
    }
    name_process(&who, owner, n);
    return may_have_switch(&who);
}

/* 0, -EBUSY with its owner, or another -errno. */
static int
lock(struct sw_port *p, int ifindex, char *owner, size_t n)
{
    struct sockaddr_un a;
    socklen_t len = name_lock(&a, ifindex);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (!bind(fd, (const struct sockaddr *)&a, len) && !listen(fd, BACKLOG)) {
        p->lock = fd + 1;
        return 0;
    }
    int err = -errno;
    close(fd);
    if (err != -EADDRINUSE)
        return err;
    if (ask_lock(&a, len, owner, n))
        return -EBUSY;
    log_warning(PORT, "%s: %s keeps other switches from seeing that this one has the interface",
                p->name, owner);
    return 0;
}

/* ------------------------------------------------------------------ a bridge, a bond, ... */

/* "bridge br-lan" */
static void
name_master(struct sw *sw, int master, char *out, size_t n, struct qos_link_info *m)
{
    *m = (struct qos_link_info){0};
    if (qos_link_get_by_index(sw->link, master, m))
        snprintf(out, n, "interface %d", master);
    else
        snprintf(out, n, "%s %s", *m->kind ? m->kind : "interface", m->name);
}

static void
refuse_master(const struct sw_port *p, const char *owner, const struct qos_link_info *m, char *why,
              size_t n)
{
    bool ovs = !strcmp(m->kind, "openvswitch");
    snprintf(why, n,
             "%s belongs to %s: `%s %s%s`; for its queues alone `port-add %s queues-only`; "
             "or --force",
             p->name, ovs ? "Open vSwitch" : owner, ovs ? "ovs-vsctl del-port" : "ip link set",
             p->name, ovs ? "" : " nomaster", p->name);
}

/* ------------------------------------------------------------------ both */

int
sw_port_own(struct sw *sw, struct sw_port *p, const struct qos_link_info *link, char *why,
            size_t why_len)
{
    char owner[SW_OWNER_LEN];
    struct qos_link_info m;
    int err = link->master && !p->queues_only ? -EBUSY : 0;
    *p->master = '\0';
    if (err) {
        name_master(sw, link->master, owner, sizeof owner, &m);
        refuse_master(p, owner, &m, why, why_len);
    }
    if (err && !sw->opt.force)
        return err;
    if (err) {
        snprintf(p->master, sizeof p->master, "%s", owner);
        log_warning(PORT, "port %u (%s): it belongs to %s, too (--force)", (unsigned)p->no, p->name,
                    owner);
    }
    err = lock(p, link->ifindex, owner, sizeof owner);
    if (err == -EBUSY && sw->opt.force) {
        log_warning(PORT, "port %u (%s): %s has it, too (--force)", (unsigned)p->no, p->name,
                    owner);
        snprintf(p->rival, sizeof p->rival, "%s", owner);
        return 0;
    }
    if (err)
        snprintf(why, why_len,
                 err == -EBUSY ? "%s belongs to %s: end that switch, or --force"
                               : "interface %s: %s",
                 p->name, err == -EBUSY ? owner : strerror(-err));
    return err;
}

void
sw_port_disown(struct sw_port *p)
{
    if (p->lock)
        close(p->lock - 1);
    p->lock = 0;
    *p->rival = '\0';
}

void
sw_port_own_again(struct sw *sw, struct sw_port *p, const struct qos_link_info *link)
{
    struct qos_link_info m;
    if (link->master == p->link.master || p->no == OFPP_LOCAL || p->queues_only)
        return;
    *p->master = '\0';
    if (!link->master) {
        log_notice(PORT, "port %u (%s): it belongs to this switch alone again", (unsigned)p->no,
                   p->name);
        return;
    }
    name_master(sw, link->master, p->master, sizeof p->master, &m);
    log_warning(PORT, "port %u (%s): it belongs to %s now, too, which forwards its packets as well",
                (unsigned)p->no, p->name, p->master);
}

bool
sw_port_shared_with(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    (void)sw;
    if (!p->port)
        return false;
    snprintf(out, n, "%s", *p->master ? p->master : p->rival);
    return *out;
}

void
sw_ports_disown_all(struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        sw_port_disown(p);
}

void
sw_ports_forget_askers(const struct sw *sw)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        for (int fd, n = 0;
             p->lock && n < BACKLOG && (fd = accept4(p->lock - 1, NULL, NULL, SOCK_CLOEXEC)) >= 0;
             n++)
            close(fd);
}
