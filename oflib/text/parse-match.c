/* SPDX-License-Identifier: Apache-2.0 */
/* Matches out of text: "in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8". */
#include "parse.h"

#include <oflib/absent.h>
#include <oflib/err.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const struct oxm_row *
find_oxm(struct of_span name)
{
    for (int i = 0; i < OXM_N; i++)
        if (of_span_is(name, oxm_rows[i].name) ||
            of_span_is_alias(name, of_oxm_aliases, oxm_rows[i].name))
            return &oxm_rows[i];
    return NULL;
}

bool
of_is_match_field(const char *name, size_t n)
{
    return find_oxm((struct of_span){name, n}) != NULL;
}

static int
unknown_oxm(struct of_parse *p, struct of_span name)
{
    struct of_unknown u = of_unknown(name);
    for (int i = 0; i < OXM_N; i++)
        of_unknown_try(&u, oxm_rows[i].name);
    for (const struct of_alias *a = of_oxm_aliases; a->name; a++)
        of_unknown_also(&u, a->alias);
    for (const struct of_alias *a = of_field_aliases; p->keys && a->name; a++) {
        const struct of_field_row *f = of_field_by_name(p->keys, a->name, strlen(a->name));
        if (f && of_field_taken(f))
            of_unknown_also(&u, a->alias);
    }
    return of_parse_unknown(p, "field", &u);
}

static int
parse_ip(struct of_parse *p, const struct oxm_row *row, struct of_span text, uint8_t *to)
{
    char buf[64];
    bool v4 = row->fmt == OXM_FMT_IPV4;
    snprintf(buf, sizeof buf, "%.*s", SPAN(text));
    if (text.n < sizeof buf && inet_pton(v4 ? AF_INET : AF_INET6, buf, to) == 1)
        return 0;
    return of_parse_wrong(
        p,
        v4 ? "%s must be an IPv4 address such as 10.0.0.1 or 10.0.0.0/8, not '%.*s'"
           : "%s must be an IPv6 address such as fe80::1 or fe80::/64, not '%.*s'",
        row->name, SPAN(text));
}

#define VID_MAX 4095

/* Four hexadecimal digits may have OFPVID_PRESENT.  Nobody means that bit in 5000. */
static int
parse_vid(struct of_parse *p, struct of_span text, uint64_t *v)
{
    bool bits = text.n >= 6 && text.p[0] == '0' && (text.p[1] | 32) == 'x';
    int err = of_span_number(p, "vlan_vid", text, &of_fmt_DEC, 64, v);
    if (err || *v <= VID_MAX || (bits && *v <= (OFPVID_PRESENT | VID_MAX)))
        return err;
    return of_parse_wrong(p,
                          "vlan_vid must be 0 to %d, any (every tag) or none (no tag), not '%.*s'",
                          VID_MAX, SPAN(text));
}

static int
parse_half(struct of_parse *p, const struct oxm_row *row, struct of_span text, uint8_t *to)
{
    uint64_t v;
    int err;
    if (row->fmt == OXM_FMT_MAC)
        return of_span_mac(p, row->name, text, to);
    if (row->fmt == OXM_FMT_IPV4 || row->fmt == OXM_FMT_IPV6)
        return parse_ip(p, row, text, to);
    const struct of_fmt *fmt = row->fmt == OXM_FMT_PORT        ? &of_fmt_PORT
                               : row->field == OXM_ipv6_exthdr ? &of_fmt_OFPIEH
                                                               : &of_fmt_DEC;
    err = row->field == OXM_vlan_vid ? parse_vid(p, text, &v)
                                     : of_span_number(p, row->name, text, fmt, row->bits, &v);
    if (!err)
        oxm_set_number(row, to, v);
    return err;
}

/* A mask is written like a value; that of an IP address may be a prefix length. */
static int
parse_mask(struct of_parse *p, const struct oxm_row *row, struct of_span text, uint8_t *mask)
{
    uint64_t len;
    bool ip = row->fmt == OXM_FMT_IPV4 || row->fmt == OXM_FMT_IPV6;
    if (!ip || of_span_has(text, '.') || of_span_has(text, ':'))
        return parse_half(p, row, text, mask);
    int err = of_span_number(p, row->name, text, &of_fmt_DEC, 64, &len);
    if (err || len > row->bits)
        return of_parse_wrong(p,
                              "%s: the mask must be a prefix length of 0 to %u or an address, not "
                              "'%.*s'",
                              row->name, row->bits, SPAN(text));
    memset(mask, 0, row->bytes);
    for (unsigned i = 0; i < len; i++)
        mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
    return 0;
}

/* "none" (untagged), "any" (tagged).  False: something else. */
static bool
parse_vlan_word(struct of_span text, struct of_oxm *out)
{
    bool any = of_span_is(text, "any");
    if (!any && !of_span_is(text, "none"))
        return false;
    out->has_mask = any;
    oxm_set_number(out->row, out->value, any ? OFPVID_PRESENT : OFPVID_NONE);
    if (any)
        oxm_set_number(out->row, out->mask, OFPVID_PRESENT);
    return true;
}

