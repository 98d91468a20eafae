/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/daemon.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
daemon_die(const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

unsigned
daemon_arg_number(const char *what, const char *s, unsigned min, unsigned max)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(s, &end, 10);
    if (!*s || *end || errno || *s == '-' || n < min || n > max)
        daemon_die("%s '%s': must be a number from %u to %u", what, s, min, max);
    return (unsigned)n;
}

uint32_t
daemon_arg_seconds(const char *what, const char *s, const char *or_zero)
{
    char *end;
    double seconds = strtod(s, &end);
    bool number = *s && !*end && !s[strspn(s, "0123456789.")];
    if (!number || seconds > 3600 || (seconds < 0.1 && !(*or_zero && seconds == 0)))
        daemon_die("%s '%s': must be a number of seconds from 0.1 to 3600%s", what, s, or_zero);
    return (uint32_t)(seconds * 1000 + 0.5);
}

bool
daemon_arg_fail(const char *s)
{
    bool open = !strcmp(s, "open") || !strcmp(s, "standalone");
    if (!open && strcmp(s, "closed") && strcmp(s, "secure"))
        daemon_die("--fail '%s': must be open or closed (standalone, secure)", s);
    return open;
}
