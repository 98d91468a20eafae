/* SPDX-License-Identifier: Apache-2.0 */
/* Matches out of text: "in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8". */
#include "parse.h"

#include <oflib/err.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const struct oxm_row *
find_oxm(struct span name)
{
    for (int i = 0; i < OXM_N; i++)
        if (span_is(name, oxm_rows[i].name) ||
            span_is_alias(name, of_oxm_aliases, oxm_rows[i].name))
            return &oxm_rows[i];
    return NULL;
}

bool
of_is_match_field(const char *name, size_t n)
{
    return find_oxm((struct span){name, n}) != NULL;
}

static int
unknown_oxm(struct of_parse *p, struct span name)
{
    struct unknown u = unknown_of(name);
    for (int i = 0; i < OXM_N; i++)
        unknown_try(&u, oxm_rows[i].name);
    for (const struct of_alias *a = of_oxm_aliases; a->name; a++)
        unknown_also(&u, a->alias);
    for (const struct of_alias *a = of_field_aliases; p->keys && a->name; a++) {
        const struct of_field_row *f = of_field_by_name(p->keys, a->name, strlen(a->name));
        if (f && parse_takes(f))
            unknown_also(&u, a->alias);
    }
    return parse_unknown(p, "field", &u);
}

static int
parse_ip(struct of_parse *p, const struct oxm_row *row, struct span text, uint8_t *to)
{
    char buf[64];
    bool v4 = row->fmt == OXM_FMT_IPV4;
    snprintf(buf, sizeof buf, "%.*s", SPAN(text));
    if (text.n < sizeof buf && inet_pton(v4 ? AF_INET : AF_INET6, buf, to) == 1)
        return 0;
    return parse_wrong(p,
                       "%s=%.*s is no %s address: one like %s, with /PREFIX or /MASK behind it "
                       "where wanted, is right",
                       row->name, SPAN(text), v4 ? "IPv4" : "IPv6", v4 ? "10.0.0.1" : "fe80::1");
}

static int
parse_half(struct of_parse *p, const struct oxm_row *row, struct span text, uint8_t *to)
{
    uint64_t v;
    int err;
    if (row->fmt == OXM_FMT_MAC)
        return parse_mac(p, row->name, text, to);
    if (row->fmt == OXM_FMT_IPV4 || row->fmt == OXM_FMT_IPV6)
        return parse_ip(p, row, text, to);
    const struct of_fmt *fmt = row->fmt == OXM_FMT_PORT        ? &of_fmt_PORT
                               : row->field == OXM_ipv6_exthdr ? &of_fmt_OFPIEH
                                                               : &of_fmt_DEC;
    if (!(err = parse_number(p, row->name, text, fmt, row->bits, &v)))
        oxm_set_number(row, to, v);
    return err;
}

/* A mask: like a value, or the length of a prefix for IP addresses. */
static int
parse_mask(struct of_parse *p, const struct oxm_row *row, struct span text, uint8_t *mask)
{
    uint64_t len;
    bool ip = row->fmt == OXM_FMT_IPV4 || row->fmt == OXM_FMT_IPV6;
    if (!ip || span_has(text, '.') || span_has(text, ':'))
        return parse_half(p, row, text, mask);
    int err = parse_number(p, row->name, text, &of_fmt_DEC, 64, &len);
    if (err || len > row->bits)
        return parse_wrong(p,
                           "%s: /%.*s is no mask: a prefix length of 0 to %u, or an address, "
                           "is right",
                           row->name, SPAN(text), row->bits);
    memset(mask, 0, row->bytes);
    for (unsigned i = 0; i < len; i++)
        mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
    return 0;
}

/* "none" (untagged), "any" (whatever VID).  False: something else. */
static bool
parse_vlan_word(struct span text, struct of_oxm *out)
{
    bool any = span_is(text, "any");
    if (!any && !span_is(text, "none"))
        return false;
    out->has_mask = any;
    oxm_set_number(out->row, out->value, any ? OFPVID_PRESENT : OFPVID_NONE);
    if (any)
        oxm_set_number(out->row, out->mask, OFPVID_PRESENT);
    return true;
}

/* People give a VID without OFPVID_PRESENT.  With a mask, four hexadecimal digits mean the raw
 * 13 bits. */
static void
complete_vlan(struct span value, struct of_oxm *out)
{
    uint64_t v = oxm_number(out->row, out->value), m = oxm_number(out->row, out->mask);
    if (out->has_mask && (value.n >= 6 || (v | m) & OFPVID_PRESENT))
        return;
    oxm_set_number(out->row, out->value, v | OFPVID_PRESENT);
    oxm_set_number(out->row, out->mask, m | OFPVID_PRESENT);
}

static int
beyond_mask(struct of_parse *p, const struct of_oxm *o, struct span value)
{
    struct of_oxm fit = *o;
    char text[128];
    struct of_wr w = of_wr_fixed(text, sizeof text);
    for (int i = 0; i < o->row->bytes; i++)
        fit.value[i] &= fit.mask[i];
    of_print_oxm_value(&w, &fit);
    return parse_wrong(p, "%s=%.*s has bits that the mask leaves out: %.*s is right", o->row->name,
                       SPAN(value), (int)w.len, text);
}

