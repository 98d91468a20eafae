/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a rule's values may be. */
#ifndef QOS_PROFILE_MAP_NAMES_H
#define QOS_PROFILE_MAP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* The last row of each table has no name. */
struct qos_map_name {
    const char *name;
    uint8_t value;
};

extern const struct qos_map_name qos_map_dscps[], qos_map_ecns[], qos_map_protocols[];

struct qos_map_app {
    const char *name;
    uint8_t proto;
    uint16_t low, high;
};

extern const struct qos_map_app qos_map_apps[];

/* Ignores case. */
bool qos_map_find_name(const struct qos_map_name *names, const char *text, unsigned long *value);

#endif
