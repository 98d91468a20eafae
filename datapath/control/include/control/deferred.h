/* SPDX-License-Identifier: Apache-2.0 */
/* A deferred request: one that is answered after its handler has returned, at the end of a task that takes many turns of
 * the loop.
 *
 * A connection's requests are answered in order, so those behind a deferred one wait; only echo requests are answered
 * meanwhile.  A connection has one at a time.  It may close before the answer: then nobody gets it. */
#ifndef CONTROL_DEFERRED_H
#define CONTROL_DEFERRED_H

#include <control/channel.h>

#define DEFERRED_BYTES 64 /* what an error quotes of its request (7.4.4) */

struct deferred {
    struct conn *conn; /* NULL: it has closed, or the switch itself asked */
    uint8_t bytes[DEFERRED_BYTES];
    size_t n;
};

/* A copy of a request, which a handler is called with later, perhaps in another thread (loop/loop.h).  Its connection stays
 * until deferred_copy_end, and is not closed before: handlers use it. */
struct deferred_copy;
void deferred_copy_run(struct deferred_copy *r); /* calls the handler, and answers with its error */
void deferred_copy_end(struct deferred_copy *r); /* frees it, run or not */

/* Begins; d stays where it is until deferred_end.  c NULL: nobody is to be answered. */
void deferred_begin(struct deferred *d, struct conn *c, const struct of_msg *m);

/* What replies and errors need of the request: type, xid and its first bytes, but no body. */
struct of_msg deferred_message(const struct deferred *d);

/* For the log: the connection's name. */
const char *deferred_peer(const struct deferred *d);

/* Answers with what a handler would return: an OpenFlow error, -errno, or 0: nothing. */
void deferred_error(const struct deferred *d, int err);

/* After the answer.  The connection's next requests get their turn at the end of the loop's, whatever is unlocked. */
void deferred_end(struct deferred *d);

#endif
