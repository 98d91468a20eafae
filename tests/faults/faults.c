/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: makes the Nth allocation, system call, netlink operation or thread creation fail.
 *
 * $OFQOS_FAULTS is a file of struct faults, which stage.py writes while the program runs: it arms, and
 * reads what happened.  Only the main thread fails, unless any_thread says otherwise.  A netlink operation
 * fails in the kernel: its type becomes one that the kernel does not know. */
#include "../support/preload.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { ALLOCATION = 1, CALL = 2, NETLINK = 4, THREAD = 8 };

#define PLACES 16384 /* as in stage.py */
#define FRAMES 24

struct faults {
    uint32_t classes;    /* that count; 0: not armed */
    int32_t left;        /* how many succeed before one fails */
    uint32_t any_thread; /* 0: the main thread only */
    uint32_t fired;
    char what[32];
    uint32_t depth;
    uint32_t at_main;       /* classes from main() on, once */
    uint64_t where[FRAMES]; /* return addresses, from the program's begin */
    uint32_t record; /* a recording's number: nothing fails; what are a place's first ones? */
    uint32_t n_places;
    uint32_t places[PLACES]; /* N of the first one with this call stack; OWN: none of the program's
                              * functions had called this before, whatever libraries do below */
};

#define OWN 0x80000000u

static struct faults nowhere, *faults = &nowhere;
static uint64_t base, end; /* of the program */

static int
first_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    base = end = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz > end)
            end = base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 1;
}

__attribute__((constructor)) static void
begin(void)
{
    void *warm[2];
    struct faults *told = shared_with_test("OFQOS_FAULTS", sizeof *told);
    backtrace(warm, 2); /* loads what it needs */
    dl_iterate_phdr(first_object, NULL);
    if (told)
        faults = told;
}

/* Whether no one before had this hash of a call stack. */
static int
is_new(uint64_t h)
{
    static uint64_t seen[8 * PLACES];
    size_t slot = (h >> 20) % (8 * PLACES), tries = 0;
    while (seen[slot] && seen[slot] != h && ++tries < 64)
        slot = (slot + 1) % (8 * PLACES);
    if (seen[slot] == h)
        return 0;
    seen[slot] = h;
    return 1;
}

/* 0: this call stack was seen before; OWN: that of the program's functions was not; 1: else. */
static uint32_t
newness(void)
{
    void *at[FRAMES];
    uint64_t all = 14695981039346656037u + 2 * faults->record, own = all + 1;
    int n = backtrace(at, FRAMES);
    for (int i = 1; i < n; i++) {
        uint64_t place = (uint64_t)(uintptr_t)at[i];
        all = (all ^ place) * 1099511628211u;
        if (place >= base && place < end)
            own = (own ^ place) * 1099511628211u;
    }
    uint32_t how = is_new(all);
    return is_new(own) ? OWN : how;
}

static void
record_place(void)
{
    static int recording; /* what looking asks for itself */
    if (recording)
        return;
    recording = 1;
    uint32_t n = (uint32_t)-__atomic_sub_fetch(&faults->left, 1, __ATOMIC_SEQ_CST);
    uint32_t how = newness();
    uint32_t i = how ? __atomic_fetch_add(&faults->n_places, 1, __ATOMIC_SEQ_CST) : PLACES;
    if (i < PLACES)
        faults->places[i] = n | (how & OWN);
    recording = 0;
}

