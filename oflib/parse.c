/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of structures out of text: "cmd=add,table=0,prio=10". */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* -------------------------------------------------------------------- spans */

struct span
span_take(struct span *rest, char sep)
{
    const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    struct span part = {rest->p, at ? (size_t)(at - rest->p) : rest->n};
    size_t skip = part.n + (at ? 1 : 0);
    *rest = (struct span){rest->p + skip, rest->n - skip};
    return part;
}

bool
span_has(struct span s, char sep)
{
    return s.n && memchr(s.p, sep, s.n);
}

bool
span_is(struct span s, const char *text)
{
    return strlen(text) == s.n && !strncasecmp(s.p, text, s.n);
}

bool
span_is_alias(struct span s, const struct of_alias *aliases, const char *name)
{
    for (const struct of_alias *a = aliases; a->name; a++)
        if (!strcmp(a->name, name) && span_is(s, a->alias))
            return true;
    return false;
}

static bool
span_is_quoted(struct span s)
{
    return s.n > 2 && (*s.p == '"' || *s.p == '\'') && s.p[s.n - 1] == *s.p;
}

int
parse_wrong(struct of_parse *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

void
parse_more(struct of_parse *p, const char *fmt, ...)
{
    size_t at = strlen(p->why);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why + at, sizeof p->why - at, fmt, ap);
    va_end(ap);
}

/* ------------------------------------------------------------ unknown words */

#define LISTED_MAX 12 /* names that are listed where none is near */

struct unknown
unknown_of(struct span typed)
{
    return (struct unknown){.near = of_near(typed.p, typed.n)};
}

void
unknown_also(struct unknown *u, const char *name)
{
    of_near_try(&u->near, name);
}

void
unknown_try(struct unknown *u, const char *name)
{
    size_t at = strlen(u->list);
    of_near_try(&u->near, name);
    snprintf(u->list + at, sizeof u->list - at, "%s%s", at ? ", " : "", name);
    u->n++;
}

int
parse_unknown(struct of_parse *p, const char *what, const struct unknown *u)
{
    char near[OF_NEAR_TEXT];
    parse_wrong(p, "unknown %s %.*s%s", what, (int)u->near.n, u->near.typed,
                of_near_text(&u->near, near, sizeof near));
    if (!*near && u->n <= LISTED_MAX)
        parse_more(p, ": %s %s right", u->list, u->n == 1 ? "is" : "are");
    return -EINVAL;
}

/* ------------------------------------------------------------------ numbers */

/* Decimal or 0x hexadecimal, all of the span. */
static bool
plain_number(struct span s, uint64_t *out)
{
    char buf[32], *end;
    if (!s.n || s.n >= sizeof buf || !isxdigit((unsigned char)s.p[0]))
        return false;
    memcpy(buf, s.p, s.n);
    buf[s.n] = '\0';
    bool hex = s.n > 2 && buf[0] == '0' && (buf[1] | 32) == 'x';
    if (hex && !isxdigit((unsigned char)buf[2]))
        return false;
    errno = 0;
    unsigned long long v = strtoull(buf, &end, hex ? 16 : 10);
    if (*end || errno)
        return false;
    *out = v;
    return true;
}

/* One constant: its short name, its full one, an alias. */
static bool
named_number(struct span s, const struct of_fmt *fmt, uint64_t *out)
{
    char name[64];
    for (size_t i = 0; i < fmt->n; i++) {
        const struct of_name *c = &fmt->names[i];
        if (!span_is(s, of_short_name(fmt, c->name, name, sizeof name)) && !span_is(s, c->name) &&
            !span_is_alias(s, of_value_aliases, c->name))
            continue;
        *out = c->value;
        return true;
    }
    return false;
}

/* Names and numbers, joined with | or +. */
static bool
flags_number(struct span s, const struct of_fmt *fmt, uint64_t *out)
{
    uint64_t all = 0, v;
    while (s.n) {
        struct span bar = s, plus = s;
        struct span one = span_take(&bar, '|'), other = span_take(&plus, '+');
        s = one.n < other.n ? bar : plus;
        one = one.n < other.n ? one : other;
        if (!named_number(one, fmt, &v) && !plain_number(one, &v))
            return false;
        all |= v;
    }
    *out = all;
    return true;
}

static int
not_a_number(struct of_parse *p, const char *what, struct span text, const struct of_fmt *fmt)
{
    char name[64], hint[OF_NEAR_TEXT];
    struct of_near near = of_near(text.p, text.n);
    parse_wrong(p, "%s=%.*s: a number", what, SPAN(text));
    for (size_t i = 0; i < fmt->n; i++) {
        of_near_try(&near, of_short_name(fmt, fmt->names[i].name, name, sizeof name));
        parse_more(p, "%s%s", i + 1 < fmt->n ? ", " : " or ", name);
    }
    parse_more(p, " is right%s", fmt->kind == OF_FMT_FLAGS ? " (several joined with |)" : "");
    if (near.count)
        parse_wrong(p, "%s=%.*s is unknown%s", what, SPAN(text),
                    of_near_text(&near, hint, sizeof hint));
    return -EINVAL;
}

/* A port by the name that the switch gives it; quotes keep a name from being taken for a number. */
static int
named_port(struct of_parse *p, const char *what, struct span text, uint64_t *out)
{
    if (span_is_quoted(text))
        text = (struct span){text.p + 1, text.n - 2};
    return p->find_port(p, what, text.p, text.n, out);
}

