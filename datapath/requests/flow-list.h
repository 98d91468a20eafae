/* SPDX-License-Identifier: Apache-2.0 */
/* Flows listed at one moment, and held until the list is released.  Requests for all flows share a
 * list as long as no flow is added or removed, and all lists together are bounded, so peers that
 * don't read cost little memory. */
#ifndef REQUESTS_FLOW_LIST_H
#define REQUESTS_FLOW_LIST_H

#include <flow/flow-filter.h>
#include <switch/switch.h>

struct flow_list {
    struct sw *sw;
    unsigned refs;
    uint8_t table_id;
    uint64_t stamp; /* of the tables */
    uint32_t n, cap;
    struct flow **v; /* those with `removed` have gone since */
};

/* -ENOMEM, OFPBRC_BAD_TABLE_ID, OFPBRC_MULTIPART_BUFFER_OVERFLOW. */
int sw_flow_list_new(struct sw *sw, const struct flow_filter *q, struct flow_list **out);
void sw_flow_list_release(struct flow_list *l);

#endif
