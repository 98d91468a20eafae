/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/thread.h>

#include <limits.h>

int
thread_begin(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    int err = pthread_attr_init(&attr);
    if (err)
        return -err;
    err = pthread_attr_setstacksize(
        &attr, stack > (size_t)PTHREAD_STACK_MIN ? stack : (size_t)PTHREAD_STACK_MIN);
    if (!err)
        err = pthread_create(thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return -err;
}
