/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: messages that a connection collects and then commits as one (ONF EXT-230;
 * docs/reference/extensions.md).
 *
 * This room opens, fills, closes and discards them; the switch carries out a commit.  A message is
 * decoded and checked when it is added, and kept as bytes.  Bundles belong to their connection and
 * end with it, or after BUNDLE_IDLE_NS without a message for them.
 */
#ifndef CONTROL_BUNDLE_H
#define CONTROL_BUNDLE_H

#include <control/deferred.h>

#define BUNDLES_MAX         64 /* of one connection */
#define BUNDLE_MAX_MESSAGES 2000000
#define BUNDLE_MAX_BYTES    (256u << 20)
#define BUNDLE_TOTAL_MAX    ((size_t)1 << 30) /* of all connections, and no more than ... */
#define BUNDLE_TOTAL_PART   8                 /* ... this part of the machine's memory */
#define BUNDLE_IDLE_NS      UINT64_C(10000000000)

struct bundle;

/* What a function of the switch returns when it has sent the error itself. */
#define BUNDLE_ANSWERED 1

enum bundle_outcome { BUNDLE_FAILED, BUNDLE_DONE, BUNDLE_DEFERRED };

/* What a message of a bundle changes. */
enum bundle_part {
    BUNDLE_NOT, /* no bundle may hold it: OFPBFC_MSG_UNSUP */
    BUNDLE_TABLES,
    BUNDLE_PORTS,
    BUNDLE_QUEUES,
};

struct bundle_ops {
    enum bundle_part (*part)(struct of_bytes message);
    /* Checks a decoded message before it is added: 0, an error for the peer, BUNDLE_ANSWERED. */
    int (*check)(void *ctx, struct conn *c, const struct of_msg *m);
    /* Carries out all of it, or nothing: BUNDLE_FAILED, and the peer has been sent the error of the
     * message that failed.  BUNDLE_DEFERRED: the switch owns b until it calls
     * bundle_committed. */
    enum bundle_outcome (*commit)(void *ctx, struct bundle *b);
    /* Whether requests have to wait at present, so that no bundle times out; NULL: never. */
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

/* A bundle message of the ONF experimenter.  Returns what a handler does (channel.h). */
int bundle_handle(struct bundle_room *r, struct conn *c, const struct of_msg *m);

/* The request to commit it; its conn is NULL if that has closed, or for a bundle of the switch itself. */
const struct deferred *bundle_request(const struct bundle *b);

/* The end of a deferred commit: answers the request and frees b. */
void bundle_committed(struct bundle_room *r, struct bundle *b, bool done);

/* The connection goes away. */
void bundle_forget(struct conn *c);

/* A bundle of the switch itself: nobody sent it, and nobody is answered. */
struct bundle_own {
    /* A message of this xid was refused. */
    void (*refused)(void *ctx, uint32_t xid, const char *why);
    /* The end; the bundle is gone. */
    void (*over)(void *ctx, bool done);
    void *ctx;
};

/* NULL: no memory.  After bundle_own_commit, which may call `over` at once, b is the room's. */
struct bundle *bundle_own_new(const struct bundle_own *own);
/* Adds a message that may be in a bundle; an OpenFlow error: too many. */
int bundle_own_add(struct bundle_room *r, struct bundle *b, struct of_bytes message);
void bundle_own_commit(struct bundle_room *r, struct bundle *b);
void bundle_own_drop(struct bundle_room *r, struct bundle *b); /* instead of a commit */
/* NULL: a connection's. */
const struct bundle_own *bundle_owner(const struct bundle *b);

/* The messages of a bundle in order: *pos starts as {0}. */
struct bundle_pos {
    const void *chunk;
    size_t at;
    bool begun;
};
bool bundle_next(const struct bundle *b, struct bundle_pos *pos, struct of_bytes *message);

/* Whether one of them changes this. */
bool bundle_has(const struct bundle *b, enum bundle_part part);

uint32_t bundle_messages(const struct bundle *b); /* how many */

#endif
