/* SPDX-License-Identifier: Apache-2.0 */
/* A field and a value for it, of four bytes of an input: what fuzz-packet and fuzz-offload set. */
#ifndef FUZZ_FIELD_H
#define FUZZ_FIELD_H

#include <oflib/openflow.h>
#include <oflib/oxm.h>

/* op: the second byte says which field, the others what is in it.  value: OXM_MAX_LEN bytes. */
static enum oxm_field
field_of(const uint8_t *op, uint8_t *value)
{
    enum oxm_field f = (enum oxm_field)(op[1] % OXM_N);
    const struct oxm_row *row = &oxm_rows[f];
    for (int i = 0; i < row->bytes; i++)
        value[i] = op[2 + i % 2];
    if (row->bits < row->bytes * 8)
        oxm_set_number(row, value, oxm_number(row, value) & ((UINT64_C(1) << row->bits) - 1));
    if (f == OXM_vlan_vid)
        value[0] |= OFPVID_PRESENT >> 8;
    return f;
}

#endif
