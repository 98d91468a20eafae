/* SPDX-License-Identifier: Apache-2.0 */
/* The queues and rules that the settings want. */
#include "wanted.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX  (16u << 20)
#define WORDS_MAX 256

const struct wanted_queues *
wanted_find_queues(const struct wanted *w, const char *port)
{
    for (size_t i = 0; i < w->n_queues; i++)
        if (!strcmp(w->queues[i].port, port))
            return &w->queues[i];
    return NULL;
}

const struct wanted_map *
wanted_find_map(const struct wanted *w, const char *set)
{
    for (size_t i = 0; i < w->n_maps; i++)
        if (!strcmp(w->maps[i].map.set, set))
            return &w->maps[i];
    return NULL;
}

/* The interface before the colon of "eth1:sfq class=10"; "": there is none. */
static void
port_of(const struct daemon_setting *at, char name[IFNAMSIZ])
{
    size_t n = strcspn(at->value, ":");
    snprintf(name, IFNAMSIZ, "%.*s", at->value[n] ? (int)n : 0, at->value);
}

static char *
keep(struct wanted *w, const char *text)
{
    return of_arena_text(&w->s->arena, text, strlen(text));
}

/* ------------------------------------------------------------------ as texts */

static const char *
end_text(struct wanted *w, struct of_wr *t)
{
    char *text = t->overflow ? NULL : of_arena_text(&w->s->arena, (const char *)t->buf, t->len);
    if (!text)
        daemon_settings_fault(w->s, NULL, "out of memory, or too many queues");
    of_wr_free(t);
    return text ? text : "";
}

static const char *
text_of_queues(struct wanted *w, const struct qos_profile *p)
{
    struct of_wr t = of_wr_grow(TEXT_MAX);
    char one[QOS_REQUEST_TEXT];
    for (int dir = 0; dir < 2; dir++)
        for (size_t i = 0; i < p->part[dir].n; i++) {
            qos_request_print(&p->part[dir].want[i], one, sizeof one);
            of_printf(&t, "%d %s %s%s\n", dir, p->part[dir].want[i].sched->name, one,
                      p->part[dir].optional[i] ? " try" : "");
        }
    return end_text(w, &t);
}

static const char *
text_of_map(struct wanted *w, const struct qos_map *m)
{
    struct of_wr t = of_wr_grow(TEXT_MAX);
    of_printf(&t, "%u %s\n", m->table, m->then ? m->then : "");
    for (size_t i = 0; i < m->n; i++) {
        const struct qos_map_does *does = &m->v[i].does;
        of_printf(&t, "%u %s %u %d %d\n", m->v[i].priority, m->v[i].match_text,
                  (unsigned)does->queue, does->dscp, does->pcp);
    }
    return end_text(w, &t);
}

/* ------------------------------------------------------------------ rules */

static void
add_map(struct wanted *w, const struct qos_map *map, const struct daemon_setting *at)
{
    const struct wanted_map *twin = wanted_find_map(w, map->set);
    const char *text = text_of_map(w, map);
    if (twin && !strcmp(twin->text, text))
        return;
    if (twin) {
        char where[480];
        daemon_settings_fault(w->s, at,
                              "has other rules than the profile of the same name (%s), and rules "
                              "hold for all ports: give it a file name of its own",
                              daemon_settings_where(w->s, twin->at, where, sizeof where));
        return;
    }
    struct wanted_map *v =
        of_arena_room(&w->s->arena, w->maps, w->n_maps, &w->maps_room, sizeof *v);
    if (!v)
        return;
    w->maps = v;
    v[w->n_maps++] = (struct wanted_map){*map, at, text};
}

