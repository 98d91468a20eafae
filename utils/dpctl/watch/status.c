/* SPDX-License-Identifier: Apache-2.0 */
/* status: the switch's state in lines "key=value" (docs/reference/extensions.md). */
#include <core/ask.h>
#include <core/command.h>
#include <core/say.h>
#include <core/view.h>

#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 15 /* a double holds such a number exactly */

/* Is the value true, false or a number in JSON? */
static bool
is_json(const char *s, size_t n)
{
    if ((n == 4 && !memcmp(s, "true", n)) || (n == 5 && !memcmp(s, "false", n)))
        return true;
    return n && n <= DIGITS_MAX && strspn(s, "0123456789") >= n && (*s != '0' || n == 1);
}

static void
json_pair(struct of_json *j, const char *s, size_t n)
{
    char name[256];
    const char *eq = memchr(s, '=', n), *value = eq ? eq + 1 : s + n;
    size_t len = (size_t)(s + n - value);
    snprintf(name, sizeof name, "%.*s", (int)(eq ? (size_t)(eq - s) : n), s);
    (is_json(value, len) ? of_json_raw : of_json_string)(j, name, value, len);
}

static void
json_status(struct of_wr *w, const char *text)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        json_pair(&j, text, n);
    }
    of_json_end_object(&j);
}

static enum status
show_status(struct ctx *c, const struct command *self, char **words, int n)
{
    char *text;
    if (n)
        return say_usage(c, "status takes no arguments");
    enum status st = ask_status(c, &text);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(16u << 20);
    if (c->json)
        json_status(&w, text);
    else
        of_printf(&w, "%s", text);
    return view_line(c, &w);
}

static const struct command rows[] = {
    {.name = "status",
     .first = {TASK_FIND, "status", "controllers, connections, flows"},
     .help = "the switch's state: controllers, connections, flows",
     .run = show_status,
     .asks = true},
};

const struct command_table commands_status = COMMAND_TABLE(rows);