/* People type a VID without OFPVID_PRESENT.  With a mask, four hexadecimal digits mean the 13 bits
 * as they are. */
static void
complete_vlan(struct of_span value, struct of_oxm *out)
{
    uint64_t v = oxm_number(out->row, out->value), m = oxm_number(out->row, out->mask);
    if (out->has_mask && (value.n >= 6 || v & OFPVID_PRESENT))
        return;
    oxm_set_number(out->row, out->value, v | OFPVID_PRESENT);
    oxm_set_number(out->row, out->mask, m | OFPVID_PRESENT);
}

static int
beyond_mask(struct of_parse *p, const struct of_oxm *o, struct of_span value)
{
    struct of_oxm fit = *o;
    char text[128];
    struct of_wr w = of_wr_fixed(text, sizeof text);
    for (int i = 0; i < o->row->bytes; i++)
        fit.value[i] &= fit.mask[i];
    of_print_oxm_value(&w, &fit);
    return of_parse_wrong(p, "%s=%.*s has bits outside its mask: write %s=%.*s", o->row->name,
                          SPAN(value), o->row->name, (int)w.len, text);
}

int
of_span_oxm(struct of_parse *p, struct of_span name, struct of_span value, struct of_oxm *out)
{
    struct of_oxm o = {.row = find_oxm(name), .has_mask = of_span_has(value, '/')};
    struct of_span whole = value;
    if (!o.row)
        return unknown_oxm(p, name);
    memset(o.mask, 0xff, o.row->bytes);
    if (o.row->field == OXM_vlan_vid && parse_vlan_word(value, &o)) {
        *out = o;
        return 0;
    }
    if (o.has_mask && !o.row->maskable)
        return of_parse_wrong(p, "%s takes no mask", o.row->name);
    struct of_span half = of_span_take(&value, '/');
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

/* A field's prerequisites have smaller numbers than the field. */
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

/* Names the first missing prerequisite. */
static int
check_prereqs(struct of_parse *p, const struct of_match *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct oxm_prereq *need = m->v[i].row->prereq;
        if (need->field < 0 || prereq_holds(m, need))
            continue;
        const struct oxm_row *row = &oxm_rows[need->field];
        of_parse_wrong(p, "%s needs %s", m->v[i].row->name, row->name);
        for (int k = 0; k < need->n; k++)
            of_parse_more(p, row->fmt == OXM_FMT_HEX ? "%s0x%04x" : "%s%u", k ? " or " : "=",
                          need->value[k]);
        of_parse_more(p, "%s in the match", need->field == OXM_vlan_vid ? " (any, or a VID)" : "");
        return -EINVAL;
    }
    return 0;
}

static int
check_match(struct of_parse *p, const struct of_match *m)
{
    for (uint32_t i = 1; i < m->n; i++)
        if (m->v[i].row == m->v[i - 1].row)
            return of_parse_wrong(p, "%s is given twice", m->v[i].row->name);
    int err = check_prereqs(p, m);
    if (!err && (err = of_match_check(m)) > 0) {
        const char *code = of_error_code_name(of_err_type(err), of_err_code(err));
        err = of_parse_wrong(p, "the match is not valid: %s", code ? code : "OFPET_BAD_MATCH");
    }
    return err;
}

/* A word in a match's place that is no field of one. */
static int
no_field(struct of_parse *p, struct of_span word)
{
    struct of_span rest = word;
    struct of_span name = of_span_take(&rest, '=');
    char absent[OF_ABSENT_TEXT];
    if (of_span_tag(&of_list_actions, name))
        return of_parse_wrong(p, "%.*s is an action: write apply:%.*s or write:%.*s", SPAN(name),
                              SPAN(word), SPAN(word));
    if (of_absent(word.p, word.n, absent, sizeof absent))
        return of_parse_wrong(p, "%s", absent);
    if (of_span_has(name, ':') || !of_span_has(word, '=')) {
        struct of_unknown u = of_unknown(of_span_take(&name, ':'));
        of_unknown_try_tags(&u, &of_list_instructions);
        char near[OF_NEAR_TEXT];
        of_parse_wrong(p, "'%.*s' is neither a match field (field=value) nor an instruction%s",
                       SPAN(word), of_near_text(&u.near, near, sizeof near));
        if (!*near)
            of_parse_more(p, " (%s)", u.list);
        return -EINVAL;
    }
    return unknown_oxm(p, name);
}

int
of_parse_match(struct of_parse *p, const char *text, struct of_match *out)
{
    struct of_span rest = of_span_of(text);
    uint32_t max = 1;
    for (size_t i = 0; i < rest.n; i++)
        max += rest.p[i] == ',';
    struct of_match m = {.v = of_arena_array(p->arena, max, sizeof *m.v)};
    if (!m.v)
        return -ENOMEM;
    while (rest.n) {
        struct of_span word = of_span_take(&rest, ','), value = word;
        if (!word.n)
            continue;
        struct of_span name = of_span_take(&value, '=');
        if (!of_span_has(word, '=') || !find_oxm(name))
            return no_field(p, word);
        int err = of_span_oxm(p, name, value, &m.v[m.n]);
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
