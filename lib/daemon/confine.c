/* SPDX-License-Identifier: Apache-2.0 */
#include "confine-inside.h"

#include <daemon/daemon.h>
#include <daemon/log.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_BPF
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

/* A variable for the process that takes over: how the process before it was confined.  The new
 * process already has the filter and the rules, and the kernel accepts only a limited number of
 * them. */
#define MARK "OFQOS_CONFINED"

static const char *const hows[] = {
    [CONFINE_ON] = "on", [CONFINE_STRICT] = "strict", [CONFINE_OFF] = "off"};

/* ------------------------------------------------------------------ memory */

void
confine_memory(const struct confine *c)
{
    struct rlimit core;
    if (c->core_dumps)
        return;
    prctl(PR_SET_DUMPABLE, 0);
    if (getrlimit(RLIMIT_CORE, &core))
        return;
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
}

/* ------------------------------------------------------------------ capabilities */

struct rights {
    uint64_t effective, permitted, inheritable;
};

static bool
get_rights(struct rights *r)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, data))
        return false;
    r->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    r->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    r->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return true;
}

static int
set_rights(const struct rights *r)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
        {(uint32_t)r->effective, (uint32_t)r->permitted, (uint32_t)r->inheritable},
        {(uint32_t)(r->effective >> 32), (uint32_t)(r->permitted >> 32),
         (uint32_t)(r->inheritable >> 32)}};
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

uint64_t
confine_bpf_capabilities(void)
{
    return prctl(PR_CAPBSET_READ, CAP_BPF) < 0 ? CONFINE_CAP(CAP_SYS_ADMIN)
                                               : CONFINE_CAP(CAP_BPF) | CONFINE_CAP(CAP_PERFMON);
}

/* Limits what a program that it executes can get.  That needs CAP_SETPCAP; without it programs
 * get nothing by execve anyway (no_new_privs). */
static void
drop_bounds(uint64_t kept)
{
    for (int i = 0; i < 64; i++)
        if (!(kept >> i & 1) && prctl(PR_CAPBSET_READ, i) == 1 && prctl(PR_CAPBSET_DROP, i))
            return;
}

static int
keep_rights(uint64_t kept)
{
    struct rights r;
    if (!get_rights(&r))
        return -errno;
    kept &= r.permitted;
    r = (struct rights){kept, kept, kept};
    int err = set_rights(&r);
    for (int i = 0; !err && geteuid() && i < 64; i++) /* for the process that takes over */
        if (kept >> i & 1)
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
    return err;
}

/* ------------------------------------------------------------------ files of others */

static bool
is_refused(const char *path, int how)
{
    return faccessat(AT_FDCWD, path, how, AT_EACCESS) && errno == EACCES;
}

static bool
is_out_of_reach(const struct confine_path *p)
{
    char directory[PATH_MAX];
    struct stat st;
    if (p->use == CONFINE_READ)
        return is_refused(p->path, R_OK);
    if (p->use == CONFINE_CONNECT) /* a socket may still come */
        return stat(p->path, &st) || st.st_uid != geteuid();
    if (p->use == CONFINE_OPEN && !stat(p->path, &st))
        return is_refused(p->path, W_OK);
    confine_directory(p->path, directory, sizeof directory);
    return is_refused(directory, W_OK | X_OK) || is_refused(p->path, W_OK);
}

/* Root without CAP_DAC_OVERRIDE is like any other user, but `sudo ofdatapath --state=here` must
 * go on working. */
static uint64_t
needed_for_files(const struct confine_needs *n)
{
    struct rights had, less;
    uint64_t need = 0;
    if (geteuid() || !get_rights(&had))
        return 0;
    less = had;
    less.effective &= n->capabilities;
    if (set_rights(&less))
        return 0;
    for (size_t i = 0; i < n->n_paths; i++) {
        const struct confine_path *p = &n->paths[i];
        if (!is_out_of_reach(p))
            continue;
        log_info(DAEMON,
                 "%s is another user's: root keeps the right to use others' files (with --user, "
                 "the switch runs as that user)",
                 p->path);
        need |= CONFINE_CAP(p->use == CONFINE_READ ? CAP_DAC_READ_SEARCH : CAP_DAC_OVERRIDE);
    }
    set_rights(&had);
    return need;
}

