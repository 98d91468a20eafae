/* SPDX-License-Identifier: Apache-2.0 */
#include <core/say.h>
#include <core/words.h>

#include <inttypes.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

char *
words_keep(struct ctx *c, const char *text, size_t n)
{
    return of_arena_text(&c->arena, text, n);
}

char *
words_join(struct ctx *c, char *const *words, int n, char sep)
{
    size_t len = 1;
    for (int i = 0; i < n; i++)
        len += strlen(words[i]) + 1;
    char *out = of_arena_alloc(&c->arena, len), *p = out;
    for (int i = 0; out && i < n; i++) {
        size_t k = strlen(words[i]);
        memcpy(p, words[i], k);
        p[k] = i + 1 < n ? sep : '\0';
        p += k + 1;
    }
    return out;
}

enum status
words_number(struct ctx *c, const char *key, const char *text, uint64_t least, uint64_t most,
             uint64_t *out)
{
    uint64_t v;
    if (of_parse_number(&c->parse, key, text, &of_fmt_DEC, 64, &v) || v < least || v > most)
        return say_usage(c, "%s must be %" PRIu64 " to %" PRIu64 ", not '%.40s'", key, least, most,
                         text);
    *out = v;
    return DPCTL_OK;
}

void *
words_room(struct ctx *c, void *v, size_t n, size_t *room, size_t size)
{
    return of_arena_room(&c->arena, v, n, room, size);
}

bool
words_take_flag(char **words, int *n, const char *flag)
{
    int kept = 0;
    for (int i = 0; i < *n; i++)
        if (strcmp(words[i] + (strncmp(words[i], "--", 2) ? 0 : 2), flag))
            words[kept++] = words[i];
    bool found = kept < *n;
    *n = kept;
    return found;
}

/* ------------------------------------------------------------------------ tidying */

/* "in_port=1, actions=output:2" in quotes is two words; a file's name with a blank is one. */
static bool
is_several(const char *word)
{
    return strpbrk(word, blanks) && strchr(word, '=');
}

/* Does the word go on with the next one?  An instruction and a band are words of their own. */
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

/* Appends a word, or joins it to the last one. */
static bool
append_word(struct ctx *c, char **words, int *n, char *word)
{
    char *const both[] = {*n ? words[*n - 1] : NULL, word};
    if (*n && goes_on(c, words[*n - 1], word))
        return (words[*n - 1] = words_join(c, both, 2, ',')) != NULL;
    words[(*n)++] = word;
    return true;
}

static bool
put_several(struct ctx *c, char **words, int *n, const char *text)
{
    char *save, *copy = words_keep(c, text, strlen(text));
    bool ok = copy != NULL;
    for (char *w = ok ? strtok_r(copy, blanks, &save) : NULL; ok && w;
         w = strtok_r(NULL, blanks, &save))
        ok = append_word(c, words, n, w);
    return ok;
}

enum status
words_tidy(struct ctx *c, char ***words, int *n)
{
    size_t most = 1;
    for (int i = 0; i < *n; i++)
        most += strlen((*words)[i]) + 1;
    char **out = of_arena_array(&c->arena, most, sizeof *out);
    bool ok = out != NULL;
    int kept = 0;
    for (int i = 0; ok && i < *n; i++) {
        char *word = (*words)[i];
        ok = is_several(word) ? put_several(c, out, &kept, word) : append_word(c, out, &kept, word);
    }
    if (!ok)
        return say_memory(c);
    *words = out;
    *n = kept;
    return DPCTL_OK;
}
