/* SPDX-License-Identifier: Apache-2.0 */
/* A packet worker's stack: what the deepest way through groups takes of it is measured by
 * tests/netns/test_groups.py. */
#ifndef DATAPLANE_WORKER_STACK_H
#define DATAPLANE_WORKER_STACK_H

#include <pthread.h>
#include <stddef.h>

#define WORKER_STACK (256u << 10)

/* The most that the thread has used so far, in whole pages; 0: unknown. */
size_t worker_stack_used(pthread_t thread);

#endif
