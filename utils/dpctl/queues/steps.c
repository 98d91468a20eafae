/* SPDX-License-Identifier: Apache-2.0 */
#include <core/change.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>
#include <queues/steps.h>

#include <oflib/plural.h>

#include <qos/profile/map.h>
#include <qos/sched/delay.h>

#include <inttypes.h>

/* ------------------------------------------------------------------- collecting */

static struct step *
add_step(struct ctx *c, struct steps *s)
{
    struct step *v = words_room(c, s->v, s->n, &s->room, sizeof *v);
    if (!v) {
        s->nomem = true;
        return NULL;
    }
    s->v = v;
    v[s->n] = (struct step){0};
    return &v[s->n++];
}

void
steps_qos(struct ctx *c, struct steps *s, const struct qos_request *r, const char *where)
{
    struct step *step = add_step(c, s);
    struct qos_request *copy = of_arena_alloc(&c->arena, sizeof *copy);
    s->nomem |= !copy;
    if (step && copy) {
        *copy = *r;
        step->qos = copy;
        step->where = where;
    }
}

void
steps_flow(struct ctx *c, struct steps *s, const struct of_flow_mod *fm)
{
    struct step *step = add_step(c, s);
    struct of_flow_mod *copy = of_arena_alloc(&c->arena, sizeof *copy);
    s->nomem |= !copy;
    if (step && copy) {
        *copy = *fm;
        step->flow = copy;
    }
}

void
steps_delete(struct ctx *c, struct steps *s, const struct of_flow_stats *f)
{
    struct of_flow_mod fm = qos_map_deletion(f);
    steps_flow(c, s, &fm);
}

void
steps_message(struct ctx *c, struct steps *s, uint8_t type, const void *body)
{
    struct step *step = add_step(c, s);
    if (step) {
        step->type = type;
        step->body = body;
    }
}

/* ---------------------------------------------------------- showing, carrying out */

static void
print_flow(struct of_wr *w, const struct of_flow_mod *fm)
{
    bool add = fm->command == OFPFC_ADD;
    of_printf(w, "flow-mod cmd=%s,table=%u,prio=%u,cookie=0x%" PRIx64 "%s", add ? "add" : "dels",
              fm->table_id, fm->priority, fm->cookie, add ? "" : ",cookie_mask=0xffffffffffffffff");
    if (add && fm->idle_timeout)
        of_printf(w, ",idle=%u", fm->idle_timeout);
    if (add && fm->hard_timeout)
        of_printf(w, ",hard=%u", fm->hard_timeout);
    if (add && fm->flags) {
        of_printf(w, ",flags=");
        of_print_number(w, &of_fmt_OFPFF, fm->flags);
    }
    of_printf(w, " ");
    size_t before = w->len;
    of_print_match(w, &fm->match);
    of_printf(w, w->len > before ? " " : "");
    of_print_list(w, &of_list_instructions, &fm->instructions);
}

static void
print_buckets(struct of_wr *w, const struct of_list *buckets)
{
    for (uint32_t i = 0; i < buckets->n; i++) {
        const struct of_bucket *b = OF_AT(buckets, i, struct of_bucket);
        of_printf(w, "weight=%u,port=", b->weight);
        of_print_number(w, &of_fmt_PORT, b->watch_port);
        of_printf(w, ",group=");
        of_print_number(w, &of_fmt_GROUP, b->watch_group);
        of_printf(w, " ");
        of_print_list(w, &of_list_actions, &b->actions);
        of_printf(w, " ");
    }
}

static void
print_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list)
{
    if (row == &of_list_buckets)
        print_buckets(w, list);
    else
        of_print_list(w, row, list);
}

