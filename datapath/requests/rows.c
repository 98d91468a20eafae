/* SPDX-License-Identifier: Apache-2.0 */
/* Which row a frame is: requests.h's lists as tables, and the rows of what is in none of them. */
#include "rows.h"

#include <admission/request.h>

#define N_OF(v) (sizeof(v) / sizeof(v)[0])

#define ROW(number, name) [number] = &request_##name,
static const struct request *const messages[] = {MESSAGES(ROW)};
static const struct request *const multiparts[] = {MULTIPARTS(ROW)};

static const struct experimenter {
    uint32_t experimenter, exp_type;
    const struct request *request;
}
#define NUMBERED(experimenter, exp_type, name) {experimenter, exp_type, &request_##name},
experimenters[] = {EXPERIMENTERS(NUMBERED)},
    experimenter_multiparts[] = {EXPERIMENTER_MULTIPARTS(NUMBERED)};

/* ------------------------------------------------------------------ what is in no list */

static int
bad_experimenter(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return OF_BAD_REQUEST(BAD_EXPERIMENTER);
}

static int
bad_exp_type(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return OF_BAD_REQUEST(BAD_EXP_TYPE);
}

static int
bad_multipart(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return OF_BAD_REQUEST(BAD_MULTIPART);
}

/* Slices get the errors of others, except where the number may come to mean something of ours. */
static const struct request unknown_experimenter = {.access = ACCESS_READ,
                                                    .slice = slice_anything,
                                                    .most = ANY_LENGTH,
                                                    .run = bad_experimenter},
                            unknown_exp_type = {.access = ACCESS_READ,
                                                .slice = slice_anything,
                                                .most = ANY_LENGTH,
                                                .run = bad_exp_type},
                            unknown_exp_type_of_ours = {.access = ACCESS_READ,
                                                        .most = ANY_LENGTH,
                                                        .run = bad_exp_type},
                            unknown_multipart = {.access = ACCESS_READ, .run = bad_multipart};

/* ------------------------------------------------------------------ finding */

static const struct request *
find_experimenter(const struct experimenter *rows, size_t n, struct of_bytes frame, size_t at)
{
    if (frame.n < at + 8)
        return &unknown_experimenter;
    uint32_t experimenter = of_get32(frame.p + at), exp_type = of_get32(frame.p + at + 4);
    bool known = false;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].experimenter != experimenter)
            continue;
        if (rows[i].exp_type == exp_type)
            return rows[i].request;
        known = true;
    }
    if (!known)
        return &unknown_experimenter;
    return experimenter == OFP_QOS_EXPERIMENTER ? &unknown_exp_type_of_ours : &unknown_exp_type;
}

static const struct request *
find_multipart(struct of_bytes frame)
{
    if (frame.n < 16)
        return &unknown_multipart;
    uint16_t type = of_get16(frame.p + 8);
    if (type == OFPMP_EXPERIMENTER)
        return find_experimenter(experimenter_multiparts, N_OF(experimenter_multiparts), frame, 16);
    const struct request *r = type < N_OF(multiparts) ? multiparts[type] : NULL;
    return r ? r : &unknown_multipart;
}

const struct request *
request_find(struct of_bytes frame)
{
    uint8_t type = frame.p[1];
    if (type == OFPT_EXPERIMENTER)
        return find_experimenter(experimenters, N_OF(experimenters), frame, 8);
    if (type == OFPT_MULTIPART_REQUEST)
        return find_multipart(frame);
    return type < N_OF(messages) ? messages[type] : NULL;
}
