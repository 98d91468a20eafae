/* SPDX-License-Identifier: Apache-2.0 */
/* What all of the log stands on: names, the lock, the clock, printable text. */
#include "log-inside.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *const log_module_names[LOG_MODULES_COUNT] = {
#define NAME(id, name, tells) [LOG_IN_##id] = name,
    LOG_MODULES(NAME)
#undef NAME
};

const char *const log_level_names[LOG_LEVELS] = {[LOG_ERROR] = "error",
                                                 [LOG_WARNING] = "warning",
                                                 [LOG_NOTICE] = "notice",
                                                 [LOG_INFO] = "info",
                                                 [LOG_DEBUG] = "debug"};

uint64_t
log_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
log_lock(void)
{
    pthread_mutex_lock(&lock);
}

void
log_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

size_t
log_append(char *out, size_t size, size_t len, const char *s)
{
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *p = (const unsigned char *)s; *p && len + 5 <= size; p++) {
        if (*p >= ' ' && *p < 127) {
            out[len++] = (char)*p;
            continue;
        }
        out[len++] = '\\';
        out[len++] = 'x';
        out[len++] = digits[*p >> 4];
        out[len++] = digits[*p & 15];
    }
    out[len] = '\0';
    return len;
}
