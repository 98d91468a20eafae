/* SPDX-License-Identifier: Apache-2.0 */
/* A switch's saved state: the messages that make it, one behind the other, between two marks
 * (docs/how-to/state.md).  Meters come first, then groups, those that others lead to before them, then
 * flows, port-mods and QoS requests.  Pure: files and connections are the caller's. */
#ifndef OFLIB_STATE_H
#define OFLIB_STATE_H

#include <oflib/wire.h>

#define OF_STATE_VERSION  1
#define OF_STATE_MARK_LEN 40 /* bytes of a mark, an OFPT_EXPERIMENTER message */

/* The first message and the last one. */
struct of_state_mark {
    uint16_t is_end;
    uint32_t count; /* messages between the marks; in the first mark 0 */
    uint64_t datapath_id;
    uint64_t time; /* of saving, seconds since 1970 */
};

void of_state_mark_encode(struct of_wr *w, const struct of_state_mark *mark);

/* Is it all there?  Checks the marks, and of each message between them its length and type, not its
 * content.  Returns 0 with the first mark and the number of messages in *out, or -EINVAL and in
 * `why` what is wrong. */
int of_state_check(struct of_bytes state, struct of_state_mark *out, char *why, size_t n);

/* The messages between the marks of a state that was checked; *at starts as 0. */
bool of_state_next(struct of_bytes state, size_t *at, struct of_bytes *message);

#endif
