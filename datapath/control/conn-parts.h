/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart requests that come in several messages (7.3.5, OFPMPF_REQ_MORE). */
#ifndef CONTROL_CONN_PARTS_H
#define CONTROL_CONN_PARTS_H

#include <oflib/codec.h>

#include <stdbool.h>

#define PARTS_MAX       4                     /* that a connection may have open */
#define PART_BYTES_MAX  (1u << 20)            /* the body of one */
#define PARTS_TOTAL_MAX (16u << 20)           /* the bodies of all, of all connections */
#define PART_IDLE_NS    UINT64_C(10000000000) /* then it is given up */

struct conn;

struct part {
    uint32_t xid;
    uint16_t type; /* OFPMP_ */
    bool used;
    bool refused;  /* an error was sent: the other pieces are skipped */
    uint64_t last; /* loop time, ns */
    struct of_wr body;
};

/* Takes a multipart request (m: header and raw are set), which may be one piece of a larger one.
 * 1: it is whole; if it came in pieces, *part has its body, and m->mp and body_row are set.  0:
 * pieces are missing, or it is skipped.  >0: OFPBRC_ errors. */
int conn_part(struct conn *c, struct of_msg *m, struct part **part);
bool conn_part_open(struct conn *c, const struct of_msg *m); /* pieces of it have come before */
void conn_part_forget(struct conn *c, struct part *p);
void conn_parts_free(struct conn *c);
void channel_parts_due(void *ch); /* the timer's */

#endif
