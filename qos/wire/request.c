/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from and to the wire. */
#include "head.h"

#include <qos/sched/name.h>
#include <qos/sched/precedence.h>

#include <oflib/text.h>

#include <string.h>

#define HEAD 16 /* sched_type to class_id */

static const char *const action_names[] = {"add", "del", "change", "replace"};
static const char *const object_names[] = {"qdisc", "class"};

const char *
qos_action_name(unsigned action)
{
    return action < QOS_COUNT(action_names) ? action_names[action] : NULL;
}

const char *
qos_object_name(unsigned object)
{
    return object < QOS_COUNT(object_names) ? object_names[object] : NULL;
}

/* ----------------------------------------------------------------- decoding */

static bool
zeros(struct of_rd *rd, size_t n)
{
    uint8_t any = 0;
    for (; n; n--)
        any |= of_rd8(rd);
    return any == 0;
}

static int
bad_len(struct qos_error *e, const char *what)
{
    return qos_fail(e, QOS_ERR_BAD_LEN, "the message is too short for %s", what);
}

static int
bad_pad(struct qos_error *e)
{
    return qos_fail(e, QOS_BAD_PARAM, "a padding byte is not 0");
}

static uint64_t
read_value(struct of_rd *rd, unsigned bytes)
{
    uint64_t v = 0;
    for (; bytes; bytes--)
        v = v << 8 | of_rd8(rd);
    return v;
}

/* tc can give the kernel counts, sizes and times that no request can; a dump reports them all
 * the same. */
static int
check_range(const struct qos_request *r, const struct qos_field *f, bool dumped,
            struct qos_error *e)
{
    static const uint32_t numbers = 1u << QOS_U_COUNT | 1u << QOS_U_PACKETS | 1u << QOS_U_SIZE |
                                    1u << QOS_U_SIGNED | 1u << QOS_U_SEC | 1u << QOS_U_USEC |
                                    1u << QOS_U_PPM | 1u << QOS_U_PRECEDENCE;
    return dumped && numbers >> f->unit & 1 ? 0 : qos_field_check(f, &r->values, e);
}

static int
decode_fixed(struct qos_request *r, struct of_rd *rd, bool dumped, struct qos_error *e)
{
    const struct qos_field *f;
    size_t before = of_rd_left(rd);
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!f->fixed || !qos_field_applies(f, r->object_type, r->action_type))
            continue;
        if (of_rd_left(rd) < (size_t)f->fixed + f->pad)
            return bad_len(e, "the scheduler's parameters");
        qos_put(&r->values, f->slot, read_value(rd, f->fixed));
        if (!zeros(rd, f->pad))
            return bad_pad(e);
        int err = check_range(r, f, dumped, e);
        if (err)
            return err;
    }
    size_t odd = (before - of_rd_left(rd)) % 8;
    if (dumped && odd && !zeros(rd, 8 - odd))
        return bad_pad(e);
    return dumped && rd->short_read ? bad_len(e, "its padding") : 0;
}

#define ANY_WHICH 0x200u

/* Which of several properties of the type it is, by the first byte of the value (struct
 * qos_field's `sub`). */
static unsigned
which_of(unsigned type, unsigned first)
{
    return type == OFP_QOS_PROP_DROP_PRECEDENCE ? first + 1 : first;
}

/* The field for this property in this request. */
static const struct qos_field *
field_of(const struct qos_request *r, unsigned type, unsigned which)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (f->prop == type && (!f->sub || f->sub == which || which == ANY_WHICH) &&
            qos_field_applies(f, r->object_type, r->action_type))
            return f;
    }
    return NULL;
}

static int
bad_property(struct qos_error *e, const struct qos_request *r, unsigned type, const char *why)
{
    const char *name = qos_prop_name(type);
    return qos_fail(e, QOS_ERR(OFPSFC_BAD_PROPERTY), "property %u%s%s%s %s (%s %s, %s)", type,
                    name ? " (" : "", name ? name : "", name ? ")" : "", why, r->sched->name,
                    object_names[r->object_type], action_names[r->action_type]);
}

static int
decode_precedence(struct qos_request *r, const struct qos_field *f, struct of_rd *v, bool dumped,
                  struct qos_error *e)
{
    struct qos_precedence p;
    uint64_t slots[QOS_PRECEDENCE_SLOTS];
    of_rd8(v);
    p.prio = of_rd8(v);
    if (!zeros(v, 2))
        return bad_pad(e);
    p.min = of_rd32(v);
    p.max = of_rd32(v);
    p.limit = of_rd32(v);
    p.ppm = of_rd32(v);
    qos_precedence_put(slots, &p);
    qos_put_slots(&r->values, f->slot, slots, QOS_PRECEDENCE_SLOTS);
    return check_range(r, f, dumped, e);
}