/* Whether this one fails. */
static int
fails(uint32_t class, const char *what)
{
    if (!(faults->classes & class) ||
        (!faults->any_thread && syscall(SYS_gettid) != syscall(SYS_getpid)))
        return 0;
    if (faults->record) {
        record_place();
        return 0;
    }
    if (__atomic_fetch_sub(&faults->left, 1, __ATOMIC_SEQ_CST) != 0)
        return 0;
    faults->classes = 0;
    snprintf(faults->what, sizeof faults->what, "%s", what);
    void *at[FRAMES];
    int n = backtrace(at, FRAMES);
    for (int i = 0; i < n; i++)
        faults->where[i] = (uint64_t)(uintptr_t)at[i] - base;
    faults->depth = (uint32_t)n;
    __atomic_store_n(&faults->fired, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* ------------------------------------------------------------------ from main() on */

static int (*program)(int, char **, char **);

static int
armed_main(int argc, char **argv, char **env)
{
    faults->classes = faults->at_main;
    faults->at_main = 0; /* not of the process that takes over */
    return program(argc, argv, env);
}

int
__libc_start_main(int (*fn)(int, char **, char **), int argc, char **argv, void (*init)(void),
                  void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *) = dlsym(RTLD_NEXT, "__libc_start_main");
    program = fn;
    return real(faults->at_main ? armed_main : fn, argc, argv, init, fini, rtld_fini, stack_end);
}

/* ------------------------------------------------------------------ memory */

/* dlsym may ask for memory before it knows whose. */
static _Alignas(16) char early[4096];
static size_t early_used;

static void *
early_piece(size_t n)
{
    void *p = early + early_used;
    early_used += (n + 15) & ~(size_t)15;
    return early_used <= sizeof early ? p : NULL;
}

void *
malloc(size_t n)
{
    static void *(*real)(size_t);
    static int looking;
    if (!real) {
        if (looking)
            return early_piece(n);
        looking = 1;
        real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    if (fails(ALLOCATION, "malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return real(n);
}

void *
calloc(size_t n, size_t size)
{
    static void *(*real)(size_t, size_t);
    static int looking;
    if (!real) {
        if (looking)
            return early_piece(n * size);
        looking = 1;
        real = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    }
    if (fails(ALLOCATION, "calloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return real(n, size);
}

void
free(void *p)
{
    static void (*real)(void *);
    if ((char *)p >= early && (char *)p < early + sizeof early)
        return;
    static int looking;
    if (!real) {
        if (looking) /* a message of dlsym's own */
            return;
        looking = 1;
        real = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    }
    real(p);
}

#define FAILS_WITH(class, errnum, result)                                                          \
    do {                                                                                           \
        if (fails(class, __func__)) {                                                              \
            errno = errnum;                                                                        \
            return result;                                                                         \
        }                                                                                          \
    } while (0)

void *
realloc(void *p, size_t n)
{
    REAL(realloc);
    FAILS_WITH(ALLOCATION, ENOMEM, NULL);
    return real(p, n);
}

void *
reallocarray(void *p, size_t n, size_t size)
{
    REAL(reallocarray);
    FAILS_WITH(ALLOCATION, ENOMEM, NULL);
    return real(p, n, size);
}

void *
aligned_alloc(size_t align, size_t n)
{
    REAL(aligned_alloc);
    FAILS_WITH(ALLOCATION, ENOMEM, NULL);
    return real(align, n);
}

int
posix_memalign(void **p, size_t align, size_t n)
{
    REAL(posix_memalign);
    if (fails(ALLOCATION, __func__))
        return ENOMEM;
    return real(p, align, n);
}

char *
strdup(const char *s)
{
    REAL(strdup);
    FAILS_WITH(ALLOCATION, ENOMEM, NULL);
    return real(s);
}

/* ------------------------------------------------------------------ calls */

#define WRAP(type, name, params, args, errnum)                                                     \
    type name params                                                                               \
    {                                                                                              \
        REAL(name);                                                                                \
        FAILS_WITH(CALL, errnum, (type)-1);                                                        \
        return real args;                                                                          \
    }

WRAP(int, socket, (int domain, int kind, int protocol), (domain, kind, protocol), EMFILE)
WRAP(int, accept, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), EMFILE)
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f), EMFILE)
/* Of packet sockets no address can be in use. */
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n),
     a->sa_family == AF_PACKET ? ENOMEM : EADDRINUSE)
WRAP(int, listen, (int fd, int n), (fd, n), EADDRINUSE)
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENETUNREACH)
WRAP(int, setsockopt, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n), ENOMEM)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE)
WRAP(int, epoll_ctl, (int e, int op, int fd, struct epoll_event *v), (e, op, fd, v), ENOMEM)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE)
WRAP(ssize_t, send, (int fd, const void *p, size_t n, int f), (fd, p, n, f), ENOBUFS)
WRAP(ssize_t, recv, (int fd, void *p, size_t n, int f), (fd, p, n, f), ENOMEM)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f), ENOBUFS)
WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o), ENOMEM)
WRAP(int, poll, (struct pollfd * v, nfds_t n, int t), (v, n, t), ENOMEM)

