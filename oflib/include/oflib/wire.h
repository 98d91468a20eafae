/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded reading and writing of big-endian wire formats.
 *
 * A reader or writer that runs out of room sets a sticky flag and goes on with zeros or nowhere:
 * callers check once at the end.  A reader borrows its bytes; a writer owns its buffer when it
 * was made growable (of_wr_init_grow) and must then be released by of_wr_free.
 */
#ifndef OFLIB_WIRE_H
#define OFLIB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A run of bytes somebody else owns. */
struct of_bytes {
    const uint8_t *p;
    size_t n;
};

static inline uint16_t
of_get16(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t
of_get32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline uint64_t
of_get64(const void *p)
{
    return (uint64_t)of_get32(p) << 32 | of_get32((const uint8_t *)p + 4);
}

static inline void
of_set16(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)(v >> 8);
    b[1] = (uint8_t)v;
}

static inline void
of_set32(void *p, uint32_t v)
{
    of_set16(p, (uint16_t)(v >> 16));
    of_set16((uint8_t *)p + 2, (uint16_t)v);
}

static inline void
of_set64(void *p, uint64_t v)
{
    of_set32(p, (uint32_t)(v >> 32));
    of_set32((uint8_t *)p + 4, (uint32_t)v);
}

/* ------------------------------------------------------------------ reading */

struct of_rd {
    const uint8_t *p;
    const uint8_t *end;
    bool short_read; /* sticky: something was read past the end and came back as zeros */
};

static inline struct of_rd
of_rd(const void *p, size_t n)
{
    return (struct of_rd){.p = p, .end = n ? (const uint8_t *)p + n : p};
}

static inline size_t
of_rd_left(const struct of_rd *r)
{
    return (size_t)(r->end - r->p);
}

/* n bytes into `out` (which may be NULL to skip them). */
static inline void
of_rd_copy(struct of_rd *r, void *out, size_t n)
{
    if (of_rd_left(r) < n) {
        r->short_read = true;
        r->p = r->end;
        if (out)
            memset(out, 0, n);
        return;
    }
    if (!n)
        return;
    if (out)
        memcpy(out, r->p, n);
    r->p += n;
}

static inline uint8_t
of_rd8(struct of_rd *r)
{
    uint8_t b;
    of_rd_copy(r, &b, 1);
    return b;
}

static inline uint16_t
of_rd16(struct of_rd *r)
{
    uint8_t b[2];
    of_rd_copy(r, b, 2);
    return of_get16(b);
}

static inline uint32_t
of_rd32(struct of_rd *r)
{
    uint8_t b[4];
    of_rd_copy(r, b, 4);
    return of_get32(b);
}

static inline uint64_t
of_rd64(struct of_rd *r)
{
    uint8_t b[8];
    of_rd_copy(r, b, 8);
    return of_get64(b);
}

/* The next n bytes as a reader of their own (empty and short where there are fewer). */
static inline struct of_rd
of_rd_sub(struct of_rd *r, size_t n)
{
    struct of_rd sub = of_rd(r->p, n <= of_rd_left(r) ? n : 0);
    sub.short_read = n > of_rd_left(r);
    of_rd_copy(r, NULL, n);
    return sub;
}

/* ------------------------------------------------------------------ writing */

struct of_wr {
    uint8_t *buf;
    size_t len;
    size_t cap;
    size_t max;    /* growable up to this many bytes; 0: a fixed buffer */
    bool overflow; /* sticky: something did not fit (or memory was out) and was left out */
};

static inline struct of_wr
of_wr_fixed(void *buf, size_t cap)
{
    return (struct of_wr){.buf = buf, .cap = cap};
}

/* A writer that allocates as it goes, up to `max` bytes in all.  Release with of_wr_free. */
static inline struct of_wr
of_wr_grow(size_t max)
{
    return (struct of_wr){.max = max};
}

void of_wr_free(struct of_wr *w);

/* Room for n more bytes, zeroed, already counted in len; NULL (and overflow) where there is none.
 * The pointer is valid until the next write. */
uint8_t *of_wr_add(struct of_wr *w, size_t n);

void of_wr_bytes(struct of_wr *w, const void *p, size_t n);
void of_wr8(struct of_wr *w, uint8_t v);
void of_wr16(struct of_wr *w, uint16_t v);
void of_wr32(struct of_wr *w, uint32_t v);
void of_wr64(struct of_wr *w, uint64_t v);

/* Pads with zeros so that the bytes since `start` become a multiple of `align`. */
void of_wr_align(struct of_wr *w, size_t start, size_t align);

/* Overwrites the 16 bits at offset `at`: a length that is known only afterwards. */
void of_wr_patch16(struct of_wr *w, size_t at, uint16_t v);

#endif
