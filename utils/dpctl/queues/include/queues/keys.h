/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a command's keys (core/keys.h) that are written as for tc. */
#ifndef DPCTL_QUEUES_KEYS_H
#define DPCTL_QUEUES_KEYS_H

#include <core/keys.h>

/* `least` to `most` bit/s (0: any); doubts a rate without a unit. */
enum status key_rate(struct ctx *c, const struct key *k, char *value, void *to);

/* `least` to `most` microseconds. */
enum status key_time(struct ctx *c, const struct key *k, char *value, void *to);

#endif
