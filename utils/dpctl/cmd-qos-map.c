/* SPDX-License-Identifier: Apache-2.0 */
/* qos-map: which traffic goes into which queue, from the command line. */
#include "map.h"

#include <inttypes.h>

static enum status
read_words(struct ctx *c, char **words, int n, struct map *m, bool *set)
{
    const char *why = NULL;
    for (int i = 0; i < n; i++) { /* options first: rules are made with them */
        if (strstr(words[i], "queue="))
            continue;
        *set |= !strncmp(words[i], "set=", 4);
        bool known = map_option(c, m, words[i], &why);
        if (why)
            return bad_args(c, "%s", why);
        if (!known)
            return bad_args(c,
                            "%s is not understood: queue=N,... for a rule, table=N, then=..., "
                            "set=NAME are right",
                            words[i]);
    }
    if (!m->set || !m->then)
        return failed(c, "out of memory");
    for (int i = 0; i < n; i++) {
        if (strstr(words[i], "queue="))
            map_rule(c, m, words[i], false, &why);
        if (why)
            return bad_args(c, "%s", why);
    }
    map_finish(c, m, &why);
    return why ? bad_args(c, "%s", why) : DPCTL_OK;
}

static bool
is_verb(char **words, int *n, const char *verb)
{
    if (!*n || strcmp(words[0], verb))
        return false;
    memmove(words, words + 1, (size_t)-- * n * sizeof *words);
    return true;
}

/* The flows of a set, or of all, as the switch shows them. */
static enum status
show_map(struct ctx *c, const char *set)
{
    struct of_mp_flow_request body = {.table_id = OFPTT_ALL,
                                      .out_port = OFPP_ANY,
                                      .out_group = OFPG_ANY,
                                      .cookie = set ? map_cookie(set) : MAP_COOKIE,
                                      .cookie_mask = set ? UINT64_MAX : MAP_COOKIE_MASK};
    struct of_msg reply;
    int err = of_parse_match(&c->parse, "", &body.match);
    if (err)
        return bad_parse(c, err);
    enum status st = multipart(c, OFPMP_FLOW, &body, &reply);
    return st ? st : show(c, &reply);
}

enum status
qos_map(struct ctx *c, char **words, int n)
{
    struct map m;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run, set = false;
    bool del = is_verb(words, &n, "del"), list = !del && is_verb(words, &n, "show");
    bool replace = !del && !list && is_verb(words, &n, "replace");
    if (!del && !list && !replace)
        is_verb(words, &n, "add"); /* what is meant where no verb is given */
    map_init(&m, "map");
    enum status st = read_words(c, words, n, &m, &set);
    if (st)
        return st;
    if (list)
        return show_map(c, set ? m.set : NULL);
    if (del && m.n)
        return bad_args(c, "del deletes a whole set: set=NAME, or nothing for all, is right");
    if (!del && !replace && !m.n)
        return bad_args(c, "a rule is missing: queue=10,dscp=ef");
    if (del)
        st = map_delete(c, set ? m.set : NULL, &steps);
    else
        st = map_diff(c, &m, !replace, &steps);
    return st ? st : steps_run(c, &steps, dry);
}