/* The name is as long as the value. */
static int
decode_name(struct qos_request *r, const struct qos_field *f, const struct of_rd *v,
            struct qos_error *e)
{
    uint64_t slots[QOS_NAME_SLOTS];
    int err = qos_name_check((const char *)v->p, of_rd_left(v), e);
    if (err)
        return err;
    qos_name_put(slots, (const char *)v->p, of_rd_left(v));
    qos_put_slots(&r->values, f->slot, slots, QOS_NAME_SLOTS);
    return 0;
}

static int
decode_value(struct qos_request *r, const struct qos_field *f, struct of_rd *v, bool dumped,
             struct qos_error *e)
{
    if (f->unit == QOS_U_PRECEDENCE)
        return decode_precedence(r, f, v, dumped, e);
    if (f->unit == QOS_U_NAME)
        return decode_name(r, f, v, e);
    if (f->unit == QOS_U_CURVE) {
        of_rd8(v);
        if (!zeros(v, 7))
            return bad_pad(e);
    }
    unsigned n = qos_field_slots(f);
    for (unsigned i = 0; i < n; i++) {
        uint64_t value = read_value(v, n == 1 ? qos_prop_size(f->prop) : 8);
        if (f->unit == QOS_U_SIGNED)
            value = (uint64_t)(int64_t)(int32_t)value;
        qos_put(&r->values, f->slot + i, value);
    }
    return check_range(r, f, dumped, e);
}

static int
decode_prop(struct qos_request *r, struct of_rd *rd, bool dumped, struct qos_error *e)
{
    if (of_rd_left(rd) < 4)
        return bad_len(e, "a property");
    unsigned type = of_rd16(rd), length = of_rd16(rd);
    size_t padded = ((size_t)length + 7) / 8 * 8;
    if (length < 4 || padded - 4 > of_rd_left(rd))
        return bad_len(e, "a property's length");
    struct of_rd value = of_rd_sub(rd, length - 4u);
    if (!zeros(rd, padded - length))
        return bad_pad(e);
    unsigned size = qos_prop_size(type);
    if (!size)
        return bad_property(e, r, type, "is unknown");
    const struct qos_field *f = field_of(r, type, length > 4 ? which_of(type, *value.p) : 0);
    if (!f && !field_of(r, type, ANY_WHICH))
        return bad_property(e, r, type, "does not apply here");
    if (f && f->unit == QOS_U_NAME ? length - 4u > size : length - 4u != size)
        return bad_property(e, r, type, "has the wrong length");
    if (!f && type == OFP_QOS_PROP_DROP_PRECEDENCE)
        return qos_fail(e, QOS_BAD_PARAM, "drop precedence %u is unknown; it must be 0 to 15",
                        *value.p);
    if (!f)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "service curve %u is unknown; it must be 1 (real-time), 2 (link-sharing) "
                        "or 3 (upper limit)",
                        *value.p);
    if (qos_has(&r->values, f->slot) && !(f->fixed && r->values.v[f->slot] == 0))
        return bad_property(e, r, type, "is given twice");
    return decode_value(r, f, &value, dumped, e);
}

int
qos_values_decode(struct qos_request *r, struct of_rd *rd, bool dumped, struct qos_error *e)
{
    struct qos_request tmp = *r;
    bool limit = false; /* a LIMIT of 0 must not come twice either */
    memset(&tmp.values, 0, sizeof tmp.values);
    int err = decode_fixed(&tmp, rd, dumped, e);
    while (!err && of_rd_left(rd)) {
        bool is_limit = of_rd_left(rd) >= 2 && of_get16(rd->p) == OFP_QOS_PROP_LIMIT;
        if (is_limit && limit)
            return bad_property(e, &tmp, OFP_QOS_PROP_LIMIT, "is given twice");
        limit |= is_limit;
        err = decode_prop(&tmp, rd, dumped, e);
    }
    if (!err)
        *r = tmp;
    return err;
}

static int
check_class_id(const struct qos_request *r, struct qos_error *e)
{
    if (r->sched->id == OFP_QOS_SCHED_NONE) {
        if (r->class_id != QOS_CLASS_NONE)
            return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS),
                            "NONE is for whole ports; its class id must be 0");
        return 0;
    }
    if (r->class_id <= QOS_CLASS_MAX)
        return 0;
    if (r->sched->classful && r->object_type == OFP_QOS_QDISC && r->class_id == QOS_CLASS_DEFAULT)
        return 0; /* the default class is what 0 stands for there */
    return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "class id %u is %s; queues are 1 to %u",
                    (unsigned)r->class_id, r->class_id <= 0xffff ? "the switch's own" : "too large",
                    QOS_CLASS_MAX);
}

int
qos_request_check_head(const struct qos_request *r, struct qos_error *e)
{
    unsigned id = r->sched->id;
    if (r->object_type == OFP_QOS_CLASS && !r->sched->classful)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_SCHED),
                        "%s has no classes; its object_type must be 0 (qdisc)", r->sched->name);
    if (id == OFP_QOS_SCHED_NONE && r->action_type != OFP_QOS_DEL)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_ACTION), "NONE has one action, DEL (1)");
    if (r->port_no == 0 || (r->port_no > OFPP_MAX && r->port_no != OFPP_LOCAL &&
                            !(r->port_no == OFPP_ANY && id == OFP_QOS_SCHED_NONE)))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT),
                        "port %s cannot have queues; give a port's number",
                        of_port_text(r->port_no, (char[OF_PORT_TEXT]){0}));
    return check_class_id(r, e);
}

