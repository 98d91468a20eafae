/* SPDX-License-Identifier: Apache-2.0 */
/* Single values out of text: numbers, constants, ports, addresses, bytes. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ numbers */

/* Decimal or 0x hexadecimal. */
static bool
plain_number(struct of_span s, uint64_t *out)
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

/* A constant by its short name, its full one or an alias. */
static bool
named_number(struct of_span s, const struct of_fmt *fmt, uint64_t *out)
{
    char name[64];
    for (size_t i = 0; i < fmt->n; i++) {
        const struct of_name *c = &fmt->names[i];
        if (!of_span_is(s, of_short_name(fmt, c->name, name, sizeof name)) &&
            !of_span_is(s, c->name) && !of_span_is_alias(s, of_value_aliases, c->name))
            continue;
        *out = c->value;
        return true;
    }
    return false;
}

/* Names and numbers, joined with | or +. */
static bool
flags_number(struct of_span s, const struct of_fmt *fmt, uint64_t *out)
{
    uint64_t all = 0, v;
    while (s.n) {
        struct of_span bar = s, plus = s;
        struct of_span one = of_span_take(&bar, '|'), other = of_span_take(&plus, '+');
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
not_a_number(struct of_parse *p, const char *what, struct of_span text, const struct of_fmt *fmt)
{
    char name[64], hint[OF_NEAR_TEXT];
    struct of_near near = of_near(text.p, text.n);
    of_parse_wrong(p, "%s must be a number", what);
    for (size_t i = 0; i < fmt->n; i++) {
        of_near_try(&near, of_short_name(fmt, fmt->names[i].name, name, sizeof name));
        of_parse_more(p, "%s%s", i + 1 < fmt->n ? ", " : " or ", name);
    }
    of_parse_more(p, "%s, not '%.*s'", fmt->kind == OF_FMT_FLAGS ? " (join several with |)" : "",
                  SPAN(text));
    if (near.count)
        of_parse_wrong(p, "%s=%.*s is unknown%s", what, SPAN(text),
                       of_near_text(&near, hint, sizeof hint));
    return -EINVAL;
}

static bool
is_quoted(struct of_span s)
{
    return s.n > 2 && (*s.p == '"' || *s.p == '\'') && s.p[s.n - 1] == *s.p;
}

/* A port by the switch's name for it.  A quoted word is a name even where it looks like a
 * number. */
static int
named_port(struct of_parse *p, const char *what, struct of_span text, uint64_t *out)
{
    if (is_quoted(text))
        text = (struct of_span){text.p + 1, text.n - 2};
    return p->find_port(p, what, text.p, text.n, out);
}

int
of_span_number(struct of_parse *p, const char *what, struct of_span text, const struct of_fmt *fmt,
               unsigned bits, uint64_t *out)
{
    uint64_t v, max = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    bool ok;
    if (!text.n)
        return of_parse_wrong(p, "%s= needs a value", what);
    if (fmt->kind == OF_FMT_FLAGS)
        ok = flags_number(text, fmt, &v);
    else
        ok = plain_number(text, &v) || (fmt->kind == OF_FMT_ENUM && named_number(text, fmt, &v));
    if (!ok && fmt == &of_fmt_PORT && p->find_port)
        return named_port(p, what, text, out);
    if (!ok)
        return not_a_number(p, what, text, fmt);
    if (v > max)
        return of_parse_wrong(p, "%s=%.*s is too large: the most is %" PRIu64 " (0x%" PRIx64 ")",
                              what, SPAN(text), max, max);
    *out = v;
    return 0;
}

int
of_parse_number(struct of_parse *p, const char *what, const char *text, const struct of_fmt *fmt,
                unsigned bits, uint64_t *out)
{
    return of_span_number(p, what, of_span_of(text), fmt, bits, out);
}

/* -------------------------------------------------------- addresses and bytes */

int
of_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int
of_span_mac(struct of_parse *p, const char *what, struct of_span text, uint8_t *mac)
{
    uint8_t out[6];
    size_t at = 0;
    for (int i = 0; i < 6; i++) {
        int v = -1;
        for (int d = 0; d < 2 && at < text.n && of_hex_digit(text.p[at]) >= 0; d++, at++)
            v = (v < 0 ? 0 : v << 4) | of_hex_digit(text.p[at]);
        bool sep = i == 5 ? at == text.n : at < text.n && text.p[at] == ':';
        if (v < 0 || !sep)
            return of_parse_wrong(
                p, "%s must be an Ethernet address such as 00:11:22:33:44:55, not '%.*s'", what,
                SPAN(text));
        out[i] = (uint8_t)v;
        at++;
    }
    memcpy(mac, out, sizeof out);
    return 0;
}

int
of_span_hex(struct of_parse *p, const char *what, struct of_span text, struct of_bytes *out)
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
        int high = of_hex_digit(text.p[i]), low = i + 1 < text.n ? of_hex_digit(text.p[i + 1]) : -1;
        if (high < 0 || low < 0)
            return of_parse_wrong(
                p, "%s must be pairs of hexadecimal digits such as 0a0b0c, not '%.*s'", what,
                SPAN(text));
        to[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    *out = (struct of_bytes){to, n};
    return 0;
}
