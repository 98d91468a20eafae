/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and meters in ovs-ofctl's words become words of group-mod and meter-mod. */
#include "of10.h"

#include <core/flow-words.h>
#include <core/say.h>
#include <core/words.h>

#include <qos/sched/units.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* The words that are made. */
struct made {
    struct ctx *c;
    char **v;
    size_t n, room;
};

static enum status
add_word(struct made *m, const char *text, size_t n)
{
    char **v = words_room(m->c, m->v, m->n, &m->room, sizeof *v);
    char *copy = v ? words_keep(m->c, text, n) : NULL;
    if (!copy)
        return say_memory(m->c);
    m->v = v;
    v[m->n++] = copy;
    return DPCTL_OK;
}

/* What has been written, as a word, without its last comma. */
static enum status
add_written(struct made *m, struct of_wr *w)
{
    while (w->len && w->buf[w->len - 1] == ',')
        w->len--;
    enum status st = w->overflow ? say_memory(m->c) : DPCTL_OK;
    st = st ? st : add_word(m, w->len ? (const char *)w->buf : "", w->len);
    of_wr_free(w);
    return st;
}

/* The length of the first part: a comma between brackets does not end it. */
static size_t
part_len(const char *p, size_t left)
{
    size_t n = 0;
    for (int open = 0; n < left && (open || p[n] != ','); n++)
        open += p[n] == '(' ? 1 : p[n] == ')' && open ? -1 : 0;
    return n;
}

/* ------------------------------------------------------------------ groups */

enum { WEIGHT }; /* its place */
static const struct {
    const char *name, *now;
} bucket_keys[] = {{"weight", "weight="}, {"watch_port", "port="}, {"watch_group", "group="},
                   {"bucket_id", ""},     {"actions", NULL},       {"action", NULL}};

/* "weight:2,watch_port:1,actions=output:1": the bucket's own words, then its actions'. */
static enum status
put_bucket(struct made *m, const char *text, size_t len, bool select)
{
    struct of_wr head = of_wr_grow(1 << 16), actions = of_wr_grow(1 << 20);
    char *now = NULL;
    bool weighed = false;
    for (size_t at = 0, n; at < len; at += n + 1) {
        n = part_len(text + at, len - at);
        struct flow_part p = flow_part(text + at, n, ":=");
        size_t k = 0, keys = sizeof bucket_keys / sizeof bucket_keys[0];
        while (k < keys && !flow_part_is(&p, bucket_keys[k].name))
            k++;
        if (k == keys)
            of_printf(&actions, "%.*s,", (int)n, text + at);
        else if (!bucket_keys[k].now)
            of_printf(&actions, "%.*s,", p.value_len, p.value);
        else if (*bucket_keys[k].now)
            of_printf(&head, "%s%.*s,", bucket_keys[k].now, p.value_len, p.value);
        weighed |= k == WEIGHT;
    }
    if (select && !weighed) /* as ovs-ofctl takes it; 0 would be never chosen */
        of_printf(&head, "weight=1,");
    if (!head.len) /* two buckets without one would be one */
        of_printf(&head, "port=any");
    enum status st = add_written(m, &head);
    if (!st)
        st = of10_actions(m->c, actions.len ? (const char *)actions.buf : "", actions.len, &now);
    of_wr_free(&actions);
    return st ? st : add_word(m, now, strlen(now));
}

/* The next "bucket=" at the beginning or behind a comma; NULL: there is none. */
static const char *
next_bucket(const char *text, const char *begin)
{
    while ((text = strstr(text, "bucket=")) && text != begin && text[-1] != ',')
        text++;
    return text;
}

enum status
of10_group(struct ctx *c, char *const *words, int n, char ***out, int *n_out)
{
    struct made m = {.c = c};
    const char *text = words_join(c, words, n, ','), *bucket, *next;
    if (!text)
        return say_memory(c);
    bucket = next_bucket(text, text);
    size_t fields = bucket ? (size_t)(bucket - text) : strlen(text);
    while (fields && text[fields - 1] == ',')
        fields--;
    enum status st = add_word(&m, text, fields);
    bool select = !st && strstr(m.v[0], "type=sel");
    for (; bucket && !st; bucket = next) {
        bucket += strlen("bucket=");
        next = next_bucket(bucket, text);
        size_t len = next ? (size_t)(next - bucket) : strlen(bucket);
        while (len && bucket[len - 1] == ',')
            len--;
        st = put_bucket(&m, bucket, len, select);
    }
    *out = m.v;
    *n_out = (int)m.n;
    return st;
}

/* ------------------------------------------------------------------ meters */

