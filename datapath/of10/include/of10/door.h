/* SPDX-License-Identifier: Apache-2.0 */
/* Translates OpenFlow 1.0 at a connection (docs/reference/openflow10.md).
 *
 * The switch speaks 1.3 inside.  The connection of a 1.0 controller has a door: it turns the
 * controller's requests into messages of 1.3, which are checked and carried out like any others,
 * and the answers of 1.3 into messages of 1.0.  A request may become several messages: features and
 * table statistics ask 1.3 twice.  They are to be carried out one after the other, before the
 * peer's next request is taken.
 *
 * Errors are those of 1.3 (oflib/err.h) until they leave by the door.  Those that only 1.0 has are
 * marked (OF10_FAILED). */
#ifndef OF10_DOOR_H
#define OF10_DOOR_H

#include <oflib/messages10.h>

struct of10_door;

struct of10_door *of10_door_new(void); /* NULL: no memory */
void of10_door_free(struct of10_door *d);

/* Takes a whole request (frame): 0, and of10_next has the messages that it became; or an error for
 * the peer. */
int of10_request(struct of10_door *d, struct of_bytes frame);

/* Errors from here to of10_passed answer this request.  of10_request calls it itself. */
void of10_begin(struct of10_door *d, struct of_bytes frame);

/* The next message of 1.3 that the last request became; n 0: none is left. */
struct of_bytes of10_next(const struct of10_door *d);
/* The same, to carry it out: errors answer its request, until of10_passed. */
struct of_bytes of10_take(struct of10_door *d);
void of10_passed(struct of10_door *d); /* it has been carried out, or refused */

/* Translates a message of 1.3 and appends it to w.  Appends nothing if 1.0 has no such message, or
 * wants it together with the next one.  -EMSGSIZE, -ENOMEM: w is as it was. */
int of10_reply(struct of10_door *d, struct of_bytes message, struct of_wr *w);

#endif
