/* SPDX-License-Identifier: Apache-2.0 */
/* counters: what the switch dropped, refused and lost, by reason (docs/extensions.md). */
#include "commands.h"

#include <oflib/text.h>

#include <inttypes.h>
#include <string.h>

static void
print_one(struct of_wr *w, bool json, bool first, const char *name, uint64_t value)
{
    if (json) {
        of_printf(w, "%s", first ? "{" : ", ");
        of_json_string(w, name, strlen(name));
        of_printf(w, ": %" PRIu64, value);
    } else if (value) {
        size_t start = w->len + !!w->len;
        of_printf(w, "%s", w->len ? "\n" : "");
        of_print_text(w, name, strlen(name));
        of_printf(w, "%*s %" PRIu64, w->len - start < 32 ? (int)(32 - (w->len - start)) : 0, "",
                  value);
    }
}

/* The entries one after the other; false: they can't be understood. */
static bool
print_all(struct ctx *c, struct of_bytes entries, struct of_wr *w)
{
    bool first = true;
    for (size_t at = 0; at < entries.n;) {
        const uint8_t *p = entries.p + at;
        size_t left = entries.n - at, n = left >= 24 ? of_get16(p) : 0;
        if (n < 24 || n > left || n % 8 || !memchr(p + 16, '\0', n - 16))
            return false;
        print_one(w, c->json, first, (const char *)p + 16, of_get64(p + 8));
        first = false;
        at += n;
    }
    if (c->json)
        of_printf(w, "%s", first ? "{}" : "}");
    else if (!w->len)
        of_printf(w, "nothing was dropped or refused");
    return true;
}

enum status
counters(struct ctx *c, char **words, int n)
{
    struct of_bytes entries = {0};
    struct of_wr w = of_wr_grow(16u << 20);
    if (n)
        return bad_args(c, "counters takes no arguments");
    enum status st = ask_experimenter(c, OFP_EXP_COUNTERS, (struct of_bytes){NULL, 0}, &entries);
    if (st)
        return st;
    if (!print_all(c, entries, &w)) {
        of_wr_free(&w);
        return failed(c, "the switch's answer can't be understood");
    }
    return put_line(c, &w);
}
