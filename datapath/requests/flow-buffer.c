/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-mod.h"

#include <punt/packet-in.h>
#include <punt/packet-out.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A buffered packet goes through the tables once the flow is there (7.3.4.2). */
int
sw_buffer_release(struct sw *sw, struct conn *c, uint32_t id)
{
    static const struct act to_table = {.op = OFPAT_OUTPUT, .units = 1, .arg = OFPP_TABLE};
    const struct buffered *b;
    if (sw_buffers_find(sw->buffers, id, &b)) /* another flow-mod of the same bundle has used it */
        return 0;
    struct program *p = calloc(1, sizeof *p + sizeof to_table);
    if (!p)
        return -ENOMEM;
    p->goto_table = NO_TABLE;
    p->n_apply = 1;
    memcpy(p->acts, &to_table, sizeof to_table);
    sw_packet_out(sw, c, p, b->in_port, b->data, b->len);
    sw_buffers_drop(sw->buffers, id);
    return 0;
}
