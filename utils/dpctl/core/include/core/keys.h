/* SPDX-License-Identifier: Apache-2.0 */
/* A command's words "KEY=VALUE", with commas or blanks between them.  A table has a row for each key: what its value
 * is, and where it goes.  Errors are reported, and say what would be right. */
#ifndef DPCTL_CORE_KEYS_H
#define DPCTL_CORE_KEYS_H

#include <core/context.h>

#include <stddef.h>

struct key {
    const char *name; /* upper and lower case are the same */
    /* Reads the value and puts it into `to`, the command's structure. */
    enum status (*take)(struct ctx *c, const struct key *k, char *value, void *to);
    size_t at, size; /* the member of the structure (KEY_TO) */
    uint64_t least, most;
    const char *values; /* of key_choice: "out|in" */
    const char *need; /* what to write where the key is missing: "port=1"; NULL: may be left out */
    bool repeats;     /* may be given more than once, as those of KEY_BARE_ALL may */
    /* The value may stand alone: "eth1" for port=eth1.  Several such rows take bare words in their order;
     * KEY_BARE_ALL takes all the rest. */
    enum { KEY_NOT_BARE, KEY_BARE, KEY_BARE_ALL } bare;
};

#define KEY_TO(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* A table ends with a row without a name.  Its `take`, where there is one, gets the words that no row has. */
enum status keys_take(struct ctx *c, const struct key *rows, char *const *words, int n, void *to);

/* For `take` of rows: */
enum status key_port(struct ctx *c, const struct key *k, char *value,
                     void *to); /* a number or a name */
/* `least` to `most`, in a member of any size; most 0: as much as fits */
enum status key_number(struct ctx *c, const struct key *k, char *value, void *to);
enum status key_text(struct ctx *c, const struct key *k, char *value,
                     void *to); /* const char *, in the arena */
enum status key_flag(struct ctx *c, const struct key *k, char *value,
                     void *to); /* "all", "all=yes"; a bool */
enum status key_choice(struct ctx *c, const struct key *k, char *value,
                       void *to); /* its place in `values` */

/* Puts a number into the row's member. */
void key_put(const struct key *k, void *to, uint64_t v);

/* Refuses a word that no row has: names the nearest keys, or all of them. */
enum status keys_unknown(struct ctx *c, const struct key *rows, const char *word);

#endif
