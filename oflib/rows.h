/* SPDX-License-Identifier: Apache-2.0 */
/* Inside oflib: makes rows of lists of fields (messages.h, messages10.h). */
#ifndef OFLIB_ROWS_H
#define OFLIB_ROWS_H

#include <oflib/err.h>
#include <oflib/fmt.h>
#include <oflib/messages.h>

/* One field: what a kind needs besides its name and place. */
#define K(S, kd, nm, sz, ...) {.name = #nm, .kind = kd, .size = sz, __VA_ARGS__},
#define AT(S, nm)             .off = offsetof(struct of_##S, nm)

#define ROW_u8(S, nm, x)      K(S, OFK_U8, nm, 1, AT(S, nm), .fmt = &of_fmt_##x)
#define ROW_u16(S, nm, x)     K(S, OFK_U16, nm, 2, AT(S, nm), .fmt = &of_fmt_##x)
#define ROW_u32(S, nm, x)     K(S, OFK_U32, nm, 4, AT(S, nm), .fmt = &of_fmt_##x)
#define ROW_u64(S, nm, x)     K(S, OFK_U64, nm, 8, AT(S, nm), .fmt = &of_fmt_##x)
#define ROW_pad(S, nm, x)     K(S, OFK_PAD, nm, x)
#define ROW_listlen(S, nm, x) K(S, OFK_LISTLEN, nm, 2)
#define ROW_mac(S, nm, x)     K(S, OFK_MAC, nm, 6, AT(S, nm))
#define ROW_str(S, nm, x)     K(S, OFK_STR, nm, x, AT(S, nm))
#define ROW_match(S, nm, x)   K(S, OFK_MATCH, nm, 0, AT(S, nm), .any_mask = ANY_MASK_##x)
#define ANY_MASK__            false
#define ANY_MASK_any          true
#define ROW_match10(S, nm, x) K(S, OFK_MATCH10, nm, 0, AT(S, nm))
#define ROW_oxm(S, nm, x)     K(S, OFK_OXM, nm, 0, AT(S, nm))
#define ROW_oxmids(S, nm, x)  K(S, OFK_OXMIDS, nm, 0, AT(S, nm))
#define ROW_typeids(S, nm, x) K(S, OFK_TYPEIDS, nm, 0, AT(S, nm))
#define ROW_list(S, nm, x)    K(S, OFK_LIST, nm, 0, AT(S, nm), .list = &of_list_##x)
#define ROW_rest(S, nm, x)    K(S, OFK_REST, nm, 0, AT(S, nm))
#define ROW(S, kind, nm, x)   ROW_##kind(S, nm, x)

#define WIRE_u8(x)      +1
#define WIRE_u16(x)     +2
#define WIRE_u32(x)     +4
#define WIRE_u64(x)     +8
#define WIRE_pad(x)     +(x)
#define WIRE_listlen(x) +2
#define WIRE_mac(x)     +6
#define WIRE_str(x)     +(x)
#define WIRE_match(x)
#define WIRE_match10(x) +40
#define WIRE_oxm(x)
#define WIRE_oxmids(x)
#define WIRE_typeids(x)
#define WIRE_list(x)
#define WIRE_rest(x)
#define WIRE(S, kind, nm, x) WIRE_##kind(x)

#define ONE(S, kind, nm, x) +1

#define STRUCT_ROW(S)                                                                              \
    static const struct of_field_row fields_##S[] = {OF_F_##S(ROW, S){.name = NULL}};              \
    const struct of_struct_row of_row_##S = {.name = #S,                                           \
                                             .fields = fields_##S,                                 \
                                             .n_fields = 0 OF_F_##S(ONE, S),                       \
                                             .wire = 0 OF_F_##S(WIRE, S),                          \
                                             .size = sizeof(struct of_##S)};
#define TAG_ROW(constant, number, text, S)                                                         \
    {.type = number, .name = #text, .c_name = #constant, .body = &of_row_##S},
#define TAGS(name, rows) static const struct of_tag_row tags_##name[] = {rows(TAG_ROW)};

#define ELEMS_FIXED(x)  .elem = &of_row_##x
#define ELEMS_SIZED(x)  .elem = &of_row_##x
#define ELEMS_TAGGED(x) .tags = tags_##x, .n_tags = sizeof tags_##x / sizeof tags_##x[0]
#define LIST_ROW(nm, fr, at, pad, skip, elems, type, len)                                          \
    const struct of_list_row of_list_##nm = {.name = #nm,                                          \
                                             .framing = OFL_##fr,                                  \
                                             .len_at = at,                                         \
                                             .padded = pad,                                        \
                                             .skip_unknown = skip,                                 \
                                             ELEMS_##fr(elems),                                    \
                                             .bad_type = type,                                     \
                                             .bad_len = len};

#define MSG_ROW(constant, number, nm, S)                                                           \
    [number] = {.type = number, .name = #nm, .body = &of_row_##S},
#define MP_ROW(constant, number, nm, req, rep)                                                     \
    {.type = number, .name = #nm, .request = &of_row_##req, .reply = &of_row_##rep},

#endif
