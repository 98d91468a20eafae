/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/profile/dns.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { HEADER = 12, TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28, CLASS_IN = 1 };
enum { FLAG_QR = 0x8000, MASK_OPCODE_RCODE = 0x780f };
enum { LABEL_MAX = 63, WIRE_NAME_MAX = 255, POINTER = 0xc0 };

/* ------------------------------------------------------------------------ frames */

static struct of_bytes
none(void)
{
    return (struct of_bytes){NULL, 0};
}

static struct of_bytes
behind(struct of_bytes b, size_t n)
{
    return n <= b.n ? (struct of_bytes){b.p + n, b.n - n} : none();
}

static struct of_bytes
first(struct of_bytes b, size_t n)
{
    return n <= b.n ? (struct of_bytes){b.p, n} : none();
}

static struct of_bytes
in_udp(struct of_bytes udp)
{
    if (udp.n < 8 || of_get16(udp.p) != 53 || of_get16(udp.p + 4) < 8)
        return none();
    return behind(first(udp, of_get16(udp.p + 4)), 8);
}

/* Without fragments: each has only a part. */
static struct of_bytes
in_ipv4(struct of_bytes ip)
{
    if (ip.n < 20 || ip.p[0] >> 4 != 4 || ip.p[9] != 17 || of_get16(ip.p + 6) & 0x3fff)
        return none();
    size_t head = (ip.p[0] & 15u) * 4;
    return head < 20 ? none() : in_udp(behind(first(ip, of_get16(ip.p + 2)), head));
}

static struct of_bytes
in_ipv6(struct of_bytes ip)
{
    if (ip.n < 40 || ip.p[0] >> 4 != 6 || ip.p[6] != 17)
        return none();
    return in_udp(first(behind(ip, 40), of_get16(ip.p + 4)));
}

struct of_bytes
qos_dns_find(struct of_bytes frame)
{
    struct of_bytes at = behind(frame, 12);
    for (int tags = 0; at.n >= 6 && tags < 2; tags++) {
        uint16_t type = of_get16(at.p);
        if (type != 0x8100 && type != 0x88a8)
            break;
        at = behind(at, 4);
    }
    if (at.n < 2)
        return none();
    switch (of_get16(at.p)) {
    case 0x0800: return in_ipv4(behind(at, 2));
    case 0x86dd: return in_ipv6(behind(at, 2));
    default: return none();
    }
}

/* ------------------------------------------------------------------------- names */

static char
shown(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ? (char)c : '?';
}

/* Where a label is, past the pointers.  A pointer must go back beyond everything that was read
 * before, so that there are no loops.  False: malformed. */
static bool
follow(struct of_bytes m, size_t *at, size_t *low, size_t *end)
{
    while (*at < m.n && (m.p[*at] & POINTER) == POINTER) {
        if (*at + 2 > m.n)
            return false;
        size_t to = of_get16(m.p + *at) & 0x3fffu;
        if (!*end)
            *end = *at + 2;
        if (to >= *low)
            return false;
        *at = *low = to;
    }
    return *at < m.n && m.p[*at] <= LABEL_MAX && *at + 1 + m.p[*at] <= m.n;
}

/* The name at *at as text, and *at behind it.  False: malformed. */
static bool
take_name(struct of_bytes m, size_t *at, char text[QOS_DNS_NAME])
{
    size_t from = *at, low = *at, end = 0, n = 0, wire = 1;
    while (follow(m, &from, &low, &end)) {
        size_t len = m.p[from];
        wire += len + 1;
        if (wire > WIRE_NAME_MAX + 1)
            return false;
        if (!len) {
            text[n] = '\0';
            *at = end ? end : from + 1;
            return true;
        }
        if (n)
            text[n++] = '.';
        for (size_t i = 1; i <= len; i++)
            text[n++] = shown(m.p[from + i]);
        from += len + 1;
    }
    return false;
}

bool
qos_dns_pattern(const char *pattern)
{
    const char *name = !strncmp(pattern, "*.", 2) ? pattern + 2 : pattern;
    size_t label = 0;
    if (!*name || strlen(name) >= QOS_DNS_NAME - 2)
        return false;
    for (; *name; name++) {
        bool dot = *name == '.';
        if (dot ? !label || !name[1] : shown((uint8_t)*name) == '?')
            return false;
        label = dot ? 0 : label + 1;
        if (label > LABEL_MAX)
            return false;
    }
    return true;
}

