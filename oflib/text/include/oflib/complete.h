/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand next in a word that is being typed, for a shell's completion: keys, values and
 * elements of lists, generic over the rows as the help (text.h) is. */
#ifndef OFLIB_COMPLETE_H
#define OFLIB_COMPLETE_H

#include <oflib/row.h>

struct of_complete {
    const char *word; /* as far as it is typed */
    void *ctx;
    /* The word's first `keep` characters may be followed by `text`.  Whether the rest of the word
     * fits is the callee's to see.  `help` may be NULL. */
    void (*offer)(void *ctx, size_t keep, const char *text, const char *help);
    /* They may be followed by a number of this format, whose names have been offered: a port, a
     * group, ... of the switch. */
    void (*number)(void *ctx, size_t keep, const struct of_fmt *fmt);
};

/* A word for this structure: "key=value,..." for its fields, for the fields of its match and of
 * the elements of its lists; an instruction, a band, actions. */
void of_complete_row(const struct of_complete *k, const struct of_struct_row *row);

#endif
