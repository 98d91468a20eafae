/* SPDX-License-Identifier: Apache-2.0 */
#include <core/complete.h>

#include <oflib/complete.h>

#include <ctype.h>
#include <stdio.h>

#define TOKEN_MAX 256

/* ------------------------------------------------------------------ values */

static const struct placeholder {
    const char *name;
    void (*complete)(struct complete *k, size_t keep);
} placeholders[] = {
    {"PORT", complete_ports},   {"QUEUE", complete_queues},         {"CLASS", complete_queues},
    {"GROUP", complete_groups}, {"METER", complete_meters},         {"TABLE", complete_tables},
    {"FILE", complete_files},   {"INTERFACE", complete_interfaces},
};

/* What "N" behind a key in an argument or a text is a number of. */
static const struct {
    const char *key, *values;
} numbers[] = {
    {"port", "PORT"},   {"in_port", "PORT"}, {"out_port", "PORT"},
    {"queue", "QUEUE"}, {"class", "QUEUE"},  {"group", "QUEUE"}, /* of bandwidth: each is a queue */
    {"table", "TABLE"}, {"meter", "METER"},  {"then", "goto:|normal|flood|output:"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
complete_value(struct complete *k, size_t keep, const char *value)
{
    for (size_t i = 0; i < COUNT(placeholders); i++)
        if (!strcmp(value, placeholders[i].name))
            placeholders[i].complete(k, keep);
    if (islower((unsigned char)*value) && !strpbrk(value, " ."))
        complete_offer(k, keep, value, NULL);
}

void
complete_values(struct complete *k, size_t keep, const char *values)
{
    char text[TOKEN_MAX], *save;
    snprintf(text, sizeof text, "%s", values);
    for (char *v = strtok_r(text, "|", &save); v; v = strtok_r(NULL, "|", &save))
        complete_value(k, keep, v);
}

void
complete_key(struct complete *k, const char *key, const char *values, const char *help)
{
    char with_sign[TOKEN_MAX];
    const char *comma = strrchr(k->word, ',');
    size_t at = comma ? (size_t)(comma + 1 - k->word) : 0, n = strlen(key);
    const char *eq = strchr(k->word + at, '=');
    snprintf(with_sign, sizeof with_sign, "%s=", key);
    if (!eq) {
        complete_offer(k, at, with_sign, help);
        return;
    }
    if ((size_t)(eq - k->word) != at + n || strncmp(k->word + at, key, n) != 0)
        return;
    complete_values(k, at + n + 1, values);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!strcmp(numbers[i].key, key))
            complete_values(k, at + n + 1, numbers[i].values);
}

/* ------------------------------------------------------------------ rows */

static void
row_offer(void *ctx, size_t keep, const char *text, const char *help)
{
    complete_offer(ctx, keep, text, help);
}

static void
row_number(void *ctx, size_t keep, const struct of_fmt *fmt)
{
    static const struct {
        const struct of_fmt *fmt;
        void (*complete)(struct complete *k, size_t keep);
    } asked[] = {{&of_fmt_PORT, complete_ports},
                 {&of_fmt_QUEUE, complete_queues},
                 {&of_fmt_TABLE, complete_tables},
                 {&of_fmt_GROUP, complete_groups},
                 {&of_fmt_METER, complete_meters}};
    for (size_t i = 0; i < COUNT(asked); i++)
        if (asked[i].fmt == fmt)
            asked[i].complete(ctx, keep);
}

void
complete_row(struct complete *k, const struct of_struct_row *row)
{
    struct of_complete rows = {.word = k->word, .ctx = k, .offer = row_offer, .number = row_number};
    of_complete_row(&rows, row);
}

/* ------------------------------------------------------------------ arguments */

/* The finished words that are no keys and no options. */
static int
position(const struct complete *k)
{
    int n = 0;
    for (int i = 0; i < k->n; i++)
        n += !strchr(k->before[i], '=') && *k->before[i] != '-';
    return n;
}

/* "key=a|b", "a|b", "PORT", "--kernel"; here: a bare word may stand here */
static void
complete_part(struct complete *k, const char *part, bool with_keys, bool here)
{
    char key[TOKEN_MAX];
    size_t n = strcspn(part, "=");
    if (part[n] && n < sizeof key) {
        snprintf(key, sizeof key, "%.*s", (int)n, part);
        if (with_keys && islower((unsigned char)*key))
            complete_key(k, key, part + n + 1, NULL);
    } else if (*part == '-') {
        complete_offer(k, 0, part, NULL);
    } else if (here) {
        complete_values(k, 0, part);
    }
}

/* A word of the arguments, with several parts: "cmd=add|del,table=N", "CONNECTION|group=N". */
static void
complete_token(struct complete *k, char *token, bool with_keys, bool here)
{
    char *save, *part;
    for (part = strtok_r(token, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
        char *bar = strchr(part, '|'), *eq = strchr(part, '=');
        if (bar && eq && bar < eq) {
            *bar = '\0';
            complete_part(k, part, with_keys, here);
            part = bar + 1;
        }
        complete_part(k, part, with_keys, here);
    }
}

void
complete_arguments(struct complete *k, const char *arguments, bool with_keys)
{
    char text[1024], *save, *to = text;
    int at = 0, now = position(k);
    for (const char *p = arguments; *p && to < text + sizeof text - 1; p++)
        if (!strchr("[]", *p))
            *to++ = *p;
    *to = '\0';
    for (char *token = strtok_r(text, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
        char *more = strstr(token, "...");
        bool bare = !strchr(token, '=') && *token != '-' && strcmp(token, "|") != 0;
        if (more && more != token)
            memmove(more, more + 3, strlen(more + 3) + 1);
        complete_token(k, token, with_keys, now == at || (more && now > at));
        at += bare;
    }
}

/* ------------------------------------------------------------------ text */

/* "port=N", "src=10.0.0.0/8, dst=fd00::1", "packet-in" */
static void
complete_label(struct complete *k, char *label, const char *help)
{
    char *save;
    for (char *one = strtok_r(label, ", ", &save); one; one = strtok_r(NULL, ", ", &save)) {
        char *eq = strchr(one, '=');
        size_t plain = strspn(one, "abcdefghijklmnopqrstuvwxyz0123456789_-");
        if (!islower((unsigned char)*one))
            continue;
        if (eq && plain == (size_t)(eq - one)) {
            *eq = '\0';
            complete_key(k, one, "", help);
        } else if (!one[plain]) {
            const char *comma = strrchr(k->word, ',');
            complete_offer(k, comma ? (size_t)(comma + 1 - k->word) : 0, one, help);
        }
    }
}

void
complete_text(struct complete *k, const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char label[TOKEN_MAX];
        size_t n = strcspn(line, "\n"), end = 2;
        if (n < 3 || strncmp(line, "  ", 2) || line[2] == ' ')
            continue;
        while (end < n && strncmp(line + end, "  ", 2) != 0)
            end++;
        size_t help = end + strspn(line + end, " ");
        bool several = memchr(line + 2, ' ', end - 2) && !memmem(line + 2, end - 2, ", ", 2);
        if (end - 2 >= sizeof label || several || line[help] == '#')
            continue;
        snprintf(label, sizeof label, "%.*s", (int)(end - 2), line + 2);
        complete_label(k, label, help < n ? line + help : NULL);
    }
}
