/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of a switch, as a filter of the kernel's.  Of libseccomp it has the calls' numbers and the
 * processor's alone: libseccomp's own filters are made with hundreds of allocations, and where one failed, they were
 * wrong, or making them crashed (2.5.4).  Here nothing is allocated.
 *
 * The list is what the tests call (they run with --confine=strict), with the forms that other
 * processors and musl have of the same calls.  What starts a program by execve is on it, too: a switch
 * hands over to a new process of its program (datapath/main/restart.c), which inherits the filter. */
#include "confine-inside.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIOCGIWNAME 0x8b01 /* linux/wireless.h, whose headers exclude libc's */

/* A call's number; negative: this processor doesn't have it. */
#define N(name) __SNR_##name

/* clang-format off */
static const int allowed[] = {
    /* of each packet and each turn: first, as they are looked up in this order */
    N(poll), N(ppoll), N(epoll_wait), N(epoll_pwait), N(recvmsg), N(recvmmsg), N(recvfrom),
    N(sendmsg), N(sendmmsg), N(sendto), N(read), N(write), N(futex),
    /* descriptors */
    N(readv), N(writev), N(pread64), N(pwrite64), N(lseek), N(_llseek), N(close), N(close_range),
    N(dup), N(dup2), N(dup3), N(fcntl), N(fcntl64), N(pipe), N(pipe2), N(ppoll_time64), N(select),
    N(_newselect), N(pselect6), N(pselect6_time64), N(epoll_create), N(epoll_create1), N(epoll_ctl),
    N(epoll_pwait2), N(eventfd), N(eventfd2), N(timerfd_create), N(timerfd_settime),
    N(timerfd_settime64), N(timerfd_gettime), N(timerfd_gettime64), N(signalfd), N(signalfd4),
    /* files */
    N(open), N(openat), N(stat), N(stat64), N(lstat), N(lstat64), N(fstat), N(fstat64),
    N(newfstatat), N(fstatat64), N(statx), N(statfs), N(statfs64), N(fstatfs), N(fstatfs64),
    N(access), N(faccessat), N(faccessat2), N(readlink), N(readlinkat), N(getdents), N(getdents64),
    N(getcwd), N(unlink), N(unlinkat), N(rename), N(renameat), N(renameat2), N(mkdir), N(mkdirat),
    N(ftruncate), N(ftruncate64), N(fsync), N(fdatasync), N(flock), N(umask), N(memfd_create),
    N(fadvise64), N(fadvise64_64), N(arm_fadvise64_64),
    /* memory */
    N(mmap), N(mmap2), N(munmap), N(mremap), N(mprotect), N(madvise), N(mincore), N(msync), N(brk),
    N(membarrier),
    /* threads, and the process that takes over */
    N(clone3), N(vfork), N(fork), N(execve), N(exit), N(exit_group), N(wait4), N(waitpid),
    N(waitid), N(set_tid_address), N(set_robust_list), N(get_robust_list), N(rseq), N(futex_time64),
    N(sched_yield), N(sched_getaffinity), N(sched_setaffinity), N(sched_getscheduler),
    N(sched_getparam), N(sched_get_priority_max), N(sched_get_priority_min), N(getcpu), N(getpid),
    N(gettid), N(getppid), N(getpgrp), N(getpgid), N(getsid), N(getpriority), N(getuid),
    N(getuid32), N(geteuid), N(geteuid32), N(getgid), N(getgid32), N(getegid), N(getegid32),
    N(getresuid), N(getresuid32), N(getresgid), N(getresgid32), N(getgroups), N(getgroups32),
    N(setgroups), N(setgroups32), N(capget), N(capset), N(prctl), N(arch_prctl), N(set_thread_area),
    N(cacheflush), N(kill), N(tgkill), N(tkill), N(getrlimit), N(ugetrlimit),
    N(setrlimit), N(prlimit64), N(getrusage), N(times), N(sysinfo), N(uname), N(getrandom),
    /* signals */
    N(rt_sigaction), N(rt_sigprocmask), N(rt_sigreturn), N(sigreturn), N(rt_sigtimedwait),
    N(rt_sigtimedwait_time64), N(rt_sigpending), N(rt_sigsuspend), N(sigaltstack),
    N(restart_syscall), N(pause),
    /* time */
    N(clock_gettime), N(clock_gettime64), N(clock_getres), N(clock_getres_time64),
    N(clock_nanosleep), N(clock_nanosleep_time64), N(nanosleep), N(gettimeofday), N(time),
    /* sockets */
    N(socketpair), N(socketcall), N(bind), N(listen), N(accept), N(accept4), N(connect),
    N(getsockname), N(getpeername), N(getsockopt), N(send), N(recv), N(recvmmsg_time64),
    N(shutdown),
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* looking for leaks at the end */
    N(ptrace), N(process_vm_readv), N(personality), N(setresuid), N(setresgid),
#endif
#ifdef __ARM_NR_set_tls
    __ARM_NR_cacheflush, __ARM_NR_set_tls,
#endif
};
/* clang-format on */

