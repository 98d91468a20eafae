/* SPDX-License-Identifier: Apache-2.0 */
/* What the switch counts, as text for a monitoring system (docs/reference/metrics.md). */
#ifndef DPCTL_METRICS_H
#define DPCTL_METRICS_H

#include <core/context.h>

enum metrics_format {
    METRICS_OPENMETRICS, /* version 1.0.0: ends with "# EOF" */
    METRICS_PROMETHEUS,  /* the older text format, 0.0.4: node_exporter's textfile collector */
    METRICS_JSON,
};

/* Asks the switch for everything and appends it.  What a switch of another maker does not have is
 * left out. */
enum status metrics_write(struct ctx *c, struct of_wr *w, enum metrics_format format);

/* A line for each metric: its name, type, labels and meaning. */
void metrics_print_names(struct of_wr *w);

#endif
