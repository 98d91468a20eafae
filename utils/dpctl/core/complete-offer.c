/* SPDX-License-Identifier: Apache-2.0 */
#include <core/complete.h>

#include <stdio.h>

/* Has the line been written? */
static bool
is_there(const struct complete *k, const char *text, size_t n)
{
    struct of_bytes left = {k->w.buf, k->w.len};
    while (left.n) {
        const uint8_t *tab = memchr(left.p, '\t', left.n), *end = memchr(left.p, '\n', left.n);
        size_t line = (size_t)(end + 1 - left.p);
        if ((size_t)(tab - left.p) == n && !memcmp(left.p, text, n))
            return true;
        left = (struct of_bytes){left.p + line, left.n - line};
    }
    return false;
}

void
complete_offer(struct complete *k, size_t keep, const char *text, const char *help)
{
    char all[1024];
    size_t typed = strlen(k->word);
    int n = snprintf(all, sizeof all, "%.*s%s", (int)keep, k->word, text);
    if (n >= (int)sizeof all || (size_t)n < typed || strncmp(all, k->word, typed) ||
        all[strcspn(all, "\t\n")] || is_there(k, all, (size_t)n))
        return;
    of_printf(&k->w, "%s\t", all);
    if (help)
        of_printf(&k->w, "%.*s", (int)strcspn(help, "\n"), help);
    of_printf(&k->w, "\n");
}
