/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: a kernel that answers late or never, lost notices, full send queues, clocks that jump.
 *
 * $OFQOS_ADVERSE is a file of struct adverse, which support/adverse.py writes while the program runs. */
#include "preload.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

struct adverse {
    int64_t realtime;      /* ns that CLOCK_REALTIME is ahead */
    int64_t monotonic;     /* ns that CLOCK_MONOTONIC and _BOOTTIME are ahead */
    uint32_t busy;         /* 1: a request that is sent to rtnetlink stays in the kernel until 0 */
    uint32_t let_through;  /* but for so many before it */
    uint32_t withheld;     /* 1: answers stay in the kernel until 0 */
    uint32_t swallowed;    /* so many reads of answers find none, and what was there is lost */
    uint32_t notices_lost; /* so many reads of notices say ENOBUFS, and lose what was there */
    uint32_t packets_refused; /* so many sends of packets say ENOBUFS */
    uint32_t ring_ms;         /* each receive ring takes so long to be made */
    uint32_t rings_at_once;   /* the most that were being made at the same time */
    uint32_t link_ms;         /* each program takes so long to get onto an interface */
    uint32_t links;           /* how many were put onto one */
    uint32_t seen; /* requests that were held, answers and notices that were lost, sends refused */
};

static struct adverse nothing, *adverse = &nothing;

__attribute__((constructor)) static void
begin(void)
{
    struct adverse *told = shared_with_test("OFQOS_ADVERSE", sizeof *told);
    if (told)
        adverse = told;
}

static uint32_t
load(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static int
take(uint32_t *p)
{
    uint32_t n = load(p);
    while (n && !__atomic_compare_exchange_n(p, &n, n - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return n > 0;
}

static int
take_one(uint32_t *p)
{
    int taken = take(p);
    if (taken)
        __atomic_fetch_add(&adverse->seen, 1, __ATOMIC_SEQ_CST);
    return taken;
}

static void
pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static int
domain_of(int fd)
{
    int domain = 0, saved = errno;
    socklen_t n = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n);
    errno = saved;
    return domain;
}

/* ------------------------------------------------------------------ clocks */

static void
shift(struct timespec *t, int64_t by)
{
    int64_t s = by / 1000000000, ns = t->tv_nsec + by % 1000000000;
    t->tv_sec += s + (ns >= 1000000000) - (ns < 0);
    t->tv_nsec = ns >= 1000000000 ? ns - 1000000000 : ns < 0 ? ns + 1000000000 : ns;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    REAL(clock_gettime);
    int r = real(clock, t);
    if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(t, __atomic_load_n(&adverse->realtime, __ATOMIC_ACQUIRE));
    if (!r && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
               clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME))
        shift(t, __atomic_load_n(&adverse->monotonic, __ATOMIC_ACQUIRE));
    return r;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_REALTIME, &t);
    *tv = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return r;
}

time_t
time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

/* ------------------------------------------------------------------ rtnetlink */

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg);
    if (load(&adverse->busy) && domain_of(fd) == AF_NETLINK && !take(&adverse->let_through)) {
        __atomic_fetch_add(&adverse->seen, 1, __ATOMIC_SEQ_CST);
        while (load(&adverse->busy))
            pause_ms(1);
    }
    return real(fd, m, flags);
}

static int
hears_notices(int fd)
{
    struct sockaddr_nl a = {0};
    socklen_t n = sizeof a;
    return !getsockname(fd, (struct sockaddr *)&a, &n) && a.nl_groups;
}

/* How long a read waits, ms. */
static long
patience(int fd)
{
    struct timeval t = {0};
    socklen_t n = sizeof t;
    getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, &n);
    return t.tv_sec || t.tv_usec ? t.tv_sec * 1000 + t.tv_usec / 1000 : 1000000000;
}

static void
lose_all(int fd)
{
    char room[65536];
    while (syscall(SYS_recvfrom, fd, room, sizeof room, MSG_DONTWAIT, NULL, NULL) > 0)
        ;
}

static int
no_answer(int fd)
{
    long ms = patience(fd);
    if (take_one(&adverse->swallowed)) {
        lose_all(fd);
        pause_ms(ms);
        return 1;
    }
    if (!load(&adverse->withheld))
        return 0;
    __atomic_fetch_add(&adverse->seen, 1, __ATOMIC_SEQ_CST);
    while (load(&adverse->withheld) && ms-- > 0)
        pause_ms(1);
    return load(&adverse->withheld) != 0;
}

ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
    REAL(recvmsg);
    int odd = load(&adverse->swallowed) || load(&adverse->withheld) || load(&adverse->notices_lost);
    if (odd && domain_of(fd) == AF_NETLINK) {
        int notices = hears_notices(fd);
        if (notices && take_one(&adverse->notices_lost)) {
            lose_all(fd);
            errno = ENOBUFS;
            return -1;
        }
        if (!notices && no_answer(fd)) {
            errno = EAGAIN;
            return -1;
        }
    }
    return real(fd, m, flags);
}

/* ------------------------------------------------------------------ packets */

int
sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
    REAL(sendmmsg);
    if (load(&adverse->packets_refused) && domain_of(fd) == AF_PACKET &&
        take_one(&adverse->packets_refused)) {
        errno = ENOBUFS;
        return -1;
    }
    return real(fd, m, n, flags);
}

/* The kernel's waits for its readers: those of several threads last as long as one. */
int
setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
    static uint32_t now;
    REAL(setsockopt);
    if (level == SOL_PACKET && option == PACKET_RX_RING && load(&adverse->ring_ms)) {
        uint32_t n = __atomic_add_fetch(&now, 1, __ATOMIC_SEQ_CST),
                 most = load(&adverse->rings_at_once);
        while (n > most && !__atomic_compare_exchange_n(&adverse->rings_at_once, &most, n, 0,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
        pause_ms(load(&adverse->ring_ms));
        __atomic_fetch_sub(&now, 1, __ATOMIC_SEQ_CST);
    }
    return real(fd, level, option, value, len);
}

/* libbpf has no function of libc for bpf(2). */
long
syscall(long number, ...)
{
    long a[6];
    va_list args;
    REAL(syscall);
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_bpf && a[0] == BPF_LINK_CREATE) {
        __atomic_fetch_add(&adverse->links, 1, __ATOMIC_SEQ_CST);
        pause_ms(load(&adverse->link_ms));
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
