/* SPDX-License-Identifier: Apache-2.0 */
#include <core/keys.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

#include <oflib/near.h>

#include <string.h>
#include <strings.h>

void
key_put(const struct key *k, void *to, uint64_t v)
{
    uint8_t *p = (uint8_t *)to + k->at;
    if (k->size == 1)
        *p = (uint8_t)v;
    else if (k->size == 4)
        memcpy(p, &(uint32_t){(uint32_t)v}, 4);
    else
        memcpy(p, &v, 8);
}

enum status
key_port(struct ctx *c, const struct key *k, char *value, void *to)
{
    uint32_t no = 0;
    enum status st = ports_number(c, value, &no);
    key_put(k, to, no);
    return st;
}

enum status
key_number(struct ctx *c, const struct key *k, char *value, void *to)
{
    uint64_t v = 0, most = k->size < 8 ? (1ull << 8 * k->size) - 1 : UINT64_MAX;
    enum status st = words_number(c, k->name, value, k->least, k->most ? k->most : most, &v);
    key_put(k, to, v);
    return st;
}

enum status
key_text(struct ctx *c, const struct key *k, char *value, void *to)
{
    const char *text = value;
    memcpy((uint8_t *)to + k->at, &text, sizeof text);
    return DPCTL_OK;
}

enum status
key_flag(struct ctx *c, const struct key *k, char *value, void *to)
{
    key_put(k, to, !strcasecmp(value, "yes"));
    return strcasecmp(value, "yes") && strcasecmp(value, "no")
               ? say_usage(c, "%s must be yes or no, not '%.40s'", k->name, value)
               : DPCTL_OK;
}

/* "a|b|c" as "a, b or c"; returns buf. */
static const char *
list_of(const char *values, char *buf, size_t size)
{
    struct of_wr w = of_wr_fixed(buf, size - 1);
    for (size_t n; *values; values += n + (values[n] == '|')) {
        n = strcspn(values, "|");
        bool last = values[n] && !strchr(values + n + 1, '|');
        of_printf(&w, "%.*s%s", (int)n, values, !values[n] ? "" : last ? " or " : ", ");
    }
    buf[w.len] = '\0';
    return buf;
}

enum status
key_choice(struct ctx *c, const struct key *k, char *value, void *to)
{
    uint64_t place = 0;
    char list[256];
    for (const char *p = k->values; *p; p += strcspn(p, "|"), p += *p == '|', place++) {
        size_t n = strcspn(p, "|");
        if (strlen(value) != n || strncasecmp(p, value, n))
            continue;
        key_put(k, to, place);
        return DPCTL_OK;
    }
    return say_usage(c, "%s must be %s, not '%.40s'", k->name,
                     list_of(k->values, list, sizeof list), value);
}

enum status
keys_unknown(struct ctx *c, const struct key *rows, const char *word)
{
    char near[OF_NEAR_TEXT], keys[512], list[600];
    struct of_near found = of_near(word, strcspn(word, "="));
    struct of_wr w = of_wr_fixed(keys, sizeof keys - 1);
    for (const struct key *k = rows; k->name; k++) {
        of_near_try(&found, k->name);
        of_printf(&w, "%s%s%s", w.len ? "|" : "", k->name, k->take == key_flag ? "" : "=");
    }
    keys[w.len] = '\0';
    if (found.count)
        return say_usage(c, "unknown word '%.80s'%s", word,
                         of_near_text(&found, near, sizeof near));
    return say_usage(c, "unknown word '%.80s': use %s", word, list_of(keys, list, sizeof list));
}

/* The row that takes the word, whose key is its first n characters; else the last one. */
static const struct key *
row_of(const struct key *rows, const char *word, size_t n, uint64_t given)
{
    const struct key *k, *bare = NULL;
    for (k = rows; k->name; k++) {
        if (!strncasecmp(k->name, word, n) && !k->name[n] && (word[n] || k->take == key_flag))
            return k;
        if (!word[n] && !bare &&
            (k->bare == KEY_BARE_ALL || (k->bare && !(given >> (k - rows) & 1))))
            bare = k;
    }
    return bare ? bare : k;
}

static enum status
take_word(struct ctx *c, const struct key *rows, char *word, uint64_t *given, void *to)
{
    char yes[] = "yes";
    size_t n = strcspn(word, "=");
    const struct key *k = row_of(rows, word, n, *given);
    if (!k->name)
        return k->take ? k->take(c, k, word, to) : keys_unknown(c, rows, word);
    if (!k->repeats && k->bare != KEY_BARE_ALL && *given >> (k - rows) & 1)
        return say_usage(c, "%s is given twice", k->name);
    *given |= 1ull << (k - rows);
    return k->take(c, k, word[n] ? word + n + 1 : k->take == key_flag ? yes : word, to);
}

enum status
keys_take(struct ctx *c, const struct key *rows, char *const *words, int n, void *to)
{
    char *save, *text = words_join(c, words, n, ',');
    uint64_t given = 0;
    enum status st = text ? DPCTL_OK : say_memory(c);
    for (char *w = st ? NULL : strtok_r(text, ",", &save); w && !st; w = strtok_r(NULL, ",", &save))
        st = take_word(c, rows, w, &given, to);
    for (const struct key *k = rows; !st && k->name; k++)
        if (k->need && !(given >> (k - rows) & 1))
            st = say_usage(c, "no %s given: write %s", k->name, k->need);
    return st;
}
