/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart replies about groups, meters or ports.  The numbers are listed when the request comes;
 * each element is encoded when the peer has room for it, if it still exists. */
#ifndef REQUESTS_DUMP_IDS_H
#define REQUESTS_DUMP_IDS_H

#include <switch/switch.h>

struct id_dump;

/* Adds one to the reply, unless it no longer exists. */
typedef void (*id_dump_add)(struct sw *sw, struct conn_dump *to, uint32_t id);

struct id_dump *sw_id_dump_new(struct sw *sw, uint32_t max, id_dump_add add); /* NULL: no memory */
void sw_id_dump_put(struct id_dump *d, uint32_t id); /* at most `max` times */
/* Replies in the order of the numbers; takes d, also on failure. */
int sw_id_dump_send(struct id_dump *d, struct conn *c, const struct of_msg *m);

#endif