int
parse_oxm(struct of_parse *p, struct span name, struct span value, struct of_oxm *out)
{
    struct of_oxm o = {.row = find_oxm(name), .has_mask = span_has(value, '/')};
    struct span whole = value;
    if (!o.row)
        return unknown_oxm(p, name);
    memset(o.mask, 0xff, o.row->bytes);
    if (o.row->field == OXM_vlan_vid && parse_vlan_word(value, &o)) {
        *out = o;
        return 0;
    }
    if (o.has_mask && !o.row->maskable)
        return parse_wrong(p, "%s can't have a mask", o.row->name);
    struct span half = span_take(&value, '/');
    int err = parse_half(p, o.row, half, o.value);
    if (!err && o.has_mask)
        err = parse_mask(p, o.row, value, o.mask);
    if (err)
        return err;
    if (o.row->field == OXM_vlan_vid)
        complete_vlan(half, &o);
    for (int i = 0; i < o.row->bytes; i++)
        if (o.value[i] & ~o.mask[i])
            return beyond_mask(p, &o, whole);
    *out = o;
    return 0;
}

/* ---------------------------------------------------------- the whole match */

/* Prerequisites have smaller numbers than what needs them. */
static void
sort_fields(struct of_match *m)
{
    for (uint32_t i = 1; i < m->n; i++) {
        struct of_oxm o = m->v[i];
        uint32_t j = i;
        for (; j && m->v[j - 1].row->field > o.row->field; j--)
            m->v[j] = m->v[j - 1];
        m->v[j] = o;
    }
}

static bool
prereq_holds(const struct of_match *m, const struct oxm_prereq *need)
{
    const struct of_oxm *have = of_match_find(m, (enum oxm_field)need->field);
    if (!have)
        return false;
    uint64_t v = oxm_number(have->row, have->value);
    if (need->field == OXM_vlan_vid)
        return v & OFPVID_PRESENT;
    bool ok = !need->n;
    for (int i = 0; i < need->n; i++)
        ok |= v == need->value[i];
    return ok;
}

/* Says which fields are missing, the first needed one first. */
static int
check_prereqs(struct of_parse *p, const struct of_match *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct oxm_prereq *need = m->v[i].row->prereq;
        if (need->field < 0 || prereq_holds(m, need))
            continue;
        const struct oxm_row *row = &oxm_rows[need->field];
        parse_wrong(p, "%s needs %s", m->v[i].row->name, row->name);
        for (int k = 0; k < need->n; k++)
            parse_more(p, row->fmt == OXM_FMT_HEX ? "%s0x%04x" : "%s%u", k ? " or " : "=",
                       need->value[k]);
        parse_more(p, "%s in the match", need->field == OXM_vlan_vid ? " (any, or a VID)" : "");
        return -EINVAL;
    }
    return 0;
}

static int
check_match(struct of_parse *p, const struct of_match *m)
{
    for (uint32_t i = 1; i < m->n; i++)
        if (m->v[i].row == m->v[i - 1].row)
            return parse_wrong(p, "%s is given twice", m->v[i].row->name);
    int err = check_prereqs(p, m);
    if (!err && (err = of_match_check(m)) > 0) {
        const char *code = of_error_code_name(of_err_type(err), of_err_code(err));
        err = parse_wrong(p, "the match can't be right: %s", code ? code : "OFPET_BAD_MATCH");
    }
    return err;
}

/* A word that stands where a match does, but isn't one. */
static int
no_field(struct of_parse *p, struct span word)
{
    struct span rest = word;
    struct span name = span_take(&rest, '=');
    if (parse_tag(&of_list_actions, name))
        return parse_wrong(p, "%.*s is an action: apply:%.*s (or write:...) is right", SPAN(name),
                           SPAN(word));
    if (span_has(name, ':') || !span_has(word, '=')) {
        struct unknown u = unknown_of(span_take(&name, ':'));
        try_tags(&u, &of_list_instructions);
        char near[OF_NEAR_TEXT];
        parse_wrong(p, "%.*s is neither field=value of a match nor an instruction%s", SPAN(word),
                    of_near_text(&u.near, near, sizeof near));
        if (!*near)
            parse_more(p, " (%s)", u.list);
        return -EINVAL;
    }
    return unknown_oxm(p, name);
}

int
of_parse_match(struct of_parse *p, const char *text, struct of_match *out)
{
    struct span rest = span_of(text);
    uint32_t max = 1;
    for (size_t i = 0; i < rest.n; i++)
        max += rest.p[i] == ',';
    struct of_match m = {.v = of_arena_array(p->arena, max, sizeof *m.v)};
    if (!m.v)
        return -ENOMEM;
    while (rest.n) {
        struct span word = span_take(&rest, ','), value = word;
        if (!word.n)
            continue;
        struct span name = span_take(&value, '=');
        if (!span_has(word, '=') || !find_oxm(name))
            return no_field(p, word);
        int err = parse_oxm(p, name, value, &m.v[m.n]);
        if (err)
            return err;
        m.n++;
    }
    sort_fields(&m);
    int err = check_match(p, &m);
    if (!err)
        *out = m;
    return err;
}
