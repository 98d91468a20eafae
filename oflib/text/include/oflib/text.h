/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and their parts as text: a line for people, JSON for programs; and parsed from what
 * people type (dpctl's grammar).  All of it is generic over the rows of messages.h.
 *
 * Printing appends UTF-8 to a writer (of_wr_grow), without a terminating NUL.  A writer that runs
 * full keeps what fits and has its `overflow` set.
 *
 * In text:
 *   message       flow_mod{xid=5, cookie=0x0, table=0, cmd=add, ..., match={in_port=1}, ...}
 *   match         in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8     (names of the specification)
 *   actions       output=2,output=controller:128,set_field=eth_dst:00:00:00:00:00:01,pop_vlan
 *   instructions  meter:3 apply:output=2 write:group=1 clear meta:0x1/0xff goto:1
 *   bands         drop:rate=1000,burst=100 dscp_remark:rate=2000,burst=100,prec_level=1
 *   ports, ...    a number, or the specification's name in lower case without its prefix; of ports
 *                 also the name that the switch gives them, in quotes where it could be one of those
 *   flags         send_flow_rem|check_overlap, 0 for none; a number is understood too
 * Matches, actions, instructions and bands are printed so that parsing gives the same again.
 *
 * In JSON: field names are the specification's; numbers are numbers; what is usually written in
 * hexadecimal (cookies, datapath ids, masks, data) is a string "0x..." (data: "0a0b"); enumerations
 * are their names where they have one, flags a list of names; a match is an object. */
#ifndef OFLIB_TEXT_H
#define OFLIB_TEXT_H

#include <oflib/arena.h>
#include <oflib/codec.h>
#include <oflib/fmt.h>
#include <oflib/json.h>
#include <oflib/messages.h>

/* ------------------------------------------------------------------ printing */

/* printf into a writer. */
__attribute__((format(printf, 2, 3))) void of_printf(struct of_wr *w, const char *fmt, ...);

/* The whole message on one line, without a newline. */
void of_print_msg(struct of_wr *w, const struct of_msg *msg);

/* The value of one field alone. */
void of_print_field(struct of_wr *w, const struct of_field_row *f, const void *body);

void of_print_number(struct of_wr *w, const struct of_fmt *fmt, uint64_t value);
void of_print_match(struct of_wr *w, const struct of_match *m);
void of_print_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list);
void of_print_mac(struct of_wr *w, const uint8_t *mac);
void of_print_hex(struct of_wr *w, struct of_bytes data);

/* value[/mask] of an OXM field, without its name. */
void of_print_oxm_value(struct of_wr *w, const struct of_oxm *o);

/* A text that the other side sent: control characters and bytes that are not UTF-8 as \x1b, a
 * backslash doubled. */
void of_print_text(struct of_wr *w, const char *s, size_t n);

/* Bytes of the well-formed UTF-8 sequence at s (Unicode, table 3-7), 0 where there is none. */
size_t of_utf8_len(const uint8_t *s, size_t n);

/* JSON.  of_json_msg: {"message": "flow_mod", "xid": 5, fields...}; a multipart message has
 * "multipart": "flow" and, when there is more to come, "more": true. */
void of_json_msg(struct of_wr *w, const struct of_msg *msg);
void of_json_struct(struct of_json *j, const char *name, const struct of_struct_row *row,
                    const void *body);
/* An element of a tagged list: {"type": "output", fields...}. */
void of_json_tagged(struct of_json *j, const char *name, const void *elem);
/* A number as its field's format writes it: a name, a list of flags, hexadecimal digits. */
void of_json_number(struct of_json *j, const char *name, const struct of_fmt *fmt, uint64_t value);

/* What an error message says. */
struct of_error_info {
    /* An experimenter error of the QoS extension counts as OFPET_SCHED_FAILED with its exp_type as
     * the code, ONF's of bundles as OFPET_BUNDLE_FAILED. */
    uint16_t type; /* OFPET_ */
    uint16_t code;
    const char *type_name;   /* "OFPET_BAD_REQUEST", or NULL */
    const char *code_name;   /* "OFPBRC_BAD_LEN", or NULL */
    bool qos;                /* the QoS extension's: errnum and text are its own */
    uint32_t errnum;         /* the kernel's errno, 0: none */
    struct of_bytes text;    /* a sentence, may be empty */
    struct of_bytes request; /* the beginning of the request, may be empty */
};
void of_error_explain(const struct of_error *e, struct of_error_info *out);

