/* SPDX-License-Identifier: Apache-2.0 */
/* A ptrace(2) for User-Mode Linux, to be preloaded.
 *
 * UML before 6.13 keeps 2,696 bytes of a process's extended processor state and writes as many back.
 * A processor with more (AMX: 11,008) makes the host refuse that with EFAULT, for it takes all or
 * nothing, and UML panics in put_fp_registers at its first process.  Here a part is completed with
 * what the process has; UML's processes never change the rest.  Anything else is passed on as it is.
 */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE ((void *)(uintptr_t)NT_X86_XSTATE)

/* Not on the stack, which is UML's and small.  UML calls ptrace from one thread only. */
static uint8_t whole[65536];

static long
set_part(pid_t pid, const struct iovec *part)
{
    static size_t enough; /* so many bytes are all of the state, or more; 0: not known yet */
    struct iovec all = {whole, sizeof whole};
    if (enough && part->iov_len >= enough)
        return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, XSTATE, part);
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, XSTATE, &all))
        return -1;
    memcpy(whole, part->iov_base, part->iov_len < all.iov_len ? part->iov_len : all.iov_len);
    enough = getenv("UML_XSTATE_ALWAYS") ? SIZE_MAX : all.iov_len; /* set: to try it anywhere */
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, XSTATE, &all);
}

/* As the C library's: what is peeked is returned. */
static long
peek(enum __ptrace_request request, pid_t pid, void *addr)
{
    long word;
    if (syscall(SYS_ptrace, request, pid, addr, &word))
        return -1;
    errno = 0;
    return word;
}

__attribute__((visibility("default"))) long
ptrace(enum __ptrace_request request, ...)
{
    va_list more;
    va_start(more, request);
    pid_t pid = va_arg(more, pid_t);
    void *addr = va_arg(more, void *), *data = va_arg(more, void *);
    va_end(more);
    switch (request) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
    case PTRACE_PEEKUSER: return peek(request, pid, addr);
    case PTRACE_SETREGSET:
        if (addr == XSTATE)
            return set_part(pid, data);
        break;
    default: break;
    }
    return syscall(SYS_ptrace, request, pid, addr, data);
}
