/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel does with an entry's packets, as OpenFlow's actions. */
#ifndef REQUESTS_STATS_CACHE_H
#define REQUESTS_STATS_CACHE_H

#include <megaflow/megaflow.h>
#include <switch/switch.h>

#define CACHE_ACTIONS_MAX (2 * OFFLOAD_OPS) /* an output may need its queue set */

union cache_action {
    const struct of_tag_row *row;
    struct of_action_output output;
    struct of_action_set_queue queue;
    struct of_action_set_field field;
    struct of_action_push push;
    struct of_action_ttl ttl;
    struct of_action_empty empty;
};

struct cache_actions {
    uint32_t n;
    union cache_action v[CACHE_ACTIONS_MAX];
    void *list[CACHE_ACTIONS_MAX];
};

void cache_actions(const struct sw *sw, const struct sw_offload_view *v, struct cache_actions *out);

/* Whether it sends packets to this interface. */
bool cache_sends_to(const struct sw_offload_view *v, int ifindex);

#endif
