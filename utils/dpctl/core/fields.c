/* SPDX-License-Identifier: Apache-2.0 */
/* A structure's fields out of words. */
#include <core/flow-words.h>
#include <core/say.h>
#include <core/words.h>

#include <errno.h>

/* The words sorted: for the structure's fields, and for those of its match. */
struct sorted {
    const struct of_struct_row *row;
    const struct of_field_row *match; /* NULL: the row has none */
    struct of_wr fields, in_match;
    int bare; /* values without a key, so far */
};

static const struct of_field_row *
nth_number(const struct of_struct_row *row, int n)
{
    for (int i = 0; i < row->n_fields; i++)
        if (row->fields[i].kind <= OFK_U64 && n-- == 0)
            return &row->fields[i];
    return NULL;
}

static void
sort_pair(struct sorted *s, const char *pair, size_t n)
{
    const char *eq = memchr(pair, '=', n);
    bool field = of_field_by_name(s->row, pair, eq ? (size_t)(eq - pair) : n) != NULL;
    of_printf(field || !s->match ? &s->fields : &s->in_match, "%.*s,", (int)n, pair);
}

static void
sort_word(struct sorted *s, const char *word)
{
    const struct of_field_row *f = NULL;
    if (!strchr(word, '=') && !s->match)
        f = nth_number(s->row, s->bare++);
    if (f)
        of_printf(&s->fields, "%s=%s,", of_field_short_name(f), word);
    for (const char *p = word; *p && !f; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        if (n)
            sort_pair(s, p, n);
        p += n;
    }
}

/* Where there is a match, words of OpenFlow 1.0 and ovs-ofctl may stand among today's. */
static enum status
sort_words(struct ctx *c, struct sorted *s, char *const *words, int n)
{
    if (!s->match) {
        for (int i = 0; i < n; i++)
            sort_word(s, words[i]);
        return DPCTL_OK;
    }
    const char *text = words_join(c, words, n, ',');
    struct of_wr now = of_wr_grow(1 << 20);
    if (!text)
        return say_memory(c);
    enum status st = flow_words_translate(c, s->row, text, &now);
    of_wr8(&now, 0);
    if (!st && now.overflow)
        st = say_memory(c);
    if (!st)
        sort_word(s, (const char *)now.buf);
    of_wr_free(&now);
    return st;
}

enum status
words_fields(struct ctx *c, const struct of_struct_row *row, char *const *words, int n, void *body)
{
    struct sorted s = {.row = row,
                       .match = of_field_by_name(row, "match", 5),
                       .fields = of_wr_grow(1 << 20),
                       .in_match = of_wr_grow(1 << 20)};
    int err = 0;
    c->parse.keys = row;
    enum status st = sort_words(c, &s, words, n);
    of_wr8(&s.fields, 0);
    of_wr8(&s.in_match, 0);
    if (s.fields.overflow || s.in_match.overflow)
        err = -ENOMEM;
    else if (!st)
        err = of_parse_fields(&c->parse, row, (const char *)s.fields.buf, body);
    if (!st && !err && s.match)
        err = of_parse_match(&c->parse, (const char *)s.in_match.buf,
                             (struct of_match *)(void *)((uint8_t *)body + s.match->off));
    of_wr_free(&s.fields);
    of_wr_free(&s.in_match);
    return st ? st : err ? say_parse(c, err) : DPCTL_OK;
}
