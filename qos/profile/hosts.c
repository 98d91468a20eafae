/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/profile/hosts.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned
width(const struct qos_hosts *h)
{
    return h->v6 ? 128 : 32;
}

/* Bit `i` of an address, from the left. */
static bool
bit(const uint8_t *a, unsigned i)
{
    return a[i / 8] >> (7 - i % 8) & 1;
}

static bool
zero_from(const uint8_t *a, unsigned from, unsigned to)
{
    while (from < to && !bit(a, from))
        from++;
    return from == to;
}

static bool
number_of(const char *text, unsigned long max, uint8_t *out)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || v > max)
        return false;
    *out = (uint8_t)v;
    return true;
}

static int
bad_prefix(const char *text, char *why, size_t n)
{
    snprintf(why, n, "prefix=%.60s is no network: write 10.0.0.0/24 or 2001:db8::/118", text);
    return -EINVAL;
}

/* The network that the address is in. */
static void
print_network(const struct qos_hosts *h, char *buf, size_t n)
{
    uint8_t a[16];
    char text[INET6_ADDRSTRLEN];
    memcpy(a, h->base, sizeof a);
    for (unsigned i = h->bits; i < width(h); i++)
        a[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
    inet_ntop(h->v6 ? AF_INET6 : AF_INET, a, text, sizeof text);
    snprintf(buf, n, "%s/%u", text, h->bits);
}

/* How many hosts, if that is a number that a port can have. */
static int
count(struct qos_hosts *h, char *why, size_t n)
{
    unsigned most = 12, left = h->each < h->bits ? 0 : (unsigned)(h->each - h->bits);
    if (h->each < h->bits) {
        snprintf(why, n, "each=%u is wider than the prefix: it must be %u to %u", h->each, h->bits,
                 width(h));
        return -EINVAL;
    }
    if (left > most) {
        snprintf(why, n,
                 "the prefix has 2^%u hosts, the most is %u: write a prefix of /%u or longer%s",
                 left, QOS_HOSTS_MAX, h->each - most,
                 h->v6 ? ", or say with each=64 that a /64 is one host" : "");
        return -EINVAL;
    }
    h->skip = !h->v6 && h->each == 32 && left > 1;
    h->n = (1u << left) - 2 * h->skip;
    return 0;
}

int
qos_hosts_parse(struct qos_hosts *h, const char *text, unsigned each, char *why, size_t n)
{
    struct qos_hosts new = {.v6 = strchr(text, ':'), .source = h->source};
    char address[INET6_ADDRSTRLEN + 1], network[80];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    snprintf(address, sizeof address, "%.*s", (int)(len < sizeof address ? len : 0), text);
    new.bits = (uint8_t)width(&new);
    if (inet_pton(new.v6 ? AF_INET6 : AF_INET, address, new.base) != 1 ||
        (slash && !number_of(slash + 1, width(&new), &new.bits)))
        return bad_prefix(text, why, n);
    if (each > width(&new)) {
        snprintf(why, n, "each=%u: an address has %u bits", each, width(&new));
        return -EINVAL;
    }
    new.each = (uint8_t)(each ? each : width(&new));
    if (!zero_from(new.base, new.bits, width(&new))) {
        print_network(&new, network, sizeof network);
        snprintf(why, n, "prefix=%.60s has bits beyond its length: write prefix=%s", text, network);
        return -EINVAL;
    }
    int err = count(&new, why, n);
    if (!err)
        *h = new;
    return err;
}

char *
qos_hosts_print(const struct qos_hosts *h, uint32_t i, char buf[QOS_HOSTS_TEXT])
{
    uint8_t a[16];
    char text[INET6_ADDRSTRLEN];
    uint32_t number = i + h->skip;
    memcpy(a, h->base, sizeof a);
    for (unsigned at = h->each; at-- > h->bits; number >>= 1)
        a[at / 8] |= (uint8_t)((number & 1) << (7 - at % 8));
    inet_ntop(h->v6 ? AF_INET6 : AF_INET, a, text, sizeof text);
    if (h->each == width(h))
        snprintf(buf, QOS_HOSTS_TEXT, "%s", text);
    else
        snprintf(buf, QOS_HOSTS_TEXT, "%s/%u", text, h->each);
    return buf;
}

/* Is the mask that of this many bits? */
static bool
masked(const struct of_oxm *o, unsigned bits, unsigned all)
{
    for (unsigned i = 0; i < all; i++)
        if (bit(o->mask, i) != (i < bits))
            return false;
    return true;
}

bool
qos_hosts_find(const struct qos_hosts *h, const struct of_match *m, uint32_t *i)
{
    const struct of_oxm *o = of_match_find(m, h->v6 ? (h->source ? OXM_ipv6_src : OXM_ipv6_dst)
                                                    : (h->source ? OXM_ipv4_src : OXM_ipv4_dst));
    if (!o || !masked(o, h->each, width(h)))
        return false;
    uint32_t number = 0;
    for (unsigned at = 0; at < h->bits; at++)
        if (bit(o->value, at) != bit(h->base, at))
            return false;
    for (unsigned at = h->bits; at < h->each; at++)
        number = number << 1 | bit(o->value, at);
    *i = number - h->skip;
    return number >= h->skip && *i < h->n;
}
