/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to packets while no controller is connected (6.3.3). */
#ifndef PUNT_FAIL_H
#define PUNT_FAIL_H

struct sw;

/* To be called when controllers connect or disconnect, or a relay reports that its own did. */
void sw_fail_update(struct sw *sw);

/* Tells the log what the switch does without any; to be called at the start. */
void sw_fail_say(const struct sw *sw);

#endif