static int
decode_head(struct qos_request *r, struct of_rd *rd, struct qos_error *e)
{
    unsigned sched = of_rd8(rd);
    r->sched = qos_sched_by_id(sched);
    if (!r->sched)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_SCHED),
                        "sched_type %u is unknown; it must be 0 to %d", sched,
                        OFP_QOS_SCHED_END - 1);
    if (!zeros(rd, 3))
        return bad_pad(e);
    r->object_type = of_rd8(rd);
    if (!qos_object_name(r->object_type))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_OBJECT),
                        "object_type %u is unknown; it must be 0 (qdisc) or 1 (class)",
                        r->object_type);
    r->action_type = of_rd8(rd);
    if (!qos_action_name(r->action_type))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_ACTION),
                        "action_type %u is unknown; it must be 0 (add), 1 (del), 2 (change) or 3 "
                        "(replace)",
                        r->action_type);
    if (!zeros(rd, 2))
        return bad_pad(e);
    r->port_no = of_rd32(rd);
    r->class_id = of_rd32(rd);
    return qos_request_check_head(r, e);
}

int
qos_request_decode(struct qos_request *r, const uint8_t *content, size_t n, struct qos_error *e)
{
    struct of_rd rd = of_rd(content, n);
    struct qos_request tmp = {0};
    if (n < HEAD)
        return bad_len(e, "a QoS request");
    int err;
    if ((err = decode_head(&tmp, &rd, e)) || (err = qos_values_decode(&tmp, &rd, false, e)))
        return err;
    *r = tmp;
    return 0;
}

/* ----------------------------------------------------------------- encoding */

static void
write_value(struct of_wr *w, uint64_t v, unsigned bytes)
{
    while (bytes--)
        of_wr8(w, (uint8_t)(v >> (bytes * 8)));
}

static void
encode_precedence(struct of_wr *w, const struct qos_field *f, const uint64_t *v)
{
    struct qos_precedence p = qos_precedence_get(v);
    of_wr8(w, f->sub - 1u);
    of_wr8(w, (uint8_t)p.prio);
    of_wr_add(w, 2);
    of_wr32(w, p.min);
    of_wr32(w, p.max);
    of_wr32(w, p.limit);
    of_wr32(w, p.ppm);
}

static void
encode_name(struct of_wr *w, const struct qos_field *f, const uint64_t *v)
{
    char name[QOS_NAME_ROOM];
    size_t n = strlen(qos_name_get(v, name)), start = w->len;
    of_wr16(w, f->prop);
    of_wr16(w, (uint16_t)(4 + n));
    of_wr_bytes(w, name, n);
    of_wr_align(w, start, 8);
}

static void
encode_prop(struct of_wr *w, const struct qos_field *f, const struct qos_values *values)
{
    const uint64_t *v = &values->v[f->slot];
    unsigned size = qos_prop_size(f->prop), n = qos_field_slots(f);
    size_t start = w->len;
    if (f->unit == QOS_U_NAME) {
        encode_name(w, f, v);
        return;
    }
    of_wr16(w, f->prop);
    of_wr16(w, (uint16_t)(4 + size));
    if (f->unit == QOS_U_CURVE) {
        of_wr8(w, f->sub);
        of_wr_add(w, 7);
    }
    if (f->unit == QOS_U_PRECEDENCE)
        encode_precedence(w, f, v);
    for (unsigned i = 0; f->unit != QOS_U_PRECEDENCE && i < n; i++)
        write_value(w, v[i], n == 1 ? size : 8);
    of_wr_align(w, start, 8);
}

void
qos_values_encode(struct of_wr *w, const struct qos_request *r, bool align)
{
    const struct qos_field *f;
    size_t start = w->len;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (f->fixed && qos_field_applies(f, r->object_type, r->action_type)) {
            write_value(w, r->values.v[f->slot], f->fixed);
            of_wr_add(w, f->pad);
        }
    }
    if (align)
        of_wr_align(w, start, 8);
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!f->fixed && qos_has(&r->values, f->slot) &&
            qos_field_applies(f, r->object_type, r->action_type))
            encode_prop(w, f, &r->values);
    }
}

void
qos_request_encode(struct of_wr *w, const struct qos_request *r)
{
    of_wr8(w, r->sched->id);
    of_wr_add(w, 3);
    of_wr8(w, r->object_type);
    of_wr8(w, r->action_type);
    of_wr_add(w, 2);
    of_wr32(w, r->port_no);
    of_wr32(w, r->class_id);
    qos_values_encode(w, r, false);
}
