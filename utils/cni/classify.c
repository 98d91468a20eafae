/* SPDX-License-Identifier: Apache-2.0 */
/* libpcap makes the filters' programs (pcap-filter(7)). */
#include "classify.h"
#include "filter.h"
#include "node.h"

#include <qos/profile/map.h>

#include <pcap/pcap.h>

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096

/* ------------------------------------------------------------------------- a group's packets */

struct words {
    char ports[TEXT_MAX / 2], dscps[TEXT_MAX / 2]; /* each "" or terms with or between them */
};

static void
append(char *to, size_t size, const char *text)
{
    size_t at = strlen(to);
    snprintf(to + at, size - at, "%s%s", *to ? " or " : "", text);
}

/* "tcp=443", "udp=5000-5010", "dscp=ef" */
static bool
take_word(struct words *w, const char *word)
{
    char text[160];
    const char *value = strchr(word, '=') + 1;
    uint8_t dscp;
    if (strncmp(word, "dscp=", 5)) {
        snprintf(text, sizeof text, "%.*s portrange %s%s%s", (int)(value - word - 1), word, value,
                 strchr(value, '-') ? "" : "-", strchr(value, '-') ? "" : value);
        append(w->ports, sizeof w->ports, text);
        return true;
    }
    if (!qos_map_dscp(value, &dscp))
        return false;
    snprintf(text, sizeof text, "(ip and ip[1] & 0xfc = 0x%x) or (ip6 and ip6[0:2] & 0xfc0 = 0x%x)",
             dscp << 2, dscp << 6);
    append(w->dscps, sizeof w->dscps, text);
    return true;
}

static int
read_words(struct cni *c, const struct cni_group *g, struct words *w)
{
    char copy[sizeof g->selects], *rest = copy;
    *w = (struct words){0};
    snprintf(copy, sizeof copy, "%s", g->selects);
    for (char *word; (word = strsep(&rest, ","));)
        if (*word && !take_word(w, word))
            return cni_fail(c, CNI_BAD_CONFIG,
                            "group %s: %s must be such as dscp=ef, dscp=af41 or a number up to 63",
                            g->name, word);
    return 0;
}

/* Ports say more than a DSCP, and both more than one, as in qos-map. */
static unsigned
says(const struct words *w)
{
    return (*w->ports ? 2u : 0u) + (*w->dscps ? 1u : 0u);
}

static void
write_text(const struct words *w, char *out, size_t n)
{
    if (*w->ports && *w->dscps)
        snprintf(out, n, "(%s) and (%s)", w->ports, w->dscps);
    else
        snprintf(out, n, "%s", *w->ports ? w->ports : *w->dscps ? w->dscps : "ip or ip6");
}

static int
compile(struct cni *c, const struct cni_group *g, const struct words *w, struct bpf_program *out)
{
    char text[TEXT_MAX + 32];
    write_text(w, text, sizeof text);
    pcap_t *p = pcap_open_dead(DLT_EN10MB, UINT16_MAX);
    if (!p)
        return cni_no_memory(c);
    int err = pcap_compile(p, out, text, 1, PCAP_NETMASK_UNKNOWN);
    if (err)
        cni_fail(c, CNI_BAD_CONFIG, "group %s (%.200s): %s", g->name, g->selects, pcap_geterr(p));
    pcap_close(p);
    for (unsigned i = 0; !err && i < out->bf_len;
         i++) /* the filter's class; else it would be a number */
        if (out->bf_insns[i].code == (BPF_RET | BPF_K) && out->bf_insns[i].k)
            out->bf_insns[i].k = UINT32_MAX;
    return err ? -1 : 0;
}

/* ------------------------------------------------------------------------- filters */

typedef int (*each_fn)(struct cni *c, struct links *here, const char *name, const struct filter *f);

/* The first that fits counts: those that say more come first, equal ones as they are listed. */
static int
each_group(struct cni *c, struct links *here, const char *name, each_fn fn)
{
    static struct words words[CNI_GROUPS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < c->conf.n_groups; i++)
        if (read_words(c, &c->conf.groups[i], &words[i]))
            return -1;
    for (unsigned level = 4; level--;)
        for (unsigned i = 0; i < c->conf.n_groups; i++) {
            struct bpf_program program = {0};
            const struct cni_group *g = &c->conf.groups[i];
            if (says(&words[i]) != level)
                continue;
            if (compile(c, g, &words[i], &program))
                return -1;
            const struct filter f = {g->name, ++n, g->queue, program.bf_len, program.bf_insns};
            int err = fn(c, here, name, &f);
            pcap_freecode(&program);
            if (err)
                return err;
        }
    return 0;
}

static int
each_direction(struct cni *c, struct links *here, const struct link_there *host, each_fn fn)
{
    char in[IFNAMSIZ];
    classify_in(host->ifindex, in);
    for (int i = 0; i < DIRECTIONS; i++)
        if (direction_rate(&c->conf, &directions[i])->rate &&
            each_group(c, here, directions[i].dir == QOS_IN ? in : host->name, fn))
            return -1;
    return 0;
}

int
classify_set(struct cni *c, struct links *here, const struct link_there *host)
{
    return each_direction(c, here, host, filter_add);
}

static int
check(struct cni *c, struct links *here, const char *name, const struct filter *f)
{
    int is = filter_is_there(c, here, name, f);
    return is ? is < 0 ? -1 : 0
              : cni_fail(c, CNI_DIFFERS,
                         "interface %s has not the filter of group %s: its packets get into the "
                         "class of all others (tc filter show dev %s)",
                         name, f->name, name);
}

int
classify_check(struct cni *c, struct links *here, const struct link_there *host)
{
    return each_direction(c, here, host, check);
}
