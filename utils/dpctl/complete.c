/* SPDX-License-Identifier: Apache-2.0 */
#include "complete.h"

#include "options.h"
#include "registry.h"

#include <core/complete.h>
#include <core/local.h>
#include <core/ports.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_MAX  ((size_t)64 << 20)
#define PATIENCE_S 2 /* however slow names are resolved: then there are no candidates */

/* The words that are finished. */
struct line {
    const char *address;
    const struct command *command;
    bool help, unknown;
    char **words; /* behind the command */
    int n;
};

bool
complete_is(int argc, char **argv)
{
    return argc > 2 && !strcmp(argv[1], "complete");
}

/* ------------------------------------------------------------------ options */

static struct complete *asking;
static const char *sought, *argument_found;

static void
offer_option(char letter, const char *name, const char *argument, const char *help)
{
    char text[64];
    snprintf(text, sizeof text, "--%s", name);
    complete_offer(asking, 0, text, help);
}

static void
seek_option(char letter, const char *name, const char *argument, const char *help)
{
    const char *s = sought;
    bool is = letter && s[0] == '-' && s[1] == letter && !s[2];
    if ((is || (!strncmp(s, "--", 2) && !strcmp(s + 2, name))) && argument && *argument != '[')
        argument_found = argument;
}

/* What the option takes as the next word; NULL: nothing. */
static const char *
argument_of(const char *option)
{
    sought = option;
    argument_found = NULL;
    options_each(seek_option);
    return argument_found;
}

/* ------------------------------------------------------------------ a line */

static bool
is_switch(const char *word)
{
    char path[300];
    return remote_is_address(word) ||
           (!registry_find(word) && local_switch(word, path, sizeof path));
}

/* -> what the option takes whose argument is being typed, or NULL. */
static const char *
read_line(char **words, int n, struct line *l)
{
    *l = (struct line){0};
    for (int i = 0; i < n; i++) {
        const char *word = words[i];
        const char *argument = *word == '-' ? argument_of(word) : NULL;
        if (argument && i + 1 == n)
            return argument;
        if (argument)
            i++;
        if (*word == '-')
            continue;
        bool first = !l->address && !l->command && is_switch(word);
        bool second = l->command && !l->address && !l->n && remote_may_be_address(word, false);
        if (first || second) {
            l->address = word;
        } else if (l->command) {
            l->words = l->n ? l->words : &words[i];
            l->n++;
        } else if (!strcmp(word, "help")) {
            l->help = true;
        } else if (!l->unknown) {
            l->command = registry_find(word);
            l->unknown = !l->command;
        }
    }
    return NULL;
}

static void
offer_commands(struct complete *k)
{
    const struct command *one;
    for (size_t i = 0; (one = registry_at(i)); i++)
        complete_offer(k, 0, one->name, one->help);
}

static void
offer_address(struct complete *k)
{
    static const char *const kinds[] = {"unix:", "tcp:", "tls:"};
    for (size_t i = 0; *k->word && i < sizeof kinds / sizeof kinds[0]; i++)
        complete_offer(k, 0, kinds[i], "a switch's address");
    char names[1024], *save;
    local_switches(names, sizeof names);
    for (char *name = strtok_r(names, ", ", &save); name; name = strtok_r(NULL, ", ", &save))
        complete_offer(k, 0, name, "a switch of this machine");
    if (!strncmp(k->word, "unix:", 5))
        complete_files(k, 5);
    else if (*k->word && strchr("./", *k->word))
        complete_files(k, 0);
}

/* What the rows behind the command say, then its arguments and its text. */
static void
offer_arguments(struct complete *k, const struct command *command)
{
    const struct command *as = command->as ? registry_find(command->as) : NULL;
    bool rows = command->keys || command->query || command->sched;
    if (command->text) /* first: it explains */
        complete_text(k, command->text);
    if (command->offer)
        command->offer(k, command);
    if (command->keys)
        complete_row(k, command->keys);
    if (command->args)
        complete_arguments(k, command->args, !rows);
    if (command->options & COMMAND_DRY_RUN)
        complete_offer(k, 0, "--dry-run", "shows what would be done");
    if (command->options & COMMAND_KERNEL)
        complete_offer(k, 0, "--kernel", NULL);
    if (command->options & COMMAND_OPENCONFIG)
        complete_offer(k, 0, "--openconfig", NULL);
    if (as)
        offer_arguments(k, as);
}

static void
offer_line(struct complete *k, const struct line *l)
{
    if (*k->word == '-') {
        asking = k;
        options_each(offer_option);
    }
    if (l->command && !l->help)
        offer_arguments(k, l->command);
    if (l->command || l->unknown)
        return;
    if (!l->help) {
        complete_offer(k, 0, "help", "what a command takes");
        offer_address(k);
    }
    offer_commands(k);
}

enum status
complete_words(char **words, int n)
{
    static struct ctx c = {.where = "dpctl", .quiet = true};
    struct complete k = {.c = &c, .word = words[n - 1], .w = of_wr_grow(1 << 20)};
    struct line l;
    const char *usual = getenv(REMOTE_VARIABLE), *argument = read_line(words, n - 1, &l);
    /* A person is typing: prints no messages and waits for nothing. */
    if (!freopen("/dev/null", "w", stderr))
        return DPCTL_FAILED;
    alarm(PATIENCE_S);
    of_arena_init(&c.arena, ARENA_MAX);
    c.parse = (struct of_parse){.arena = &c.arena, .find_port = ports_find, .find_port_ctx = &c};
    k.before = l.words;
    k.n = l.n;
    k.address = l.address ? l.address : usual && *usual ? usual : remote_usual();
    if (argument)
        complete_values(&k, 0, argument);
    else
        offer_line(&k, &l);
    fwrite(k.w.buf, 1, k.w.len, stdout);
    remote_close(&c.remote);
    of_wr_free(&k.w);
    ports_forget(&c);
    of_arena_free(&c.arena);
    return DPCTL_OK;
}
