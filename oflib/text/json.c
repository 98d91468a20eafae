/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/json.h>

#include "text.h"

#include <inttypes.h>

static void
put_string(struct of_wr *w, const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;
    of_wr8(w, '"');
    for (size_t i = 0, len; i < n; i += len) {
        len = of_utf8_len(p + i, n - i);
        if (len == 1 && (p[i] == '"' || p[i] == '\\'))
            of_printf(w, "\\%c", p[i]);
        else if (!len || of_is_control(p + i, len))
            of_printf(w, "\\u%04x", len == 2 ? p[i + 1] : p[i]); /* U+0080 to U+009F: c2 80 to 9f */
        else
            of_wr_bytes(w, p + i, len);
        len = len ? len : 1;
    }
    of_wr8(w, '"');
}

/* What stands before a value: a comma, its name. */
static void
begin_value(struct of_json *j, const char *name)
{
    if (j->comma)
        of_wr_bytes(j->w, ", ", 2);
    j->comma = true;
    if (!name)
        return;
    put_string(j->w, name, strlen(name));
    of_wr_bytes(j->w, ": ", 2);
}

static void
open_bracket(struct of_json *j, const char *name, char bracket)
{
    begin_value(j, name);
    of_wr8(j->w, (uint8_t)bracket);
    j->comma = false;
}

static void
close_bracket(struct of_json *j, char bracket)
{
    of_wr8(j->w, (uint8_t)bracket);
    j->comma = true;
}

void
of_json_object(struct of_json *j, const char *name)
{
    open_bracket(j, name, '{');
}

void
of_json_end_object(struct of_json *j)
{
    close_bracket(j, '}');
}

void
of_json_array(struct of_json *j, const char *name)
{
    open_bracket(j, name, '[');
}

void
of_json_end_array(struct of_json *j)
{
    close_bracket(j, ']');
}

void
of_json_uint(struct of_json *j, const char *name, uint64_t v)
{
    begin_value(j, name);
    of_printf(j->w, "%" PRIu64, v);
}

void
of_json_bool(struct of_json *j, const char *name, bool v)
{
    begin_value(j, name);
    of_printf(j->w, "%s", v ? "true" : "false");
}

void
of_json_null(struct of_json *j, const char *name)
{
    of_json_raw(j, name, "null", 4);
}

void
of_json_real(struct of_json *j, const char *name, double v)
{
    begin_value(j, name);
    of_printf(j->w, "%.3f", v);
}

void
of_json_string(struct of_json *j, const char *name, const char *s, size_t n)
{
    begin_value(j, name);
    put_string(j->w, s, n);
}

void
of_json_text(struct of_json *j, const char *name, const char *s)
{
    of_json_string(j, name, s, s ? strlen(s) : 0);
}

void
of_json_raw(struct of_json *j, const char *name, const char *s, size_t n)
{
    begin_value(j, name);
    of_wr_bytes(j->w, s, n);
}

void
of_json_quote(struct of_json *j, const char *name)
{
    begin_value(j, name);
    of_wr8(j->w, '"');
}

void
of_json_end_quote(struct of_json *j)
{
    of_wr8(j->w, '"');
}
