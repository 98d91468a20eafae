/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line, and texts made of them.  All in the context's arena. */
#ifndef DPCTL_CORE_WORDS_H
#define DPCTL_CORE_WORDS_H

#include <core/context.h>

/* Splits words that were typed in one pair of quotes, and joins a word with the next one if a
 * comma says that it goes on: {"in_port=1, actions=2"}, {"a=1,", "b=2"}. */
enum status words_tidy(struct ctx *c, char ***words, int *n);

/* All words with `sep` between them; NULL: no memory. */
char *words_join(struct ctx *c, char *const *words, int n, char sep);

/* The first n characters, terminated; NULL: no memory. */
char *words_keep(struct ctx *c, const char *text, size_t n);

/* Removes every word that is this flag, "--dry-run" or "dry-run".  True: there was one. */
bool words_take_flag(char **words, int *n, const char *flag);

/* A number in a range, decimal or hexadecimal (0x), of a word `key`=... or --key. */
enum status words_number(struct ctx *c, const char *key, const char *text, uint64_t least,
                         uint64_t most, uint64_t *out);

/* An array in the arena with room for one element more than the n it has: v, or a larger copy,
 * whose *room is updated.  NULL: no memory. */
void *words_room(struct ctx *c, void *v, size_t n, size_t *room, size_t size);

/* Fills `body`, a structure of this row, from words: "key=value" for its fields and for the
 * fields of its match.  Where the row has no match, bare values are its numbers in order. */
enum status words_fields(struct ctx *c, const struct of_struct_row *row, char *const *words, int n,
                         void *body);

#endif
