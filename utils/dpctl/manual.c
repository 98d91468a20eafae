/* SPDX-License-Identifier: Apache-2.0 */
/* The help's text becomes a manual's section: a line "  KEY   what it is" is an entry, other lines
 * are running text.  A paragraph that an earlier command had is only referred to. */
#include "manual.h"

#include "help.h"
#include "options.h"
#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_END    72 /* where running text is broken */
#define LONG_WORD   30 /* a longer one may be broken, too */
#define SHORT_LINES 4  /* a paragraph of fewer lines is repeated */

/* ------------------------------------------------------------------ words */

/* A piece of text, not terminated. */
struct piece {
    const char *p;
    size_t n;
};

static struct piece
piece_of(const char *text)
{
    return (struct piece){text, strlen(text)};
}

/* A dash is one that can be copied.  A long list may be broken behind a comma or a bar. */
static void
put(struct piece s, bool may_break)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\')
            fputs("\\e", stdout);
        else if (s.p[i] == '-')
            fputs("\\-", stdout);
        else if (s.p[i] == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(s.p[i]);
        if (may_break && i + 1 < s.n && strchr(",|", s.p[i]))
            fputs("\\:", stdout);
    }
}

/* Running text, in lines of a usual length.  A line must not begin like a request. */
static void
put_filled(struct piece s)
{
    size_t column = 0;
    while (s.n) {
        size_t n = 0, blanks = 0;
        while (n < s.n && !strchr(" \n", s.p[n]))
            n++;
        while (n + blanks < s.n && strchr(" \n", s.p[n + blanks]))
            blanks++;
        if (column && column + 1 + n > LINE_END) {
            putchar('\n');
            column = 0;
        }
        if (column)
            putchar(' ');
        else if (n && *s.p == '.')
            fputs("\\&", stdout);
        put((struct piece){s.p, n}, n > LONG_WORD);
        column += n + 1;
        s.p += n + blanks;
        s.n -= n + blanks;
    }
    putchar('\n');
}

static void
put_bold(const char *text)
{
    fputs("\\fB", stdout);
    put(piece_of(text), false);
    fputs("\\fR", stdout);
}

/* ------------------------------------------------------------------ a paragraph of the help */

struct entry {
    struct piece label, help;
};

/* "  table= (table_id=)   a number": false where the line is running text. */
static bool
entry_of(struct piece line, struct entry *e)
{
    if (line.n < 3 || strncmp(line.p, "  ", 2) || line.p[2] == ' ')
        return false;
    size_t end = 2;
    while (end < line.n && strncmp(line.p + end, "  ", 2) != 0)
        end++;
    size_t help = end;
    while (help < line.n && line.p[help] == ' ')
        help++;
    e->label = (struct piece){line.p + 2, end - 2};
    e->help = (struct piece){line.p + help, line.n - help};
    /* One blank only may be between a long key and its explanation. */
    const char *close = end == line.n ? memmem(line.p, line.n, "=) ", 3) : NULL;
    if (close) {
        e->label.n = (size_t)(close + 2 - e->label.p);
        e->help = (struct piece){close + 3, (size_t)(line.p + line.n - close - 3)};
    }
    return true;
}

static struct piece
take_line(struct piece *text)
{
    const char *end = memchr(text->p, '\n', text->n);
    struct piece line = {text->p, end ? (size_t)(end - text->p) : text->n};
    size_t taken = line.n + (end != NULL);
    text->p += taken;
    text->n -= taken;
    return line;
}

/* The next lines that go on with the entry are deeper than its label. */
static bool
goes_on(struct piece text)
{
    return text.n > 8 && !strncmp(text.p, "        ", 8);
}

static void
put_entry(const struct entry *e, struct piece *rest)
{
    fputs(".TP 26n\n.B ", stdout);
    put(e->label, true);
    putchar('\n');
    if (e->help.n)
        put_filled(e->help);
    while (goes_on(*rest)) {
        struct piece line = take_line(rest);
        while (line.n && *line.p == ' ') {
            line.p++;
            line.n--;
        }
        put_filled(line);
    }
}

/* An example of a file is copied as it is. */
static bool
is_listing(struct piece text)
{
    struct entry e;
    while (text.n)
        if (entry_of(take_line(&text), &e) && e.help.n && *e.help.p == '#')
            return true;
    return false;
}

static void
put_listing(struct piece text)
{
    fputs(".EX\n", stdout);
    while (text.n) {
        put(take_line(&text), false);
        putchar('\n');
    }
    fputs(".EE\n", stdout);
}