static void
warn_of_files(const struct confine *c, const struct confine_needs *n)
{
    for (size_t i = 0; i < n->n_paths; i++)
        if (n->paths[i].use != CONFINE_CONNECT && is_out_of_reach(&n->paths[i]))
            log_warning(DAEMON, "user %s may not %s %s: give it the file, or its directory",
                        c->user, n->paths[i].use == CONFINE_READ ? "read" : "write",
                        n->paths[i].path);
}

/* ------------------------------------------------------------------ the user */

static bool
number_of(const char *text, unsigned long *out)
{
    char *end;
    *out = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *out < UINT32_MAX;
}

int
confine_user(const struct confine *c, uid_t *uid, gid_t *gid)
{
    char name[256];
    unsigned long number;
    if (!c->user)
        return 0;
    snprintf(name, sizeof name, "%s", c->user);
    char *group = strchr(name, ':');
    if (group)
        *group++ = '\0';
    const struct passwd *p = getpwnam(name);
    bool is_number = !p && number_of(name, &number);
    if (is_number)
        p = getpwuid((uid_t)number);
    if (!p && !is_number)
        return -EINVAL;
    *uid = p ? p->pw_uid : (uid_t)number;
    *gid = p ? p->pw_gid : (gid_t)number;
    const struct group *g = group ? getgrnam(group) : NULL;
    if (group && !g && !number_of(group, &number))
        return -EINVAL;
    if (group)
        *gid = g ? g->gr_gid : (gid_t)number;
    return 0;
}

static void
become(uid_t uid, gid_t gid)
{
    if (prctl(PR_SET_KEEPCAPS, 1) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
        daemon_die("--user: this process may not become user %u: %s", (unsigned)uid,
                   strerror(errno));
    prctl(PR_SET_KEEPCAPS, 0);
}

/* Joins the group: without CAP_CHOWN a file can only be given to a group that the process
 * belongs to. */
static void
belong(gid_t group)
{
    if (setgroups(group != (gid_t)-1, &group) && errno != EPERM)
        log_notice(DAEMON, "the process stays in its groups: %s", strerror(errno));
}

/* ------------------------------------------------------------------ all of it */

/* What a kernel or a build lacks, a switch goes on without; but it has no less for want of memory. */
static void
tell(int err, const char *what, const char *unknown)
{
    if (err == -ENOMEM)
        daemon_die("%s: %s", what, strerror(ENOMEM));
    if (err)
        log_notice(DAEMON, "%s: %s", what,
                   err == -ENOSYS || err == -EOPNOTSUPP ? unknown : strerror(-err));
}

static void
confine_rights(const struct confine *c, const struct confine_needs *n)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (confine_user(c, &uid, &gid))
        daemon_die("--user: there is no user or group %s any more", c->user);
    bool changes = uid != geteuid() || gid != getegid();
    uint64_t kept = n->capabilities | (changes ? 0 : needed_for_files(n));
    if (changes || (!geteuid() && n->group != (gid_t)-1))
        belong(n->group);
    drop_bounds(kept);
    if (changes)
        become(uid, gid);
    tell(keep_rights(kept), "the process keeps all capabilities that it has", "unknown");
    if (changes)
        warn_of_files(c, n);
}

void
confine_process(const struct confine *c, const struct confine_needs *n)
{
    const char *before = n->again ? getenv(MARK) : NULL;
    if (c->how != CONFINE_OFF || c->user)
        confine_rights(c, n);
    prctl(PR_SET_DUMPABLE, c->core_dumps ? 1 : 0); /* a change of user sets it anew */
    if (before && strcmp(before, hows[c->how]) != 0)
        log_warning(
            DAEMON,
            "--confine=%s takes effect when the switch is stopped and started: the process before "
            "this one was confined with %s, which can't be taken back",
            hows[c->how], before);
    if (before || c->how == CONFINE_OFF)
        return;
    if (setenv(MARK, hows[c->how], 1))
        daemon_die("the process that takes over can't be told how this one is confined: %s",
                   strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        tell(-errno, "programs that it executes may get new rights", "the kernel is too old");
    tell(confine_files(n->paths, n->n_paths), "no limits where it may write",
         "the kernel has no Landlock, or doesn't use it");
    tell(confine_calls(c->how == CONFINE_STRICT, n), "no filter of system calls",
         "this build has no libseccomp, or the kernel no seccomp");
}
