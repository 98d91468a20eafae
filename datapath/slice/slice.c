/* SPDX-License-Identifier: Apache-2.0 */
/* A slice and what its section in the configuration file says. */
#include <slice/slice.h>

#include <oflib/text.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ beginning and end */

struct slice *
slice_new(const char *name)
{
    struct slice *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->refs = 1;
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

struct slice *
slice_hold(struct slice *s)
{
    if (s)
        s->refs++;
    return s;
}

void
slice_put(struct slice *s)
{
    if (!s || --s->refs)
        return;
    for (unsigned i = 0; i < s->n_peers; i++)
        free(s->peers[i]);
    free(s->common_name);
    free(s);
}

void
slices_clear(struct slices *all)
{
    while (all->n)
        slice_put(all->v[--all->n]);
}

/* ------------------------------------------------------------------ sets */

bool
slice_set_has(const struct slice_set *set, uint32_t number)
{
    for (unsigned i = 0; i < set->n; i++)
        if (number >= set->v[i].first && number <= set->v[i].last)
            return true;
    return false;
}

/* A number, decimal, at *p, which is moved behind it. */
static bool
read_number(const char **p, uint32_t most, uint32_t *out)
{
    char *end;
    if (**p < '0' || **p > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(*p, &end, 10);
    *p = end;
    *out = (uint32_t)v;
    return !errno && v <= most;
}

/* "3", "3-7", "all", "local" (of ports). */
static bool
read_range(const char *word, uint32_t least, uint32_t most, bool ports, struct slice_range *out)
{
    *out = (struct slice_range){least, most};
    if (!strcmp(word, "all"))
        return true;
    if (ports && !strcmp(word, "local")) {
        *out = (struct slice_range){OFPP_LOCAL, OFPP_LOCAL};
        return true;
    }
    if (!read_number(&word, most, &out->first))
        return false;
    out->last = out->first;
    if (*word == '-' && word++ && !read_number(&word, most, &out->last))
        return false;
    return !*word && out->first >= least && out->first <= out->last;
}

struct set_key {
    const char *key;
    size_t at;
    uint32_t least, most;
    const char *example;
};

static int
add_ranges(struct slice_set *set, const struct set_key *k, const char *value, char *why, size_t n)
{
    char copy[512], *rest = copy;
    bool ports = k->at == offsetof(struct slice, ports);
    if (snprintf(copy, sizeof copy, "%s", value) >= (int)sizeof copy) {
        snprintf(why, n, "is too long: give the key again for more");
        return -EINVAL;
    }
    for (char *word; (word = strsep(&rest, ","));) {
        size_t len = strlen(word += strspn(word, " \t"));
        while (len && (word[len - 1] == ' ' || word[len - 1] == '\t'))
            word[--len] = '\0';
        if (set->n == SLICE_RANGES_MAX) {
            snprintf(why, n, "has more than %d ranges", SLICE_RANGES_MAX);
            return -EINVAL;
        }
        if (!read_range(word, k->least, k->most, ports, &set->v[set->n])) {
            snprintf(why, n, "must be numbers from %u to %u%s, such as %s", (unsigned)k->least,
                     (unsigned)k->most, ports ? ", or local" : "", k->example);
            return -EINVAL;
        }
        set->n++;
    }
    return 0;
}

/* ------------------------------------------------------------------ the keys */

static const struct set_key set_keys[] = {
    {"ports", offsetof(struct slice, ports), 1, 0xffff, "1-3,7"},
    {"tables", offsetof(struct slice, tables), 0, OFPTT_MAX, "2-5"},
    {"shared-tables", offsetof(struct slice, shared), 0, OFPTT_MAX, "0"},
    {"queues", offsetof(struct slice, queues), 0, OFP_QOS_QUEUE_MAX, "10-19"},
    {"below", offsetof(struct slice, below), 0, OFP_QOS_QUEUE_MAX, "10"},
    {"groups", offsetof(struct slice, groups), 0, OFPG_MAX, "100-199"},
    {"meters", offsetof(struct slice, meters), 1, OFPM_MAX, "100-199"},
};

static int
set_may(struct slice *s, const char *value, char *why, size_t n)
{
    s->read_only = !strcmp(value, "ask");
    s->may_all = !strcmp(value, "all");
    if (s->read_only || s->may_all || !strcmp(value, "change"))
        return 0;
    snprintf(why, n, "must be ask, change or all");
    return -EINVAL;
}

static int
set_metadata(struct slice *s, const char *value, char *why, size_t n)
{
    char *end;
    errno = 0;
    s->metadata = strtoull(value, &end, 0);
    if (*value >= '0' && *value <= '9' && !*end && !errno)
        return 0;
    s->metadata = 0;
    snprintf(why, n, "must be a mask of 64 bits, such as 0xff00");
    return -EINVAL;
}

static int
no_memory(char *why, size_t n)
{
    snprintf(why, n, "can't be kept: out of memory");
    return -ENOMEM;
}

/* In characters; 0 also if it isn't UTF-8. */
static size_t
utf8_length(const char *text)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
    size_t n = 0, len;
    for (; p < end; p += len, n++)
        if (!(len = of_utf8_len(p, (size_t)(end - p))))
            return 0;
    return n;
}

static int
set_common_name(struct slice *s, const char *value, char *why, size_t n)
{
    size_t len = utf8_length(value);
    if (s->common_name || !len || len > 64) {
        snprintf(why, n, "must be one name of 1 to 64 characters in UTF-8");
        return -EINVAL;
    }
    s->common_name = strdup(value);
    return s->common_name ? 0 : no_memory(why, n);
}

static int
add_peer(struct slice *s, const char *value, char *why, size_t n)
{
    if (s->n_peers == SLICE_PEERS_MAX) {
        snprintf(why, n, "is given more than %d times", SLICE_PEERS_MAX);
        return -EINVAL;
    }
    s->peers[s->n_peers] = strdup(value);
    return s->peers[s->n_peers] ? (s->n_peers++, 0) : no_memory(why, n);
}

int
slice_set_key(struct slice *s, const char *key, const char *value, char *why, size_t n)
{
    for (size_t i = 0; i < sizeof set_keys / sizeof set_keys[0]; i++)
        if (!strcmp(key, set_keys[i].key))
            return add_ranges((struct slice_set *)(void *)((char *)s + set_keys[i].at),
                              &set_keys[i], value, why, n);
    if (!strcmp(key, "may"))
        return set_may(s, value, why, n);
    if (!strcmp(key, "metadata"))
        return set_metadata(s, value, why, n);
    return !strcmp(key, "common-name") ? set_common_name(s, value, why, n)
                                       : add_peer(s, value, why, n);
}

/* ------------------------------------------------------------------ whose it is */

static bool
suits(const struct slice *s, const char *target)
{
    for (unsigned i = 0; i < s->n_peers; i++)
        if (!strcmp(s->peers[i], target))
            return true;
    return !s->n_peers;
}

bool
slices_find(const struct slices *all, const struct slice_peer *peer, struct slice **out)
{
    struct slice *found = NULL;
    bool names = false;
    for (size_t i = all->n; i--;) {
        struct slice *s = all->v[i];
        if (!s->common_name || !peer->tls || !suits(s, peer->target))
            continue;
        names = true;
        if (peer->common_name && !strcmp(s->common_name, peer->common_name))
            found = s;
    }
    for (size_t i = 0; !found && i < all->n; i++)
        if (!all->v[i]->common_name && all->v[i]->n_peers && suits(all->v[i], peer->target))
            found = all->v[i];
    *out = found;
    return found || !names;
}
