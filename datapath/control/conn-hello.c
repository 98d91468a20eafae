/* SPDX-License-Identifier: Apache-2.0 */
/* The hello exchange (6.3.1, 7.5.1).
 *
 * The switch speaks those of 1.0 and 1.3 that --openflow allows.  With a peer that sends a bitmap it
 * is the highest version of both; else the smaller of the two headers' versions, if the switch speaks
 * that.  A peer whose bitmap lacks all of them is refused even if its header's version is higher.  (By
 * the letter of 6.3.1 the smaller header version would be negotiated then, but the peer has just
 * listed what it speaks.)
 *
 * Later versions may add elements to the message: unknown ones are passed over, broken ones end the
 * list. */
#include "conn-hello.h"

#include <stream/tls.h>

#include <errno.h>

static const char not_hello[] = "the first message must be a hello";
static const char too_long[] = "the hello is longer than 1024 bytes";
static const char is_tls[] = "the peer speaks TLS, which is for ptls: and tls: targets";

/* A switch that speaks 1.0 only sends 1.0's hello, without elements. */
int
conn_send_hello(struct conn *c)
{
    uint8_t bitmap[4], plain[OFP_HEADER_LEN] = {OFP10_VERSION, OFPT_HELLO, 0, OFP_HEADER_LEN};
    of_set32(bitmap, c->ch->opt.versions);
    struct of_hello_versionbitmap e = {
        .row = of_tag_row(&of_list_hello_elements, OFPHET_VERSIONBITMAP), .bitmaps = {bitmap, 4}};
    void *v[] = {&e};
    struct of_hello hello = {.elements = {.n = 1, .v = v}};
    if (c->ch->opt.versions == OFP_BITMAP_1_0)
        return conn_send_bytes(c, (struct of_bytes){plain, sizeof plain});
    return conn_send(c, OFPT_HELLO, 0, &hello);
}

/* Finds the peer's bitmap.  False: it sends none. */
static bool
find_bitmap(struct of_bytes frame, uint32_t *out)
{
    const uint8_t *p = frame.p + OFP_HEADER_LEN;
    size_t left = frame.n - OFP_HEADER_LEN;
    while (left >= 4) {
        size_t len = of_get16(p + 2), step = (len + 7) / 8 * 8;
        if (len < 4 || len > left)
            break;
        if (of_get16(p) == OFPHET_VERSIONBITMAP) {
            *out = len >= 8 ? of_get32(p + 4) : 0;
            return true;
        }
        step = step < left ? step : left;
        p += step;
        left -= step;
    }
    return false;
}

/* The bit of the version that both speak; 0: there is none. */
static uint32_t
negotiate(uint32_t ours, struct of_bytes frame)
{
    uint8_t highest = ours & OFP_BITMAP_1_3 ? OFP_VERSION : OFP10_VERSION;
    uint32_t both;
    if (find_bitmap(frame, &both))
        both &= ours;
    else
        both = ours & 1u << (frame.p[0] < highest ? frame.p[0] : highest);
    return both & OFP_BITMAP_1_3 ? OFP_BITMAP_1_3 : both & OFP_BITMAP_1_0;
}

static void
refuse_hello(struct conn *c, struct of_bytes head, const char *text)
{
    COUNT(c, hello_failed, 1);
    conn_because(c, text);
    conn_send_error(c, of_get32(head.p + 4), OF_HELLO_FAILED(INCOMPATIBLE), head, text);
    conn_end(c);
}

static const char *
incompatible(uint32_t ours)
{
    return ours == OFP_BITMAP_1_3   ? "this switch speaks OpenFlow 1.3 (version 0x04) only"
           : ours == OFP_BITMAP_1_0 ? "this switch speaks OpenFlow 1.0 (version 0x01) only"
                                    : "this switch speaks OpenFlow 1.0 and 1.3 (versions 0x01 and "
                                      "0x04)";
}

bool
conn_hello(struct conn *c, struct of_bytes frame)
{
    uint32_t version = negotiate(c->ch->opt.versions, frame);
    COUNT(c, messages_in, 1);
    if (version == OFP_BITMAP_1_0 && !(c->door = of10_door_new())) {
        conn_fail(c, -ENOMEM);
        return false;
    }
    if (!version)
        refuse_hello(c, frame, incompatible(c->ch->opt.versions));
    return version != 0;
}

void
conn_no_hello(struct conn *c, struct of_bytes head)
{
    COUNT(c, messages_in, 1);
    if (stream_looks_like_tls(head.p, head.n)) {
        refuse_hello(c, head, is_tls);
        return;
    }
    if (head.p[1] != OFPT_ERROR) {
        refuse_hello(c, head, head.p[1] == OFPT_HELLO ? too_long : not_hello);
        return;
    }
    /* It refuses our hello (HELLO_FAILED).  Errors aren't answered. */
    COUNT(c, errors_in, 1);
    COUNT(c, hello_failed, 1);
    conn_because(c, "the peer refuses the switch's hello (an error in its place)");
    conn_end(c);
}
