/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259): puts the commas and escapes the strings.
 *
 *     struct of_json j = of_json(&w);
 *     of_json_object(&j, NULL);
 *     of_json_uint(&j, "class_id", 10);
 *     of_json_array(&j, "ports");
 *     of_json_uint(&j, NULL, 1);
 *     of_json_end_array(&j);
 *     of_json_end_object(&j);
 *
 * appends {"class_id": 10, "ports": [1]} to w.  `name` is a member's name; it is NULL for an
 * element of an array and for the outermost value.  of_json() starts a value of its own. */
#ifndef OFLIB_JSON_H
#define OFLIB_JSON_H

#include <oflib/wire.h>

struct of_json {
    struct of_wr *w;
    bool comma; /* a value stands before the next one */
};

static inline struct of_json
of_json(struct of_wr *w)
{
    return (struct of_json){.w = w};
}

void of_json_object(struct of_json *j, const char *name);
void of_json_end_object(struct of_json *j);
void of_json_array(struct of_json *j, const char *name);
void of_json_end_array(struct of_json *j);

void of_json_uint(struct of_json *j, const char *name, uint64_t v);
void of_json_bool(struct of_json *j, const char *name, bool v);
void of_json_null(struct of_json *j, const char *name);
/* Three digits behind the point: seconds with their milliseconds. */
void of_json_real(struct of_json *j, const char *name, double v);

/* n bytes as a string.  Bytes that are no UTF-8 become U+0080 to U+00FF. */
void of_json_string(struct of_json *j, const char *name, const char *s, size_t n);
/* A terminated text; NULL counts as empty. */
void of_json_text(struct of_json *j, const char *name, const char *s);

/* Text that is JSON already. */
void of_json_raw(struct of_json *j, const char *name, const char *s, size_t n);

/* A string that the caller prints into j->w between the two calls.  It must need no escapes. */
void of_json_quote(struct of_json *j, const char *name);
void of_json_end_quote(struct of_json *j);

#endif
