/* SPDX-License-Identifier: Apache-2.0 */
/* The options' rows as text for a terminal, as a table in Markdown, as a manual's section. */
#include <daemon/options.h>

#include <string.h>

#define TEXT_COLUMN 31 /* of --help, where the explanations begin */
#define TEXT_END    100
#define NOTE_MAX    160

/* ------------------------------------------------------------------ what a row says */

/* The values that the argument may have, "1 to 254"; "" if the row doesn't say. */
static void
range_of(const struct daemon_option *o, char *out)
{
    *out = '\0';
    if (o->kind == OPTION_IS_NUMBER)
        snprintf(out, NOTE_MAX, "%u to %u", o->min, o->max);
    else if (o->kind == OPTION_IS_SECONDS && o->may_be_0)
        snprintf(out, NOTE_MAX, "0: never");
}

static void
default_of(const struct daemon_option *o, char *out)
{
    *out = '\0';
    if (o->fallback)
        snprintf(out, NOTE_MAX, "%s", o->fallback);
    else if (o->kind == OPTION_IS_NUMBER)
        snprintf(out, NOTE_MAX, "%u", *o->to.number);
    else if (o->kind == OPTION_IS_SECONDS)
        snprintf(out, NOTE_MAX, "%g", *o->to.number / 1000.0);
    for (const struct daemon_word *w = o->words; !*out && w && w->word; w++)
        if (w->value == *o->to.number)
            snprintf(out, NOTE_MAX, "%s", w->word);
}

/* "=N", "[=FILE]" */
static void
argument_of(const struct daemon_option *o, char *out)
{
    if (!o->arg)
        *out = '\0';
    else if (*o->arg == '[')
        snprintf(out, NOTE_MAX, "[=%s", o->arg + 1);
    else
        snprintf(out, NOTE_MAX, "=%s", o->arg);
}

/* ------------------------------------------------------------------ text */

/* The cursor is at column `indent`, where the lines that don't fit begin too. */
static void
print_wrapped(FILE *f, const char *text, int indent)
{
    int column = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + (int)n > TEXT_END) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            column += fprintf(f, " ");
        }
        column += fprintf(f, "%.*s", (int)n, text);
        text += n + strspn(text + n, " ");
    }
    fputc('\n', f);
}

static void
text_row(FILE *f, const struct daemon_option *o)
{
    char arg[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX], all[1024];
    argument_of(o, arg);
    range_of(o, range);
    default_of(o, def);
    int n = o->letter ? fprintf(f, "  -%c, --%s%s", o->letter, o->name, arg)
                      : fprintf(f, "      --%s%s", o->name, arg);
    if (n + 2 > TEXT_COLUMN)
        n = fprintf(f, "\n") - 1;
    fprintf(f, "%*s", TEXT_COLUMN - n, "");
    if (*range || *def)
        snprintf(all, sizeof all, "%s (%s%s%s%s)", o->help, range, *range && *def ? "; " : "",
                 *def ? "default: " : "", def);
    else
        snprintf(all, sizeof all, "%s", o->help);
    print_wrapped(f, all, TEXT_COLUMN);
}

static void
text_group(FILE *f, const char *heading)
{
    fprintf(f, "\n%s:\n", heading);
}

/* ------------------------------------------------------------------ Markdown */

/* A table's cells are separated by "|". */
static void
markdown_words(FILE *f, const char *s)
{
    for (; *s; s++)
        fprintf(f, *s == '|' ? "\\%c" : "%c", *s);
}

static void
markdown_row(FILE *f, const struct daemon_option *o)
{
    char arg[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX];
    argument_of(o, arg);
    range_of(o, range);
    default_of(o, def);
    fputs("| ", f);
    if (o->letter)
        fprintf(f, "`-%c`, ", o->letter);
    fprintf(f, "`--%s", o->name);
    markdown_words(f, arg);
    fputs("` | ", f);
    markdown_words(f, o->help);
    fprintf(f, *range ? " (%s) |" : "%s |", range);
    if (*def)
        fputs(" ", f);
    markdown_words(f, def);
    fputs(" |\n", f);
}

static void
markdown_group(FILE *f, const char *heading)
{
    fprintf(f, "\n| %s | | default |\n| --- | --- | --- |\n", heading);
}

/* ------------------------------------------------------------------ a manual's section, by roff */

static void
man_words(FILE *f, const char *s)
{
    for (; *s; s++)
        fprintf(f, *s == '-' || *s == '\\' ? "\\%c" : "%c", *s);
}

static void
man_help(FILE *f, const char *help, const char *range, const char *def)
{
    man_words(f, help);
    fprintf(f, *range ? " (%s)." : "%s.", range);
    if (*def) {
        fputs("\nDefault: ", f);
        man_words(f, def);
        fputs(".", f);
    }
}