/* "1mbit" in kbit/s or kbit: a meter counts these, or packets. */
static enum status
put_rate(struct ctx *c, struct of_wr *w, const char *key, const char *text)
{
    uint64_t bits;
    char why[256];
    if (!text[strspn(text, "0123456789")]) {
        of_printf(w, "%s=%s,", key, text);
        return DPCTL_OK;
    }
    size_t n = strlen(text);
    if (n > 3 && !strcasecmp(text + n - 3, "bps"))
        return say_usage(c,
                         "%s=%s: tc counts bytes in it, most people bits: write %s=1mbit for a "
                         "megabit",
                         key, text, key);
    if (qos_parse_rate(text, &bits, why, sizeof why))
        return say_usage(c,
                         "%s=%s: a meter's %s is a number of kbit, one with a unit (1mbit), or, "
                         "with pktps, packets",
                         key, text, key);
    if (bits % 1000 || !bits)
        return say_usage(c, "%s=%s is no whole number of kbit, which a meter counts in", key, text);
    of_printf(w, "%s=%" PRIu64 ",", key, bits / 1000);
    return DPCTL_OK;
}

/* Where the words are that are read. */
struct meter_words {
    struct made m;
    struct of_wr fields, flags, band; /* the meter's; the band that is begun, "": none */
    bool kbps, pktps, unit;           /* what it counts; a rate has a unit */
};

static enum status
end_band(struct meter_words *k)
{
    if (!k->band.len)
        return DPCTL_OK;
    enum status st = add_written(&k->m, &k->band);
    k->band = of_wr_grow(1 << 16);
    return st;
}

static enum status
begin_band(struct meter_words *k, const char *type)
{
    enum status st = end_band(k);
    of_printf(&k->band, "%s:", type);
    return st;
}

/* One "key=value" or bare word. */
static enum status
put_meter_part(struct meter_words *k, const char *text)
{
    static const char *const band_keys[] = {"rate", "burst", "burst_size", "prec_level"};
    static const char *const flags[] = {"kbps", "pktps", "burst", "stats"};
    const char *value = strchr(text, '=');
    size_t key = strcspn(text, "="), colon = strcspn(text, ":=");
    enum status st = DPCTL_OK;
    if (!strncmp(text, "band=", 5) || !strncmp(text, "bands=", 6))
        return put_meter_part(k, value + 1);
    if (!strncmp(text, "type=", 5))
        return begin_band(k, value + 1);
    if (text[colon] == ':') { /* drop:rate=1000 */
        char type[32];
        snprintf(type, sizeof type, "%.*s", (int)colon, text);
        st = begin_band(k, type);
        return st ? st : put_meter_part(k, text + colon + 1);
    }
    for (size_t i = 0; value && i < sizeof band_keys / sizeof band_keys[0]; i++) {
        if (strlen(band_keys[i]) != key || strncmp(text, band_keys[i], key))
            continue;
        if (!k->band.len)
            st = begin_band(k, "drop");
        k->unit |= isalpha((unsigned char)text[strlen(text) - 1]);
        return st ? st : put_rate(k->m.c, &k->band, band_keys[i], value + 1);
    }
    for (size_t i = 0; !value && i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(text, flags[i]))
            continue;
        k->kbps |= !strcmp(text, "kbps");
        k->pktps |= !strcmp(text, "pktps");
        of_printf(&k->flags, "%s%s", k->flags.len ? "|" : "flags=", text);
        return DPCTL_OK;
    }
    k->pktps |= !strncmp(text, "flags=", 6) && strstr(text, "pktps");
    bool meters = !k->band.len || of_field_by_name(&of_row_meter_mod, text, key);
    of_printf(meters ? &k->fields : &k->band, "%s,", text); /* wrong ones: for the parser to say */
    return DPCTL_OK;
}

enum status
of10_meter(struct ctx *c, char *const *words, int n, char ***out, int *n_out)
{
    struct meter_words k = {.m = {.c = c},
                            .fields = of_wr_grow(1 << 16),
                            .flags = of_wr_grow(1 << 16),
                            .band = of_wr_grow(1 << 16)};
    enum status st = add_word(&k.m, "", 0); /* the first: the fields */
    for (int i = 0; i < n && !st; i++) {
        char *copy = words_keep(c, words[i], strlen(words[i])), *save;
        st = copy ? end_band(&k) : say_memory(c);
        for (char *p = st ? NULL : strtok_r(copy, ",", &save); p && !st;
             p = strtok_r(NULL, ",", &save))
            st = put_meter_part(&k, p);
    }
    st = st ? st : end_band(&k);
    if (!st && k.pktps && k.unit)
        st = say_usage(c, "with pktps a meter counts packets: write a rate without a unit");
    if (k.flags.len && !k.kbps && !k.pktps)
        of_printf(&k.flags, "|kbps");
    of_printf(&k.fields, "%.*s", (int)k.flags.len, k.flags.len ? (const char *)k.flags.buf : "");
    struct made first = {.c = c};
    st = st ? st : add_written(&first, &k.fields);
    if (!st)
        k.m.v[0] = first.v[0];
    else
        of_wr_free(&k.fields);
    of_wr_free(&k.flags);
    of_wr_free(&k.band);
    *out = k.m.v;
    *n_out = (int)k.m.n;
    return st;
}