/* Entries stand close, like the rows of a table. */
static void
put_lines(struct piece text)
{
    enum { NOTHING, ENTRIES, FILLED } last = NOTHING;
    struct entry e;
    while (text.n) {
        struct piece line = take_line(&text);
        if (entry_of(line, &e)) {
            fputs(last == ENTRIES ? "" : ".PP\n.PD 0\n", stdout);
            put_entry(&e, &text);
            last = ENTRIES;
            continue;
        }
        fputs(last == ENTRIES ? ".PD\n" : "", stdout);
        fputs(last == FILLED ? "" : ".PP\n", stdout);
        put_filled(line);
        last = FILLED;
    }
    fputs(last == ENTRIES ? ".PD\n" : "", stdout);
}

/* ------------------------------------------------------------------ what is said once */

static struct said {
    char *text;
    size_t n;
    const char *by;
} * said;
static size_t n_said;

/* The command whose help had this paragraph; NULL: none, and from now on it is `by`. */
static const char *
said_by(struct piece text, const char *by)
{
    for (size_t i = 0; i < n_said; i++)
        if (said[i].n == text.n && !memcmp(said[i].text, text.p, text.n))
            return said[i].by;
    struct said *more = realloc(said, (n_said + 1) * sizeof *said);
    char *copy = more ? malloc(text.n) : NULL;
    if (more)
        said = more;
    if (copy)
        said[n_said++] = (struct said){memcpy(copy, text.p, text.n), text.n, by};
    return NULL;
}

static unsigned
lines_of(struct piece text)
{
    unsigned n = 0;
    while (text.n) {
        take_line(&text);
        n++;
    }
    return n;
}

static void
put_paragraph(struct piece text, const char *by)
{
    const char *before = lines_of(text) < SHORT_LINES ? NULL : said_by(text, by);
    struct piece rest = text, first = take_line(&rest);
    struct entry e;
    if (!before && is_listing(text)) {
        put_filled(first);
        put_listing(rest);
    } else if (!before) {
        put_lines(text);
    } else {
        fputs(".PP\n", stdout);
        put_filled(entry_of(first, &e) ? piece_of("The keys and values:") : first);
        printf("as for ");
        put_bold(before);
        puts(".");
    }
}

static void
put_paragraphs(struct piece text, const char *by)
{
    while (text.n) {
        const char *end = memmem(text.p, text.n, "\n\n", 2);
        struct piece one = {text.p, end ? (size_t)(end - text.p) : text.n};
        text.p += one.n;
        text.n -= one.n;
        while (text.n && *text.p == '\n') {
            text.p++;
            text.n--;
        }
        while (one.n && *one.p == '\n') {
            one.p++;
            one.n--;
        }
        if (one.n)
            put_paragraph(one, by);
    }
}

/* ------------------------------------------------------------------ a command */

static void
put_examples(const char *examples)
{
    puts(".PP\n.EX");
    while (*examples) {
        size_t n = strcspn(examples, "\n");
        fputs("dpctl ", stdout);
        put((struct piece){examples, n}, false);
        putchar('\n');
        examples += n + (examples[n] == '\n');
    }
    puts(".EE");
}

static void
put_sentence(const char *help)
{
    fputs(".PP\n", stdout);
    put_filled(piece_of(help));
}

static void
put_command(const struct command *k)
{
    struct of_wr w = of_wr_grow(1 << 20);
    fputs(".TP\n", stdout);
    put_bold(k->name);
    fputs(k->args ? " " : "", stdout);
    put(piece_of(k->args ? k->args : ""), true);
    putchar('\n');
    put_filled(piece_of(k->help));
    help_body(&w, k);
    bool more = k->alias || w.len || k->as || k->examples;
    if (more)
        puts(".RS");
    if (k->alias) {
        fputs(".PP\nAnother name: ", stdout);
        put_bold(k->alias);
        putchar('\n');
    }
    put_paragraphs((struct piece){(const char *)w.buf, w.len}, k->name);
    if (k->as) {
        put_sentence("Its arguments are as for");
        put_bold(k->as);
        puts(".");
    }
    if (k->examples)
        put_examples(k->examples);
    if (more)
        puts(".RE");
    of_wr_free(&w);
}

/* The commands of a page; false: there is no such page. */
static bool
put_page(const char *name)
{
    const struct command *k;
    bool some = false;
    for (size_t i = 0; (k = registry_at(i)); i++) {
        if (strcmp(registry_page(k)->name, name))
            continue;
        if (!some)
            puts(".SH COMMANDS");
        some = true;
        put_command(k);
    }
    for (size_t i = 0; i < n_said; i++)
        free(said[i].text);
    free(said);
    said = NULL;
    n_said = 0;
    return some;
}

