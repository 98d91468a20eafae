/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/near.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN 39

struct of_near
of_near(const char *typed, size_t n)
{
    return (struct of_near){.typed = typed, .n = n < NAME_MAX_LEN ? n : NAME_MAX_LEN};
}

static bool
alike(char a, char b)
{
    a = a == '-' ? '_' : (char)tolower((unsigned char)a);
    b = b == '-' ? '_' : (char)tolower((unsigned char)b);
    return a == b;
}

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein: how many letters to insert, delete, replace or swap with the next. */
static unsigned
distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned row[3][NAME_MAX_LEN + 1];
    unsigned *before = row[0], *last = row[1], *now = row[2];
    for (size_t k = 0; k <= m; k++)
        last[k] = (unsigned)k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (unsigned)i;
        for (size_t k = 1; k <= m; k++) {
            now[k] =
                smaller(smaller(last[k], now[k - 1]) + 1, last[k - 1] + !alike(a[i - 1], b[k - 1]));
            if (i > 1 && k > 1 && alike(a[i - 1], b[k - 2]) && alike(a[i - 2], b[k - 1]))
                now[k] = smaller(now[k], before[k - 2] + 1);
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

/* A name that begins with what was typed counts as near, however long it is. */
static bool
begins(const struct of_near *near, const char *name)
{
    size_t i = 0;
    while (i < near->n && name[i] && alike(near->typed[i], name[i]))
        i++;
    return near->n >= 3 && i == near->n;
}

static bool
is_there(const struct of_near *near, const char *name)
{
    for (unsigned i = 0; i < near->count; i++)
        if (!strcmp(near->best[i].name, name))
            return true;
    return false;
}

void
of_near_try(struct of_near *near, const char *name)
{
    size_t m = strlen(name);
    if (m > NAME_MAX_LEN || !near->n || is_there(near, name))
        return;
    unsigned d = distance(near->typed, near->n, name, m);
    unsigned most = near->n < 3 ? 1 : 1 + (unsigned)near->n / 4;
    if (d > most && begins(near, name))
        d = most;
    if (d > most || d >= m)
        return;
    unsigned at = near->count < OF_NEAR_MAX ? near->count++ : OF_NEAR_MAX;
    for (; at && near->best[at - 1].distance > d; at--)
        if (at < OF_NEAR_MAX)
            near->best[at] = near->best[at - 1];
    if (at == OF_NEAR_MAX)
        return;
    snprintf(near->best[at].name, sizeof near->best[at].name, "%s", name);
    near->best[at].distance = d;
}

const char *
of_near_text(const struct of_near *near, char *buf, size_t size)
{
    size_t at = 0;
    *buf = '\0';
    for (unsigned i = 0; i < near->count && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s",
                               !i                    ? "; did you mean "
                               : i + 1 < near->count ? ", "
                                                     : " or ",
                               near->best[i].name);
    if (at && at < size)
        snprintf(buf + at, size - at, "?");
    return buf;
}
