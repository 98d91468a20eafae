/* SPDX-License-Identifier: Apache-2.0 */
/* pcap and pcapng (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng), as far as packets go.
 *
 * Our own reader, because dpctl runs where libpcap is not there (it is an option of the switch), and
 * because all that it takes is a header of fixed size before each packet. */
#include <core/frames.h>

#define ETHERNET 1

enum { MAGIC_US = 0xa1b2c3d4u, MAGIC_NS = 0xa1b23c4du, FILE_HEADER = 24, RECORD_HEADER = 16 };
enum { SECTION = 0x0a0d0d0au, INTERFACE = 1, OLD_PACKET = 2, SIMPLE_PACKET = 3, PACKET = 6 };
enum { BYTE_ORDER_MAGIC = 0x1a2b3c4du, BLOCK_MIN = 12, INTERFACES_MAX = 64 };

static uint32_t
get32(const struct frames *f, const uint8_t *p)
{
    uint32_t v = of_get32(p);
    return f->swapped ? __builtin_bswap32(v) : v;
}

static uint16_t
get16(const struct frames *f, const uint8_t *p)
{
    uint16_t v = of_get16(p);
    return f->swapped ? __builtin_bswap16(v) : v;
}

static size_t
left(const struct frames *f)
{
    return (size_t)(f->end - f->p);
}

static int
wrong(const char **why, const char *text)
{
    *why = text;
    return -1;
}

static const char not_ethernet[] = "its packets are not Ethernet frames: capture on an interface "
                                   "that has them, not on \"any\"";
static const char ends_early[] = "it ends in the middle of a packet";

/* ------------------------------------------------------------------ pcap */

static bool
is_magic(uint32_t v)
{
    return v == MAGIC_US || v == MAGIC_NS;
}

static bool
begin_pcap(struct frames *f, const char **why)
{
    if (left(f) < FILE_HEADER) {
        wrong(why, "it ends in its header");
        return false;
    }
    uint32_t link = get32(f, f->p + 20) & 0xffff;
    f->p += FILE_HEADER;
    if (link != ETHERNET)
        wrong(why, not_ethernet);
    return link == ETHERNET;
}

static int
next_pcap(struct frames *f, struct of_bytes *packet, bool *cut, const char **why)
{
    if (!left(f))
        return 0;
    if (left(f) < RECORD_HEADER)
        return wrong(why, ends_early);
    uint32_t have = get32(f, f->p + 8), len = get32(f, f->p + 12);
    f->p += RECORD_HEADER;
    if (have > left(f))
        return wrong(why, ends_early);
    *packet = (struct of_bytes){f->p, have};
    *cut = len > have;
    f->p += have;
    return 1;
}

/* ------------------------------------------------------------------ pcapng */

struct block {
    uint32_t type;
    const uint8_t *body;
    size_t n;
};

static bool
begin_section(struct frames *f, const char **why)
{
    if (left(f) < 28) {
        wrong(why, "it ends in its header");
        return false;
    }
    uint32_t magic = of_get32(f->p + 8);
    f->swapped = magic == __builtin_bswap32(BYTE_ORDER_MAGIC);
    f->links = 0;
    f->ethernet = 0;
    if (magic != BYTE_ORDER_MAGIC && !f->swapped)
        wrong(why, "a section of it has no byte order");
    return magic == BYTE_ORDER_MAGIC || f->swapped;
}

static int
next_block(struct frames *f, struct block *b, const char **why)
{
    if (!left(f))
        return 0;
    if (left(f) < BLOCK_MIN)
        return wrong(why, "it ends in the middle of a block");
    if (of_get32(f->p) == SECTION && !begin_section(f, why))
        return -1;
    uint32_t n = get32(f, f->p + 4);
    if (n < BLOCK_MIN || n % 4 || n > left(f))
        return wrong(why, "a block of it has a wrong length");
    *b = (struct block){get32(f, f->p), f->p + 8, n - BLOCK_MIN};
    f->p += n;
    return 1;
}

static int
packet_of(struct frames *f, const struct block *b, struct of_bytes *packet, bool *cut,
          const char **why)
{
    size_t head = b->type == SIMPLE_PACKET ? 4 : 20;
    if (b->n < head)
        return wrong(why, "a packet of it is too short");
    uint32_t link = b->type == PACKET       ? get32(f, b->body)
                    : b->type == OLD_PACKET ? get16(f, b->body)
                                            : 0;
    uint32_t len = get32(f, b->body + head - 4), have = len;
    if (b->type != SIMPLE_PACKET)
        have = get32(f, b->body + 12);
    else if (have > b->n - head)
        have = (uint32_t)(b->n - head);
    if (have > b->n - head)
        return wrong(why, "a packet of it is longer than its block");
    if (link >= f->links || link >= INTERFACES_MAX || !(f->ethernet >> link & 1))
        return wrong(why, not_ethernet);
    *packet = (struct of_bytes){b->body + head, have};
    *cut = len > have;
    return 1;
}

static int
next_ng(struct frames *f, struct of_bytes *packet, bool *cut, const char **why)
{
    struct block b;
    for (int r; (r = next_block(f, &b, why)) != 1 || b.type != 0;) {
        if (r != 1)
            return r;
        if (b.type == INTERFACE && b.n >= 8) {
            if (f->links < INTERFACES_MAX && get16(f, b.body) == ETHERNET)
                f->ethernet |= UINT64_C(1) << f->links;
            f->links++;
        } else if (b.type == PACKET || b.type == OLD_PACKET || b.type == SIMPLE_PACKET) {
            return packet_of(f, &b, packet, cut, why);
        }
    }
    return wrong(why, "a block of it has no type");
}

/* ------------------------------------------------------------------ both */

bool
frames_begin(struct frames *f, struct of_bytes bytes, const char **why)
{
    static const uint8_t none[1];
    const uint8_t *p = bytes.n ? bytes.p : none; /* an empty file may have no address */
    *f = (struct frames){.p = p, .end = p + bytes.n};
    uint32_t magic = bytes.n >= 4 ? of_get32(bytes.p) : 0;
    f->ng = magic == SECTION;
    if (f->ng)
        return begin_section(f, why);
    f->swapped = is_magic(__builtin_bswap32(magic));
    if (f->swapped || is_magic(magic))
        return begin_pcap(f, why);
    wrong(why, "it is no file of pcap or pcapng, as tcpdump -w and Wireshark write them");
    return false;
}

int
frames_next(struct frames *f, struct of_bytes *packet, bool *cut, const char **why)
{
    return f->ng ? next_ng(f, packet, cut, why) : next_pcap(f, packet, cut, why);
}