/* An eventfd's write can't fail, and its read only for want of an event. */
static uint8_t is_event[4096];

int
eventfd(unsigned n, int flags)
{
    REAL(eventfd);
    FAILS_WITH(CALL, EMFILE, -1);
    int fd = real(n, flags);
    if (fd >= 0 && fd < (int)sizeof is_event)
        is_event[fd] = 1;
    return fd;
}

int
close(int fd)
{
    REAL(close);
    if (fd >= 0 && fd < (int)sizeof is_event)
        is_event[fd] = 0;
    return real(fd);
}

static int
no_event(int fd)
{
    return fd < 0 || fd >= (int)sizeof is_event || !is_event[fd];
}

ssize_t
read(int fd, void *p, size_t n)
{
    REAL(read);
    FAILS_WITH(CALL, no_event(fd) ? EIO : EAGAIN, -1);
    return real(fd, p, n);
}

ssize_t
write(int fd, const void *p, size_t n)
{
    REAL(write);
    if (no_event(fd))
        FAILS_WITH(CALL, EIO, -1);
    return real(fd, p, n);
}

FILE *
fopen(const char *path, const char *mode)
{
    REAL(fopen);
    FAILS_WITH(CALL, EMFILE, NULL);
    return real(path, mode);
}

/* open and open64 differ by name only: programs use one, libraries the other. */
#define WRAP_OPEN(name)                                                                            \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        REAL(name);                                                                                \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;                          \
        va_end(args);                                                                              \
        FAILS_WITH(CALL, EMFILE, -1);                                                              \
        return real(path, flags, mode);                                                            \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)

int
ioctl(int fd, unsigned long request, ...)
{
    static int (*real)(int, unsigned long, ...);
    va_list args;
    va_start(args, request);
    void *p = va_arg(args, void *);
    va_end(args);
    if (!real)
        real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    FAILS_WITH(CALL, ENODEV, -1);
    return real(fd, request, p);
}

/* ------------------------------------------------------------------ netlink, threads */

static int
changes(unsigned type)
{
    return type == RTM_NEWQDISC || type == RTM_DELQDISC || type == RTM_NEWTCLASS ||
           type == RTM_DELTCLASS || type == RTM_NEWTFILTER || type == RTM_DELTFILTER ||
           type == RTM_NEWLINK || type == RTM_DELLINK || type == RTM_SETLINK;
}

/* The operation of a message to the kernel that is to fail, or NULL. */
static struct nlmsghdr *
spoil(const void *p, size_t n)
{
    struct nlmsghdr *h = (struct nlmsghdr *)(uintptr_t)p;
    for (; n >= sizeof *h && h->nlmsg_len >= sizeof *h && h->nlmsg_len <= n;) {
        size_t whole = NLMSG_ALIGN(h->nlmsg_len);
        if (changes(h->nlmsg_type) && fails(NETLINK, "netlink"))
            return h;
        if (whole >= n)
            break;
        n -= whole;
        h = (struct nlmsghdr *)((char *)h + whole);
    }
    return NULL;
}

static int
is_netlink(int fd)
{
    int domain = 0;
    socklen_t n = sizeof domain;
    return faults->classes & NETLINK && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) &&
           domain == AF_NETLINK;
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg);
    FAILS_WITH(CALL, ENOBUFS, -1);
    struct nlmsghdr *h = NULL;
    for (size_t i = 0; is_netlink(fd) && !h && i < m->msg_iovlen; i++)
        h = spoil(m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
    uint16_t type = h ? h->nlmsg_type : 0;
    if (h)
        h->nlmsg_type = 0x7ff0;
    ssize_t r = real(fd, m, flags);
    if (h)
        h->nlmsg_type = type;
    return r;
}

ssize_t
sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t size)
{
    REAL(sendto);
    FAILS_WITH(CALL, ENOBUFS, -1);
    struct nlmsghdr *h = is_netlink(fd) ? spoil(p, n) : NULL;
    uint16_t type = h ? h->nlmsg_type : 0;
    if (h)
        h->nlmsg_type = 0x7ff0;
    ssize_t r = real(fd, p, n, flags, to, size);
    if (h)
        h->nlmsg_type = type;
    return r;
}

int
pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    REAL(pthread_create);
    if (fails(THREAD, __func__))
        return EAGAIN;
    return real(t, a, fn, arg);
}
