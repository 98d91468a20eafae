/* SPDX-License-Identifier: Apache-2.0 */
/* qos-show --kernel: which schedulers the switch's kernel has. */
#include "qos-cmd.h"

#define RELEASE_LEN 64
#define ENTRY_LEN   4

static const char *const states[] = {"no", "yes", "unknown"};

static void
json_kernel(struct of_wr *w, const char *release, const uint8_t *entries, size_t n)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_text(j, "release", release);
    of_json_array(j, "schedulers");
    for (size_t i = 0; i < n; i++) {
        const uint8_t *e = entries + i * ENTRY_LEN;
        const struct qos_sched *s = qos_sched_by_id(e[0]);
        if (!s)
            continue;
        of_json_object(j, NULL);
        of_json_text(j, "sched", s->name);
        of_json_text(j, "state", states[e[1] < 2 ? e[1] : 2]);
        of_json_text(j, "module", s->module);
        of_json_text(j, "openwrt_package", s->package);
        of_json_end_object(j);
    }
    of_json_end_array(j);
    of_json_end_object(j);
}

static void
print_kernel(struct of_wr *w, const char *release, const uint8_t *entries, size_t n)
{
    of_printf(w, "kernel ");
    of_print_text(w, release, strlen(release));
    of_printf(w, "\n%-10s %-8s %-14s %-18s %s", "scheduler", "there", "module", "OpenWrt package",
              "what it is");
    for (size_t i = 0; i < n; i++) {
        const uint8_t *e = entries + i * ENTRY_LEN;
        const struct qos_sched *s = qos_sched_by_id(e[0]);
        if (s)
            of_printf(w, "\n%-10s %-8s %-14s %-18s %s", s->name, states[e[1] < 2 ? e[1] : 2],
                      s->module, s->package, s->help);
    }
}

/* The release, then an entry for each scheduler. */
static enum status
ask_kernel(struct ctx *c, struct of_bytes *data)
{
    *data = (struct of_bytes){0};
    enum status st = ask_experimenter(c, OFP_EXP_KERNEL, (struct of_bytes){NULL, 0}, data);
    if (!st && data->n < RELEASE_LEN)
        st = failed(c, "the switch's answer can't be understood");
    return st;
}

enum status
ask_schedulers(struct ctx *c, bool has[256])
{
    struct of_bytes data;
    enum status st = ask_kernel(c, &data);
    for (size_t at = RELEASE_LEN; !st && at + ENTRY_LEN <= data.n; at += ENTRY_LEN)
        has[data.p[at]] = data.p[at + 1] == 1;
    return st;
}

enum status
qos_kernel(struct ctx *c)
{
    struct of_bytes data;
    char release[RELEASE_LEN + 1] = "";
    enum status st = ask_kernel(c, &data);
    if (st)
        return st;
    memcpy(release, data.p, RELEASE_LEN);
    for (char *p = release; *p; p++) /* it goes to a terminal */
        if (*p < ' ' || *p > '~')
            *p = '?';
    struct of_wr w = of_wr_grow(1 << 20);
    const uint8_t *entries = data.p + RELEASE_LEN;
    size_t n = (data.n - RELEASE_LEN) / ENTRY_LEN;
    if (c->json)
        json_kernel(&w, release, entries, n);
    else
        print_kernel(&w, release, entries, n);
    return put_line(c, &w);
}
