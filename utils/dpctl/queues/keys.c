/* SPDX-License-Identifier: Apache-2.0 */
#include <core/say.h>
#include <queues/keys.h>

#include <qos/sched/units.h>

enum status
key_rate(struct ctx *c, const struct key *k, char *value, void *to)
{
    char why[512], least[QOS_UNIT_TEXT], most[QOS_UNIT_TEXT];
    uint64_t v = 0;
    if (qos_parse_rate(value, &v, why, sizeof why))
        return say_usage(c, "%s: %s", k->name, why);
    if (k->most && (v < k->least || v > k->most))
        return say_usage(c, "%s must be %s to %s, not '%.40s'%s", k->name,
                         qos_format_rate(k->least, least), qos_format_rate(k->most, most), value,
                         qos_rate_is_bare(value) ? ": write a unit, as in 5mbit" : "");
    key_put(k, to, v);
    qos_rate_doubt(k->name, value, why, sizeof why);
    return say_doubt(c, why);
}

enum status
key_time(struct ctx *c, const struct key *k, char *value, void *to)
{
    char why[256], least[QOS_UNIT_TEXT], most[QOS_UNIT_TEXT];
    uint64_t v = 0;
    if (qos_parse_time(value, &v, 1000000, why, sizeof why))
        return say_usage(c, "%s: %s", k->name, why);
    if (v < k->least || v > k->most)
        return say_usage(c, "%s must be %s to %s, not '%.40s'", k->name,
                         qos_format_time(k->least, least), qos_format_time(k->most, most), value);
    key_put(k, to, v);
    return DPCTL_OK;
}
