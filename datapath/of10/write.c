/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

int
of10_write(struct of_wr *w, uint8_t type, uint32_t xid, const void *body)
{
    const struct of_msg_row *row = of_dialect_10.msg(type);
    struct of_msg m = {.version = OFP10_VERSION,
                       .type = type,
                       .xid = xid,
                       .row = row,
                       .body_row = row->body,
                       .body = (void *)(uintptr_t)body};
    return of_encode(w, &m);
}
