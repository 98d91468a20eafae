/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/worker-stack.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A page that was never touched is not there. */
static bool
is_there(uint8_t *page)
{
    unsigned char there = 0;
    return !mincore(page, 1, &there) && there & 1;
}

size_t
worker_stack_used(pthread_t thread)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 0;
    pthread_attr_t attr;
    void *low = NULL;
    if (pthread_getattr_np(thread, &attr))
        return 0;
    if (pthread_attr_getstack(&attr, &low, &size))
        size = 0;
    pthread_attr_destroy(&attr);
    uint8_t *top = (uint8_t *)low + size, *at = top - (uintptr_t)top % page;
    while (at - page >= (uint8_t *)low && is_there(at - page))
        at -= page;
    return (size_t)(top - at);
}
