/* SPDX-License-Identifier: Apache-2.0 */
/* STATE, the multipart request (docs/reference/extensions.md), and writing a state to a file. */
#include "state-dump.h"
#include <admission/request.h>

#include <ports/ports.h>
#include <requests/state.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE  32768u     /* bytes of a reply's element; messages are cut anywhere */
#define BUFFER (1u << 20) /* written at once */
#define ROOM   (4u << 20)

/* ------------------------------------------------------------------ to a connection */

struct sending {
    struct state_dump *dump;
    struct of_wr w;
    bool more;
};

static void
send_done(void *ctx)
{
    struct sending *s = ctx;
    sw_state_dump_free(s->dump);
    of_wr_free(&s->w);
    free(s);
}

static bool
send_some(struct conn_dump *to, void *ctx)
{
    struct sending *s = ctx;
    s->w.len = 0;
    while (s->more && s->w.len < PIECE)
        s->more = sw_state_dump_next(s->dump, &s->w) && !s->w.overflow; /* no memory: cut off */
    for (size_t at = 0; at < s->w.len; at += PIECE) {
        size_t n = s->w.len - at < PIECE ? s->w.len - at : PIECE;
        conn_dump_add_bytes(to, (struct of_bytes){s->w.buf + at, n});
    }
    return s->more;
}

static int
handle_state(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sending *s = calloc(1, sizeof *s);
    int err = s ? sw_state_dump_new(sw, &s->dump) : -ENOMEM;
    if (err) {
        free(s);
        return err;
    }
    s->w = of_wr_grow(ROOM);
    s->more = true;
    return conn_dump(c, m, send_some, send_done, s);
}

const struct request request_state = {.access = ACCESS_READ, .needs = QUEUES, .run = handle_state};

/* ------------------------------------------------------------------ to a file */

static int
write_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

static int
write_dump(struct sw *sw, struct state_dump *d, int fd)
{
    struct of_wr w = of_wr_grow(ROOM);
    int err = 0;
    for (bool more = true; more && !err;) {
        more = sw_state_dump_next(d, &w);
        err = w.overflow ? -ENOMEM : 0;
        if (!err && (w.len >= BUFFER || !more)) {
            err = write_all(fd, w.buf, w.len);
            w.len = 0;
            sw_ports_hear(sw);
        }
    }
    of_wr_free(&w);
    return err;
}

int
sw_state_write_to(struct sw *sw, int fd)
{
    struct state_dump *d;
    int err = sw_state_dump_new(sw, &d);
    if (err)
        return err;
    err = write_dump(sw, d, fd);
    sw_state_dump_free(d);
    return err;
}

int
sw_state_write(struct sw *sw, const char *file, char *why, size_t n)
{
    char part[4096];
    int fd = -1, len = snprintf(part, sizeof part, "%s.part", file);
    int err = len < (int)sizeof part ? 0 : -ENAMETOOLONG;
    if (!err && (fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640)) < 0)
        err = -errno;
    if (!err)
        err = sw_state_write_to(sw, fd);
    if (!err && fsync(fd))
        err = -errno;
    if (fd >= 0 && close(fd) && !err)
        err = -errno;
    if (!err && rename(part, file))
        err = -errno;
    if (err && fd >= 0)
        unlink(part);
    if (err)
        snprintf(why, n, "%s: %s", file, strerror(-err));
    return err;
}
