/* SPDX-License-Identifier: Apache-2.0 */
#include "pcapng.h"

/* Numbers are in this machine's byte order; the reader learns it from BYTE_ORDER. */
#define SECTION_HEADER   0x0a0d0d0au
#define INTERFACE        1u
#define ENHANCED_PACKET  6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET    1

enum { OPT_END = 0, OPT_COMMENT = 1, SHB_USERAPPL = 4, IF_NAME = 2, IF_TSRESOL = 9, EPB_FLAGS = 2 };

static void
put(struct of_wr *w, const void *p, size_t n)
{
    of_wr_bytes(w, p, n);
}

static void
put16(struct of_wr *w, uint16_t v)
{
    put(w, &v, sizeof v);
}

static void
put32(struct of_wr *w, uint32_t v)
{
    put(w, &v, sizeof v);
}

static void
pad(struct of_wr *w)
{
    of_wr_align(w, 0, 4);
}

static void
option(struct of_wr *w, uint16_t code, const void *value, size_t n)
{
    put16(w, code);
    put16(w, (uint16_t)n);
    put(w, value, n);
    pad(w);
}

/* A block: type, length, body, length. */
static void
block(FILE *out, uint32_t type, struct of_wr *body)
{
    uint32_t head[2] = {type, (uint32_t)body->len + 12};
    fwrite(head, sizeof head, 1, out);
    fwrite(body->buf, body->len, 1, out);
    fwrite(&head[1], sizeof head[1], 1, out);
    of_wr_free(body);
}

void
pcapng_begin(FILE *out, const char *program)
{
    struct of_wr w = of_wr_grow(4096);
    uint64_t length = UINT64_MAX; /* of the section: unknown */
    put32(&w, BYTE_ORDER_MAGIC);
    put16(&w, 1);
    put16(&w, 0);
    put(&w, &length, sizeof length);
    option(&w, SHB_USERAPPL, program, strlen(program));
    option(&w, OPT_END, NULL, 0);
    block(out, SECTION_HEADER, &w);
    fflush(out);
}

void
pcapng_interface(FILE *out, const char *name, uint32_t snaplen)
{
    struct of_wr w = of_wr_grow(4096);
    uint8_t nanoseconds = 9;
    put16(&w, LINK_ETHERNET);
    put16(&w, 0);
    put32(&w, snaplen);
    option(&w, IF_NAME, name, strlen(name));
    option(&w, IF_TSRESOL, &nanoseconds, 1);
    option(&w, OPT_END, NULL, 0);
    block(out, INTERFACE, &w);
}

void
pcapng_write(FILE *out, const struct pcapng_packet *p)
{
    struct of_wr w = of_wr_grow(1u << 18);
    put32(&w, p->interface);
    put32(&w, (uint32_t)(p->time >> 32));
    put32(&w, (uint32_t)p->time);
    put32(&w, (uint32_t)p->data.n);
    put32(&w, p->len);
    put(&w, p->data.p, p->data.n);
    pad(&w);
    uint32_t flags = (uint32_t)p->direction;
    if (flags)
        option(&w, EPB_FLAGS, &flags, sizeof flags);
    option(&w, OPT_COMMENT, p->comment.p, p->comment.n);
    option(&w, OPT_END, NULL, 0);
    block(out, ENHANCED_PACKET, &w);
    fflush(out);
}
