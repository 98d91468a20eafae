/* SPDX-License-Identifier: Apache-2.0 */
/* Rows describe messages, list elements and fields on the wire and in memory.
 *
 * Encode, decode, print, parse and JSON are generic over these rows (codec.h, text.h).  The field
 * lists in messages.h make both the rows and the C structures, so a field is written once.
 *
 * In memory integers are in host byte order; addresses and OXM values are as on the wire.
 */
#ifndef OFLIB_ROW_H
#define OFLIB_ROW_H

#include <oflib/wire.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum of_kind {
    OFK_U8,
    OFK_U16,
    OFK_U32,
    OFK_U64,
    OFK_PAD,     /* `size` bytes: sent as 0, ignored when received (spec 7.1.2) */
    OFK_MAC,     /* uint8_t[6] */
    OFK_STR,     /* char[size]: NUL-padded text, terminated in memory (the last byte is dropped) */
    OFK_LISTLEN, /* uint16_t on the wire, no member: the bytes of the list that follows later */
    OFK_MATCH,   /* struct of_match: an ofp_match with its padding */
    OFK_OXM,     /* struct of_oxm: one OXM TLV, then padding to 8 (the set-field action) */
    OFK_OXMIDS,  /* struct of_ids: OXM headers to the end */
    OFK_TYPEIDS, /* struct of_ids: type, length pairs to the end (table features) */
    OFK_LIST,    /* struct of_list, to the end or OFK_LISTLEN bytes */
    OFK_REST,    /* struct of_bytes: everything to the end */
    OFK_MATCH10, /* struct of_match: an ofp_match of OpenFlow 1.0, 40 bytes (messages10.h) */
};

/* How a number is printed. */
enum of_fmt_kind { OF_FMT_DEC, OF_FMT_HEX, OF_FMT_ENUM, OF_FMT_FLAGS };

struct of_name {
    uint64_t value;
    const char *name; /* the specification's, e.g. "OFPFC_ADD" */
};

struct of_fmt {
    enum of_fmt_kind kind;
    uint8_t prefix; /* length of the names' common prefix, e.g. 6 for "OFPFC_" */
    const struct of_name *names;
    size_t n;
};

struct of_struct_row;
struct of_list_row;

struct of_field_row {
    const char *name;
    enum of_kind kind;
    uint16_t size; /* on the wire, where that is fixed */
    bool any_mask; /* of a match: fields that flows can only match exactly may have a mask */
    uint16_t off;  /* of the member in memory */
    const struct of_fmt *fmt;
    const struct of_list_row *list;
};

struct of_struct_row {
    const char *name;
    const struct of_field_row *fields;
    uint16_t n_fields;
    uint16_t wire; /* bytes of all fixed fields */
    size_t size;   /* of the C structure */
};

/* One kind of element in a list of tagged things: an action, an instruction, a property. */
struct of_tag_row {
    uint16_t type;
    const char *name;                 /* "output" */
    const char *c_name;               /* "OFPAT_OUTPUT" */
    const struct of_struct_row *body; /* what follows type and length */
};

enum of_framing {
    OFL_FIXED,  /* elements of one fixed size, one after the other */
    OFL_SIZED,  /* each has its length in 16 bits at `len_at` */
    OFL_TAGGED, /* type, length (both uint16_t, length counts them), body */
};

struct of_list_row {
    const char *name;
    enum of_framing framing;
    uint8_t len_at;
    bool padded;       /* TAGGED: the length leaves out the padding to a multiple of 8 */
    bool skip_unknown; /* TAGGED: elements of an unknown type are passed over */
    const struct of_struct_row *elem; /* FIXED, SIZED */
    const struct of_tag_row *tags;    /* TAGGED */
    size_t n_tags;
    int bad_type; /* the error to answer with; 0: the enclosing list's */
    int bad_len;
};

/* A list in memory.  v[i] is an element's C structure; in a TAGGED list that begins with
 * `const struct of_tag_row *row`.  `raw` is the list as received.  To encode, fill n and v, or
 * leave v NULL and give the encoded bytes in raw. */
struct of_list {
    uint32_t n;
    void **v;
    struct of_bytes raw;
};

struct of_tagged {
    const struct of_tag_row *row;
};

/* Element i, as what the caller knows it to be. */
#define OF_AT(list, i, type) ((type *)(list)->v[i])

struct of_id {
    uint32_t id;           /* the type, or an OXM header */
    uint32_t experimenter; /* where the type or class is the experimenter's */
};

struct of_ids {
    uint32_t n;
    struct of_id *v;
};

#endif