static void
man_row(FILE *f, const struct daemon_option *o)
{
    char arg[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX];
    argument_of(o, arg);
    range_of(o, range);
    default_of(o, def);
    fputs(".TP\n", f);
    if (o->letter)
        fprintf(f, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", f);
    man_words(f, o->name);
    fputs("\\fR", f);
    man_words(f, arg);
    fputs("\n", f);
    man_help(f, o->help, range, def);
    fputs("\n", f);
}

static void
man_group(FILE *f, const char *heading)
{
    fprintf(f, ".SS %s\n", heading);
}

/* ------------------------------------------------------------------ the configuration file's keys */

/* The value behind the key: for IF:FILE, in a section [port IF], it is FILE. */
static void
value_of(const struct daemon_option *o, char *out)
{
    const char *arg = o->arg ? o->arg : "yes|no", *colon = strchr(arg, ':');
    if (o->section && colon)
        arg = colon + 1;
    snprintf(out, NOTE_MAX, "%s", *arg == '[' ? arg + 1 : arg);
    size_t n = strcspn(out, "[]");
    if (out[n] == ']') /* of a bracket that began before the value: IF[:NUMBER] */
        out[n] = '\0';
}

/* The heading of a row's section: [port IF]. */
static void
section_of(const struct daemon_option *o, char *out)
{
    snprintf(out, NOTE_MAX, "[%s %.*s]", o->section, (int)strcspn(o->arg, ":["), o->arg);
}

static void
conf_text_row(FILE *f, const struct daemon_option *o)
{
    char value[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX], section[NOTE_MAX] = "", all[1024];
    value_of(o, value);
    range_of(o, range);
    default_of(o, def);
    if (o->section)
        section_of(o, section);
    int n = fprintf(f, "  %s = %s", o->key ? o->key : o->name, value);
    if (n + 2 > TEXT_COLUMN)
        n = fprintf(f, "\n") - 1;
    fprintf(f, "%*s", TEXT_COLUMN - n, "");
    snprintf(all, sizeof all, "%s%s%s%s%s%s%s%s", section, *section ? ": " : "", o->help,
             *range ? "; " : "", range, *def ? "; default: " : "", def,
             o->apply ? "" : "; a change needs a restart");
    print_wrapped(f, all, TEXT_COLUMN);
}

static void
conf_man_row(FILE *f, const struct daemon_option *o)
{
    char value[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX], section[NOTE_MAX];
    value_of(o, value);
    range_of(o, range);
    default_of(o, def);
    fputs(".TP\n\\fB", f);
    man_words(f, o->key ? o->key : o->name);
    fputs("\\fR = ", f);
    man_words(f, value);
    fputs("\n", f);
    if (o->section) {
        section_of(o, section);
        fprintf(f, "In a section %s: ", section);
    }
    man_help(f, o->help, range, def);
    fputs(o->apply ? "\n" : "\nA change needs a restart.\n", f);
}

static void
conf_markdown_row(FILE *f, const struct daemon_option *o)
{
    char value[NOTE_MAX], range[NOTE_MAX], def[NOTE_MAX], section[NOTE_MAX];
    value_of(o, value);
    range_of(o, range);
    default_of(o, def);
    fprintf(f, "| `%s = ", o->key ? o->key : o->name);
    markdown_words(f, value);
    fputs("` | ", f);
    if (o->section) {
        section_of(o, section);
        fprintf(f, "in a section `%s`: ", section);
    }
    markdown_words(f, o->help);
    fprintf(f, *range ? " (%s) | " : "%s | ", range);
    markdown_words(f, def);
    fputs(o->apply ? " | at once |\n" : " | restart |\n", f);
}

static void
conf_markdown_group(FILE *f, const char *heading)
{
    fprintf(f, "\n| %s | | default | a change |\n| --- | --- | --- | --- |\n", heading);
}

/* ------------------------------------------------------------------ all rows */

static const struct format {
    const char *name;
    void (*group)(FILE *f, const char *heading);
    void (*row)(FILE *f, const struct daemon_option *o);
    bool is_page; /* with what is above and below the options */
    bool is_conf; /* keys of the configuration file */
} formats[] = {
    {"text", text_group, text_row, .is_page = true},
    {"markdown", markdown_group, markdown_row, false, false},
    {"man", man_group, man_row, false, false},
    {"conf", text_group, conf_text_row, .is_conf = true},
    {"conf-man", man_group, conf_man_row, .is_conf = true},
    {"conf-markdown", conf_markdown_group, conf_markdown_row, .is_conf = true},
};

/* Those that do nothing are named in one place. */
static void
print_ignored(const struct daemon_program *p, FILE *f)
{
    char all[1024];
    const char *head = "Accepted for old scripts' sake, and ignored:";
    int none = snprintf(all, sizeof all, "%s", head), n = none;
    for (const struct daemon_option *o = p->options; o->name || o->help; o++)
        if (o->name && o->kind == OPTION_IS_IGNORED && n < (int)sizeof all)
            n += snprintf(all + n, sizeof all - (size_t)n, " --%s", o->name);
    if (n == none)
        return;
    fputs("\n", f);
    print_wrapped(f, all, 0);
}

const struct daemon_option daemon_own_options[] = {
    {"help", 'h', NULL, "print this, and end", NULL, OPTION_IGNORED},
    {"version", 'V', NULL, "print the version, and end", NULL, OPTION_IGNORED},
    OPTION_END,
};

bool
daemon_options_print(const struct daemon_program *p, const char *format, FILE *f)
{
    const struct format *k = formats, *end = formats + sizeof formats / sizeof formats[0];
    while (k < end && strcmp(k->name, format))
        k++;
    if (k == end)
        return false;
    if (k->is_page)
        fputs(p->before, f);
    for (const struct daemon_option *o = p->options; o->name || o->help; o++)
        if (!o->name)
            k->group(f, o->help);
        else if (o->help && !(k->is_conf && o->line_only))
            k->row(f, o);
    for (const struct daemon_option *o = daemon_own_options; !k->is_conf && o->name; o++)
        k->row(f, o);
    if (k->is_page) {
        print_ignored(p, f);
        fputs(p->after, f);
    }
    return true;
}
