/* SPDX-License-Identifier: Apache-2.0 */
/* Private: tc's filters at an interface's clsact. */
#ifndef OFFLOAD_TC_FILTERS_H
#define OFFLOAD_TC_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tc_filter {
    uint32_t pref, handle;
    char kind[16];
    char name[64]; /* of a program; empty: it has none */
};

typedef void tc_filter_fn(void *ctx, const struct tc_filter *f);

/* Of clsact's ingress, as far as the kernel says. */
void tc_filters_each(int ifindex, tc_filter_fn *each, void *ctx);

/* Whether clsact has filters, at its ingress or egress; also true if the kernel doesn't say. */
bool tc_filters_there(int ifindex);

#endif
