/* SPDX-License-Identifier: Apache-2.0 */
/* Inside oflib: what the parsers of parse.c (fields), parse-match.c and parse-list.c share. */
#ifndef OFLIB_PARSE_INSIDE_H
#define OFLIB_PARSE_INSIDE_H

#include "text.h"

#include <oflib/near.h>

/* A piece of the text that is parsed, not terminated. */
struct span {
    const char *p;
    size_t n;
};

/* How much of a span is shown in a sentence: for "%.*s". */
#define SPAN(s) (int)((s).n < 80 ? (s).n : 80), (s).p

static inline struct span
span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* Takes the part before the first `sep` off *rest; the separator goes too.  All of it where there
 * is none. */
struct span span_take(struct span *rest, char sep);

/* Does it contain `sep`? */
bool span_has(struct span s, char sep);

/* Is it `text`, in whatever case? */
bool span_is(struct span s, const char *text);

/* Is it another name of `name`? */
bool span_is_alias(struct span s, const struct of_alias *aliases, const char *name);

/* A word that isn't among the names there are: collects those, then says what may have been meant, or
 * lists them where they are few. */
struct unknown {
    struct of_near near;
    unsigned n;
    char list[400];
};
struct unknown unknown_of(struct span typed);
void unknown_try(struct unknown *u, const char *name);  /* one of the names */
void unknown_also(struct unknown *u, const char *name); /* another name of one */
int parse_unknown(struct of_parse *p, const char *what, const struct unknown *u);

/* Puts the sentence into p->why and answers -EINVAL. */
__attribute__((format(printf, 2, 3))) int parse_wrong(struct of_parse *p, const char *fmt, ...);

/* Adds to the sentence. */
__attribute__((format(printf, 2, 3))) void parse_more(struct of_parse *p, const char *fmt, ...);

int parse_number(struct of_parse *p, const char *what, struct span text, const struct of_fmt *fmt,
                 unsigned bits, uint64_t *out);
int parse_mac(struct of_parse *p, const char *what, struct span text, uint8_t *mac);
int parse_hex(struct of_parse *p, const char *what, struct span text, struct of_bytes *out);

/* One value of a structure's field (integer, address, text, bytes, OXM "name:value"). */
int parse_field_value(struct of_parse *p, const struct of_field_row *f, struct span text,
                      void *body);
int parse_fields(struct of_parse *p, const struct of_struct_row *row, struct span text, void *body);

/* The list's kinds of elements, and their other names. */
void try_tags(struct unknown *u, const struct of_list_row *list);

/* Can the field be given as key=value? */
bool parse_takes(const struct of_field_row *f);

/* How an element of a list is written: "output=port[:max_len]" (usage.c). */
void print_tag_usage(struct of_wr *w, const struct of_list_row *list, const struct of_tag_row *tag);

/* OXM "name" and "value[/mask]". */
int parse_oxm(struct of_parse *p, struct span name, struct span value, struct of_oxm *out);

/* Among the list's kinds, by its names in dpctl and the specification; NULL where there is none. */
const struct of_tag_row *parse_tag(const struct of_list_row *list, struct span name);

#endif
