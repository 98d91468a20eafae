/* SPDX-License-Identifier: Apache-2.0 */
/* A message that has a list is shown as a table, any other as a line for each field. */
#include <core/say.h>
#include <core/view.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum status
view_line(struct ctx *c, struct of_wr *w)
{
    enum status st = DPCTL_OK;
    if (w->overflow)
        st = say_failed(c, "the answer is longer than dpctl can show");
    else if ((w->len && fwrite(w->buf, 1, w->len, stdout) != w->len) ||
             fputc('\n', stdout) == EOF || fflush(stdout))
        st = say_failed(c, "writing the answer failed: %s", strerror(errno));
    of_wr_free(w);
    return st;
}

/* -------------------------------------------------------------------- cells */

/* kbit/s as tc writes rates. */
static void
print_kbps(struct of_wr *w, uint64_t kbps)
{
    static const char *const units[] = {"Kbit", "Mbit", "Gbit"};
    int u = 0;
    while (u < 2 && kbps >= 1000 && kbps % 1000 == 0) {
        kbps /= 1000;
        u++;
    }
    if (kbps)
        of_printf(w, "%" PRIu64 "%s", kbps, units[u]);
    else
        of_printf(w, "-");
}

static bool
field_is(const struct of_field_row *f, const char *name)
{
    return !strcmp(f->name, name);
}

static bool
is_text(const struct of_field_row *f)
{
    return f->kind > OFK_U64 || f->fmt->kind != OF_FMT_DEC || field_is(f, "curr_speed") ||
           field_is(f, "max_speed");
}

static void
print_cell(struct of_wr *w, const struct of_field_row *f, const void *body)
{
    const void *p = (const uint8_t *)body + f->off;
    if (field_is(f, "curr_speed") || field_is(f, "max_speed"))
        print_kbps(w, of_field_number(f, body));
    else if (field_is(f, "duration_sec")) /* the nanoseconds follow */
        of_printf(w, "%" PRIu64 ".%03" PRIu64 "s", of_field_number(f, body),
                  of_field_number(f + 1, body) / 1000000);
    else if (f->kind == OFK_STR)
        of_print_text(w, p, strnlen(p, f->size));
    else
        of_print_field(w, f, body);
}

/* The heading of the field's column. */
static const char *
title(const struct of_field_row *f)
{
    return field_is(f, "duration_sec") ? "age" : of_field_short_name(f);
}

/* ------------------------------------------------------------------- tables */

/* The columns of a table, in order.  --json has the other fields, too. */
static const struct view {
    const struct of_struct_row *row;
    const char *columns[20];
} views[] = {
    {&of_row_port,
     {"port_no", "name", "hw_addr", "state", "config", "curr", "curr_speed", "max_speed"}},
    {&of_row_port_stats,
     {"port_no", "rx_packets", "rx_bytes", "rx_dropped", "rx_errors", "rx_frame_err", "rx_over_err",
      "rx_crc_err", "tx_packets", "tx_bytes", "tx_dropped", "tx_errors", "collisions",
      "duration_sec"}},
    {&of_row_queue_stats,
     {"port_no", "queue_id", "tx_packets", "tx_bytes", "tx_errors", "duration_sec"}},
    {&of_row_flow_stats,
     {"table_id", "priority", "packet_count", "byte_count", "duration_sec", "idle_timeout",
      "hard_timeout", "cookie", "flags", "match", "instructions"}},
    {&of_row_group_stats,
     {"group_id", "ref_count", "packet_count", "byte_count", "duration_sec", "bucket_stats"}},
    {&of_row_meter_stats,
     {"meter_id", "flow_count", "packet_in_count", "byte_in_count", "duration_sec", "band_stats"}},
};

#define COLUMNS_MAX 20

struct table {
    const struct of_field_row *col[COLUMNS_MAX];
    int n;
    size_t width[COLUMNS_MAX];
};

/* A column behind those of the fields. */
struct last_column {
    const char *title; /* NULL: there is none */
    char *const *texts;
};

static void
choose_columns(const struct of_struct_row *row, struct table *t)
{
    const struct view *v = NULL;
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (views[i].row == row)
            v = &views[i];
    for (int i = 0; v && v->columns[i]; i++)
        t->col[t->n++] = of_field_by_name(row, v->columns[i], strlen(v->columns[i]));
    for (int i = 0; !v && i < row->n_fields && t->n < COLUMNS_MAX; i++)
        if (of_field_by_name(row, row->fields[i].name, strlen(row->fields[i].name)))
            t->col[t->n++] = &row->fields[i];
    for (int i = 0; i < t->n; i++)
        t->width[i] = strlen(title(t->col[i]));
}

static void
measure_columns(struct table *t, const struct of_list *list)
{
    struct of_wr w = of_wr_grow(VIEW_MAX);
    for (uint32_t i = 0; i < list->n; i++) {
        for (int k = 0; k < t->n; k++) {
            w.len = 0;
            print_cell(&w, t->col[k], list->v[i]);
            if (w.len > t->width[k] && w.len < 100)
                t->width[k] = w.len;
        }
    }
    of_wr_free(&w);
}

