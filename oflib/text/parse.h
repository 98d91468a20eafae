/* SPDX-License-Identifier: Apache-2.0 */
/* Inside oflib: what its parsers share.  Each file calls only those above it:
 *
 *   parse-span.c    pieces of text; sentences about them
 *   parse-names.c   the names there are, and the nearest ones to a mistyped name
 *   parse-value.c   numbers, constants, ports, addresses, bytes
 *   parse-match.c   matches
 *   parse.c         fields of structures
 *   parse-list.c    actions, instructions, bands, buckets */
#ifndef OFLIB_PARSE_INSIDE_H
#define OFLIB_PARSE_INSIDE_H

#include "text.h"

#include <oflib/near.h>

/* -------------------------------------------------------------- parse-span.c */

/* A piece of the text that is parsed, not terminated. */
struct of_span {
    const char *p;
    size_t n;
};

/* For "%.*s": a span, cut to what fits into a sentence. */
#define SPAN(s) (int)((s).n < 80 ? (s).n : 80), (s).p

static inline struct of_span
of_span_of(const char *text)
{
    return (struct of_span){text, strlen(text)};
}

/* Takes the part before the first `sep`, and the separator, off *rest; all of it where there is
 * none. */
struct of_span of_span_take(struct of_span *rest, char sep);

bool of_span_has(struct of_span s, char sep);

/* Equal to `text`, ignoring case? */
bool of_span_is(struct of_span s, const char *text);

/* One of the other names of `name`? */
bool of_span_is_alias(struct of_span s, const struct of_alias *aliases, const char *name);

/* Appends to the sentence. */
__attribute__((format(printf, 2, 3))) void of_parse_more(struct of_parse *p, const char *fmt, ...);

/* ------------------------------------------------------------- parse-names.c */

/* Answers a mistyped word: names the nearest words that exist, or lists all where they are few.
 *
 *     struct of_unknown u = of_unknown(typed);
 *     for (...) of_unknown_try(&u, name);
 *     return of_parse_unknown(p, "key", &u); */
struct of_unknown {
    struct of_near near;
    unsigned n;
    char list[400];
};
struct of_unknown of_unknown(struct of_span typed);
void of_unknown_try(struct of_unknown *u, const char *name);
void of_unknown_also(struct of_unknown *u, const char *name); /* another name: is not listed */
void of_unknown_try_tags(struct of_unknown *u, const struct of_list_row *list);
int of_parse_unknown(struct of_parse *p, const char *what, const struct of_unknown *u);

/* Can the field be given as key=value? */
bool of_field_taken(const struct of_field_row *f);

/* The list's kind of element of this name, dpctl's or the specification's; NULL: there is none. */
const struct of_tag_row *of_span_tag(const struct of_list_row *list, struct of_span name);

/* ------------------------------------------------------------- parse-value.c
 * `what` is the key that the value was given for: sentences name it. */

int of_span_number(struct of_parse *p, const char *what, struct of_span text,
                   const struct of_fmt *fmt, unsigned bits, uint64_t *out);
int of_span_mac(struct of_parse *p, const char *what, struct of_span text, uint8_t *mac);
int of_span_hex(struct of_parse *p, const char *what, struct of_span text, struct of_bytes *out);

/* ------------------------------------------------------------- parse-match.c */

/* "ipv4_src" and "10.0.0.0/8" */
int of_span_oxm(struct of_parse *p, struct of_span name, struct of_span value, struct of_oxm *out);

/* ------------------------------------------------------------------- parse.c */

/* One value of a structure's field: an integer, an address, a text, bytes, "OXM:VALUE". */
int of_span_field(struct of_parse *p, const struct of_field_row *f, struct of_span text,
                  void *body);
int of_span_fields(struct of_parse *p, const struct of_struct_row *row, struct of_span text,
                   void *body);

/* ------------------------------------------------------------------- usage.c */

/* How an element of a list is written: "output=port[:max_len]". */
void of_print_tag_usage(struct of_wr *w, const struct of_list_row *list,
                        const struct of_tag_row *tag);

#endif