/* Joins the words of all map settings: one may have the options and another a rule. */
static void
make_map(struct wanted *w)
{
    struct qos_map map;
    char *words[WORDS_MAX];
    size_t n = 0;
    const struct daemon_setting *t, *first = daemon_settings_next(w->s, "map", NULL);
    qos_map_init(&map, WANTED_MAP_SET);
    for (t = NULL; (t = daemon_settings_next(w->s, "map", t));) {
        struct qos_map alone;
        char *copy = keep(w, t->value);
        size_t from = n;
        for (char *save, *word = copy ? strtok_r(copy, " \t", &save) : NULL; word && n < WORDS_MAX;
             word = strtok_r(NULL, " \t", &save))
            words[n++] = word;
        qos_map_init(&alone, WANTED_MAP_SET); /* to find the line that has a mistake */
        if (n == WORDS_MAX)
            daemon_settings_fault(w->s, t, "has too many words: the most is %d", WORDS_MAX - 1);
        else if (!strncmp(t->value, "set=", 4) || strstr(t->value, " set="))
            daemon_settings_fault(w->s, t, "must not have set=: its rules are the set %s",
                                  WANTED_MAP_SET);
        else if (qos_map_words(&w->parse, &alone, words + from, n - from))
            daemon_settings_fault(w->s, t, "is wrong: %s", w->parse.why);
        else
            continue;
        return;
    }
    if (first && qos_map_words(&w->parse, &map, words, n))
        daemon_settings_fault(w->s, first, "is wrong: %s", w->parse.why);
    else if (first && !map.n)
        daemon_settings_fault(w->s, first,
                              "has neither a rule, such as queue=10,dscp=ef, nor then=, such as "
                              "then=normal");
    else if (first)
        add_map(w, &map, first);
}

/* ------------------------------------------------------------------ queues */

struct source {
    struct wanted *w;
    const struct daemon_setting *at; /* the profile, or the first line */
    const char *port;
    const struct daemon_setting **lines; /* NULL: a file */
    const char *file;
};

static void
warn(void *ctx, const char *file, unsigned line, const char *text)
{
    const struct source *f = ctx;
    char where[480];
    if (f->lines)
        log_warning(QOS, "%s: %s",
                    daemon_settings_where(f->w->s, f->lines[line - 1], where, sizeof where), text);
    else
        log_warning(QOS, "%s:%u: %s", file, line, text);
}

static void
refuse(void *ctx, enum qos_profile_fault fault, unsigned line, const char *why)
{
    const struct source *f = ctx;
    struct daemon_settings *s = f->w->s;
    if (fault != QOS_PROFILE_LINE)
        daemon_settings_fault(s, f->at, "is wrong: %s", why);
    else if (f->lines)
        daemon_settings_fault(s, line ? f->lines[line - 1] : f->at, "is wrong: %s", why);
    else if (line)
        daemon_settings_fault(s, f->at, "is wrong: %s:%u: %s", f->file, line, why);
    else
        daemon_settings_fault(s, f->at, "is wrong: %s: %s", f->file, why);
}

static void
read_profile(struct source *f, const struct qos_profile_text *text)
{
    struct wanted *w = f->w;
    struct qos_profile_report report = {.mistake = refuse, .warn = warn, .ctx = f};
    f->file = text->file;
    struct wanted_queues *v =
        of_arena_room(&w->s->arena, w->queues, w->n_queues, &w->queues_room, sizeof *v);
    if (!v)
        return;
    w->queues = v;
    v += w->n_queues;
    *v = (struct wanted_queues){.port = f->port, .at = f->at, .lines = f->lines};
    if (wanted_is_local(w, f->port, strlen(f->port)))
        daemon_settings_fault(w->s, f->at,
                              "is for %s, the local port, which has no queues: make them at the "
                              "port that its packets leave or enter by",
                              f->port);
    else if (!*f->port)
        daemon_settings_fault(w->s, f->at,
                              "must begin with the port's interface, such as eth1:%s; in a file it "
                              "stands in [port eth1]",
                              f->at->value);
    else if (!wanted_find_port(w, f->port))
        daemon_settings_fault(w->s, f->at,
                              "is for %s, which is no port: add it to interfaces, or write "
                              "[port %s]",
                              f->port, f->port);
    else if (wanted_find_queues(w, f->port))
        daemon_settings_fault(w->s, f->at,
                              "is the second one of port %s, which has one profile, or "
                              "lines of queues",
                              f->port);
    else if (!qos_profile_read(&w->parse, text, &v->profile, &report)) {
        v->text = text_of_queues(w, &v->profile);
        w->n_queues++;
        if (v->profile.map.n)
            add_map(w, &v->profile.map, f->at);
    }
}

