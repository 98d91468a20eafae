/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "command-files.h"

#include <oflib/near.h>

#include <stdio.h>

#define DECLARE(file) extern const struct command_table commands_##file;
COMMAND_FILES(DECLARE)

#define ADDRESS(file) &commands_##file,
static const struct command_table *const tables[] = {COMMAND_FILES(ADDRESS) NULL};

#define PAGE(subject, name, title) [subject] = {name, title},
static const struct page pages[] = {COMMAND_SUBJECTS(PAGE)};

#define ONE(subject, name, title) +1
_Static_assert(0 COMMAND_SUBJECTS(ONE) == N_SUBJECTS, "dpctl/meson.build lacks a subject");

const struct command *
registry_find(const char *name)
{
    const struct command *k = NULL;
    for (size_t i = 0; tables[i] && !k; i++)
        k = command_find(tables[i], name);
    return k;
}

const struct page *
registry_page(const struct command *k)
{
    const struct command *as = k->as ? registry_find(k->as) : NULL;
    return &pages[as ? as->subject : k->subject];
}

/* By subject, in a subject by table. */
static void
collect(const struct command **all, size_t most)
{
    const struct command *k;
    size_t n = 0;
    for (size_t s = 0; s < N_SUBJECTS; s++)
        for (size_t t = 0; tables[t]; t++)
            for (size_t i = 0; (k = command_at(tables[t], i)); i++)
                if (registry_page(k) == &pages[s] && n < most)
                    all[n++] = k;
}

const struct command *
registry_at(size_t i)
{
    static const struct command *all[512]; /* the last one stays NULL */
    if (!all[0])
        collect(all, sizeof all / sizeof all[0] - 1);
    return all[i];
}

/* "htb" is taken for qos-htb. */
static bool
lacks_prefix(const struct command *k, const char *name)
{
    return !strncmp(k->name, "qos-", 4) && !strcmp(k->name + 4, name);
}

const char *
registry_near(const char *name, char *buf, size_t size)
{
    struct of_near near = of_near(name, strlen(name));
    const struct command *k;
    of_near_try(&near, "help");
    for (size_t i = 0; (k = registry_at(i)); i++) {
        of_near_try(&near, k->name);
        if (k->alias)
            of_near_try(&near, k->alias);
        if (k->sched && lacks_prefix(k, name)) {
            snprintf(buf, size, "; did you mean %s?", k->name);
            return buf;
        }
    }
    return *of_near_text(&near, buf, size) ? buf : ": dpctl --help=all lists them";
}
