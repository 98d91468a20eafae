/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines are on: levels by module, as text, and for a while. */
#include "log-inside.h"

#include <stdio.h>
#include <string.h>

#define SUGGESTION_MIN 2 /* letters that a wrong word must have */

uint8_t log_level_of[LOG_MODULES_COUNT] = {
#define DEFAULT(id, name, tells) [LOG_IN_##id] = LOG_NOTICE,
    LOG_MODULES(DEFAULT)
#undef DEFAULT
};

struct log_while log_whiles[LOG_MODULES_COUNT];

/* ------------------------------------------------------------------ words */

struct word {
    const char *p;
    size_t n;
};

static bool
is_word(struct word w, const char *name)
{
    return strlen(name) == w.n && !memcmp(name, w.p, w.n);
}

/* Do a's letters occur in b in their order?  "dbg" in "debug". */
static bool
occurs_in(struct word a, struct word b)
{
    size_t at = 0;
    for (size_t i = 0; i < b.n && at < a.n; i++)
        at += a.p[at] == b.p[i];
    return at == a.n;
}

/* The one that differs by missing or additional letters; NULL: none. */
static const char *
similar(struct word w, const char *const *names, unsigned n)
{
    for (unsigned i = 0; w.n >= SUGGESTION_MIN && i < n; i++) {
        struct word name = {names[i], strlen(names[i])};
        if (occurs_in(w, name) || occurs_in(name, w))
            return names[i];
    }
    return NULL;
}

static const struct names {
    const char *what;
    const char *const *v;
    unsigned n;
} modules = {"module", log_module_names, LOG_MODULES_COUNT},
  the_levels = {"level", log_level_names, LOG_LEVELS};

/* "there is no level 'dbg': did you mean debug? There are error, warning, ..." */
static void
no_such(const struct names *of, struct word w, char *why, size_t size)
{
    const char *near = similar(w, of->v, of->n);
    size_t len = 0;
    char head[96];
    snprintf(head, sizeof head, "there is no %s '%.*s': %s%s%sthere are ", of->what,
             w.n < 24 ? (int)w.n : 24, w.p, near ? "did you mean " : "", near ? near : "",
             near ? "? " : "");
    *why = '\0';
    len = log_append(why, size, len, head);
    for (unsigned i = 0; i < of->n; i++) {
        len = log_append(why, size, len, i ? ", " : "");
        len = log_append(why, size, len, of->v[i]);
    }
}

static bool
find(const struct names *of, struct word w, unsigned *out, char *why, size_t size)
{
    for (*out = 0; *out < of->n; (*out)++)
        if (is_word(w, of->v[*out]))
            return true;
    no_such(of, w, why, size);
    return false;
}

/* ------------------------------------------------------------------ text to levels */

/* One of "conn=debug", "all=info" or "info" for all.  Levels not named keep LOG_LEVELS. */
static bool
take_one(struct word w, uint8_t *levels, char *why, size_t size)
{
    const char *equals = memchr(w.p, '=', w.n);
    struct word module = {w.p, equals ? (size_t)(equals - w.p) : 0}, level = w;
    unsigned m, l;
    if (equals)
        level = (struct word){equals + 1, w.n - module.n - 1};
    bool all = !equals || is_word(module, "all");
    if (!all && !find(&modules, module, &m, why, size))
        return false;
    if (!find(&the_levels, level, &l, why, size))
        return false;
    if (all)
        memset(levels, (int)l, LOG_MODULES_COUNT);
    else
        levels[m] = (uint8_t)l;
    return true;
}

static void
set_one(enum log_module m, uint8_t level, uint32_t seconds)
{
    uint8_t now = log_level_of[m], then = log_whiles[m].until ? log_whiles[m].then : now;
    log_whiles[m].until = seconds ? log_now_ms() + UINT64_C(1000) * seconds : 0;
    log_whiles[m].then = then;
    __atomic_store_n(&log_level_of[m], level, __ATOMIC_RELAXED);
}

bool
log_levels_set(const char *text, uint32_t seconds, char *why, size_t size)
{
    uint8_t levels[LOG_MODULES_COUNT];
    memset(levels, LOG_LEVELS, sizeof levels);
    for (const char *p = text;; p++) {
        struct word w = {p, strcspn(p, ", ")};
        if (!take_one(w, levels, why, size))
            return false;
        p += w.n;
        if (!*p)
            break;
    }
    log_lock();
    for (unsigned m = 0; m < LOG_MODULES_COUNT; m++)
        if (levels[m] != LOG_LEVELS)
            set_one((enum log_module)m, levels[m], seconds);
    log_unlock();
    return true;
}

void
log_levels_reset(void)
{
    char unused[8];
    log_levels_set("notice", 0, unused, sizeof unused);
}

bool
log_levels_expire(uint64_t now)
{
    bool any = false;
    for (unsigned m = 0; m < LOG_MODULES_COUNT; m++) {
        if (!log_whiles[m].until || now < log_whiles[m].until)
            continue;
        __atomic_store_n(&log_level_of[m], log_whiles[m].then, __ATOMIC_RELAXED);
        log_whiles[m].until = 0;
        any = true;
    }
    return any;
}

/* ------------------------------------------------------------------ options */

bool
log_option(const char *arg, char *why, size_t n)
{
    char reason[160];
    if (!arg) /* no longer in the configuration file */
        arg = "notice";
    if (log_levels_set(arg, 0, reason, sizeof reason))
        return true;
    snprintf(why, n, "must be as in conn=debug,flow=info (%s)", reason);
    return false;
}

bool
log_verbose_option(const char *arg, char *why, size_t n)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {{"emer", "error"}, {"err", "error"}, {"warn", "warning"}, {"dbg", "debug"}};
    const char *level = arg && *arg ? arg : "info", *colon = strrchr(level, ':');
    if (colon) /* MODULE:FACILITY:LEVEL */
        level = colon + 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(level, words[i].theirs))
            level = words[i].ours;
    for (unsigned i = 0; i < LOG_LEVELS; i++)
        if (!strcmp(level, log_level_names[i]))
            return log_levels_set(level, 0, why, n);
    return true; /* what means nothing here was ignored before, and scripts have it */
}
