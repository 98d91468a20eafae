/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include <packet/checksum.h>

/* ------------------------------------------------------------------ finding them */

/* What lies at `at`. */
enum step { TYPE, LABEL, SESSION, IPV4, IPV6, IP_OF_ANY_KIND, GRE, UDP, OPAQUE, FOUND, WRONG };

struct walk {
    const uint8_t *data;
    uint32_t at, end; /* end: of the innermost packet so far */
    uint32_t target;  /* where the transport starts; 0: wherever it is */
    uint8_t proto;
    bool inside;   /* of something: then an IP packet fills it, without padding */
    bool routed;   /* the last IP header's destination isn't the pseudo-header's */
    uint32_t sure; /* up to here nothing was guessed */
    uint32_t sure_end;
    unsigned sure_n;
    struct layers *out;
};

static bool
has(const struct walk *w, uint32_t n)
{
    return w->at <= HEADERS_MAX && w->end >= n && w->at <= w->end - n;
}

static void
note_sure(struct walk *w)
{
    w->sure = w->at;
    w->sure_end = w->end;
    w->sure_n = w->out->n;
}

static struct layer *
add_layer(struct walk *w, struct layer add)
{
    if (w->out->n == LAYERS_MAX || w->at > HEADERS_MAX)
        return NULL;
    struct layer *l = &w->out->layer[w->out->n++];
    *l = add;
    l->at = (uint16_t)w->at;
    return l;
}

static enum step
of_type(struct walk *w, uint16_t type)
{
    if (type == TYPE_IPV4 || type == TYPE_IPV6)
        return type == TYPE_IPV4 ? IPV4 : IPV6;
    if (is_mpls_type(type))
        return LABEL;
    if (type == TYPE_PPPOE)
        return SESSION;
    if (type == TYPE_PBB)
        w->at += PBB_ITAG;
    if (type == TYPE_PBB || type == TYPE_ETHERNET) {
        w->at += ETH_TYPE_AT;
        return TYPE;
    }
    return OPAQUE;
}

static enum step
step_type(struct walk *w)
{
    if (!has(w, 2))
        return OPAQUE;
    uint16_t type = of_get16(w->data + w->at);
    if (is_vlan_type(type)) {
        w->at += VLAN_TAG;
        return TYPE;
    }
    w->at += 2;
    return of_type(w, type);
}

static enum step
step_label(struct walk *w)
{
    if (!has(w, MPLS_SHIM))
        return OPAQUE;
    bool bottom = w->data[w->at + 2] & 1;
    w->at += MPLS_SHIM;
    w->inside = true;
    return bottom ? IP_OF_ANY_KIND : LABEL;
}

/* RFC 2516.  OpenWrt's kernel joins segments in sessions. */
static enum step
step_session(struct walk *w)
{
    if (!has(w, PPPOE_HEADER))
        return OPAQUE;
    uint16_t proto = of_get16(w->data + w->at + PPPOE_PROTO_AT);
    if (!add_layer(w, (struct layer){.kind = LAYER_PPPOE}))
        return WRONG;
    w->at += PPPOE_HEADER;
    note_sure(w);
    return proto == PPP_IPV4 ? IPV4 : proto == PPP_IPV6 ? IPV6 : OPAQUE;
}

static enum step
step_ip(struct walk *w, bool v6)
{
    struct ip_view v;
    if (!ip_view(w->data, w->end, w->at, v6, true, &v) || (w->inside && v.end != w->end))
        return OPAQUE;
    if (v.malformed || v.fragment || !v.payload)
        return WRONG;
    if (v.proto == w->proto && (!w->target || v.payload == w->target)) {
        w->out->ip = v;
        return FOUND;
    }
    if (!add_layer(w, (struct layer){.kind = v6 ? LAYER_IPV6 : LAYER_IPV4}))
        return WRONG;
    w->at = v.payload;
    w->end = v.end;
    w->routed = v.routed;
    w->inside = true;
    note_sure(w);
    switch (v.proto) {
    case PROTO_IPIP: return IPV4;
    case PROTO_IPV6: return IPV6;
    case PROTO_GRE: return GRE;
    case PROTO_UDP: return UDP;
    case PROTO_MPLS: return LABEL;
    default: return OPAQUE;
    }
}

