/* SPDX-License-Identifier: Apache-2.0 */
/* Completion in a shell, out of the options' rows.  An argument that is a file has no candidates:
 * the shell knows files. */
#include <daemon/options.h>

#include <net/if.h>
#include <string.h>

struct completion {
    const char *word;
    FILE *f;
};

/* The word's first `keep` characters may be followed by n characters of `text`. */
static void
offer(const struct completion *c, size_t keep, const char *text, size_t n, const char *help)
{
    const char *typed = c->word + keep;
    size_t len = strlen(typed);
    if (len <= n && !strncmp(text, typed, len))
        fprintf(c->f, "%.*s%.*s\t%s\n", (int)keep, c->word, (int)n, text, help);
}

/* "closed|open" */
static void
offer_words(const struct completion *c, size_t keep, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, "|");
        offer(c, keep, words, n, "");
        words += n + (words[n] == '|');
    }
}

static void
offer_interfaces(const struct completion *c, size_t keep)
{
    const char *comma = strrchr(c->word + keep, ',');
    struct if_nameindex *all = if_nameindex();
    if (comma)
        keep = (size_t)(comma + 1 - c->word);
    for (struct if_nameindex *i = all; i && i->if_index; i++)
        offer(c, keep, i->if_name, strlen(i->if_name), "");
    if (all)
        if_freenameindex(all);
}

static void
offer_argument(const struct completion *c, size_t keep, const struct daemon_option *o)
{
    if (strchr(o->arg, '|'))
        offer_words(c, keep, o->arg);
    else if (!strncmp(o->arg, "IF", 2))
        offer_interfaces(c, keep);
}

static void
offer_option(const struct completion *c, const struct daemon_option *o)
{
    char text[80];
    int n = snprintf(text, sizeof text, "--%s%s", o->name, o->arg && *o->arg != '[' ? "=" : "");
    offer(c, 0, text, (size_t)n, o->help);
}

/* Is the word the option, which takes the next word as its argument? */
static bool
takes_next(const struct daemon_option *o, const char *word)
{
    bool is = (word[0] == '-' && o->letter && word[1] == o->letter && !word[2]) ||
              (!strncmp(word, "--", 2) && !strcmp(word + 2, o->name));
    return is && o->arg && *o->arg != '[';
}

/* Where the argument begins in "--name=argument"; 0: the word is another one. */
static size_t
argument_in(const struct daemon_option *o, const char *word)
{
    size_t n = strlen(o->name);
    bool is = !strncmp(word, "--", 2) && !strncmp(word + 2, o->name, n) && word[2 + n] == '=';
    return is && o->arg ? n + 3 : 0;
}

void
daemon_complete(const struct daemon_program *p, char **words, int n, FILE *f)
{
    const struct completion c = {words[n - 1], f};
    for (const struct daemon_option *o = p->options; o->name || o->help; o++) {
        size_t keep = o->name && o->help ? argument_in(o, c.word) : 0;
        bool next = o->name && o->help && n > 1 && takes_next(o, words[n - 2]);
        if (!keep && !next)
            continue;
        offer_argument(&c, keep, o);
        return;
    }
    for (const struct daemon_option *o = p->options; *c.word == '-' && (o->name || o->help); o++)
        if (o->name && o->help)
            offer_option(&c, o);
    for (const struct daemon_option *o = daemon_own_options; *c.word == '-' && o->name; o++)
        offer_option(&c, o);
    if (p->words)
        offer_words(&c, 0, p->words);
}
