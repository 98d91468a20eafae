/* SPDX-License-Identifier: Apache-2.0 */
#include "build.h"

#include "check.h"

#include <oflib/wire.h>

#include <string.h>

uint32_t
build_random(struct build *b, uint32_t n)
{
    b->seed ^= b->seed << 13;
    b->seed ^= b->seed >> 7;
    b->seed ^= b->seed << 17;
    return (uint32_t)((b->seed >> 16 & 0xffffffff) * n >> 32);
}

void
build_bytes(struct build *b, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)build_random(b, 256);
}

static bool
once_in(struct build *b, uint32_t one_in)
{
    return !build_random(b, one_in);
}

static uint8_t *
put(struct build *b, uint32_t n)
{
    uint8_t *p = b->frame + b->n;
    build_bytes(b, p, n);
    b->n += n;
    return p;
}

static void
put16(struct build *b, uint16_t v)
{
    of_set16(put(b, 2), v);
}

/* ------------------------------------------------------------------ link */

static void
put_vlans(struct build *b)
{
    static const uint16_t tpid[] = {0x8100, 0x88a8, 0x9100};
    while (once_in(b, 3)) {
        put16(b, tpid[build_random(b, 3)]);
        put(b, 2);
    }
}

/* All up to the type of what follows; false: this was all. */
static void
put_link(struct build *b, uint16_t type, enum build_want want)
{
    put(b, 12);
    put_vlans(b);
    if (once_in(b, 8)) { /* PBB */
        put16(b, 0x88e7);
        put(b, 4 + 12);
        b->behind_tags = true;
        put_vlans(b);
    }
    if (want != BUILD_GSO && once_in(b, 10)) { /* SNAP; the length is put in later */
        put16(b, 0);
        memcpy(put(b, 6), "\xaa\xaa\x03\0\0\0", 6);
    }
    if (once_in(b, 6) && (type == 0x800 || type == 0x86dd)) { /* MPLS */
        put16(b, once_in(b, 2) ? 0x8847 : 0x8848);
        b->behind_tags = true;
        for (;;) {
            uint8_t *shim = put(b, 4);
            bool bottom = once_in(b, 2);
            shim[2] = (uint8_t)((shim[2] & 0xfe) | bottom);
            if (bottom)
                break;
        }
    } else
        put16(b, type);
}

/* ------------------------------------------------------------------ network */

static void
put_ipv4(struct build *b, uint8_t proto, bool plain)
{
    uint32_t options = !plain && once_in(b, 4) ? build_random(b, 11) * 4 : 0;
    b->ip = b->n;
    uint8_t *h = put(b, 20 + options);
    h[0] = (uint8_t)(0x45 + options / 4);
    of_set16(h + 6, 0x4000);
    if (!plain && once_in(b, 6))
        of_set16(h + 6, (uint16_t)(once_in(b, 2) ? 0x2000 : 0x2000 | build_random(b, 0x1000)));
    h[9] = proto;
}

static void
put_ext(struct build *b, uint8_t **next, uint8_t proto)
{
    uint8_t *h;
    **next = proto;
    if (proto == 44) {
        h = put(b, 8);
        of_set16(h + 2, (uint16_t)(once_in(b, 2) ? once_in(b, 2) : build_random(b, 0x2000) << 3));
    } else if (proto == 51) {
        uint32_t words = 3 + build_random(b, 4);
        h = put(b, words * 4);
        h[1] = (uint8_t)(words - 2);
    } else if (proto == 43) { /* type 0, with one or two addresses */
        uint32_t n = 1 + build_random(b, 2);
        h = put(b, 8 + n * 16);
        h[1] = (uint8_t)(n * 2);
        h[2] = 0;
        h[3] = (uint8_t)build_random(b, n + 1);
    } else {
        uint32_t n = build_random(b, 3);
        h = put(b, 8 + n * 8);
        h[1] = (uint8_t)n;
    }
    *next = h;
}

