/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/sched/precedence.h>
#include <qos/sched/units.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PARTS 5

/* min, max; prio in 8 bits, the probability in 24, limit. */
struct qos_precedence
qos_precedence_get(const uint64_t v[QOS_PRECEDENCE_SLOTS])
{
    return (struct qos_precedence){.min = (uint32_t)(v[0] >> 32),
                                   .max = (uint32_t)v[0],
                                   .prio = (uint32_t)(v[1] >> 56),
                                   .ppm = (uint32_t)(v[1] >> 32 & 0xffffff),
                                   .limit = (uint32_t)v[1]};
}

void
qos_precedence_put(uint64_t v[QOS_PRECEDENCE_SLOTS], const struct qos_precedence *p)
{
    uint64_t ppm = p->ppm <= 0xffffff ? p->ppm : 0xffffff; /* out of range all the same */
    v[0] = (uint64_t)p->min << 32 | p->max;
    v[1] = (uint64_t)(p->prio & 0xff) << 56 | ppm << 32 | p->limit;
}

char *
qos_precedence_format(const uint64_t v[QOS_PRECEDENCE_SLOTS], char *buf, size_t n)
{
    char min[QOS_UNIT_TEXT], max[QOS_UNIT_TEXT], limit[QOS_UNIT_TEXT], ppm[QOS_UNIT_TEXT];
    struct qos_precedence p = qos_precedence_get(v);
    int at = 0;
    qos_append(buf, n, &at, "%s/%s/%s/%s", qos_format_size(p.min, min), qos_format_size(p.max, max),
               qos_format_size(p.limit, limit), qos_format_ppm(p.ppm, ppm));
    if (p.prio)
        qos_append(buf, n, &at, "/%u", p.prio);
    return buf;
}

static int
parse_parts(char *const part[PARTS], unsigned n_parts, uint64_t v[PARTS], char *why, size_t n)
{
    int err = 0;
    for (unsigned i = 0; !err && i < n_parts; i++) {
        err = i < 3    ? qos_parse_size(part[i], &v[i], why, n)
              : i == 3 ? qos_parse_ppm(part[i], &v[i], why, n)
                       : qos_parse_number(part[i], &v[i], why, n);
        if (!err && v[i] > UINT32_MAX) {
            snprintf(why, n, "'%.40s' is too large", part[i]);
            err = -EINVAL;
        }
    }
    return err;
}

int
qos_precedence_parse(const char *text, uint64_t v[QOS_PRECEDENCE_SLOTS], char *why, size_t n)
{
    char copy[128], *part[PARTS], *rest = copy;
    uint64_t value[PARTS] = {0};
    unsigned parts = 0;
    bool whole = (size_t)snprintf(copy, sizeof copy, "%s", text) < sizeof copy;
    while (whole && rest && parts < PARTS) {
        part[parts++] = rest;
        if ((rest = strchr(rest, '/')))
            *rest++ = '\0';
    }
    if (!whole || rest || parts < PARTS - 1) {
        snprintf(why, n,
                 "'%.60s' is not a drop precedence; write min/max/limit/probability, such as "
                 "10kb/30kb/60kb/2%%, and /prio if it counts others",
                 text);
        return -EINVAL;
    }
    int err = parse_parts(part, parts, value, why, n);
    if (!err && value[4] > QOS_PRECEDENCE_PRIO) {
        snprintf(why, n, "prio %u is out of range; it must be 0 to %u", (unsigned)value[4],
                 QOS_PRECEDENCE_PRIO);
        err = -EINVAL;
    }
    if (err)
        return err;
    qos_precedence_put(v, &(struct qos_precedence){.min = (uint32_t)value[0],
                                                   .max = (uint32_t)value[1],
                                                   .limit = (uint32_t)value[2],
                                                   .ppm = (uint32_t)value[3],
                                                   .prio = (uint32_t)value[4]});
    return 0;
}

int
qos_precedence_check(unsigned dp, const uint64_t v[QOS_PRECEDENCE_SLOTS], struct qos_error *e)
{
    struct qos_precedence p = qos_precedence_get(v);
    if (!p.min)
        return qos_fail(e, QOS_BAD_PARAM, "drop precedence %u: min must be above 0", dp);
    if (p.max <= p.min)
        return qos_fail(e, QOS_BAD_PARAM, "drop precedence %u: max %u is not above min %u", dp,
                        p.max, p.min);
    if (p.limit < p.min)
        return qos_fail(e, QOS_BAD_PARAM, "drop precedence %u: limit %u is below min %u", dp,
                        p.limit, p.min);
    if (p.ppm < 1 || p.ppm > 1000000)
        return qos_fail(e, QOS_BAD_PARAM,
                        "drop precedence %u: probability %u ppm is out of range; it must be 1 to "
                        "1000000",
                        dp, p.ppm);
    return 0;
}
