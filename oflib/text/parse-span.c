/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

struct of_span
of_span_take(struct of_span *rest, char sep)
{
    const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    struct of_span part = {rest->p, at ? (size_t)(at - rest->p) : rest->n};
    size_t skip = part.n + (at ? 1 : 0);
    *rest = (struct of_span){rest->p + skip, rest->n - skip};
    return part;
}

bool
of_span_has(struct of_span s, char sep)
{
    return s.n && memchr(s.p, sep, s.n);
}

bool
of_span_is(struct of_span s, const char *text)
{
    return strlen(text) == s.n && !strncasecmp(s.p, text, s.n);
}

bool
of_span_is_alias(struct of_span s, const struct of_alias *aliases, const char *name)
{
    for (const struct of_alias *a = aliases; a->name; a++)
        if (!strcmp(a->name, name) && of_span_is(s, a->alias))
            return true;
    return false;
}

int
of_parse_wrong(struct of_parse *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

void
of_parse_more(struct of_parse *p, const char *fmt, ...)
{
    size_t at = strlen(p->why);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why + at, sizeof p->why - at, fmt, ap);
    va_end(ap);
}