/* A relative name in a file is relative to that file. */
static const char *
path_of(struct wanted *w, const struct daemon_setting *at, const char *name)
{
    const char *slash = at->line ? strrchr(w->s->file, '/') : NULL;
    size_t dir = slash ? (size_t)(slash - w->s->file) + 1 : 0;
    if (*name == '/' || !dir)
        return name;
    char *path = of_arena_alloc(&w->s->arena, dir + strlen(name) + 1);
    if (!path)
        return name;
    memcpy(path, w->s->file, dir);
    strcpy(path + dir, name);
    return path;
}

/* "eth1:home-router.qos up=20mbit" */
static void
take_profile(struct wanted *w, const struct daemon_setting *at)
{
    char name[IFNAMSIZ], *words[WORDS_MAX];
    struct stat st;
    int n = 0;
    port_of(at, name);
    struct source f = {w, at, keep(w, name), NULL, NULL};
    char *copy = keep(w, *name ? strchr(at->value, ':') + 1 : at->value);
    for (char *save, *word = copy ? strtok_r(copy, " \t", &save) : NULL; word && n < WORDS_MAX;
         word = strtok_r(NULL, " \t", &save))
        words[n++] = word;
    if (!f.port || !n) {
        daemon_settings_fault(w->s, at,
                              "must be a file, and NAME=VALUE for its variables, such as "
                              "home-router.qos up=20mbit");
        return;
    }
    struct qos_profile_text text = {
        .file = path_of(w, at, words[0]), .sets = words + 1, .n_sets = n - 1};
    if (stat(text.file, &st))
        daemon_settings_fault(
            w->s, at, "is wrong: %s: %s%s", text.file, strerror(errno),
            strpbrk(words[0], "./")
                ? ""
                : "; it must be a file with its path (dpctl qos-apply alone knows "
                  "examples by name)");
    else if (!S_ISREG(st.st_mode))
        daemon_settings_fault(w->s, at, "is wrong: %s is no regular file", text.file);
    else
        read_profile(&f, &text);
}

/* The lines of a port. */
static void
take_lines(struct wanted *w, const struct daemon_setting *first, const char *port)
{
    size_t room = w->s->n, n = 0;
    const struct daemon_setting **at = of_arena_array(&w->s->arena, room, sizeof *at);
    const char **lines = of_arena_array(&w->s->arena, room, sizeof *lines);
    struct source f = {w, first, keep(w, port), at, NULL};
    if (!at || !lines || !f.port)
        return;
    for (const struct daemon_setting *t = first; t; t = daemon_settings_next(w->s, "queue", t)) {
        char name[IFNAMSIZ];
        port_of(t, name);
        if (strcmp(name, port))
            continue;
        at[n] = t;
        lines[n++] = *name ? strchr(t->value, ':') + 1 : t->value;
    }
    struct qos_profile_text text = {.file = f.port, .lines = lines, .n_lines = n};
    read_profile(&f, &text);
}

static bool
is_first(const struct wanted *w, const struct daemon_setting *at, const char *port)
{
    char name[IFNAMSIZ];
    const struct daemon_setting *t = NULL;
    while ((t = daemon_settings_next(w->s, "queue", t)) && t < at) {
        port_of(t, name);
        if (!strcmp(name, port))
            return false;
    }
    return true;
}

void
wanted_make_queues(struct wanted *w)
{
    const struct daemon_setting *t;
    char name[IFNAMSIZ];
    for (t = NULL; (t = daemon_settings_next(w->s, "profile", t));)
        take_profile(w, t);
    for (t = NULL; (t = daemon_settings_next(w->s, "queue", t));) {
        port_of(t, name);
        if (is_first(w, t, name))
            take_lines(w, t, name);
    }
    make_map(w);
}
