/* SPDX-License-Identifier: Apache-2.0 */
/* What libraries for LD_PRELOAD have in common that a test tells what to do (support/preload.py). */
#ifndef TESTS_PRELOAD_H
#define TESTS_PRELOAD_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `real`: the function that the library's own stands before. */
#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
    real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* The file that the variable names, which the test writes; NULL: there is none.  By system calls, as the library
 * may stand before libc's own. */
static inline void *
shared_with_test(const char *variable, size_t size)
{
    const char *path = getenv(variable);
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR) : -1;
    if (fd < 0)
        return NULL;
    void *p = (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    return p == MAP_FAILED ? NULL : p;
}

#endif
