/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"
#include "conf.h"

#include <qos/sched/name.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations" /* containerd's and CRI-O's capability */
#define ANNOTATION  "ofqos.io/groups"
#define SELECTORS   16 /* ports and DSCPs of a group */

/* Queues of groups; those below are left to people, who begin with 1. */
#define QUEUE_FIRST 32768u
#define QUEUES      32000u

/* Of the name alone: two containers' groups of one name have one queue number, so a packet between them is in it at
 * both ends, and nobody has to keep which number is whose. */
static uint32_t
queue_of(const char *name)
{
    uint32_t h = 0x811c9dc5;
    for (const char *p = name; *p; p++)
        h = (h ^ (uint8_t)*p) * 0x01000193;
    return QUEUE_FIRST + (h ^ h >> 16) % QUEUES;
}

__attribute__((format(printf, 3, 4))) static int
wrong(struct cni *c, size_t i, const char *fmt, ...)
{
    char text[500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return cni_fail(c, CNI_BAD_CONFIG, "groups[%zu]: %s", i, text);
}

/* ------------------------------------------------------------------------- a group */

/* "443/tcp", "5000-5010/udp" -> ",tcp=443": what of it is no port, qos-map's parser says. */
static bool
port_words(const char *text, char *out, size_t n)
{
    static const char *const protocols[] = {"tcp", "udp", "sctp"};
    const char *slash = strchr(text, '/');
    size_t digits = strspn(text, "0123456789-");
    if (!slash || slash != text + digits || !digits || digits > 11)
        return false;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (!strcmp(slash + 1, protocols[i]))
            return snprintf(out, n, ",%s=%.*s", protocols[i], (int)digits, text) < (int)n;
    return false;
}

static bool
dscp_words(const json_t *v, char *out, size_t n)
{
    const char *text = json_string_value(v);
    if (json_is_integer(v))
        return snprintf(out, n, ",dscp=%" JSON_INTEGER_FORMAT, json_integer_value(v)) < (int)n;
    return text && conf_is_word(text) && strlen(text) < 12 &&
           snprintf(out, n, ",dscp=%s", text) < (int)n;
}

static int
take_selectors(struct cni *c, size_t i, const json_t *group, const char *key, struct cni_group *g)
{
    const json_t *list = json_object_get(group, key), *v;
    size_t k, at;
    bool ports = !strcmp(key, "ports");
    if (!list)
        return 0;
    if (!json_is_array(list) || !json_array_size(list) || json_array_size(list) > SELECTORS)
        return wrong(c, i, "%s must be a list of 1 to %d", key, SELECTORS);
    json_array_foreach(list, k, v)
    {
        at = strlen(g->selects);
        const char *text = json_string_value(v);
        if (ports ? text && port_words(text, g->selects + at, sizeof g->selects - at)
                  : dscp_words(v, g->selects + at, sizeof g->selects - at))
            continue;
        return wrong(c, i, "%s[%zu] must be such as %s", key, k,
                     ports ? "\"443/tcp\" or \"5000-5010/udp\" (tcp, udp, sctp)"
                           : "\"ef\", \"af41\" or 46");
    }
    return 0;
}

static int
check_keys(struct cni *c, size_t i, json_t *group)
{
    const char *key;
    json_t *v;
    json_object_foreach(group, key, v)
    {
        if (strcmp(key, "name") && strcmp(key, "share") && strcmp(key, "ports") &&
            strcmp(key, "dscp"))
            return wrong(c, i, "there is no key %.40s: a group has name, share, ports and dscp",
                         key);
    }
    return 0;
}

static int
take_group(struct cni *c, size_t i, json_t *json, struct cni_group *g)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *share = json_object_get(json, "share");
    double percent = json_number_value(share);
    *g = (struct cni_group){.name = name};
    if (!json_is_object(json))
        return wrong(c, i, "must be an object with name and share");
    if (check_keys(c, i, json))
        return -1;
    if (!name || !conf_is_word(name) || strlen(name) > QOS_NAME_BYTES)
        return wrong(c, i,
                     "name must be 1 to %d letters, digits, _ . or -, the first a letter or digit",
                     QOS_NAME_BYTES);
    if (!json_is_number(share) || percent < 0.01 || percent > 100)
        return wrong(c, i, "share must be a number from 0.01 to 100, percent of the total");
    g->ppm = (uint32_t)(percent * 10000 + 0.5);
    g->queue = queue_of(name);
    return take_selectors(c, i, json, "ports", g) || take_selectors(c, i, json, "dscp", g) ? -1 : 0;
}

/* ------------------------------------------------------------------------- all of them */

static int
check_others(struct cni *c, size_t i, uint32_t *sum)
{
    const struct cni_group *g = &c->conf.groups[i];
    for (size_t k = 0; k < i; k++) {
        const struct cni_group *o = &c->conf.groups[k];
        if (!strcmp(g->name, o->name))
            return wrong(c, i, "name %s is that of groups[%zu], too", g->name, k);
        if (g->queue == o->queue)
            return wrong(c, i, "names %s and %s come to the same queue: choose another name",
                         g->name, o->name);
        if (!strcmp(g->selects, o->selects))
            return wrong(c, i, "group %s selects the same packets as %s", g->name, o->name);
    }
    *sum += g->ppm;
    return *sum <= 1000000 ? 0 : wrong(c, i, "the shares up to this one come to more than 100");
}

static int
take_groups(struct cni *c, const json_t *list)
{
    size_t i;
    json_t *v;
    uint32_t sum = 0;
    if (!json_is_array(list) || json_array_size(list) > CNI_GROUPS_MAX)
        return cni_fail(c, CNI_BAD_CONFIG, "groups must be a list of at most %d", CNI_GROUPS_MAX);
    json_array_foreach(list, i, v)
    {
        if (take_group(c, i, v, &c->conf.groups[i]) || check_others(c, i, &sum))
            return -1;
        c->conf.n_groups = (unsigned)i + 1;
    }
    if (c->conf.n_groups && !c->conf.in.rate && !c->conf.out.rate)
        return cni_fail(c, CNI_BAD_CONFIG,
                        "groups share a total: give the container ingressRate, egressRate or both");
    if (c->conf.n_groups && !c->conf.ipam && !c->conf.chained)
        return cni_fail(c, CNI_BAD_CONFIG,
                        "groups go by the container's addresses: ipam is needed");
    return 0;
}

static int
read_annotation(struct cni *c, const char *text)
{
    json_error_t where;
    c->conf.annotation = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    return c->conf.annotation
               ? take_groups(c, c->conf.annotation)
               : cni_fail(c, CNI_BAD_CONFIG, "annotation " ANNOTATION ", line %d, column %d: %s",
                          where.line, where.column, where.text);
}

int
group_read(struct cni *c)
{
    const json_t *runtime = json_object_get(c->conf.json, "runtimeConfig");
    const json_t *args = json_object_get(json_object_get(c->conf.json, "args"), "cni");
    const json_t *annotation = json_object_get(json_object_get(runtime, ANNOTATIONS), ANNOTATION);
    const json_t *list = json_object_get(args, "ofqosGroups");
    if (annotation)
        return json_is_string(annotation)
                   ? read_annotation(c, json_string_value(annotation))
                   : cni_fail(c, CNI_BAD_CONFIG, "annotation " ANNOTATION " must be a text");
    list = list ? list : json_object_get(runtime, "ofqosGroups");
    return list && !json_is_null(list) ? take_groups(c, list) : 0;
}
