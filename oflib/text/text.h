/* SPDX-License-Identifier: Apache-2.0 */
/* Inside oflib: what printing, JSON and parsing share. */
#ifndef OFLIB_TEXT_INSIDE_H
#define OFLIB_TEXT_INSIDE_H

#include <oflib/text.h>

/* Another name that people may type.  The first alias of a name is its short name. */
struct of_alias {
    const char *name; /* the specification's */
    const char *alias;
};

extern const struct of_alias of_field_aliases[]; /* fields of structures; ends with a NULL name */
extern const struct of_alias of_oxm_aliases[];
extern const struct of_alias of_value_aliases[]; /* of constants: {"OFPFC_MODIFY", "mod"} */
extern const struct of_alias of_tag_aliases[];   /* of actions: {"OFPAT_DEC_NW_TTL", "dec_ttl"} */

/* How elements of a tagged list are written: "output=2" (positional values after a sign), or
 * "drop:rate=1" (named ones). */
struct of_list_style {
    const struct of_list_row *list;
    char sign; /* between name and values */
    bool positional;
    char sep; /* between elements */
};
const struct of_list_style *of_list_style(const struct of_list_row *list);

/* Is the field a mask of the one before (written value/mask, all ones when left out)? */
bool of_field_is_mask(const struct of_field_row *f);

/* The value of a positional field that is not given; `body` has the fields before it. */
uint64_t of_field_default(const struct of_struct_row *row, const struct of_field_row *f,
                          const void *body);

/* Is the field shown to people?  Pads and lengths are not. */
bool of_field_shown(const struct of_field_row *f);

/* A type's name in the list `types`, or an OXM header's where that is NULL. */
void of_print_id(struct of_wr *w, const struct of_id *id, const struct of_list_row *types);

/* Is the sequence of this length a control character (C0, DEL, C1)? */
static inline bool
of_is_control(const uint8_t *s, size_t len)
{
    return (len == 1 && (s[0] < ' ' || s[0] == 0x7f)) || (len == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

/* The list whose types this property of table features names. */
const struct of_list_row *of_typeids_list(const struct of_tag_row *tag);

#endif
