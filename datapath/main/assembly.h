/* SPDX-License-Identifier: Apache-2.0 */
/* Putting the switch together, and taking it apart. */
#ifndef MAIN_ASSEMBLY_H
#define MAIN_ASSEMBLY_H

#include <switch/switch.h>

/* Returns -errno, and a sentence in `why`. */
int sw_new(const struct sw_options *opt, struct sw **out, char *why, size_t why_len);
/* Ends connections and stops forwarding, for a process that is about to exit: queues stay in the
 * kernel, and nothing is freed. */
void sw_halt(struct sw *sw);
/* Tells the queues' model of opt.qos_leaf; a kernel without that scheduler is logged. */
void sw_set_leaf(struct sw *sw);
void sw_free(struct sw *sw); /* also removes what the switch put on the interfaces */

#endif
