/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that subscribed to copies of packets (dataplane/capture.h).  Control thread. */
#ifndef PUNT_CAPTURE_H
#define PUNT_CAPTURE_H

#include <dataplane/capture.h>

struct conn;
struct sw;

/* Starts, changes or (what 0) ends a connection's capture.  -EUSERS: CAPTURE_MAX have one. */
int sw_capture_set(struct sw *sw, struct conn *c, const struct of_capture *q);
void sw_capture_forget(struct sw *sw, const struct conn *c); /* the connection goes */
void sw_capture_free(struct sw *sw);                         /* after the workers */

/* Sends what the workers have captured.  True: there is more for the next turn. */
bool sw_capture_drain(struct sw *sw);

uint64_t sw_capture_sent(const struct sw *sw);
uint64_t sw_capture_lost(const struct sw *sw);

#endif