static void
put_ipv6(struct build *b, uint8_t proto, bool plain)
{
    static const uint8_t exts[] = {0, 60, 43, 44, 51, 60, 0, 43};
    b->ip = b->n;
    uint8_t *h = put(b, 40), *next = h + 6;
    h[0] = (uint8_t)(0x60 | (h[0] & 0xf));
    *next = proto;
    bool in_order = once_in(b, 2), routed = false;
    for (unsigned i = 0; !plain && once_in(b, 2) && i < 4; i++) {
        uint8_t e = in_order ? exts[i] : exts[build_random(b, sizeof exts)];
        if ((e == 43 && routed) || (e == 44 && b->gso)) /* whose last address counts then? */
            continue;
        routed |= e == 43;
        put_ext(b, &next, e);
    }
    *next = proto;
}

static void
put_arp(struct build *b)
{
    uint8_t *h = put(b, 28);
    memcpy(h, "\0\1\x8\0\6\4", 6);
    put(b, 18);
}

/* ------------------------------------------------------------------ transport */

static uint32_t
put_l4(struct build *b, enum build_want want)
{
    uint8_t *h;
    uint32_t n;
    b->l4 = b->n;
    switch (b->proto) {
    case 6:
        n = 20 + build_random(b, 11) * 4;
        h = put(b, n);
        h[12] = (uint8_t)(n / 4 << 4);
        return n;
    case 17: put(b, 8); return 8;
    case 132: put(b, 12); return 12;
    case 58:
        h = put(b, 4);
        h[0] = 128;
        if (once_in(b, 3))
            return 4;
        h[0] = (uint8_t)(135 + build_random(b, 2)); /* ND */
        put(b, 20);
        while (once_in(b, 2)) {
            uint32_t words = 1 + once_in(b, 4);
            uint8_t *o = put(b, words * 8);
            o[0] = (uint8_t)(1 + build_random(b, 3));
            o[1] = (uint8_t)words;
        }
        return b->n - b->l4;
    default: put(b, 8); return 8;
    }
}

static const uint8_t *
pseudo_dst(const struct build *b)
{
    const uint8_t *ip = b->frame + b->ip, *h = ip + 40;
    for (uint8_t next = ip[6]; next == 0 || next == 60 || next == 43 || next == 51 || next == 44;) {
        if (next == 43 && h[3])
            return h + 8 + (h[1] / 2 - 1) * 16;
        uint8_t now = next;
        next = h[0];
        h += now == 51 ? (h[1] + 2) * 4 : now == 44 ? 8 : (h[1] + 1) * 8;
    }
    return ip + 24;
}

static void
put_checksum(struct build *b, bool partial)
{
    uint8_t *l4 = b->frame + b->l4, *ip = b->frame + b->ip;
    uint32_t n = b->n - b->l4, at = b->proto == 6 ? 16 : b->proto == 17 ? 6 : 2;
    uint32_t pseudo = b->proto + n;
    if (b->proto == 132) {
        memset(l4 + 8, 0, 4);
        uint32_t crc = oracle_crc32c(l4, n);
        for (int i = 0; i < 4; i++)
            l4[8 + i] = (uint8_t)(crc >> 8 * i);
        return;
    }
    pseudo = b->v6 ? oracle_sum(oracle_sum(pseudo, ip + 8, 16), pseudo_dst(b), 16)
                   : oracle_sum(pseudo, ip + 12, 8);
    if (b->proto == 1)
        pseudo = 0;
    of_set16(l4 + at, 0);
    if (partial) {
        of_set16(l4 + at, (uint16_t)pseudo);
        b->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        b->vnet.csum_start = (uint16_t)b->l4;
        b->vnet.csum_offset = (uint16_t)at;
    } else if (b->proto != 17 || !once_in(b, 4)) {
        uint16_t c = (uint16_t)~oracle_sum(pseudo, l4, n);
        of_set16(l4 + at, b->proto == 17 && !c ? 0xffff : c);
    }
}