bool
qos_dns_fits(const char *pattern, const char *name)
{
    if (strncmp(pattern, "*.", 2) != 0)
        return !strcasecmp(pattern, name);
    size_t n = strlen(name), tail = strlen(pattern + 1);
    return n > tail && !strcasecmp(name + n - tail, pattern + 1);
}

/* ----------------------------------------------------------------------- answers */

struct record {
    size_t owner, data; /* where they are */
    uint16_t type, n;
    uint32_t ttl;
};

/* A TTL with the highest bit set is 0 (RFC 2181, section 8). */
static bool
take_record(struct of_bytes m, size_t *at, struct record *r)
{
    char name[QOS_DNS_NAME];
    r->owner = *at;
    if (!take_name(m, at, name) || m.n - *at < 10)
        return false;
    const uint8_t *p = m.p + *at;
    r->type = of_get16(p + 2) == CLASS_IN ? of_get16(p) : 0;
    r->ttl = of_get32(p + 4) >> 31 ? 0 : of_get32(p + 4);
    r->n = of_get16(p + 8);
    r->data = *at + 10;
    *at = r->data + r->n;
    return *at <= m.n && (r->type != TYPE_A || r->n == 4) && (r->type != TYPE_AAAA || r->n == 16);
}

static bool
is_owner(struct of_bytes m, const struct record *r, const char *name)
{
    char owner[QOS_DNS_NAME];
    size_t at = r->owner;
    return take_name(m, &at, owner) && !strcmp(owner, name);
}

/* An alias's target must fill its record. */
static bool
take_target(struct of_bytes m, const struct record *r, char text[QOS_DNS_NAME])
{
    size_t at = r->data;
    return take_name(m, &at, text) && at == r->data + r->n;
}

static bool
is_host4(const uint8_t *a)
{
    return a[0] && a[0] != 127 && a[0] < 224;
}

static bool
is_host6(const uint8_t *a)
{
    static const uint8_t zeros[10];
    bool local = a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
    return a[0] != 0xff && !local && memcmp(a, zeros, sizeof zeros) != 0;
}

static void
take_addresses(struct of_bytes m, const struct record *v, size_t n, struct qos_dns_answer *out,
               uint32_t ttl)
{
    const char *name = out->names[out->n_names - 1];
    for (size_t i = 0; i < n && out->n < QOS_DNS_ADDRESSES; i++) {
        bool v6 = v[i].type == TYPE_AAAA;
        if ((!v6 && v[i].type != TYPE_A) || !is_owner(m, &v[i], name))
            continue;
        if (!(v6 ? is_host6 : is_host4)(m.p + v[i].data))
            continue;
        struct qos_dns_address *a = &out->v[out->n++];
        *a = (struct qos_dns_address){
            .v6 = v6, .name = (uint8_t)(out->n_names - 1), .ttl = v[i].ttl < ttl ? v[i].ttl : ttl};
        memcpy(a->bytes, m.p + v[i].data, v[i].n);
    }
}

/* The record that makes the last name an alias. */
static const struct record *
alias(struct of_bytes m, const struct record *v, size_t n, const struct qos_dns_answer *out)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].type == TYPE_CNAME && is_owner(m, &v[i], out->names[out->n_names - 1]))
            return &v[i];
    return NULL;
}

bool
qos_dns_read(struct of_bytes m, struct qos_dns_answer *out)
{
    struct record v[QOS_DNS_RECORDS];
    size_t at = HEADER, n = 0;
    uint32_t ttl = UINT32_MAX;
    out->n = out->n_names = 0;
    if (m.n < HEADER || (of_get16(m.p + 2) & (FLAG_QR | MASK_OPCODE_RCODE)) != FLAG_QR ||
        of_get16(m.p + 4) != 1)
        return false;
    if (!take_name(m, &at, out->names[0]) || m.n - at < 4 || of_get16(m.p + at + 2) != CLASS_IN)
        return false;
    at += 4;
    for (uint16_t left = of_get16(m.p + 6); left && n < QOS_DNS_RECORDS; left--)
        if (!take_record(m, &at, &v[n++]))
            return false;
    for (const struct record *r = NULL;;) {
        out->n_names++;
        take_addresses(m, v, n, out, ttl);
        r = alias(m, v, n, out);
        if (!r || out->n_names == QOS_DNS_CHAIN)
            return true;
        if (!take_target(m, r, out->names[out->n_names]))
            return false;
        ttl = r->ttl < ttl ? r->ttl : ttl;
    }
}
