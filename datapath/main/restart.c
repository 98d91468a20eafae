/* SPDX-License-Identifier: Apache-2.0 */
#include "restart.h"

#include "apply.h"
#include "assembly.h"

#include <megaflow/wire.h>
#include <ports/ports.h>
#include <requests/state.h>

#include <daemon/log.h>
#include <daemon/notify.h>
#include <normal/vlans.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_SECONDS 120 /* for a new process with millions of flows on a slow machine */
#define VARIABLE      "OFQOS_RESTART"
#define PORTS         "OFQOS_RESTART_PORTS" /* "eth1=1,eth2=2" */
#define NO_NAME       '/'                   /* there for a name's own comma */
#define QUEUES_ONLY   "queues-only"

static struct {
    char program[4096];
    char **argv;
} self;

/* ------------------------------------------------------------------ the new process */

static void
keep_from_children(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* libpcap opens its sockets and files without O_CLOEXEC. */
static void
keep_all_from_children(void)
{
    DIR *all = opendir("/proc/self/fd");
    for (const struct dirent *e; all && (e = readdir(all));) {
        int fd = atoi(e->d_name); /* 0: "." and "..", too */
        if (fd > STDERR_FILENO)
            keep_from_children(fd);
    }
    if (all)
        closedir(all);
}

static void
replace(char *text, char from, char to)
{
    while ((text = strchr(text, from)))
        *text++ = to;
}

struct restart
restart_begin(char **argv)
{
    struct restart r = {.state_fd = -1, .socket = -1};
    const char *from = getenv(VARIABLE), *ports = getenv(PORTS);
    char pid[16];
    ssize_t n = readlink("/proc/self/exe", self.program, sizeof self.program - 1);
    self.program[n > 0 ? n : 0] = '\0';
    self.argv = argv;
    if (!from || sscanf(from, "%d,%d,%d", &r.state_fd, &r.socket, &r.old_pid) != 3 ||
        r.old_pid != getppid())
        return r;
    r.takes_over = true;
    r.ports = ports ? strdup(ports) : NULL;
    if (ports && !r.ports)
        daemon_die("out of memory"); /* the old process goes on */
    snprintf(r.state, sizeof r.state, "/proc/self/fd/%d", r.state_fd);
    keep_from_children(r.state_fd);
    keep_from_children(r.socket);
    unsetenv(VARIABLE);
    unsetenv(PORTS);
    if (getenv("WATCHDOG_PID")) { /* the manager watches this process from now on */
        snprintf(pid, sizeof pid, "%d", (int)getpid());
        setenv("WATCHDOG_PID", pid, 1);
    }
    return r;
}

void
restart_ready(struct restart *r)
{
    ssize_t n;
    if (!r->takes_over)
        return;
    while ((n = write(r->socket, "r", 1)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        daemon_die("the old process can't be told: %s", strerror(errno));
    /* If the old process dies instead, its ports are free as well. */
    while ((n = read(r->socket, &r->stood_still, sizeof r->stood_still)) < 0 && errno == EINTR)
        ;
    if (n != sizeof r->stood_still)
        r->stood_still = 0;
    close(r->socket);
    close(r->state_fd);
}

/* "vlan=10;trunk=20:30|eth1": its VLANs stand before its name, or that the switch has its queues only.  Returns the
 * name. */
static char *
take_words(char *one, struct vlans *out, bool *queues_only)
{
    char *name = strchr(one, '|'), why[200];
    if (!name)
        return one;
    *name++ = '\0';
    for (char *word = one, *end; word; word = end) {
        end = strchr(word, ';');
        if (end)
            *end++ = '\0';
        *queues_only |= !strcmp(word, QUEUES_ONLY);
        if (!*queues_only)
            vlans_take(out, word, why, sizeof why);
    }
    return name;
}

static bool
vlans_are_none(const struct vlans *v)
{
    static const struct vlans none;
    return !memcmp(v, &none, sizeof none);
}

void
restart_add_ports(struct restart *r, struct sw *sw)
{
    char *rest = r->ports, why[256] = "";
    const bool force = sw->opt.force;
    sw->opt.force = true; /* they were the switch's before, whoever else has them since */
    for (char *one; (one = strsep(&rest, ","));) {
        char *text = strrchr(one, '=');
        if (!text)
            continue;
        *text++ = '\0';
        replace(one, NO_NAME, ',');
        struct vlans vlans = {0};
        bool queues_only = false;
        one = take_words(one, &vlans, &queues_only);
        uint32_t no = (uint32_t)strtoul(text, NULL, 10);
        int err = vlans_are_none(&vlans) ? 0 : sw_ports_set_vlans(sw, no, &vlans);
        if (!err)
            err = queues_only ? sw_ports_add_queues(sw, one, no, why, sizeof why)
                              : apply_interface(sw, one, no, true, why, sizeof why);
        if (err)
            log_error(PORT, "port %u (%s) is lost: %s", (unsigned)no, one,
                      *why ? why : strerror(-err));
    }
    sw->opt.force = force;
    free(r->ports);
    r->ports = NULL;
}

void
restart_done(const struct restart *r)
{
    if (r->takes_over && r->stood_still)
        log_notice(SWITCH, "took over from process %d: packets stood still for %.1f ms", r->old_pid,
                   (double)(loop_clock() - r->stood_still) / 1e6);
    else if (r->takes_over)
        log_warning(SWITCH, "took over from process %d, which has died", r->old_pid);
}

/* ------------------------------------------------------------------ the old process */

/* As take_words reads it. */
static const char *
words_of(const struct sw *sw, const struct sw_port *p, char text[VLANS_TEXT + 1])
{
    *text = '\0';
    if (p->queues_only)
        return strcpy(text, QUEUES_ONLY "|");
    if (!dp_vlans(&sw->dp, p->no))
        return text;
    vlans_text(dp_vlans(&sw->dp, p->no), text);
    replace(text, ',', ';');
    return strcat(text, "|");
}

static char *
list_ports(struct sw *sw)
{
    char *text = NULL;
    size_t len;
    uint32_t no = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return NULL;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        char name[IFNAMSIZ], vlans[VLANS_TEXT + 1];
        if (p->no == OFPP_LOCAL) /* made anew, as an option asks for it */
            break;
        snprintf(name, sizeof name, "%s", p->files || *p->link.name ? p->link.name : p->name);
        replace(name, ',', NO_NAME);
        fprintf(f, "%s%s%s=%u", no ? "," : "", words_of(sw, p, vlans), name, (unsigned)p->no);
    }
    return fclose(f) ? NULL : text;
}

/* The environment with one variable more for each text. */
static char **
environment(char *a, char *b)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **v = calloc(n + 3, sizeof *v);
    if (!v)
        return NULL;
    memcpy(v, environ, n * sizeof *v);
    v[n] = a;
    v[n + 1] = b;
    return v;
}

static int
spawn(char *from, char *ports, pid_t *pid)
{
    posix_spawnattr_t attr;
    sigset_t none;
    char **env = environment(from, ports);
    if (!env)
        return -ENOMEM;
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    int err = posix_spawn(pid, self.program, NULL, &attr, self.argv, env);
    posix_spawnattr_destroy(&attr);
    free(env);
    return -err;
}

static int
start_new(struct sw *sw, int state, int socket, pid_t *pid)
{
    char from[64], *list = list_ports(sw), *ports = NULL;
    snprintf(from, sizeof from, VARIABLE "=%d,%d,%d", state, socket, (int)getpid());
    int err = list && asprintf(&ports, PORTS "=%s", list) >= 0 ? 0 : -ENOMEM;
    if (!err)
        err = spawn(from, ports, pid);
    free(list);
    free(ports);
    return err;
}

/* READY: the new process has its tables.  OVER: it has ended, which its end of the socket shows
 * before wait() does. */
enum { READY, OVER, LATE };

/* Ports go up and down meanwhile, and their controllers hear of it. */
static int
wait_ready(struct sw *sw, int socket)
{
    struct pollfd p[] = {{.fd = socket, .events = POLLIN}, {.events = POLLIN}};
    const uint64_t end = loop_clock() + READY_SECONDS * UINT64_C(1000000000);
    char byte;
    while (loop_clock() < end) {
        if (notify_watchdog_ns())
            notify_send("WATCHDOG=1");
        sw_wires_serve(sw, loop_clock());
        p[1].fd = sw_ports_watch_fd(sw);
        if (poll(p, 2, 250) > 0 && p[0].revents)
            return read(socket, &byte, 1) == 1 ? READY : OVER;
        sw_ports_hear(sw);
    }
    return LATE;
}

static int
new_failed(pid_t pid, bool over, char *why, size_t n)
{
    if (!over)
        kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(why, n,
             over ? "the new process ended before it was ready; the log says why"
                  : "the new process was not ready in time, and was ended");
    return -ECHILD;
}

__attribute__((noreturn)) static void
hand_over(struct sw *sw, int socket, pid_t pid)
{
    uint64_t now = loop_clock();
    notify_send("MAINPID=%d", (int)pid);
    sw_halt(sw);
    ssize_t ignored = write(socket, &now, sizeof now);
    (void)ignored;
    _exit(0); /* the kernel frees tables faster than this process could */
}

int
restart_run(struct sw *sw, char *why, size_t n)
{
    int ends[2] = {-1, -1}, err = 0;
    pid_t pid = -1;
    keep_all_from_children();
    int state = memfd_create("ofqos-state", 0);
    if (!*self.program || state < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        err = *self.program ? -errno : -ENOENT;
    if (!err) {
        keep_from_children(ends[0]);
        err = sw_state_write_to(sw, state);
    }
    if (!err)
        err = start_new(sw, state, ends[1], &pid);
    if (err)
        snprintf(why, n, "a new process can't be started: %s", strerror(-err));
    close(ends[1]);
    close(state);
    int became = err ? OVER : wait_ready(sw, ends[0]);
    if (!err && became == READY)
        hand_over(sw, ends[0], pid);
    if (!err)
        err = new_failed(pid, became == OVER, why, n);
    close(ends[0]);
    return err;
}