/* RFC 2784 and 2890. */
static enum step
step_gre(struct walk *w)
{
    if (!has(w, GRE_HEADER))
        return OPAQUE;
    const uint8_t *h = w->data + w->at;
    uint32_t n = GRE_HEADER;
    for (uint8_t field = GRE_CSUM; field >= GRE_SEQ; field /= 2)
        n += h[0] & field && field != GRE_ROUTING ? 4 : 0;
    if (h[0] & GRE_ROUTING || h[1] & GRE_VERSION || !has(w, n) ||
        !add_layer(w, (struct layer){.kind = LAYER_GRE, .csum = h[0] & GRE_CSUM}))
        return WRONG;
    w->at += n;
    note_sure(w);
    return of_type(w, of_get16(h + 2));
}

/* A datagram's port alone doesn't tell what it carries, as anybody may choose the port.  VXLAN
 * (RFC 7348) has a flag that says that its number is valid, Geneve (RFC 8926) the EtherType of
 * what it carries. */
static enum step
step_udp(struct walk *w)
{
    const uint8_t *h = w->data + w->at;
    if (!has(w, UDP_HEADER))
        return WRONG;
    bool csum = of_get16(h + UDP_CSUM_AT);
    if ((csum && w->routed) ||
        !add_layer(
            w, (struct layer){.kind = LAYER_UDP, .csum = csum, .ip = (uint16_t)(w->out->n - 1)}))
        return WRONG;
    w->at += UDP_HEADER;
    note_sure(w);
    if (!has(w, VXLAN_HEADER))
        return OPAQUE;
    h = w->data + w->at;
    uint16_t type = of_get16(h + 2);
    if (!(h[0] >> 6) &&
        (type == TYPE_ETHERNET || type == TYPE_IPV4 || type == TYPE_IPV6 || is_mpls_type(type))) {
        w->at += 8 + (h[0] & 0x3fu) * 4;
        return of_type(w, type);
    }
    if (h[0] >> 4 == 4 || h[0] >> 4 == 6)
        return IP_OF_ANY_KIND;
    w->at += VXLAN_HEADER;
    return h[0] & 0x08 ? of_type(w, TYPE_ETHERNET) : OPAQUE;
}

/* A tunnel that isn't known here: the transport's IP header is the one that ends where the partial
 * checksum starts. */
static enum step
step_opaque(struct walk *w)
{
    w->at = w->sure;
    w->end = w->sure_end;
    w->out->n = w->sure_n;
    w->out->guessed = true;
    if (!w->target || w->target > HEADERS_MAX || w->target > w->end)
        return WRONG;
    for (uint32_t n = IPV4_HEADER; n <= 60 && w->at + n <= w->target; n += 4) {
        uint32_t at = w->target - n;
        bool v6 = w->data[at] >> 4 == 6;
        struct ip_view *v = &w->out->ip;
        if ((at - w->at) % 2 == 0 && ip_view(w->data, w->end, at, v6, true, v) && !v->malformed &&
            !v->fragment && v->payload == w->target && v->end == w->end && v->proto == w->proto &&
            (v6 || csum_sum(w->data + at, n) == 0xffff))
            return FOUND;
    }
    return WRONG;
}

