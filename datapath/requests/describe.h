/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and meters as the requests that would make them. */
#ifndef REQUESTS_DESCRIBE_H
#define REQUESTS_DESCRIBE_H

#include <switch/switch.h>

/* The caller frees out->v.  False: out of memory. */
bool sw_group_buckets(const struct group *g, struct of_list *out);

struct meter_bands {
    union {
        struct of_band_drop drop;
        struct of_band_dscp_remark remark;
    } bands[METER_MAX_BANDS];
    void *v[METER_MAX_BANDS];
};

/* The list is in `room`. */
void sw_meter_bands(const struct meter *mt, struct meter_bands *room, struct of_list *out);

#endif
