/* SPDX-License-Identifier: Apache-2.0 */
#include <core/change.h>
#include <core/say.h>
#include <queues/queues.h>

#include <inttypes.h>
#include <stdio.h>

enum status
queues_send(struct ctx *c, const struct qos_request *r)
{
    struct of_wr content = of_wr_grow(OF_MSG_MAX);
    enum status st;
    qos_request_encode(&content, r);
    if (content.overflow) {
        st = say_memory(c);
    } else if (c->experimenter) {
        struct of_experimenter m = {
            OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_REQUEST, {content.buf, content.len}};
        st = change_send(c, OFPT_EXPERIMENTER, &m);
    } else {
        struct of_qos m = {{content.buf, content.len}};
        st = change_send(c, OFPT_QOS_QUEUEING_DISCIPLINE, &m);
    }
    of_wr_free(&content);
    return st;
}

void
queues_print_command(struct of_wr *w, const struct qos_request *r)
{
    char text[QOS_REQUEST_TEXT];
    qos_request_print(r, text, sizeof text);
    of_printf(w, "qos-%s %s", r->sched->name, text);
}

const char *
queues_name(const struct qos_request *r, char buf[QOS_NAME_ROOM])
{
    return qos_name_get(&r->values.v[QOS_NAME], buf);
}

void
queues_print_name(struct of_wr *w, const struct qos_request *r)
{
    char name[QOS_NAME_ROOM];
    if (r->object_type == OFP_QOS_QDISC)
        of_printf(w, "%s", r->sched->name);
    else if (r->class_id == QOS_CLASS_NONE)
        of_printf(w, "root class");
    else if (r->class_id == QOS_CLASS_DEFAULT)
        of_printf(w, "default class");
    else
        of_printf(w, "class %" PRIu32, r->class_id);
    if (*queues_name(r, name))
        of_printf(w, " \"%s\"", name);
}

static void
json_value(struct of_json *j, const char *name, const struct qos_field *f,
           const struct qos_values *v)
{
    char text[256], class[QOS_NAME_ROOM];
    qos_field_format(f, v, text, sizeof text);
    if (f->unit == QOS_U_NAME)
        of_json_text(j, name, qos_name_get(&v->v[f->slot], class));
    else if (f->unit == QOS_U_BOOL)
        of_json_bool(j, name, v->v[f->slot]);
    else if (f->unit == QOS_U_SIGNED)
        of_json_raw(j, name, text, strlen(text));
    else if (f->unit == QOS_U_ENUM || qos_field_slots(f) > 1)
        of_json_text(j, name, text);
    else
        of_json_uint(j, name, v->v[f->slot]);
}

void
queues_json_config(struct of_json *j, const struct qos_request *r)
{
    const struct qos_field *f;
    char name[32], key[48];
    of_json_object(j, "config");
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!qos_has(&r->values, f->slot))
            continue;
        snprintf(key, sizeof key, "%s%s", qos_field_name(f, name, sizeof name),
                 f->unit == QOS_U_SHARE ? "_share_ppm" : "");
        json_value(j, key, f, &r->values);
    }
    of_json_end_object(j);
}

void
queues_json_place(struct of_json *j, const struct queue_node *node)
{
    const struct qos_request *r = &node->entry->config;
    char name[QOS_NAME_ROOM];
    of_json_number(j, "port_no", &of_fmt_PORT, r->port_no);
    of_json_text(j, "direction", node->dir == QOS_IN ? "in" : "out");
    of_json_text(j, "object", qos_object_name(r->object_type));
    of_json_text(j, "sched", r->sched->name);
    of_json_uint(j, "class_id", r->class_id);
    of_json_uint(j, "parent_id", node->entry->parent_id);
    if (*queues_name(r, name))
        of_json_text(j, "name", name);
}