/* "group-mod cmd=add,type=all,group=1 weight=0,port=any,group=any output=2" */
static void
print_message(struct of_wr *w, uint8_t type, const void *body)
{
    const struct of_msg_row *row = of_msg_row(type);
    char sep = ' ';
    for (const char *p = row->name; *p; p++)
        of_printf(w, "%c", *p == '_' ? '-' : *p);
    for (int i = 0; i < row->body->n_fields; i++) {
        const struct of_field_row *f = &row->body->fields[i];
        if (f->kind == OFK_LIST) {
            of_printf(w, " ");
            print_list(w, f->list, (const void *)((const uint8_t *)body + f->off));
        } else if (of_field_by_name(row->body, f->name, strlen(f->name))) {
            of_printf(w, "%c%s=", sep, f->name);
            of_print_field(w, f, body);
            sep = ',';
        }
    }
}

/* A step as the command that does it. */
static void
print_step(struct of_wr *w, const struct step *step)
{
    if (step->qos)
        queues_print_command(w, step->qos);
    else if (step->flow)
        print_flow(w, step->flow);
    else
        print_message(w, step->type, step->body);
    while (w->len && w->buf[w->len - 1] == ' ')
        w->len--;
}

static void
json_steps(struct of_wr *w, const struct steps *s, bool dry)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_bool(&j, "applied", !dry);
    of_json_array(&j, "steps");
    for (size_t i = 0; i < s->n; i++) {
        struct of_wr one = of_wr_grow(1 << 16);
        print_step(&one, &s->v[i]);
        of_json_string(&j, NULL, (const char *)one.buf, one.len);
        w->overflow |= one.overflow;
        of_wr_free(&one);
    }
    of_json_end_array(&j);
    of_json_end_object(&j);
}

/* What the delay that a class promises comes to, as a comment. */
static void
print_delay(struct of_wr *w, const struct step *step)
{
    char text[256];
    if (step->qos && *qos_delay_print(&step->qos->values, 0, text, sizeof text))
        of_printf(w, "  # kept by %s", text);
}

void
steps_print(struct of_wr *w, const struct steps *s, bool comments)
{
    for (size_t i = 0; i < s->n; i++) {
        of_printf(w, i ? "\n" : "");
        print_step(w, &s->v[i]);
        if (comments)
            print_delay(w, &s->v[i]);
    }
}

static enum status
show_steps(struct ctx *c, const struct steps *s, bool dry)
{
    struct of_wr w = of_wr_grow(VIEW_MAX);
    if (c->json)
        json_steps(&w, s, dry);
    else
        steps_print(&w, s, dry);
    return view_line(c, &w);
}

static enum status
send_step(struct ctx *c, const struct step *step)
{
    if (step->qos)
        return queues_send(c, step->qos);
    return step->flow ? change_send(c, OFPT_FLOW_MOD, step->flow)
                      : change_send(c, step->type, step->body);
}

static enum status
carry_out(struct ctx *c, const struct steps *s)
{
    const char *where = c->where;
    bool own = !c->bundle; /* else it becomes part of the bundle of -F --atomic */
    enum status st = own ? change_begin(c) : DPCTL_OK;
    for (size_t i = 0; !st && i < s->n; i++) {
        c->where = s->v[i].where ? s->v[i].where : where;
        st = send_step(c, &s->v[i]);
    }
    c->where = where;
    if (own && !st)
        st = change_commit(c);
    if (own)
        change_drop(c);
    return st;
}

enum status
steps_run(struct ctx *c, const struct steps *s)
{
    struct of_wr w = of_wr_grow(256);
    bool json = c->json;
    if (s->nomem)
        return say_memory(c);
    if (!s->n && !json) {
        of_printf(&w, "nothing to change");
        return view_line(c, &w);
    }
    if (!s->n || c->dry_run)
        return show_steps(c, s, c->dry_run);
    c->json = false; /* one answer for all of it, at the end */
    enum status st = carry_out(c, s);
    c->json = json;
    if (st || json)
        return st ? st : show_steps(c, s, false);
    of_printf(&w, "done: %zu request%s in one bundle", s->n, OF_S(s->n));
    return view_line(c, &w);
}
