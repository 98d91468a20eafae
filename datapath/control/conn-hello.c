/* SPDX-License-Identifier: Apache-2.0 */
/* The hello exchange (6.3.1, 7.5.1).
 *
 * A peer speaks the versions of its bitmap if it sends one, else all up to the version of its
 * header. A peer whose bitmap lacks 1.3 is refused even if its header's version is higher.  (By the
 * letter of 6.3.1 the smaller header version would be negotiated then, but the peer has just listed
 * what it speaks.)
 *
 * Later versions may add elements to the message: unknown ones are passed over, broken ones end the
 * list. */
#include "conn-hello.h"

#include <stream/tls.h>

static const char incompatible[] = "this switch speaks OpenFlow 1.3 (version 0x04) only";
static const char not_hello[] = "the first message must be a hello";
static const char too_long[] = "the hello is longer than 1024 bytes";
static const char is_tls[] = "the peer speaks TLS, which is for ptls: and tls: targets";

int
conn_send_hello(struct conn *c)
{
    static const uint8_t bitmap[4] = {0, 0, 0, OFP_BITMAP_1_3};
    struct of_hello_versionbitmap e = {
        .row = of_tag_row(&of_list_hello_elements, OFPHET_VERSIONBITMAP), .bitmaps = {bitmap, 4}};
    void *v[] = {&e};
    struct of_hello hello = {.elements = {.n = 1, .v = v}};
    return conn_send(c, OFPT_HELLO, 0, &hello);
}

static bool
speaks_1_3(struct of_bytes frame)
{
    const uint8_t *p = frame.p + OFP_HEADER_LEN;
    size_t left = frame.n - OFP_HEADER_LEN;
    while (left >= 4) {
        size_t len = of_get16(p + 2), step = (len + 7) / 8 * 8;
        if (len < 4 || len > left)
            break;
        if (of_get16(p) == OFPHET_VERSIONBITMAP)
            return len >= 8 && of_get32(p + 4) & OFP_BITMAP_1_3;
        step = step < left ? step : left;
        p += step;
        left -= step;
    }
    return frame.p[0] >= OFP_VERSION;
}

static void
refuse_hello(struct conn *c, struct of_bytes head, const char *text)
{
    COUNT(c, hello_failed, 1);
    conn_because(c, text);
    conn_send_error(c, of_get32(head.p + 4), OF_HELLO_FAILED(INCOMPATIBLE), head, text);
    conn_end(c);
}

bool
conn_hello(struct conn *c, struct of_bytes frame)
{
    bool good = speaks_1_3(frame);
    COUNT(c, messages_in, 1);
    if (!good)
        refuse_hello(c, frame, incompatible);
    return good;
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
    conn_because(c, "the peer refuses OpenFlow 1.3 (an error in the place of a hello)");
    conn_end(c);
}
