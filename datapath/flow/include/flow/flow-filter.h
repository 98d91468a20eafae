/* SPDX-License-Identifier: Apache-2.0 */
/* Which flows a request is about: OFPMP_FLOW, OFPMP_AGGREGATE, and a flow-mod's modify and delete
 * (6.4, 7.3.5.2).  A flow passes whose table, match, cookie and outputs all do. */
#ifndef FLOW_FLOW_FILTER_H
#define FLOW_FLOW_FILTER_H

#include <flow/flow.h>

struct flow_filter {
    uint8_t table_id;             /* OFPTT_ALL: every table */
    uint32_t out_port, out_group; /* OFPP_ANY, OFPG_ANY: whatever the flow sends to */
    uint64_t cookie, cookie_mask; /* the bits of the cookie in the mask are equal */
    const struct of_match *match; /* the flow's match is this one or narrower; the request's */
};

struct flow_filter flow_filter_of_stats(const struct of_mp_flow_request *q);

/* A modify ignores out_port and out_group (7.3.4.1). */
struct flow_filter flow_filter_of_flow_mod(const struct of_flow_mod *fm);

/* True: every flow of its tables passes. */
bool flow_filter_is_all(const struct flow_filter *q);

/* Checks cookie and outputs; whoever walks the tables checks table and match. */
bool flow_filter_passes(const struct flow_filter *q, const struct flow *f);

bool program_outputs_to(const struct program *p, uint32_t port);

#endif