/* A line for each command, below its page. */
static void
put_list(void)
{
    const struct command *k;
    const struct page *page = NULL;
    puts(".SH COMMANDS");
    for (size_t i = 0; (k = registry_at(i)); i++) {
        if (registry_page(k) != page) {
            page = registry_page(k);
            printf(".PD\n.SS %s: dpctl\\-%s(1)\n.PD 0\n", page->title, page->name);
        }
        fputs(".TP 22n\n.B ", stdout);
        put(piece_of(k->name), false);
        putchar('\n');
        put_filled(piece_of(k->help));
    }
    puts(".PD");
}

/* ------------------------------------------------------------------ options */

static void
put_option(char letter, const char *name, const char *argument, const char *help)
{
    puts(".TP");
    if (letter)
        printf("\\fB\\-%c\\fR, ", letter);
    fputs("\\fB\\-\\-", stdout);
    put(piece_of(name), false);
    fputs("\\fR", stdout);
    if (argument) {
        fputs(*argument == '[' ? "" : " ", stdout);
        put(piece_of(argument), false);
    }
    putchar('\n');
    put_filled(piece_of(help));
}

static void
put_options(void)
{
    puts(".SH OPTIONS");
    options_each(put_option);
}

static void
table_option(char letter, const char *name, const char *argument, const char *help)
{
    printf("| ");
    if (letter)
        printf("`-%c`, ", letter);
    printf("`--%s%s%s` | ", name, argument && *argument != '[' ? " " : "",
           argument ? argument : "");
    for (; *help; help++)
        printf("%s%c", *help == '|' ? "\\" : "", *help == '\n' ? ' ' : *help);
    puts(" |");
}

static void
put_table(void)
{
    puts("\n| option | |\n| --- | --- |");
    options_each(table_option);
}

/* ------------------------------------------------------------------ schedulers, for profiles */

#define QOS_PREFIX "qos-"

static void
put_schedulers(void)
{
    const struct command *k;
    for (size_t i = 0; (k = registry_at(i)); i++) {
        struct of_wr w = of_wr_grow(1 << 20);
        if (!k->sched)
            continue;
        fputs(".SS ", stdout);
        put(piece_of(k->name + strlen(QOS_PREFIX)), false);
        putchar('\n');
        put_filled(piece_of(k->help));
        help_body(&w, k);
        struct piece all = {(const char *)w.buf, w.len}, line;
        do /* the first line is how the request is written */
            line = take_line(&all);
        while (!line.n && all.n);
        put_lines(all);
        of_wr_free(&w);
    }
}

/* ------------------------------------------------------------------ JSON */

static struct of_json json;

static void
json_option(char letter, const char *name, const char *argument, const char *help)
{
    of_json_object(&json, NULL);
    of_json_text(&json, "name", name);
    of_json_string(&json, "letter", &letter, letter != 0);
    of_json_text(&json, "argument", argument);
    of_json_text(&json, "help", help);
    of_json_end_object(&json);
}

static void
json_command(const struct command *k)
{
    struct of_wr w = of_wr_grow(1 << 20);
    const struct page *page = registry_page(k);
    help_body(&w, k);
    of_json_object(&json, NULL);
    of_json_text(&json, "name", k->name);
    of_json_text(&json, "alias", k->alias);
    of_json_text(&json, "title", page->title);
    of_json_text(&json, "page", page->name);
    of_json_text(&json, "arguments", k->args);
    of_json_text(&json, "help", k->help);
    of_json_string(&json, "text", (const char *)w.buf, w.len);
    of_json_text(&json, "as", k->as);
    of_json_text(&json, "examples", k->examples);
    of_json_end_object(&json);
    of_wr_free(&w);
}

static void
put_json(void)
{
    struct of_wr w = of_wr_grow(1 << 24);
    const struct command *k;
    json = of_json(&w);
    of_json_object(&json, NULL);
    of_json_array(&json, "options");
    options_each(json_option);
    of_json_end_array(&json);
    of_json_array(&json, "commands");
    for (size_t i = 0; (k = registry_at(i)); i++)
        json_command(k);
    of_json_end_array(&json);
    of_json_end_object(&json);
    printf("%.*s\n", (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
}

/* ------------------------------------------------------------------ all */

static void
put_man(void)
{
    put_options();
    put_list();
}

bool
manual_print(const char *format)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } formats[] = {{"man", put_man},
                   {"schedulers", put_schedulers},
                   {"markdown", put_table},
                   {"json", put_json}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!strcmp(format, formats[i].name)) {
            formats[i].print();
            return true;
        }
    }
    return !strncmp(format, "man-", 4) && put_page(format + 4);
}