/* ------------------------------------------------------------------- fields */

/* By the specification's name or the short one dpctl uses ("prio"); NULL where there is none. */
const struct of_field_row *of_field_by_name(const struct of_struct_row *row, const char *name,
                                            size_t n);

/* The short name where there is one, else the field's own. */
const char *of_field_short_name(const struct of_field_row *f);

/* The number in an integer field (OFK_U8 to OFK_U64) of a structure, and its setting (cut off to
 * the field's size). */
uint64_t of_field_number(const struct of_field_row *f, const void *body);
void of_field_set_number(const struct of_field_row *f, void *body, uint64_t v);

/* A constant's short name, "modify_strict" for OFPFC_MODIFY_STRICT.  Returns buf. */
char *of_short_name(const struct of_fmt *fmt, const char *name, char *buf, size_t n);

/* A port for people: its number, or "local", "controller", ...  Returns buf. */
#define OF_PORT_TEXT 16
char *of_port_text(uint32_t no, char buf[OF_PORT_TEXT]);

/* ------------------------------------------------------------------ parsing */

/* Results are allocated in `arena`.  Every function returns 0, -ENOMEM, or -EINVAL with a
 * sentence in `why`: what is wrong and what to type instead.  On failure the output may be
 * partly filled in. */
struct of_parse {
    struct of_arena *arena;
    /* Finds a port's number by its name, which is neither a number nor reserved.  0, or -EINVAL
     * with a sentence in `why`.  NULL: ports have no names. */
    int (*find_port)(struct of_parse *p, const char *what, const char *name, size_t n,
                     uint64_t *out);
    void *find_port_ctx;
    const struct of_struct_row *keys; /* what else may stand beside a match, to suggest; or NULL */
    char why[768];
};

/* Puts a sentence into p->why.  Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int of_parse_wrong(struct of_parse *p, const char *fmt, ...);

/* "cmd=add,table=0,prio=10": sets the fields given, leaves the others alone.  Integers, addresses
 * and texts only (not matches and lists). */
int of_parse_fields(struct of_parse *p, const struct of_struct_row *row, const char *text,
                    void *body);

/* One value of an enumeration, flags or number of up to `bits` bits.  `what` names it in the
 * sentence. */
int of_parse_number(struct of_parse *p, const char *what, const char *text,
                    const struct of_fmt *fmt, unsigned bits, uint64_t *out);

/* "in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8"; fields may come in any order and are
 * sorted so that prerequisites come first.  A missing prerequisite is an error.  vlan_vid is none,
 * any, or a VID (OFPVID_PRESENT is added). */
int of_parse_match(struct of_parse *p, const char *text, struct of_match *out);

/* "output=2,group=1".  An empty text is an empty list. */
int of_parse_actions(struct of_parse *p, const char *text, struct of_list *out);

/* One of "apply:output=2", "goto:1", ...: appended to the list. */
int of_parse_instruction(struct of_parse *p, const char *text, struct of_list *list);

/* Is it a match field's name, an action's? */
bool of_is_match_field(const char *name, size_t n);
bool of_is_action(const char *name, size_t n);

/* Does this word begin like an instruction (a name and a colon, or "clear")? */
bool of_is_instruction(const char *text);

/* "drop:rate=1000,burst=100": appended to the list. */
int of_parse_band(struct of_parse *p, const char *text, struct of_list *list);

/* Buckets out of words, in turns "weight=1,port=2,group=any" (may be left out) and actions. */
int of_parse_buckets(struct of_parse *p, char *const *words, int n, struct of_list *list);

/* Help for the row, a line each: its keys and their values, the fields of its match, the
 * elements of its lists. */
void of_print_usage(struct of_wr *w, const struct of_struct_row *row);

/* What a hexadecimal digit stands for, 0 to 15; another character: -1. */
int of_hex_digit(char c);

/* Appends one element; false: out of memory. */
bool of_list_append(struct of_arena *arena, struct of_list *list, void *elem);

#endif
