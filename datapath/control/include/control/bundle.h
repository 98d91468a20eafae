/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: changes that a connection collects and then makes as one (ONF EXT-230;
 * docs/extensions.md).
 *
 * Here they are opened, filled, closed and forgotten; what a commit does is the switch's business.
 * A message is decoded and checked when it is added, and kept as bytes.  Bundles belong to their
 * connection and end with it, or when nothing has been heard of them for a while.
 */
#ifndef CONTROL_BUNDLE_H
#define CONTROL_BUNDLE_H

#include <control/channel.h>

#define BUNDLES_MAX         64 /* of one connection */
#define BUNDLE_MAX_MESSAGES 1000000
#define BUNDLE_MAX_BYTES    (256u << 20)
#define BUNDLE_TOTAL_MAX    ((size_t)1 << 30) /* of all connections, and no more than ... */
#define BUNDLE_TOTAL_PART   8                 /* ... this part of the machine's memory */
#define BUNDLE_IDLE_NS      UINT64_C(10000000000)

struct bundle;

/* What a function of the switch answers when it has told the peer itself what is wrong. */
#define BUNDLE_TOLD 1

enum bundle_outcome { BUNDLE_FAILED, BUNDLE_DONE, BUNDLE_LATER };

struct bundle_ops {
    /* A message, decoded, that is to be added to a bundle: 0, an error for the peer, BUNDLE_TOLD.
     */
    int (*check)(void *ctx, struct conn *c, const struct of_msg *m);
    /* Everything in it, or nothing: BUNDLE_FAILED.  The peer has been told then what was wrong with
     * which message.  BUNDLE_LATER: bundle_committed is going to be called, and b is the callee's
     * till then. */
    enum bundle_outcome (*commit)(void *ctx, struct conn *c, struct bundle *b);
    /* Whether requests wait at present, so that no bundle's time goes by; NULL: never. */
    bool (*busy)(void *ctx);
};

struct bundles; /* of one connection */

/* Of all connections. */
struct bundle_room {
    struct loop *loop;
    const struct bundle_ops *ops;
    void *ctx;
    struct of_arena arena; /* of the message in the message */
    size_t bytes, max;
};

void bundle_room_init(struct bundle_room *r, struct loop *loop, const struct bundle_ops *ops,
                      void *ctx);
void bundle_room_free(struct bundle_room *r); /* connections are gone */

/* An experimenter message of ONF's.  As handlers answer (channel.h). */
int bundle_handle(struct bundle_room *r, struct conn *c, const struct of_msg *m);

/* The end of a commit that took longer: tells the connection (NULL: it is gone) and frees b. */
void bundle_committed(struct bundle_room *r, struct conn *c, struct bundle *b, bool done);

/* The connection goes away. */
void bundle_forget(struct conn *c);

/* The messages of a bundle in order: *pos starts as {0}. */
struct bundle_pos {
    const void *chunk;
    size_t at;
    bool begun;
};
bool bundle_next(const struct bundle *b, struct bundle_pos *pos, struct of_bytes *message);

/* Whether it has a QoS request: of the extension, or one of BOFUSS's queue messages. */
bool bundle_has_qos(const struct bundle *b);

/* Of a message that is or may be in a bundle. */
bool bundle_is_qos(struct of_bytes message);

#endif