/* What the process may ask of calls that can do much more.  An argument of theirs is an int, and libc
 * leaves in a register's upper half what was there: the filter looks at the lower one. */
#define IS(n, is)                                                                                  \
    {                                                                                              \
        n, UINT32_MAX, (uint32_t)(is)                                                              \
    }
#define KIND(n, kind)                                                                              \
    {                                                                                              \
        n, 0xf, kind                                                                               \
    } /* without SOCK_CLOEXEC */

struct argument {
    unsigned n;
    uint32_t mask, is;
};

static const struct rule {
    int call;
    unsigned n;
    struct argument args[2];
} rules[] = {
    /* No raw sockets of IP, and of netlink not those of the packet filter, IPsec and audit: who has
     * CAP_NET_ADMIN reaches much of the kernel by them. */
    {N(socket), 1, {IS(0, AF_UNIX)}},
    {N(socket), 2, {IS(0, AF_INET), KIND(1, SOCK_STREAM)}},
    {N(socket), 2, {IS(0, AF_INET), KIND(1, SOCK_DGRAM)}},
    {N(socket), 2, {IS(0, AF_INET6), KIND(1, SOCK_STREAM)}},
    {N(socket), 2, {IS(0, AF_INET6), KIND(1, SOCK_DGRAM)}},
    {N(socket), 2, {IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE)}},
    {N(socket), 2, {IS(0, AF_NETLINK), IS(2, NETLINK_SOCK_DIAG)}},
    {N(socket), 1, {IS(0, AF_PACKET)}},
    /* Of IP neither tables of the packet filter nor multicast routing: only what resolvers set. */
    {N(setsockopt), 1, {IS(1, SOL_SOCKET)}},
    {N(setsockopt), 1, {IS(1, SOL_PACKET)}},
    {N(setsockopt), 1, {IS(1, SOL_NETLINK)}},
    {N(setsockopt), 1, {IS(1, IPPROTO_TCP)}},
    {N(setsockopt), 2, {IS(1, IPPROTO_IP), IS(2, IP_RECVERR)}},
    {N(setsockopt), 2, {IS(1, IPPROTO_IP), IS(2, IP_MTU_DISCOVER)}},
    {N(setsockopt), 2, {IS(1, IPPROTO_IPV6), IS(2, IPV6_RECVERR)}},
    {N(setsockopt), 2, {IS(1, IPPROTO_IPV6), IS(2, IPV6_V6ONLY)}},
    /* A terminal can be asked whether it is one, but not to act as if somebody had typed (TIOCSTI). */
    {N(ioctl), 1, {IS(1, TCGETS)}},
    {N(ioctl), 1, {IS(1, TIOCGWINSZ)}},
    {N(ioctl), 1, {IS(1, FIONREAD)}},
    {N(ioctl), 1, {IS(1, FIONBIO)}},
    {N(ioctl), 1, {IS(1, TUNSETIFF)}},
    {N(ioctl), 1, {IS(1, TUNSETVNETHDRSZ)}},
    {N(ioctl), 1, {IS(1, TUNSETOFFLOAD)}},
    {N(ioctl), 1, {IS(1, SIOCETHTOOL)}},
    {N(ioctl), 1, {IS(1, SIOCGIFFLAGS)}},
    {N(ioctl), 1, {IS(1, SIOCSIFFLAGS)}},
    {N(ioctl), 1, {IS(1, SIOCGIFHWADDR)}},
    {N(ioctl), 1, {IS(1, SIOCGIFINDEX)}},
    {N(ioctl), 1, {IS(1, SIOCGIFNAME)}},
    {N(ioctl), 1, {IS(1, SIOCGIFMTU)}}, /* this and those below: libpcap */
    {N(ioctl), 1, {IS(1, SIOCGIFADDR)}},
    {N(ioctl), 1, {IS(1, SIOCGIWNAME)}},
    /* Modes of sockets alone, which 0.2.0 sets that way and may take over: Landlock doesn't look at them, and whoever
     * is root owns root's files. */
    {N(chmod), 1, {IS(1, 0660)}},
    {N(fchmod), 1, {IS(1, 0600)}},
    {N(fchmodat), 1, {IS(2, 0660)}},
    {N(fchmodat), 1, {IS(2, 0600)}},
};