int
parse_number(struct of_parse *p, const char *what, struct span text, const struct of_fmt *fmt,
             unsigned bits, uint64_t *out)
{
    uint64_t v, max = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    bool ok;
    if (!text.n)
        return parse_wrong(p, "%s= has no value", what);
    if (fmt->kind == OF_FMT_FLAGS)
        ok = flags_number(text, fmt, &v);
    else
        ok = plain_number(text, &v) || (fmt->kind == OF_FMT_ENUM && named_number(text, fmt, &v));
    if (!ok && fmt == &of_fmt_PORT && p->find_port)
        return named_port(p, what, text, out);
    if (!ok)
        return not_a_number(p, what, text, fmt);
    if (v > max)
        return parse_wrong(p, "%s=%.*s is too large: %" PRIu64 " (0x%" PRIx64 ") is the largest",
                           what, SPAN(text), max, max);
    *out = v;
    return 0;
}

int
of_parse_number(struct of_parse *p, const char *what, const char *text, const struct of_fmt *fmt,
                unsigned bits, uint64_t *out)
{
    return parse_number(p, what, span_of(text), fmt, bits, out);
}

/* -------------------------------------------------------- addresses and bytes */

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int
parse_mac(struct of_parse *p, const char *what, struct span text, uint8_t *mac)
{
    uint8_t out[6];
    size_t at = 0;
    for (int i = 0; i < 6; i++) {
        int v = -1;
        for (int d = 0; d < 2 && at < text.n && hex_digit(text.p[at]) >= 0; d++, at++)
            v = (v < 0 ? 0 : v << 4) | hex_digit(text.p[at]);
        bool sep = i == 5 ? at == text.n : at < text.n && text.p[at] == ':';
        if (v < 0 || !sep)
            return parse_wrong(p,
                               "%s=%.*s is no Ethernet address: six bytes like "
                               "00:11:22:33:44:55 are right",
                               what, SPAN(text));
        out[i] = (uint8_t)v;
        at++;
    }
    memcpy(mac, out, sizeof out);
    return 0;
}

int
parse_hex(struct of_parse *p, const char *what, struct span text, struct of_bytes *out)
{
    uint8_t *to = of_arena_alloc(p->arena, text.n / 2 + 1);
    size_t n = 0;
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < text.n;) {
        if (strchr(" .:-\n", text.p[i])) {
            i++;
            continue;
        }
        int high = hex_digit(text.p[i]), low = i + 1 < text.n ? hex_digit(text.p[i + 1]) : -1;
        if (high < 0 || low < 0)
            return parse_wrong(p, "%s=%.*s: pairs of hexadecimal digits are right", what,
                               SPAN(text));
        to[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    *out = (struct of_bytes){to, n};
    return 0;
}

int
of_parse_hex(struct of_parse *p, const char *what, const char *text, struct of_bytes *out)
{
    return parse_hex(p, what, span_of(text), out);
}

/* ------------------------------------------------------------------- fields */

bool
parse_takes(const struct of_field_row *f)
{
    return of_field_shown(f) && f->kind != OFK_LIST && f->kind != OFK_MATCH &&
           f->kind != OFK_OXMIDS && f->kind != OFK_TYPEIDS;
}

static int
parse_str(struct of_parse *p, const struct of_field_row *f, struct span text, char *to)
{
    if (text.n >= f->size)
        return parse_wrong(p, "%s=%.*s is too long: %u characters at most", f->name, SPAN(text),
                           f->size - 1u);
    memset(to, 0, f->size);
    memcpy(to, text.p, text.n);
    return 0;
}

int
parse_field_value(struct of_parse *p, const struct of_field_row *f, struct span text, void *body)
{
    const char *what = of_field_short_name(f);
    void *to = (uint8_t *)body + f->off;
    uint64_t v;
    int err;
    switch (f->kind) {
    case OFK_U8:
    case OFK_U16:
    case OFK_U32:
    case OFK_U64:
        err = parse_number(p, what, text, f->fmt, f->size * 8u, &v);
        if (!err)
            of_field_set_number(f, body, v);
        return err;
    case OFK_MAC: return parse_mac(p, what, text, to);
    case OFK_STR: return parse_str(p, f, text, to);
    case OFK_REST: return parse_hex(p, what, text, to);
    case OFK_OXM: {
        struct span name = span_take(&text, span_has(text, '=') ? '=' : ':');
        return parse_oxm(p, name, text, to);
    }
    default: return parse_wrong(p, "%s can't be given here", what);
    }
}

static int
unknown_field(struct of_parse *p, const struct of_struct_row *row, struct span key)
{
    struct unknown u = unknown_of(key);
    for (int i = 0; i < row->n_fields; i++) {
        if (!parse_takes(&row->fields[i]))
            continue;
        unknown_try(&u, of_field_short_name(&row->fields[i]));
        unknown_also(&u, row->fields[i].name);
    }
    return parse_unknown(p, "key", &u);
}

int
parse_fields(struct of_parse *p, const struct of_struct_row *row, struct span text, void *body)
{
    uint64_t seen = 0;
    while (text.n) {
        struct span value = span_take(&text, ',');
        if (!value.n)
            continue;
        if (!span_has(value, '='))
            return parse_wrong(p, "%.*s is no key=value", SPAN(value));
        struct span key = span_take(&value, '=');
        const struct of_field_row *f = of_field_by_name(row, key.p, key.n);
        if (!f || !parse_takes(f))
            return unknown_field(p, row, key);
        uint64_t bit = UINT64_C(1) << (f - row->fields);
        if (seen & bit)
            return parse_wrong(p, "%.*s is given twice", SPAN(key));
        seen |= bit;
        int err = parse_field_value(p, f, value, body);
        if (err)
            return err;
    }
    return 0;
}

int
of_parse_fields(struct of_parse *p, const struct of_struct_row *row, const char *text, void *body)
{
    return parse_fields(p, row, span_of(text), body);
}
