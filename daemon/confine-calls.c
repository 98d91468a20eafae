/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of a switch, by libseccomp, which knows their numbers on each processor.
 *
 * The list is what the tests call (they run with --confine=strict), with the forms that other
 * processors and musl have of the same calls.  What starts a program by execve is on it, too: a switch
 * hands over to a new process of its program (datapath/main/restart.c), which inherits the filter. */
#include "confine-inside.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SIOCGIWNAME 0x8b01 /* linux/wireless.h, whose headers exclude libc's */

/* clang-format off */
static const char *const allowed[] = {
    /* descriptors */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "_llseek", "close",
    "close_range", "dup", "dup2", "dup3", "fcntl", "fcntl64", "pipe", "pipe2", "poll", "ppoll",
    "ppoll_time64", "select", "_newselect", "pselect6", "pselect6_time64",
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
    "eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_settime64",
    "timerfd_gettime", "timerfd_gettime64", "signalfd", "signalfd4",
    /* files */
    "open", "openat", "stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "newfstatat",
    "fstatat64", "statx", "statfs", "statfs64", "fstatfs", "fstatfs64", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "getcwd", "unlink",
    "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "ftruncate",
    "ftruncate64", "fsync", "fdatasync", "flock", "umask",
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
    /* sockets */
    "socketpair", "socketcall", "bind", "listen", "accept", "accept4", "connect", "getsockname",
    "getpeername", "getsockopt", "send", "sendto", "sendmsg", "sendmmsg", "recv",
    "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64", "shutdown",
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* looking for leaks at the end */
    "ptrace", "process_vm_readv", "personality", "setresuid", "setresgid",
#endif
};
/* clang-format on */

/* What the process may ask of calls that can do much more.  An argument of theirs is an int, and libc
 * leaves in a register's upper half what was there. */
#define INT           UINT64_C(0xffffffff)
#define IS(n, is)     SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, INT, (scmp_datum_t)(uint32_t)(is))
#define KIND(n, kind) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, 0xf, (kind)) /* without SOCK_CLOEXEC */

static const struct rule {
    const char *name;
    unsigned n;
    struct scmp_arg_cmp args[2];
} rules[] = {
    /* No raw sockets of IP, and of netlink not those of the packet filter, IPsec and audit: who has
     * CAP_NET_ADMIN reaches much of the kernel by them. */
    {"socket", 1, {IS(0, AF_UNIX)}},
    {"socket", 2, {IS(0, AF_INET), KIND(1, SOCK_STREAM)}},
    {"socket", 2, {IS(0, AF_INET), KIND(1, SOCK_DGRAM)}},
    {"socket", 2, {IS(0, AF_INET6), KIND(1, SOCK_STREAM)}},
    {"socket", 2, {IS(0, AF_INET6), KIND(1, SOCK_DGRAM)}},
    {"socket", 2, {IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE)}},
    {"socket", 2, {IS(0, AF_NETLINK), IS(2, NETLINK_SOCK_DIAG)}},
    {"socket", 1, {IS(0, AF_PACKET)}},
    /* Of IP neither tables of the packet filter nor multicast routing: only what resolvers set. */
    {"setsockopt", 1, {IS(1, SOL_SOCKET)}},
    {"setsockopt", 1, {IS(1, SOL_PACKET)}},
    {"setsockopt", 1, {IS(1, SOL_NETLINK)}},
    {"setsockopt", 1, {IS(1, IPPROTO_TCP)}},
    {"setsockopt", 2, {IS(1, IPPROTO_IP), IS(2, IP_RECVERR)}},
    {"setsockopt", 2, {IS(1, IPPROTO_IP), IS(2, IP_MTU_DISCOVER)}},
    {"setsockopt", 2, {IS(1, IPPROTO_IPV6), IS(2, IPV6_RECVERR)}},
    {"setsockopt", 2, {IS(1, IPPROTO_IPV6), IS(2, IPV6_V6ONLY)}},
    /* A terminal can be asked whether it is one, but not to act as if somebody had typed (TIOCSTI). */
    {"ioctl", 1, {IS(1, TCGETS)}},
    {"ioctl", 1, {IS(1, TIOCGWINSZ)}},
    {"ioctl", 1, {IS(1, FIONREAD)}},
    {"ioctl", 1, {IS(1, FIONBIO)}},
    {"ioctl", 1, {IS(1, TUNSETIFF)}},
    {"ioctl", 1, {IS(1, TUNSETVNETHDRSZ)}},
    {"ioctl", 1, {IS(1, TUNSETOFFLOAD)}},
    {"ioctl", 1, {IS(1, SIOCETHTOOL)}},
    {"ioctl", 1, {IS(1, SIOCGIFFLAGS)}},
    {"ioctl", 1, {IS(1, SIOCSIFFLAGS)}},
    {"ioctl", 1, {IS(1, SIOCGIFHWADDR)}},
    {"ioctl", 1, {IS(1, SIOCGIFINDEX)}},
    {"ioctl", 1, {IS(1, SIOCGIFNAME)}},
    {"ioctl", 1, {IS(1, SIOCGIFMTU)}}, /* this and those below: libpcap */
    {"ioctl", 1, {IS(1, SIOCGIFADDR)}},
    {"ioctl", 1, {IS(1, SIOCGIWNAME)}},
    /* Modes of sockets alone: Landlock doesn't look at them, and whoever is root owns root's files. */
    {"chmod", 1, {IS(1, 0660)}},
    {"fchmod", 1, {IS(1, 0600)}},
    {"fchmodat", 1, {IS(2, 0660)}},
    {"fchmodat", 1, {IS(2, 0600)}},
};

