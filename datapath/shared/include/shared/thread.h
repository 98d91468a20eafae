/* SPDX-License-Identifier: Apache-2.0 */
/* Threads with a stack of their own size: the C library's default is 8 MiB in one and 128 KiB in another. */
#ifndef SHARED_THREAD_H
#define SHARED_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* As pthread_create, with a stack of so many bytes at least.  0 or -errno. */
int thread_begin(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg);

#endif
