/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of a switch, by libseccomp, which knows their numbers on each processor.
 *
 * The list is what the tests call (they run with --confine=strict), with the forms that other
 * processors and musl have of the same calls.  What starts a program by execve is on it, too: a switch
 * hands over to a new process of its program (datapath/main/restart.c), which inherits the filter. */
#include "confine-inside.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>

/* clang-format off */
static const char *const allowed[] = {
    /* descriptors */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "_llseek", "close",
    "close_range", "dup", "dup2", "dup3", "fcntl", "fcntl64", "ioctl", "pipe", "pipe2", "poll",
    "ppoll", "ppoll_time64", "select", "_newselect", "pselect6", "pselect6_time64",
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_settime64",
    "timerfd_gettime", "timerfd_gettime64", "signalfd", "signalfd4",
    /* files */
    "open", "openat", "stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "newfstatat",
    "fstatat64", "statx", "statfs", "statfs64", "fstatfs", "fstatfs64", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "getcwd", "unlink",
    "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "chmod", "fchmod",
    "fchmodat", "fchmodat2", "chown", "chown32", "fchown", "fchown32", "lchown", "lchown32",
    "fchownat", "ftruncate", "ftruncate64", "fsync", "fdatasync", "flock", "umask",
    "memfd_create", "fadvise64", "fadvise64_64", "arm_fadvise64_64",
    /* memory */
    "mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise", "mincore", "msync", "brk",
    "membarrier",
    /* threads, and the process that takes over */
    "clone3", "vfork", "fork", "execve", "exit", "exit_group", "wait4", "waitpid", "waitid",
    "set_tid_address", "set_robust_list", "get_robust_list", "rseq", "futex", "futex_time64",
    "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getscheduler",
    "sched_getparam", "sched_get_priority_max", "sched_get_priority_min", "getcpu", "getpid",
    "gettid", "getppid", "getpgrp", "getpgid", "getsid", "getpriority", "getuid", "getuid32",
    "geteuid", "geteuid32", "getgid", "getgid32", "getegid", "getegid32", "getresuid",
    "getresuid32", "getresgid", "getresgid32", "getgroups", "getgroups32", "setgroups",
    "setgroups32", "capget", "capset", "prctl", "arch_prctl", "set_thread_area", "set_tls",
    "cacheflush", "kill", "tgkill", "tkill", "getrlimit", "ugetrlimit", "setrlimit", "prlimit64",
    "getrusage", "times", "sysinfo", "uname", "getrandom",
    /* signals */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "rt_sigtimedwait",
    "rt_sigtimedwait_time64", "rt_sigpending", "rt_sigsuspend", "sigaltstack", "restart_syscall",
    "pause",
    /* time */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64", "clock_nanosleep",
    "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time",
    /* sockets; which families: below */
    "socketpair", "socketcall", "bind", "listen", "accept", "accept4", "connect", "getsockname",
    "getpeername", "getsockopt", "setsockopt", "send", "sendto", "sendmsg", "sendmmsg", "recv",
    "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64", "shutdown",
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* looking for leaks at the end */
    "ptrace", "process_vm_readv", "personality", "setresuid", "setresgid",
#endif
};
/* clang-format on */

static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

#ifdef __s390__
#define CLONE_FLAGS SCMP_A1
#else
#define CLONE_FLAGS SCMP_A0
#endif

/* Calls that this processor or this version of libseccomp doesn't know aren't made. */
static int
allow(scmp_filter_ctx f, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);
    int err = number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(f, SCMP_ACT_ALLOW, number, 0);
    return err == -EDOM ? 0 : err; /* a number that only another processor has */
}

static int
fill(scmp_filter_ctx f, bool bpf)
{
    int err = 0;
    for (size_t i = 0; !err && i < sizeof allowed / sizeof allowed[0]; i++)
        err = allow(f, allowed[i]);
    for (size_t i = 0; !err && i < sizeof families / sizeof families[0]; i++)
        err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                               SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
    if (!err)
        err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                               CLONE_FLAGS(SCMP_CMP_MASKED_EQ, (scmp_datum_t)NEW_NAMESPACES, 0));
    return err || !bpf ? err : allow(f, "bpf");
}

/* clone3's flags are in memory, where no filter looks: libc takes clone() when it is missing.  That is no
 * line in a log, so it is a filter of its own. */
static int
hide_clone3(void)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    if (!f)
        return -EOPNOTSUPP;
    seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 0);
    int err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!err)
        err = seccomp_load(f);
    seccomp_release(f);
    return err;
}

int
confine_calls(bool strict, bool bpf)
{
    scmp_filter_ctx f = seccomp_init(strict ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));
    if (!f)
        return -EOPNOTSUPP;
    seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 0);
    seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1); /* what is refused: the kernel's log, or audit's */
    seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    int err = fill(f, bpf);
    if (!err)
        err = hide_clone3();
    if (!err)
        err = seccomp_load(f);
    seccomp_release(f);
    return err;
}