bool
layers_find(const struct packet *p, uint8_t proto, struct layers *l)
{
    struct walk w = {.data = p->data, .end = p->len, .proto = proto, .out = l};
    enum step s = TYPE;
    l->n = 0;
    l->guessed = false;
    if (p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        w.target = p->vnet.csum_start;
    w.at = w.sure = ETH_TYPE_AT;
    w.sure_end = w.end;
    while (s < FOUND) /* each step but the last goes further */
        switch (s) {
        case TYPE: s = step_type(&w); break;
        case LABEL: s = step_label(&w); break;
        case SESSION: s = step_session(&w); break;
        case IPV4: s = step_ip(&w, false); break;
        case IPV6: s = step_ip(&w, true); break;
        case IP_OF_ANY_KIND: s = step_ip(&w, has(&w, 1) && w.data[w.at] >> 4 == 6); break;
        case GRE: s = step_gre(&w); break;
        case UDP: s = step_udp(&w); break;
        default: s = step_opaque(&w); break;
        }
    return s == FOUND && l->ip.payload <= HEADERS_MAX;
}

/* ------------------------------------------------------------------ a segment's */

void
layers_edit_ip(uint8_t *header, const uint8_t *before, uint32_t at, bool v6, uint32_t i,
               uint32_t len)
{
    uint8_t *ip = header + at;
    if (v6) {
        of_set16(ip + IPV6_LENGTH_AT, (uint16_t)(len - at - IPV6_HEADER));
        return;
    }
    of_set16(ip + IPV4_LENGTH_AT, (uint16_t)(len - at));
    of_set16(ip + IPV4_ID_AT, (uint16_t)(of_get16(before + at + IPV4_ID_AT) + i));
    of_set16(ip + IPV4_CSUM_AT, 0);
    of_set16(ip + IPV4_CSUM_AT, (uint16_t)~csum_sum(ip, (ip[0] & 0xfu) * 4));
}

static uint16_t
pseudo(const uint8_t *header, const struct layer *ip, uint32_t n)
{
    return ip_pseudo_sum(header + ip->at, ip->kind == LAYER_IPV6, PROTO_UDP, n);
}

/* Sequence numbers go on as identifications do: each segment is a packet of the tunnel. */
static void
edit_gre_sequence(uint8_t *gre, const uint8_t *before, uint32_t i)
{
    uint32_t at = GRE_HEADER + (gre[0] & GRE_CSUM ? 4 : 0) + (gre[0] & GRE_KEY ? 4 : 0);
    if (gre[0] & GRE_SEQ)
        of_set32(gre + at, of_get32(before + at) + i);
}

void
layers_edit(const struct layers *l, uint8_t *header, const uint8_t *before, uint32_t i,
            uint32_t len, uint16_t inner)
{
    uint32_t from = l->ip.payload; /* `sum` is of everything from here on */
    uint64_t sum = inner;
    for (unsigned k = l->n; k--;) { /* outer checksums cover inner headers */
        const struct layer *y = &l->layer[k];
        uint8_t *h = header + y->at, *field = h + (y->kind == LAYER_UDP ? UDP_CSUM_AT : GRE_HEADER);
        if (y->kind == LAYER_UDP)
            of_set16(h + UDP_LENGTH_AT, (uint16_t)(len - y->at));
        else if (y->kind == LAYER_GRE)
            edit_gre_sequence(h, before + y->at, i);
        else if (y->kind == LAYER_PPPOE)
            of_set16(h + PPPOE_LENGTH_AT, (uint16_t)(len - y->at - PPPOE_PROTO_AT));
        else
            layers_edit_ip(header, before, y->at, y->kind == LAYER_IPV6, i, len);
        if (!y->csum)
            continue;
        of_set16(field, 0);
        sum += csum_sum(h, from - y->at);
        from = y->at;
        uint64_t all =
            sum + (y->kind == LAYER_UDP ? pseudo(header, &l->layer[y->ip], len - y->at) : 0);
        uint16_t csum = (uint16_t)~csum_fold(all);
        if (!csum && y->kind == LAYER_UDP)
            csum = 0xffff;
        of_set16(field, csum);
        sum += csum;
    }
}