/* A socket's, to --socket-group. */
static const struct {
    const char *name;
    unsigned uid;
} giving[] = {{"chown", 1}, {"chown32", 1}, {"fchownat", 2}};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* Calls that this processor or this version of libseccomp doesn't know aren't made. */
static int
allow_if(scmp_filter_ctx f, const char *name, unsigned n, const struct scmp_arg_cmp *args)
{
    int number = seccomp_syscall_resolve_name(name);
    int err =
        number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(f, SCMP_ACT_ALLOW, number, n, args);
    return err == -EDOM ? 0 : err; /* a number that only another processor has */
}

static int
allow_giving(scmp_filter_ctx f, gid_t group)
{
    int err = 0;
    for (size_t i = 0; !err && i < sizeof giving / sizeof giving[0]; i++)
        err =
            allow_if(f, giving[i].name, 2,
                     (struct scmp_arg_cmp[]){IS(giving[i].uid, -1), IS(giving[i].uid + 1, group)});
    return err;
}

static int
fill(scmp_filter_ctx f, const struct confine_needs *n)
{
    const struct scmp_arg_cmp generic[] = {IS(0, AF_NETLINK), IS(2, NETLINK_GENERIC)};
    const struct scmp_arg_cmp no_namespaces = {CLONE_FLAGS, SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0};
    int err = 0;
    for (size_t i = 0; !err && i < sizeof allowed / sizeof allowed[0]; i++)
        err = allow_if(f, allowed[i], 0, NULL);
    for (size_t i = 0; !err && i < sizeof rules / sizeof rules[0]; i++)
        err = allow_if(f, rules[i].name, rules[i].n, rules[i].args);
    if (!err)
        err = allow_if(f, "clone", 1, &no_namespaces);
    if (!err && n->pcap)
        err = allow_if(f, "socket", 2, generic);
    if (!err && n->group != (gid_t)-1)
        err = allow_giving(f, n->group);
    return err || !n->bpf ? err : allow_if(f, "bpf", 0, NULL);
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
confine_calls(bool strict, const struct confine_needs *n)
{
    scmp_filter_ctx f = seccomp_init(strict ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));
    if (!f)
        return -EOPNOTSUPP;
    seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 0);
    seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1); /* what is refused: the kernel's log, or audit's */
    seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    int err = fill(f, n);
    if (!err)
        err = hide_clone3();
    if (!err)
        err = seccomp_load(f);
    seccomp_release(f);
    return err;
}
