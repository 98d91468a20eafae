/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QOS_PROFILE_TEXT_H
#define QOS_PROFILE_TEXT_H

#include <qos/profile/profile.h>

/* A line without its comment, its variables replaced. */
struct profile_line {
    unsigned number;
    char *text;
    bool wrong; /* its mistake has been reported */
};

/* Tells of a mistake.  -EINVAL: go on with the next line; -ECANCELED: they were enough. */
int qos_profile_mistake(struct qos_profile_report *report, enum qos_profile_fault fault,
                        unsigned line, const char *text);

/* Reads the lines; "set" lines give variables their values and are left out. */
int qos_profile_lines(struct of_parse *p, const struct qos_profile_text *text,
                      struct profile_line **out, size_t *n, struct qos_profile_report *report);

#endif