/* Texts on the left, numbers on the right; no blanks at the line's end. */
static void
print_column(struct of_wr *w, const struct table *t, int k, const struct of_wr *cell, bool end)
{
    size_t fill = cell->len < t->width[k] ? t->width[k] - cell->len : 0;
    bool left = is_text(t->col[k]) && !field_is(t->col[k], "duration_sec");
    if (k)
        of_printf(w, "  ");
    if (!left)
        of_printf(w, "%*s", (int)fill, "");
    of_wr_bytes(w, cell->buf, cell->len);
    if (left && !end)
        of_printf(w, "%*s", (int)fill, "");
}

/* body NULL: the headings.  text: of the last column; NULL: nothing. */
static void
print_row(struct of_wr *w, const struct table *t, const void *body, const char *text)
{
    struct of_wr cell = of_wr_grow(VIEW_MAX);
    for (int k = 0; k < t->n; k++) {
        cell.len = 0;
        if (body)
            print_cell(&cell, t->col[k], body);
        else
            of_printf(&cell, "%s", title(t->col[k]));
        print_column(w, t, k, &cell, !text && k + 1 == t->n);
    }
    if (text)
        of_printf(w, "  %s", text);
    of_wr_free(&cell);
}

static void
print_table(struct of_wr *w, const struct of_struct_row *row, const struct of_list *list,
            const struct last_column *last)
{
    struct table t = {.n = 0};
    choose_columns(row, &t);
    measure_columns(&t, list);
    print_row(w, &t, NULL, last->title);
    for (uint32_t i = 0; i < list->n; i++) {
        of_printf(w, "\n");
        print_row(w, &t, list->v[i], last->title ? last->texts[i] : NULL);
    }
}

/* -------------------------------------------------------------------- lines */

/* A list of properties, one a line. */
static void
print_properties(struct of_wr *w, const struct of_field_row *f, const struct of_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        struct of_list one = {.n = 1, .v = &list->v[i]};
        of_printf(w, "\n    ");
        of_print_list(w, f->list, &one);
    }
}

/* "name: value" lines, the values in one column. */
static void
print_lines(struct of_wr *w, const struct of_struct_row *row, const void *body)
{
    size_t width = 0;
    bool first = true;
    for (int i = 0; i < row->n_fields; i++)
        if (strlen(row->fields[i].name) > width)
            width = strlen(row->fields[i].name);
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (!of_field_by_name(row, f->name, strlen(f->name)))
            continue;
        of_printf(w, "%s%s:%*s ", first ? "" : "\n", f->name, (int)(width - strlen(f->name)), "");
        first = false;
        if (f->kind == OFK_LIST && f->list->framing == OFL_TAGGED)
            print_properties(w, f, (const void *)((const uint8_t *)body + f->off));
        else
            print_cell(w, f, body);
    }
}

/* The one list that a body consists of, or NULL. */
static const struct of_field_row *
list_of(const struct of_struct_row *row)
{
    for (int i = 0; i < row->n_fields; i++)
        if (row->fields[i].kind == OFK_LIST && row->fields[i].list->framing != OFL_TAGGED)
            return &row->fields[i];
    return NULL;
}

static void
print_human(struct of_wr *w, const struct of_msg *m, const struct last_column *last)
{
    const struct of_field_row *f = list_of(m->body_row);
    if (!f) {
        print_lines(w, m->body_row, m->body);
        return;
    }
    const struct of_list *list = (const void *)((const uint8_t *)m->body + f->off);
    if (f->list->elem != &of_row_table_features) {
        print_table(w, f->list->elem, list, last);
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) { /* too wide for a table */
        of_printf(w, i ? "\n\n" : "");
        print_lines(w, f->list->elem, list->v[i]);
    }
}

enum status
view_list_and(struct ctx *c, const struct of_msg *msg, const char *title, char *const *texts)
{
    const struct last_column last = {title, texts};
    struct of_wr w = of_wr_grow(VIEW_MAX);
    view_order(msg);
    if (c->json)
        of_json_msg(&w, msg);
    else
        print_human(&w, msg, &last);
    return view_line(c, &w);
}

enum status
view_message(struct ctx *c, const struct of_msg *msg)
{
    return view_list_and(c, msg, NULL, NULL);
}

/* -------------------------------------------------------------------- errors */

/* The switch's own sentence, or oflib's for the code. */
static void
print_meaning(struct of_wr *w, const struct of_error_info *info)
{
    const char *text = of_error_text(info->type, info->code);
    if (info->text.n)
        of_print_text(w, (const char *)info->text.p, info->text.n);
    else
        of_printf(w, "%s", text ? text : "for a reason that dpctl does not know");
}

enum status
view_error(struct ctx *c, const struct of_msg *msg)
{
    struct of_error_info info;
    if (c->quiet)
        return DPCTL_FAILED;
    of_error_explain(msg->body, &info);
    if (c->json) {
        struct of_wr w = of_wr_grow(1 << 20);
        of_json_msg(&w, msg);
        view_line(c, &w);
    }
    struct of_wr w = of_wr_grow(1 << 20);
    print_meaning(&w, &info);
    if (info.type_name)
        of_printf(&w, " (%s", info.type_name);
    else
        of_printf(&w, " (error type %u", info.type);
    if (info.code_name)
        of_printf(&w, ", %s", info.code_name);
    else
        of_printf(&w, ", code %u", info.code);
    if (info.errnum)
        of_printf(&w, ", errno %" PRIu32 ": %s", info.errnum, strerror((int)info.errnum));
    enum status st = say_failed(c, "the switch refused: %.*s)", (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
    return st;
}
