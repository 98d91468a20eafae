/* SPDX-License-Identifier: Apache-2.0 */
/* qos-apply: a profile on one port or many. */
#include "profile.h"

#include <qos/diff/diff.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct ports {
    uint32_t *v;
    size_t n, room;
};

static enum status
add_port(struct ctx *c, struct ports *p, uint32_t no)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i] == no)
            return DPCTL_OK;
    if (p->n == p->room) {
        size_t room = p->room * 2 + 32;
        uint32_t *v = of_arena_array(&c->arena, room, sizeof *v);
        if (!v)
            return failed(c, "out of memory");
        if (p->n)
            memcpy(v, p->v, p->n * sizeof *v);
        p->v = v;
        p->room = room;
    }
    p->v[p->n++] = no;
    return DPCTL_OK;
}

/* "5-8" */
static bool
take_range(const char *text, uint64_t *low, uint64_t *high)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *low = strtoul(text, &end, 0);
    if (*end != '-' || !isdigit((unsigned char)end[1]))
        return false;
    *high = strtoul(end + 1, &end, 0);
    return !*end;
}

/* "3", "5-8", "all", "local", "eth1" */
static enum status
take_port(struct ctx *c, const char *text, const struct of_list *there, struct ports *out)
{
    enum status st = DPCTL_OK;
    bool all = !strcasecmp(text, "all") || !strcasecmp(text, "any");
    uint64_t low = 0, high = 0;
    if (!all && !take_range(text, &low, &high)) {
        if (of_parse_number(&c->parse, "port", text, &of_fmt_PORT, 32, &low))
            return bad_parse(c, -EINVAL);
        high = low;
    }
    if (!all && (low > high || (high > OFPP_MAX && low != OFPP_LOCAL)))
        return bad_args(c,
                        "port=%s: a number, a name, a range A-B, several with commas, or all is "
                        "right",
                        text);
    bool some = false;
    for (uint32_t i = 0; !st && i < there->n; i++) {
        uint32_t no = OF_AT(there, i, struct of_port)->port_no;
        if (all ? no > OFPP_MAX : no < low || no > high)
            continue;
        some = true;
        st = add_port(c, out, no);
    }
    if (!st && !some)
        st = failed(c, all ? "the switch has no ports" : "the switch has no port %s", text);
    return st;
}

/* "port=1,3,5-8": a comma stands between ports. */
static enum status
take_ports(struct ctx *c, char *text, const struct of_list *there, struct ports *out)
{
    enum status st = DPCTL_OK;
    for (char *save, *w = strtok_r(text, ",", &save); !st && w; w = strtok_r(NULL, ",", &save))
        st = take_port(c, w, there, out);
    return st;
}

/* ---------------------------------------------------------------------- the difference */

struct collect {
    struct ctx *c;
    struct steps *steps;
    const struct profile *profile;
    const struct profile_part *part;
    size_t at; /* in the part: where the last step's line was */
};

/* The profile's line that a step is of: refusals name it. */
static const char *
line_of(struct collect *l, const struct qos_request *r)
{
    for (size_t k = 0; r->action_type != OFP_QOS_DEL && k < l->part->n; k++) {
        size_t i = (l->at + k) % l->part->n;
        const struct qos_request *w = &l->part->want[i];
        char *text;
        if (w->sched != r->sched || w->object_type != r->object_type || w->class_id != r->class_id)
            continue;
        l->at = i;
        size_t n = strlen(l->profile->file) + 24;
        if ((text = of_arena_alloc(&l->c->arena, n)))
            snprintf(text, n, "%s:%u", l->profile->file, l->part->line[i]);
        return text;
    }
    return NULL;
}

static bool
take_step(void *ctx, const struct qos_request *r)
{
    struct collect *l = ctx;
    steps_qos(l->c, l->steps, r, line_of(l, r));
    return !l->steps->nomem;
}

/* The entries of one port are next to each other in a dump. */
static void
of_port(const struct qos_entries *all, uint32_t no, struct qos_entries *out)
{
    size_t from = 0, to;
    while (from < all->n && all->v[from].config.port_no != no)
        from++;
    for (to = all->n; to > from && all->v[to - 1].config.port_no != no;)
        to--;
    *out = (struct qos_entries){all->v + from, to - from};
}

static enum status
diff_port(struct ctx *c, const struct profile *p, uint32_t no, uint64_t speed,
          const struct qos_entries *all, struct steps *steps)
{
    struct qos_entries now;
    of_port(all, no, &now);
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        const struct profile_part *part = &p->part[dir];
        struct collect l = {c, steps, p, part, 0};
        struct qos_diff_port port = {
            .port_no = no,
            .dir = (enum qos_direction)dir,
            .env = {.mtu = USUAL_MTU, .txqueuelen = USUAL_TXQUEUELEN, .speed = speed}};
        struct qos_error e;
        size_t at;
        int err = qos_diff(&port, now.v, now.n, part->want, part->n, take_step, &l, &at, &e);
        if (err > 0 && part->n)
            return wrong_line(c, p->file, part->line[at], "port %u: %s", (unsigned)no, e.text);
        if (err)
            return failed(c, "%s", e.text);
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------------- the command */

/* Takes off the words that name ports: a list, as one may be cut by blanks. */
static int
split_words(char **words, int n, char **ports)
{
    int others = 0;
    *ports = NULL;
    for (int i = 0; i < n; i++) {
        if (!strncmp(words[i], "port=", 5) && words[i][5] && !*ports)
            *ports = words[i] + 5;
        else
            words[others++] = words[i];
    }
    return others;
}

enum status
qos_apply(struct ctx *c, char **words, int n)
{
    struct profile p;
    struct of_list there;
    struct ports ports = {0};
    struct qos_entries now;
    struct qos_trees trees;
    struct steps steps = {0};
    char *port_text;
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    n = split_words(words, n, &port_text);
    if (!n)
        return bad_args(c, "the profile's file is missing");
    if (!port_text)
        return bad_args(c, "which ports is missing: port=N, port=1,3,5-8 or port=all is right");
    enum status st = profile_read(c, words[0], words + 1, n - 1, &p);
    st = st ? st : profile_fit(c, &p);
    st = st ? st : ask_ports(c, &there);
    st = st ? st : take_ports(c, port_text, &there, &ports);
    st = st ? st : ask_queues(c, ports.n == 1 ? ports.v[0] : OFPP_ANY, QOS_ALL_CLASSES, &now);
    st = st ? st : ask_defaults(c, &now, &trees);
    for (size_t i = 0; !st && i < ports.n; i++)
        st = diff_port(c, &p, ports.v[i], port_speed(find_port_desc(&there, ports.v[i])), &now,
                       &steps);
    st = st ? st : map_diff(c, &p.map, false, &steps);
    return st ? st : steps_run(c, &steps, dry);
}
