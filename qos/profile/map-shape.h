/* SPDX-License-Identifier: Apache-2.0 */
/* What flows of a rule match, as sets of values, and the rule's text. */
#ifndef QOS_PROFILE_MAP_SHAPE_H
#define QOS_PROFILE_MAP_SHAPE_H

#include <qos/profile/map.h>

enum { MAP_ANY_PROTOCOL = 1, MAP_IPV4 = 2, MAP_IPV6 = 4 }; /* families */
enum { MAP_TAGGED = 1, MAP_UNTAGGED = 2 };                 /* tags; 0: either */
enum { MAP_SRC = 1, MAP_DST = 2 };                         /* sides */

struct map_port {
    uint8_t proto, sides;
    uint16_t no;
};

struct map_shape {
    const struct of_flow_stats *flow; /* one of the flows */
    const char *then;                 /* "" where then= can't say it */
    struct qos_map_does does;
    uint16_t prio;
    uint8_t families, tags, ecns, pcps; /* bits; ecns, pcps, dscps: 0: any */
    uint64_t dscps;
    uint32_t in_port;      /* 0: any */
    const char *src, *dst; /* "": any */
    int proto;             /* -1: any, or that of the ports */
    struct map_port *ports;
    size_t n_ports;
    bool odd; /* no rule makes such a flow */
    uint32_t flows;
    uint64_t packets, bytes;
    const char *key; /* for joining */
};

/* The rule, as somebody would type it; NULL: out of memory.  Sets r->missing. */
const char *qos_map_rule_text(struct of_parse *p, struct qos_map_read *r,
                              const struct map_shape *s);

/* "flow MATCH", of a flow that no rule makes. */
const char *qos_map_flow_text(struct of_parse *p, const struct of_flow_stats *f);

#endif
