/* SPDX-License-Identifier: Apache-2.0 */
/* The names that may be typed, and the answer to a mistyped one. */
#include "parse.h"

#include <oflib/absent.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define LISTED_MAX 12 /* more names than these are not listed */

struct of_unknown
of_unknown(struct of_span typed)
{
    return (struct of_unknown){.near = of_near(typed.p, typed.n)};
}

void
of_unknown_also(struct of_unknown *u, const char *name)
{
    of_near_try(&u->near, name);
}

void
of_unknown_try(struct of_unknown *u, const char *name)
{
    size_t at = strlen(u->list);
    of_near_try(&u->near, name);
    snprintf(u->list + at, sizeof u->list - at, "%s%s", at ? ", " : "", name);
    u->n++;
}

int
of_parse_unknown(struct of_parse *p, const char *what, const struct of_unknown *u)
{
    char near[OF_NEAR_TEXT], absent[OF_ABSENT_TEXT];
    if (of_absent(u->near.typed, u->near.n, absent, sizeof absent))
        return of_parse_wrong(p, "%s", absent);
    of_parse_wrong(p, "unknown %s %.*s%s", what, (int)u->near.n, u->near.typed,
                   of_near_text(&u->near, near, sizeof near));
    if (!*near && u->n <= LISTED_MAX)
        of_parse_more(p, u->n == 1 ? ": the only one is %s" : ": use one of %s", u->list);
    return -EINVAL;
}

/* ------------------------------------------------------- names of the rows */

bool
of_field_taken(const struct of_field_row *f)
{
    return of_field_shown(f) && f->kind != OFK_LIST && f->kind != OFK_MATCH &&
           f->kind != OFK_OXMIDS && f->kind != OFK_TYPEIDS;
}

/* OFPAT_SET_QUEUE may be written set_queue, too. */
static bool
is_spec_name(struct of_span name, const char *c_name)
{
    const char *bar = strchr(c_name, '_');
    return of_span_is(name, c_name) || (bar && of_span_is(name, bar + 1));
}

const struct of_tag_row *
of_span_tag(const struct of_list_row *list, struct of_span name)
{
    for (size_t i = 0; i < list->n_tags; i++) {
        const struct of_tag_row *tag = &list->tags[i];
        if (of_span_is(name, tag->name) || is_spec_name(name, tag->c_name) ||
            of_span_is_alias(name, of_tag_aliases, tag->c_name))
            return tag;
    }
    return NULL;
}

void
of_unknown_try_tags(struct of_unknown *u, const struct of_list_row *list)
{
    for (size_t i = 0; i < list->n_tags; i++) {
        of_unknown_try(u, list->tags[i].name);
        for (const struct of_alias *a = of_tag_aliases; a->name; a++)
            if (!strcmp(a->name, list->tags[i].c_name))
                of_unknown_also(u, a->alias);
        const char *bar = strchr(list->tags[i].c_name, '_');
        char low[64];
        size_t n = 0;
        for (; bar && bar[n + 1] && n + 1 < sizeof low; n++)
            low[n] = (char)tolower((unsigned char)bar[n + 1]);
        low[n] = '\0';
        of_unknown_also(u, low);
    }
}