/* Lengths and checksums, from the inside out. */
static void
finish_ip(struct build *b, bool partial)
{
    uint8_t *ip = b->frame + b->ip;
    if (b->proto == 17)
        of_set16(b->frame + b->l4 + 4, (uint16_t)(b->n - b->l4));
    put_checksum(b, partial);
    if (b->v6) {
        of_set16(ip + 4, (uint16_t)(b->n - b->ip - 40));
        return;
    }
    of_set16(ip + 2, (uint16_t)(b->n - b->ip));
    of_set16(ip + 10, 0);
    of_set16(ip + 10, (uint16_t)~oracle_sum(0, ip, (ip[0] & 0xfu) * 4));
}

static void
make_super(struct build *b, uint32_t headers)
{
    static const uint8_t tcp[] = {VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6};
    b->vnet.gso_size = (uint16_t)(8 + build_random(b, 1440));
    b->vnet.hdr_len = (uint16_t)(b->l4 + headers);
    if (b->proto == 6)
        b->vnet.gso_type = tcp[b->v6] | (once_in(b, 3) ? VIRTIO_NET_HDR_GSO_ECN : 0);
    else
        b->vnet.gso_type = once_in(b, 3) ? VIRTIO_NET_HDR_GSO_UDP : VIRTIO_NET_HDR_GSO_UDP_L4;
}

static void
put_ip_packet(struct build *b, enum build_want want)
{
    static const uint8_t protos[] = {6, 17, 132, 1, 58, 6, 17, 6, 17, 47};
    bool gso = want == BUILD_GSO;
    uint32_t most = gso ? 60000 : once_in(b, 3) ? 1400 : 64;
    b->proto = gso ? protos[build_random(b, 2)] : protos[build_random(b, sizeof protos)];
    if (b->proto == 1 || b->proto == 58)
        b->v6 = b->proto == 58;
    put_link(b, b->v6 ? 0x86dd : 0x800, want);
    (b->v6 ? put_ipv6 : put_ipv4)(b, b->proto, gso && once_in(b, 2));
    if (gso && !b->v6)
        of_set16(b->frame + b->ip + 6, 0x4000);
    if (b->proto == 47) {
        put(b, 30);
        b->l4 = b->n - 30;
        b->proto = 1; /* for a checksum that nobody looks at */
        finish_ip(b, false);
        b->proto = 47;
        return;
    }
    uint32_t headers = put_l4(b, want);
    if (b->proto != 58 || headers == 4) /* not as if they were options */
        put(b, build_random(b, most));
    finish_ip(b, (gso && !once_in(b, 4)) || (once_in(b, 4) && b->proto != 132 && b->proto != 1));
    if (gso)
        make_super(b, headers);
}

void
build_packet(struct build *b, enum build_want want)
{
    b->frame = b->room + PACKET_HEADROOM;
    b->n = b->ip = b->l4 = 0;
    b->behind_tags = false;
    b->gso = want == BUILD_GSO;
    b->v6 = once_in(b, 2);
    b->vnet = (struct virtio_net_hdr){0};
    if (want == BUILD_GSO || !once_in(b, 6))
        put_ip_packet(b, want);
    else if (once_in(b, 3)) {
        put_link(b, (uint16_t)(0x600 + build_random(b, 0x200)), want);
        put(b, build_random(b, 100));
    } else {
        put_link(b, once_in(b, 4) ? 0x8035 : 0x806, want);
        put_arp(b);
    }
}

void
build_parse(struct build *b, struct packet_pool *pool, struct packet *out)
{
    *out = (struct packet){.data = b->frame,
                           .len = b->n,
                           .wire_len = b->n,
                           .headroom = PACKET_HEADROOM,
                           .vnet = b->vnet,
                           .pool = pool};
    packet_parse(out, 1 + build_random(b, 100));
}
