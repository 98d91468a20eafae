/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: files that say what a port's queues are to be (docs/how-to/dpctl-qos.md). */
#ifndef QOS_PROFILE_H
#define QOS_PROFILE_H

#include <qos/profile/map.h>
#include <qos/wire/request.h>

/* Where a profile comes from. */
struct qos_profile_text {
    const char *file;         /* read unless there are lines; "-": stdin */
    const char *const *lines; /* or NULL */
    size_t n_lines;
    char *const *sets; /* words "NAME=VALUE" for the variables */
    int n_sets;
};

struct qos_profile {
    const char *file;
    struct qos_profile_part {
        struct qos_request *want; /* ADD requests of port 1 */
        unsigned *line;           /* where each stands in the file */
        bool *optional;           /* "try": only where the kernel has the scheduler */
        size_t n;
        uint8_t *wrong; /* bits of classes whose lines have mistakes; NULL: none has */
    } part[2];          /* by enum qos_direction */
    struct qos_map map;
};

enum qos_profile_fault {
    QOS_PROFILE_LINE, /* a line of the text; 0: the text as a whole */
    QOS_PROFILE_WORD, /* the variables' words */
    QOS_PROFILE_FILE, /* the file can't be read: a whole sentence */
};

#define QOS_PROFILE_MISTAKES 50 /* that are reported; behind the last one reading ends */

struct qos_profile_report {
    /* Each mistake, in order of what finds it; NULL: not reported. */
    void (*mistake)(void *ctx, enum qos_profile_fault fault, unsigned line, const char *text);
    unsigned mistakes;
    /* A line that is allowed but rarely meant; NULL: not reported. */
    void (*warn)(void *ctx, const char *file, unsigned line, const char *text);
    void *ctx;
};

/* Everything is in p->arena.  0, -ENOMEM, or -EINVAL when all mistakes have been reported; *out then has
 * the lines that are right, for those who want to look for mistakes among them. */
int qos_profile_read(struct of_parse *p, const struct qos_profile_text *text,
                     struct qos_profile *out, struct qos_profile_report *report);

/* Removes the optional requests for schedulers that the kernel hasn't got: has(ctx, sched). */
typedef bool qos_profile_has(void *ctx, const struct qos_request *r);
void qos_profile_fit(struct qos_profile *p, qos_profile_has *has, void *ctx);

/* Notes that the class's line, in this direction, has a mistake: what refers to it has none. */
void qos_profile_wrong(struct of_parse *parse, struct qos_profile *p, enum qos_direction dir,
                       uint32_t class_id);
bool qos_profile_is_wrong(const struct qos_profile *p, enum qos_direction dir, uint32_t class_id);

/* Is there an optional request? */
bool qos_profile_is_optional(const struct qos_profile *p);

#endif
