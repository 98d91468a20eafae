/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock, by its system calls: libc has no functions for them.  The kernel reports its version
 * of Landlock; rights that it doesn't know are not requested. */
#include "confine-inside.h"

#include <daemon/log.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.13 to 6.12 (linux/landlock.h); headers of a distribution may be older than its kernel. */
enum {
    WRITE_FILE = 1 << 1,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,     /* version 2 */
    TRUNCATE = 1 << 14,  /* version 3 */
    IOCTL_DEV = 1 << 15, /* version 5 */
};
#define OF_FILES  (WRITE_FILE | TRUNCATE | IOCTL_DEV)
#define OF_SWITCH (OF_FILES | REMOVE_FILE | MAKE_REG | MAKE_SOCK)
#define EVERYTHING                                                                                 \
    (OF_SWITCH | REMOVE_DIR | MAKE_CHAR | MAKE_DIR | MAKE_FIFO | MAKE_BLOCK | MAKE_SYM)

#define SCOPE_SIGNAL   2 /* version 6: only processes as confined as this one get its signals */
#define ASK_VERSION    1
#define VERSION_SCOPES 6

struct ruleset {
    uint64_t handled_files, handled_ports, scoped;
};

struct beneath {
    uint64_t allowed;
    int32_t directory;
} __attribute__((packed));

static void
cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = '\0';
}

/* The path's own directory, whether it is there or not: one above it may hold others' files. */
static void
own_directory(const char *path, char *out, size_t n)
{
    snprintf(out, n, "%s%s", *path == '/' ? "" : "./", path);
    cut_last(out);
}

void
confine_directory(const char *path, char *out, size_t n)
{
    own_directory(path, out, n);
    while (access(out, F_OK) && strchr(out, '/') && strcmp(out, "/"))
        cut_last(out);
}

#ifdef SYS_landlock_create_ruleset

static uint64_t
known(long version)
{
    return (uint64_t)EVERYTHING & ~(uint64_t)(version < 3 ? TRUNCATE : 0) &
           ~(uint64_t)(version < 5 ? IOCTL_DEV : 0);
}

/* 1: the path can't be opened, errno says why. */
static int
allow(int set, const char *path, uint64_t accesses)
{
    struct stat st;
    struct beneath b = {.directory = open(path, O_PATH | O_CLOEXEC)};
    if (b.directory < 0)
        return 1;
    b.allowed = fstat(b.directory, &st) || !S_ISDIR(st.st_mode) ? accesses & OF_FILES : accesses;
    int err = syscall(SYS_landlock_add_rule, set, 1, &b, 0) ? -errno : 0;
    close(b.directory);
    return err;
}

static int
allow_all(int set, uint64_t accesses, const struct confine_path *paths, size_t n)
{
    /* devices; a thread's name; what the kernel asks of interfaces that shape incoming traffic */
    static const char *const always[] = {"/dev/null", "/dev/net/tun", "/proc/self/task",
                                         "/proc/sys/net"};
    char directory[PATH_MAX];
    int err = 0;
    for (size_t i = 0; err >= 0 && i < sizeof always / sizeof always[0]; i++)
        err = allow(set, always[i], accesses & OF_FILES);
    for (size_t i = 0; err >= 0 && i < n; i++) {
        if (paths[i].use != CONFINE_WRITE && paths[i].use != CONFINE_OPEN)
            continue;
        own_directory(paths[i].path, directory, sizeof directory);
        err = allow(set, directory, accesses & (OF_SWITCH | REFER));
        if (err > 0)
            log_notice(DAEMON, "%s: %s: nothing can be written there before the next start",
                       directory, strerror(errno));
    }
    return err < 0 ? err : 0;
}

int
confine_files(const struct confine_path *paths, size_t n)
{
    struct ruleset rules = {.handled_files = 0};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    if (version < 0)
        return -errno;
    rules.handled_files = known(version);
    rules.scoped = version >= VERSION_SCOPES ? SCOPE_SIGNAL : 0;
    size_t size = version >= VERSION_SCOPES ? sizeof rules : sizeof rules.handled_files;
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, size, 0);
    if (set < 0)
        return -errno;
    int err = allow_all(set, rules.handled_files, paths, n);
    if (!err && syscall(SYS_landlock_restrict_self, set, 0))
        err = -errno;
    close(set);
    return err;
}

#else

int
confine_files(const struct confine_path *paths, size_t n)
{
    return -ENOSYS;
}

#endif
