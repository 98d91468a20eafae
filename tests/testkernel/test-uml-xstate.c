/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the extended state is written to a traced process: the kernel alone refuses that. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define XSTATE ((void *)(uintptr_t)NT_X86_XSTATE)
#define XMM    160        /* where the SSE registers are (FXSAVE) */
#define LEGACY (512 + 64) /* FXSAVE's area and the header: the least that XSAVE has */
#define BV     512        /* in the header: which parts are in use */
#define SSE    2

static uint8_t state[65536], again[sizeof state];

static pid_t
traced_child(void)
{
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    return child;
}

static void
end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static size_t
get(pid_t child, uint8_t *to)
{
    struct iovec v = {to, sizeof state};
    memset(to, 0xee, sizeof state);
    return ptrace(PTRACE_GETREGSET, child, XSTATE, &v) ? 0 : v.iov_len;
}

static void
change_xmm(uint8_t *s)
{
    for (int i = 0; i < 256; i++)
        s[XMM + i] = (uint8_t)(i * 7 + 1);
    s[BV] |= SSE;
}

static void
test_a_part_is_completed(void **unused)
{
    pid_t child = traced_child();
    if (child < 0)
        skip(); /* no tracing here */
    size_t size = get(child, state);
    if (size <= LEGACY) {
        end(child);
        skip(); /* this processor has no more than that */
    }
    change_xmm(state);
    struct iovec part = {state, LEGACY};
    assert_int_equal(syscall(SYS_ptrace, PTRACE_SETREGSET, child, XSTATE, &part), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(ptrace(PTRACE_SETREGSET, child, XSTATE, &part), 0);
    assert_int_equal(get(child, again), size);
    assert_memory_equal(again + XMM, state + XMM, 256);
    assert_memory_equal(again + LEGACY, state + LEGACY, size - LEGACY);
    end(child);
}

static void
test_the_whole_and_more_are_written_as_they_are(void **unused)
{
    pid_t child = traced_child();
    if (child < 0)
        skip();
    size_t size = get(child, state);
    assert_true(size);
    change_xmm(state);
    for (int i = 0; i < 2; i++) { /* its size is not known yet, and it is */
        struct iovec v = {state, i ? size + 64 : size};
        state[XMM] = (uint8_t)i;
        assert_int_equal(ptrace(PTRACE_SETREGSET, child, XSTATE, &v), 0);
        assert_int_equal(get(child, again), size);
        assert_memory_equal(again, state, size);
    }
    end(child);
}

static void
test_other_requests_are_the_c_librarys(void **unused)
{
    static volatile long word = 0x1234567;
    pid_t child = traced_child();
    if (child < 0)
        skip();
    errno = 7;
    assert_int_equal(ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)&word, NULL), 0x1234567);
    assert_int_equal(errno, 0);
    assert_int_equal(ptrace(PTRACE_POKEDATA, child, (void *)(uintptr_t)&word, (void *)-1), 0);
    assert_int_equal(ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)&word, NULL), -1);
    assert_int_equal(errno, 0);
    assert_int_equal(ptrace(PTRACE_PEEKDATA, child, NULL, NULL), -1);
    assert_int_equal(errno, EIO);
    end(child);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_whole_and_more_are_written_as_they_are),
        cmocka_unit_test(test_a_part_is_completed),
        cmocka_unit_test(test_other_requests_are_the_c_librarys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
