/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/wire.h>

#include <stdlib.h>

void
of_wr_free(struct of_wr *w)
{
    if (w->max)
        free(w->buf);
    *w = (struct of_wr){.max = w->max};
}

static bool
make_room(struct of_wr *w, size_t n)
{
    if (!w->max || n > w->max - w->len)
        return false;
    size_t cap = w->cap ? w->cap : 256;
    while (cap - w->len < n)
        cap *= 2;
    if (cap > w->max)
        cap = w->max;
    uint8_t *buf = realloc(w->buf, cap);
    if (!buf)
        return false;
    w->buf = buf;
    w->cap = cap;
    return true;
}

/* n bytes at the end, not yet zeroed. */
static inline uint8_t *
extend(struct of_wr *w, size_t n)
{
    if (w->overflow || (w->cap - w->len < n && !make_room(w, n))) {
        w->overflow = true;
        return NULL;
    }
    uint8_t *p = n ? w->buf + w->len : w->buf;
    w->len += n;
    return p;
}

uint8_t *
of_wr_add(struct of_wr *w, size_t n)
{
    uint8_t *p = extend(w, n);
    if (p && n)
        memset(p, 0, n);
    return p;
}

void
of_wr_bytes(struct of_wr *w, const void *p, size_t n)
{
    uint8_t *to = extend(w, n);
    if (to && n)
        memcpy(to, p, n);
}

void
of_wr8(struct of_wr *w, uint8_t v)
{
    uint8_t *to = extend(w, 1);
    if (to)
        *to = v;
}

void
of_wr16(struct of_wr *w, uint16_t v)
{
    uint8_t *to = extend(w, 2);
    if (to)
        of_set16(to, v);
}

void
of_wr32(struct of_wr *w, uint32_t v)
{
    uint8_t *to = extend(w, 4);
    if (to)
        of_set32(to, v);
}

void
of_wr64(struct of_wr *w, uint64_t v)
{
    uint8_t *to = extend(w, 8);
    if (to)
        of_set64(to, v);
}

void
of_wr_align(struct of_wr *w, size_t start, size_t align)
{
    size_t over = (w->len - start) % align;
    if (over)
        of_wr_add(w, align - over);
}

void
of_wr_patch16(struct of_wr *w, size_t at, uint16_t v)
{
    if (!w->overflow && at + 2 <= w->len)
        of_set16(w->buf + at, v);
}
