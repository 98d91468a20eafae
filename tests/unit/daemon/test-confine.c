/* SPDX-License-Identifier: Apache-2.0 */
/* What a confined process can't do any more.  Each case is a process of its own, which needs no rights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <confine-inside.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP 4711

static char ours[64], file[80], other[64];

static int
setup(void **state)
{
    strcpy(ours, "/tmp/ofqos-confine-XXXXXX");
    assert_non_null(mkdtemp(ours));
    snprintf(file, sizeof file, "%s/file", ours);
    snprintf(other, sizeof other, "%s-other", ours);
    return 0;
}

static int
teardown(void **state)
{
    unlink(file);
    unlink(other);
    return rmdir(ours);
}

/* -> the wait status of a process that confines itself and then tries something. */
static int
confined(enum confine_how how, int (*tries)(void))
{
    const struct confine c = {.how = how};
    const struct confine_path paths[] = {{file, CONFINE_WRITE},
                                         {"/var/no-such-directory/file", CONFINE_WRITE}};
    const struct confine_needs n = {.paths = paths, .n_paths = 2, .group = GROUP};
    int status;
    pid_t pid = fork();
    assert_return_code(pid, errno);
    if (!pid) {
        confine_process(&c, &n);
        _exit(tries());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ------------------------------------------------------------------ system calls */

static int
mounts(void)
{
    return mount("none", "/", "tmpfs", 0, NULL) ? errno : 0;
}

static int
makes_namespaces(void)
{
    return unshare(CLONE_NEWUSER) ? errno : 0;
}

static int
takes_other_sockets(void)
{
    return socket(AF_VSOCK, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int
does_its_work(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    pid_t child = fork();
    if (!child)
        _exit(7);
    int status = 0;
    return fd < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7;
}

/* Nothing but the filter refuses this. */
static bool
no_filter(void)
{
    bool none = WEXITSTATUS(confined(CONFINE_ON, takes_other_sockets)) != EPERM;
    if (none)
        print_message("skipped: this build has no libseccomp, or this kernel no seccomp\n");
    return none;
}

static void
test_calls_fail(void **state)
{
    int (*const refused[])(void) = {mounts, makes_namespaces, takes_other_sockets};
    if (no_filter())
        skip();
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(WEXITSTATUS(confined(CONFINE_ON, refused[i])), EPERM);
    assert_int_equal(confined(CONFINE_ON, does_its_work), 0);
}

static void
test_calls_end_it(void **state)
{
    if (no_filter())
        skip();
    int status = confined(CONFINE_STRICT, mounts);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
    assert_int_equal(confined(CONFINE_STRICT, does_its_work), 0);
}

/* ------------------------------------------------------------------ their arguments */

/* What the call says if it is made: no filter is asked for by errno alone, which could be another's. */
static int
gives_all_to_others(void)
{
    return chmod(ours, 04755);
}

static int
opens_to_all(void)
{
    return chmod(ours, 0666);
}

static int
takes_files(void)
{
    return chown(ours, 1, (gid_t)-1);
}

static int
gives_to_a_group(void)
{
    return chown(ours, (uid_t)-1, GROUP + 1);
}

static int
types_for_somebody(void)
{
    return ioctl(0, TIOCSTI, "x");
}

/* The kernel looks at 32 bits of the number. */
static int
types_in_disguise(void)
{
    return ioctl(0, (unsigned long)(UINT64_C(1) << 32 | TIOCSTI), "x");
}

static int
takes_netfilter(void)
{
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static int
takes_generic_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
}

static int
takes_raw_ip(void)
{
    return socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
}

static int
sets_tables_of_ip(void)
{
    return setsockopt(0, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, "", 1);
}

static int
sets_tables_of_ipv6(void)
{
    return setsockopt(0, IPPROTO_IPV6, 64, "", 1);
}

/* Each fails or not for reasons of its own, but is made. */
static int
makes_calls_of_a_switch(void)
{
    const int one = 1;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    fchmod(fd, 0600);
    chmod(other, 0660);
    (void)!chown(other, (uid_t)-1, GROUP);
    isatty(0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof one);
    setsockopt(fd, SOL_PACKET, PACKET_VERSION, &one, sizeof one);
    close(fd);
    close(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    close(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    close(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    close(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return 0;
}

static void
test_arguments(void **state)
{
    static int (*const refused[])(void) = {
        gives_all_to_others, opens_to_all,      takes_files,        gives_to_a_group,
        types_for_somebody,  types_in_disguise, takes_netfilter,    takes_generic_netlink,
        takes_raw_ip,        sets_tables_of_ip, sets_tables_of_ipv6};
    if (no_filter())
        skip();
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int status = confined(CONFINE_STRICT, refused[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
    }
    assert_int_equal(confined(CONFINE_STRICT, makes_calls_of_a_switch), 0);
}

/* ------------------------------------------------------------------ memory that ends */

/* In place of libc's own, for libraries, too: sanitizers have theirs. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define UNHARMED 100 /* no allocation was left to fail */

static int left = -1; /* allocations until one fails; negative: none does */

static bool
fails(void)
{
    if (left < 0 || left--)
        return false;
    errno = ENOMEM;
    return true;
}

#define FAILS(name, parameters, arguments)                                                         \
    void *__libc_##name parameters;                                                                \
    __attribute__((visibility("default"))) void *name parameters                                   \
    {                                                                                              \
        return fails() ? NULL : __libc_##name arguments;                                           \
    }

FAILS(malloc, (size_t n), (n))
FAILS(calloc, (size_t n, size_t size), (n, size))
FAILS(realloc, (void *p, size_t n), (p, n))

static int
is_confined(void)
{
    bool unharmed = left >= 0;
    left = -1;
    if (mounts() != EPERM || takes_other_sockets() != EPERM || !getenv("OFQOS_CONFINED"))
        return 2;
    if (does_its_work())
        return 3;
    return unharmed ? UNHARMED : 0;
}

/* It is confined as ever, or ends with a sentence (daemon_die). */
static void
test_no_memory(void **state)
{
    int status = 0;
    if (no_filter())
        skip();
    for (int n = 0; WEXITSTATUS(status) != UNHARMED; n++) {
        left = n;
        status = confined(CONFINE_ON, is_confined);
        left = -1;
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) != UNHARMED && WEXITSTATUS(status) != 1)
            assert_int_equal(WEXITSTATUS(status), 0);
    }
}

#else

static void
test_no_memory(void **state)
{
    skip();
}

#endif

/* Two processes: the kernel says to the inner one that it has no memory for a filter. */
static int
has_no_memory_for_filters(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 2;
    return confined(CONFINE_ON, does_its_work) == 1 << 8 ? 0 : 3; /* daemon_die's */
}

static void
test_no_memory_in_the_kernel(void **state)
{
    if (no_filter())
        skip();
    assert_int_equal(confined(CONFINE_OFF, has_no_memory_for_filters), 0);
}

/* ------------------------------------------------------------------ files */

static int
writes_ours(void)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    return fd < 0 || write(fd, "x", 1) != 1 || unlink(file) ? errno : 0;
}

static int
writes_others(void)
{
    return open(other, O_WRONLY | O_CREAT, 0600) < 0 ? errno : 0;
}

static int
reads(void)
{
    return open("/proc/self/status", O_RDONLY) < 0 ? errno : 0;
}

/* A setting names a directory that isn't there: what is above it stays closed. */
static int
writes_above(void)
{
    int fd = open("/var/ofqos-confine-above", O_WRONLY | O_CREAT, 0600);
    return fd < 0 ? errno : unlink("/var/ofqos-confine-above");
}

static void
test_files(void **state)
{
    int err = WEXITSTATUS(confined(CONFINE_ON, writes_others));
    assert_int_equal(confined(CONFINE_ON, writes_ours), 0);
    assert_int_equal(confined(CONFINE_ON, reads), 0);
    if (!err)
        print_message("skipped: this kernel has no Landlock\n");
    if (!err)
        skip();
    assert_int_equal(err, EACCES);
    assert_int_equal(WEXITSTATUS(confined(CONFINE_ON, writes_above)), EACCES);
    assert_int_equal(confined(CONFINE_OFF, writes_others), 0);
}

/* ------------------------------------------------------------------ directories */

static void
test_directories(void **state)
{
    static const struct {
        const char *path, *is;
    } cases[] = {{"/tmp/x", "/tmp"}, {"/x", "/"},         {"x", "."},
                 {"./x", "./."},     {"/no/such/x", "/"}, {"/tmp/no-such/x", "/tmp"},
                 {"no/such/x", "."}, {"/tmp/", "/tmp"}};
    char is[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        confine_directory(cases[i].path, is, sizeof is);
        assert_string_equal(is, cases[i].is);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_end_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory_in_the_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test(test_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
