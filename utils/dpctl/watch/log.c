/* SPDX-License-Identifier: Apache-2.0 */
/* log: which lines the switch writes to its log (docs/reference/extensions.md, LOG). */
#include <core/ask.h>
#include <core/change.h>
#include <core/command.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LEN  16
#define HEAD_LEN  (NAME_LEN + 8) /* where lines go, lines lost */
#define ENTRY_LEN 40
#define TEXT_MAX  1024

/* ------------------------------------------------------------------ showing */

struct entry {
    const char *name;
    uint8_t level, then;
    uint32_t seconds;
    uint64_t lines, left_out;
};

static bool
is_name(const uint8_t *p)
{
    return memchr(p, '\0', NAME_LEN);
}

static bool
is_well_formed(struct of_bytes b)
{
    if (b.n < HEAD_LEN || (b.n - HEAD_LEN) % ENTRY_LEN || !is_name(b.p))
        return false;
    for (size_t at = HEAD_LEN; at < b.n; at += ENTRY_LEN)
        if (!is_name(b.p + at))
            return false;
    return true;
}

static struct entry
entry_at(const uint8_t *p)
{
    return (struct entry){.name = (const char *)p,
                          .level = p[16],
                          .then = p[17],
                          .seconds = of_get32(p + 20),
                          .lines = of_get64(p + 24),
                          .left_out = of_get64(p + 32)};
}

static void
json_level(struct of_json *j, const char *key, uint8_t level)
{
    struct of_wr w = of_wr_grow(64);
    of_print_number(&w, &of_fmt_OFPLL, level);
    of_wr8(&w, '\0');
    of_json_text(j, key, w.buf ? (const char *)w.buf : "");
    of_wr_free(&w);
}

static void
json_entry(struct of_json *j, const struct entry *e)
{
    of_json_object(j, NULL);
    of_json_text(j, "module", e->name);
    json_level(j, "level", e->level);
    if (e->seconds) {
        of_json_uint(j, "seconds", e->seconds);
        json_level(j, "then", e->then);
    }
    of_json_uint(j, "lines", e->lines);
    of_json_uint(j, "left_out", e->left_out);
    of_json_end_object(j);
}

static void
print_json(struct of_wr *w, struct of_bytes b)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_text(&j, "to", (const char *)b.p);
    of_json_uint(&j, "lost", of_get64(b.p + NAME_LEN));
    of_json_array(&j, "modules");
    for (size_t at = HEAD_LEN; at < b.n; at += ENTRY_LEN) {
        struct entry e = entry_at(b.p + at);
        json_entry(&j, &e);
    }
    of_json_end_array(&j);
    of_json_end_object(&j);
}

static void
print_entry(struct of_wr *w, const struct entry *e)
{
    enum { MODULE = 10, LEVEL = 28 };
    of_printf(w, "\n");
    size_t start = w->len;
    of_print_text(w, e->name, strlen(e->name));
    size_t used = w->len - start;
    of_printf(w, "%*s", used < MODULE ? (int)(MODULE - used) : 1, "");
    start = w->len;
    of_print_number(w, &of_fmt_OFPLL, e->level);
    if (e->seconds) {
        of_printf(w, " (%us, then ", e->seconds);
        of_print_number(w, &of_fmt_OFPLL, e->then);
        of_printf(w, ")");
    }
    used = w->len - start;
    of_printf(w, "%*s%10" PRIu64 " %10" PRIu64, used < LEVEL ? (int)(LEVEL - used) : 1, "",
              e->lines, e->left_out);
}

static void
print_table(struct of_wr *w, struct of_bytes b)
{
    of_printf(w, "lines go to ");
    of_print_text(w, (const char *)b.p, strlen((const char *)b.p));
    of_printf(w, ", %" PRIu64 " lost\n", of_get64(b.p + NAME_LEN));
    of_printf(w, "%-10s%-28s%10s %10s", "module", "level", "lines", "left out");
    for (size_t at = HEAD_LEN; at < b.n; at += ENTRY_LEN) {
        struct entry e = entry_at(b.p + at);
        print_entry(w, &e);
    }
}

static enum status
show(struct ctx *c)
{
    struct of_bytes b = {0};
    enum status st = ask_experimenter(c, OFP_EXP_LOG, (struct of_bytes){NULL, 0}, &b);
    if (st)
        return st;
    if (!is_well_formed(b))
        return say_malformed(c);
    struct of_wr w = of_wr_grow(1u << 20);
    if (c->json)
        print_json(&w, b);
    else
        print_table(&w, b);
    return view_line(c, &w);
}

/* ------------------------------------------------------------------ setting */

/* "for=60s", 5m, 1h; or the number alone, of seconds. */
static enum status
take_time(struct ctx *c, const char *text, uint32_t *seconds)
{
    static const struct {
        const char *unit;
        uint32_t s;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    for (size_t i = 0; n && n <= 86400 && i < sizeof units / sizeof units[0]; i++) {
        if (!strcmp(end, units[i].unit)) {
            *seconds = (uint32_t)n * units[i].s;
            return DPCTL_OK;
        }
    }
    return say_usage(c, "for= must be a time such as 60s, 5m or 1h, not '%s'", text);
}

static enum status
set(struct ctx *c, char **words, int n)
{
    uint8_t data[4 + TEXT_MAX];
    uint32_t seconds = 0;
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        enum status st = DPCTL_OK;
        size_t more = strlen(words[i]);
        if (!strncmp(words[i], "for=", 4)) {
            if ((st = take_time(c, words[i] + 4, &seconds)))
                return st;
            continue;
        }
        if (len + 1 + more > TEXT_MAX)
            return say_usage(c, "write at most %d characters of levels", TEXT_MAX - 1);
        if (len)
            data[4 + len++] = ',';
        memcpy(data + 4 + len, words[i], more);
        len += more;
    }
    if (!len)
        return say_usage(c, "write which levels, such as conn=debug for=60s");
    of_set32(data, seconds);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_LOG_SET, {data, 4 + len}};
    return change_send(c, OFPT_EXPERIMENTER, &m);
}

static enum status
run_log(struct ctx *c, const struct command *self, char **words, int n)
{
    return n ? set(c, words, n) : show(c);
}

static const struct command rows[] = {
    {.name = "log",
     .args = "[MODULE=LEVEL]... [for=TIME]",
     .help = "shows which lines the switch logs, or sets it, for good or for a while",
     .text =
         "LEVEL is error, warning, notice, info or debug; a level includes those before it.\n"
         "MODULE is one that `log` shows, or all.  With for=, the levels from before come back\n"
         "after that time.",
     .examples = "log\nlog conn=debug for=60s\nlog flow=info,qos=info\nlog all=notice",
     .run = run_log},
};

const struct command_table commands_log = COMMAND_TABLE(rows);
