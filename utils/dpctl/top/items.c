/* SPDX-License-Identifier: Apache-2.0 */
#include "top-inside.h"

#include <core/words.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct top_item *
top_add(struct top *t)
{
    struct top_item *v = words_room(t->c, t->v, t->n, &t->room, sizeof *v);
    if (!v)
        return NULL;
    t->v = v;
    v[t->n] = (struct top_item){.name = "", .detail = ""};
    return &v[t->n++];
}

const char *
top_text(struct top *t, const char *fmt, ...)
{
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    for (char *p = buf; *p; p++) /* it goes to a terminal */
        if (*p < ' ' || *p > '~')
            *p = '?';
    const char *kept = words_keep(t->c, buf, strlen(buf));
    return kept ? kept : "";
}
