/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/profile/map.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
qos_map_rules(struct of_parse *p, struct qos_map *m, char *const *words, size_t n)
{
    int err = 0;
    for (size_t i = 0; !err && i < n; i++) {
        int taken = qos_map_is_rule(words[i]) ? 1 : qos_map_option(p, m, words[i]);
        err = taken < 0 ? taken : 0;
        if (taken)
            continue;
        snprintf(p->why, sizeof p->why,
                 "unknown word '%.80s': a rule has queue=N, such as queue=10,dscp=ef; options are "
                 "table=N, then=..., wash, beside, set=NAME",
                 words[i]);
        err = -EINVAL;
    }
    for (size_t i = 0; !err && i < n; i++)
        if (qos_map_is_rule(words[i]))
            err = qos_map_rule(p, m, words[i], false);
    return err;
}

int
qos_map_words(struct of_parse *p, struct qos_map *m, char *const *words, size_t n)
{
    int err = qos_map_rules(p, m, words, n);
    return err ? err : qos_map_finish(p, m);
}
