/* SPDX-License-Identifier: Apache-2.0 */
/* Words as people type them: blanks behind commas, several words in quotes. */
#include "dpctl.h"

#include <oflib/text.h>

#include <string.h>

static const char blanks[] = " \t\r\n";

/* "in_port=1, actions=output:2" in quotes is two words; a file's name with a blank is one. */
static bool
is_several(const char *word)
{
    return strpbrk(word, blanks) && strchr(word, '=');
}

/* Does the word go on with the next one?  An instruction begins a word of its own. */
static bool
goes_on(struct ctx *c, const char *word, const char *next)
{
    struct of_list bands = {0};
    size_t n = strlen(word);
    if (!n || (word[n - 1] != ',' && *next != ','))
        return false;
    next += strspn(next, ",");
    if (of_is_instruction(next))
        return false;
    return !strchr(next, ':') || of_parse_band(&c->parse, next, &bands) != 0;
}

static bool
put(struct ctx *c, char **words, int *n, char *word)
{
    char *const both[] = {*n ? words[*n - 1] : NULL, word};
    if (*n && goes_on(c, words[*n - 1], word))
        return (words[*n - 1] = join_words(c, both, 2, ',')) != NULL;
    words[(*n)++] = word;
    return true;
}

enum status
tidy_words(struct ctx *c, char ***words, int *n)
{
    size_t most = 1;
    for (int i = 0; i < *n; i++)
        most += strlen((*words)[i]) + 1;
    char **out = of_arena_array(&c->arena, most, sizeof *out), *copy, *save;
    int kept = 0;
    for (int i = 0; out && i < *n; i++) {
        char *word = (*words)[i];
        if (!is_several(word)) {
            if (!put(c, out, &kept, word))
                out = NULL;
            continue;
        }
        copy = keep_text(c, word, strlen(word));
        for (char *w = copy ? strtok_r(copy, blanks, &save) : NULL; out && w;
             w = strtok_r(NULL, blanks, &save))
            if (!put(c, out, &kept, w))
                out = NULL;
        if (!copy)
            out = NULL;
    }
    if (!out)
        return failed(c, "out of memory");
    *words = out;
    *n = kept;
    return DPCTL_OK;
}
