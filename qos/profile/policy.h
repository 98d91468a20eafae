/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: a profile's lines in words, such as "guarantee 2mbit latency 10ms for app=sip".
 *
 *   total RATE [KEY=VALUE...]                             the root class
 *   [guarantee RATE|P%] [limit RATE|P%] [latency TIME]    a class, its scheduler,
 *       [for RULE...|others] [as NAME] [within NAME]      and the map's rules
 */
#ifndef QOS_PROFILE_POLICY_H
#define QOS_PROFILE_POLICY_H

#include "profile-text.h"

/* Replaces such lines by those of classes, schedulers and rules, which keep their line's number.
 * A line with a mistake is reported and becomes a wrong one.  0, -ENOMEM, -ECANCELED. */
int qos_policy_compile(struct of_parse *p, const char *file, struct profile_line **lines, size_t *n,
                       struct qos_profile_report *report);

#endif
