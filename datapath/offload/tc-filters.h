/* SPDX-License-Identifier: Apache-2.0 */
/* Private: tc's filters at an interface's clsact. */
#ifndef OFFLOAD_TC_FILTERS_H
#define OFFLOAD_TC_FILTERS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether clsact has filters, at its ingress or egress; also true if the kernel doesn't say. */
bool tc_filters_there(int ifindex);

#endif
