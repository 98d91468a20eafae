/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that messages10.h's field lists make. */
#include <oflib/messages10.h>

#include "rows.h"

OF10_STRUCTS(STRUCT_ROW, STRUCT_ROW)

TAGS(v10_queue_props, OFPQT10_ROWS)
TAGS(v10_actions, OFPAT10_ROWS)

OF10_LISTS(LIST_ROW)

static const struct of_msg_row messages[] = {OFPT10_ROWS(MSG_ROW)};
static const struct of_mp_row statistics[] = {OFPST_ROWS(MP_ROW)};

static const struct of_msg_row *
msg_row(uint8_t type)
{
    return type < sizeof messages / sizeof messages[0] ? &messages[type] : NULL;
}

static const struct of_mp_row *
mp_row(uint16_t type)
{
    for (size_t i = 0; i < sizeof statistics / sizeof statistics[0]; i++)
        if (statistics[i].type == type)
            return &statistics[i];
    return NULL;
}

const struct of_dialect of_dialect_10 = {
    .version = OFP10_VERSION,
    .multipart_request = OFPT10_STATS_REQUEST,
    .multipart_reply = OFPT10_STATS_REPLY,
    .msg = msg_row,
    .mp = mp_row,
};
