/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that messages.h's field lists make. */
#include "rows.h"

#include <oflib/codec.h>

OF_STRUCTS(STRUCT_ROW, STRUCT_ROW)

TAGS(queue_props, OFPQT_ROWS)
TAGS(instructions, OFPIT_ROWS)
TAGS(actions, OFPAT_ROWS)
TAGS(bands, OFPMBT_ROWS)
TAGS(hello_elements, OFPHET_ROWS)
TAGS(table_props, OFPTFPT_ROWS)
TAGS(trace_events, OFPTE_ROWS)
TAGS(cache_parts, OFPSC_ROWS)

OF_LISTS(LIST_ROW)

static const struct of_msg_row messages[] = {OFPT_ROWS(MSG_ROW)};

static const struct of_mp_row multiparts[] = {OFPMP_ROWS(MP_ROW)};

#define EXP_ROW(e, t, nm, S) {.experimenter = e, .exp_type = t, .name = #nm, .body = &of_row_##S},
static const struct of_exp_row experimenters[] = {OF_EXP_MESSAGES(EXP_ROW)};

const struct of_msg_row *
of_msg_row(uint8_t type)
{
    size_t n = sizeof messages / sizeof messages[0];
    return type < n && messages[type].name ? &messages[type] : NULL;
}

const struct of_exp_row *
of_exp_row(const struct of_experimenter *m)
{
    for (size_t i = 0; i < sizeof experimenters / sizeof experimenters[0]; i++)
        if (experimenters[i].experimenter == m->experimenter &&
            experimenters[i].exp_type == m->exp_type)
            return &experimenters[i];
    return NULL;
}

const struct of_mp_row *
of_mp_row(uint16_t type)
{
    for (size_t i = 0; i < sizeof multiparts / sizeof multiparts[0]; i++)
        if (multiparts[i].type == type)
            return &multiparts[i];
    return NULL;
}

const struct of_tag_row *
of_tag_row(const struct of_list_row *list, uint16_t type)
{
    for (size_t i = 0; i < list->n_tags; i++)
        if (list->tags[i].type == type)
            return &list->tags[i];
    return NULL;
}

const struct of_dialect of_dialect_13 = {
    .version = OFP_VERSION,
    .multipart_request = OFPT_MULTIPART_REQUEST,
    .multipart_reply = OFPT_MULTIPART_REPLY,
    .multipart_pad = 4,
    .msg = of_msg_row,
    .mp = of_mp_row,
};