/* A socket's, to --socket-group, or to the process's own group. */
static const struct {
    int call;
    unsigned uid;
} giving[] = {{N(chown), 1}, {N(chown32), 1}, {N(fchownat), 2}};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* ------------------------------------------------------------------ the filter */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define OTHERS      3 /* rules that depend on what is needed, besides `giving` */
#define MOST        (8 + 2 * COUNT(allowed) + 9 * (COUNT(rules) + 2 * COUNT(giving) + OTHERS))

#define STEP(...)    ((struct sock_filter)__VA_ARGS__)
#define LOAD(where)  STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where))
#define AND(mask)    STEP(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask))
#define RETURN(what) STEP(BPF_STMT(BPF_RET | BPF_K, what))
/* That many of the next steps are left out if what was loaded is k, or unless it is. */
#define SKIP_IF(k, n)     STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, n, 0))
#define SKIP_UNLESS(k, n) STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, n))

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARCH   offsetof(struct seccomp_data, arch)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#else
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#endif

struct filter {
    struct sock_filter steps[MOST];
    unsigned short n;
};

static void
put(struct filter *f, struct sock_filter step)
{
    f->steps[f->n++] = step;
}

/* Where it begins and behind it, the call's number is loaded. */
static void
allow_if(struct filter *f, int call, unsigned n, const struct argument *args)
{
    if (call < 0)
        return;
    put(f, SKIP_UNLESS((uint32_t)call, 3 * n + 1));
    for (unsigned i = 0; i < n; i++) {
        put(f, LOAD(ARGUMENT(args[i].n)));
        put(f, AND(args[i].mask));
        put(f, SKIP_UNLESS(args[i].is, 3 * (n - i - 1) + 1));
    }
    put(f, RETURN(SECCOMP_RET_ALLOW));
    if (n)
        put(f, LOAD(NUMBER));
}

static void
allow_giving(struct filter *f, gid_t group)
{
    for (size_t i = 0; i < COUNT(giving); i++)
        allow_if(f, giving[i].call, 2,
                 (struct argument[]){IS(giving[i].uid, -1), IS(giving[i].uid + 1, group)});
}

static void
fill(struct filter *f, const struct confine_needs *n)
{
    const struct argument generic[] = {IS(0, AF_NETLINK), IS(2, NETLINK_GENERIC)};
    const struct argument no_namespaces = {CLONE_FLAGS, NEW_NAMESPACES, 0};
    for (size_t i = 0; i < COUNT(allowed); i++)
        allow_if(f, allowed[i], 0, NULL);
    for (size_t i = 0; i < COUNT(rules); i++)
        allow_if(f, rules[i].call, rules[i].n, rules[i].args);
    allow_if(f, N(clone), 1, &no_namespaces);
    if (n->pcap)
        allow_if(f, N(socket), 2, generic);
    allow_giving(f, getegid());
    if (n->group != (gid_t)-1)
        allow_giving(f, n->group);
    if (n->bpf)
        allow_if(f, N(bpf), 0, NULL);
}

static int
load(struct sock_filter *steps, unsigned short n, unsigned long flags)
{
    const struct sock_fprog program = {n, steps};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) ? -errno : 0;
}

/* clone3's flags are in memory, where no filter looks: libc takes clone() when it is missing.  That is no
 * line in a log, so it is a filter of its own. */
static int
hide_clone3(void)
{
    struct sock_filter steps[] = {LOAD(NUMBER), SKIP_UNLESS((uint32_t)N(clone3), 1),
                                  RETURN(SECCOMP_RET_ERRNO | ENOSYS), RETURN(SECCOMP_RET_ALLOW)};
    return load(steps, COUNT(steps), 0);
}

int
confine_calls(bool strict, const struct confine_needs *n)
{
    struct filter f = {.n = 0};
    put(&f, LOAD(ARCH));
    put(&f, SKIP_IF(seccomp_arch_native(), 1));
    put(&f, RETURN(SECCOMP_RET_KILL_PROCESS));
    put(&f, LOAD(NUMBER));
    fill(&f, n);
    put(&f, RETURN(strict ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM));
    int err = hide_clone3();
    if (err)
        return err;
    err = load(f.steps, f.n, SECCOMP_FILTER_FLAG_LOG);   /* the kernel's log, or audit's */
    return err == -EINVAL ? load(f.steps, f.n, 0) : err; /* before Linux 4.14 */
}
