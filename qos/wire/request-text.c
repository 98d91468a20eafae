/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in dpctl's grammar: "cmd=add,port=2,class=10,rate=6mbit". */
#include "head.h"

#include <qos/sched/units.h>

#include <oflib/near.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PAIRS_MAX 48
#define VALUE_MAX 128

struct pair {
    const char *key;
    size_t key_len;
    char value[VALUE_MAX];
    bool used;
};

struct parse {
    struct pair pairs[PAIRS_MAX];
    unsigned n;
    const struct qos_sched *sched;
    char *why;
    size_t why_len;
};

/* ------------------------------------------------------------------ parsing */

__attribute__((format(printf, 2, 3))) static int
wrong(struct parse *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, p->why_len, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static bool
is_word(const char *word, const char *at, size_t len)
{
    return strlen(word) == len && !strncasecmp(word, at, len);
}

static bool
is_key(const struct pair *pair, const char *key)
{
    return is_word(key, pair->key, pair->key_len);
}

static struct pair *
add_pair(struct parse *p, const char *key, size_t len)
{
    if (p->n == PAIRS_MAX)
        return NULL;
    p->pairs[p->n] = (struct pair){.key = key, .key_len = len};
    return &p->pairs[p->n++];
}

#define TOO_MANY(p) wrong(p, "too many keys; at most %d", PAIRS_MAX)

#define NO_OVERHEAD INT_MIN

/* tc-cake's words for a line, with the bytes that it adds to an IP packet; and tc's adsl. */
static const struct line {
    const char *name, *layer;
    int overhead, mpu;
} lines[] = {
    {"docsis", "ethernet", 18, 64},    {"pppoe-ptm", "ptm", 30, 0},
    {"bridged-ptm", "ptm", 22, 0},     {"pppoa-vcmux", "atm", 10, 0},
    {"pppoa-llc", "atm", 14, 0},       {"pppoe-vcmux", "atm", 32, 0},
    {"pppoe-llcsnap", "atm", 40, 0},   {"bridged-vcmux", "atm", 24, 0},
    {"bridged-llcsnap", "atm", 32, 0}, {"ipoa-vcmux", "atm", 8, 0},
    {"ipoa-llcsnap", "atm", 16, 0},    {"conservative", "atm", 48, 0},
    {"adsl", "atm", NO_OVERHEAD, 0},
};

#define ETHERNET_HEADER 14 /* what HTB and TBF count of a packet beside IP */

/* "linklayer=docsis" becomes all that is known of such a line. */
static int
expand_line(struct parse *p, struct pair *pair)
{
    const struct line *line = NULL;
    for (size_t i = 0; i < QOS_COUNT(lines) && !line; i++)
        line = strcasecmp(lines[i].name, pair->value) ? NULL : &lines[i];
    if (!line)
        return 0;
    snprintf(pair->value, sizeof pair->value, "%s", line->layer);
    if (line->overhead == NO_OVERHEAD)
        return 0;
    int counted = p->sched->id == OFP_QOS_SCHED_CAKE ? 0 : ETHERNET_HEADER;
    struct pair *overhead = add_pair(p, "overhead", strlen("overhead"));
    struct pair *mpu = line->mpu ? add_pair(p, "mpu", strlen("mpu")) : NULL;
    if (!overhead || (line->mpu && !mpu))
        return TOO_MANY(p);
    snprintf(overhead->value, sizeof overhead->value, "%d", line->overhead - counted);
    if (mpu)
        snprintf(mpu->value, sizeof mpu->value, "%d", line->mpu);
    return 0;
}

/* "atm" alone is "linklayer=atm", as with tc-cake. */
static bool
is_line(const char *at, size_t len)
{
    for (size_t i = 0; i < QOS_COUNT(lines); i++)
        if (is_word(lines[i].name, at, len) || is_word(lines[i].layer, at, len))
            return true;
    return false;
}

static int
split(struct parse *p, const char *args)
{
    static const char sep[] = ", \t\n", layer[] = "linklayer";
    for (const char *at = args + strspn(args, sep); *at; at += strspn(at, sep)) {
        size_t len = strcspn(at, sep);
        const char *eq = memchr(at, '=', len);
        bool line = !eq && is_line(at, len);
        if (!line && (!eq || eq == at))
            return wrong(p, "'%.*s' is not KEY=VALUE, such as rate=6mbit",
                         (int)(len < 60 ? len : 60), at);
        struct pair *to =
            line ? add_pair(p, layer, strlen(layer)) : add_pair(p, at, (size_t)(eq - at));
        const char *text = line ? at : eq + 1;
        size_t value = len - (size_t)(text - at);
        if (!to)
            return TOO_MANY(p);
        /* An empty name takes the name away. */
        if ((value == 0 && !is_key(to, "name")) || value >= VALUE_MAX)
            return wrong(p, "%.*s: the value is %s", (int)(to->key_len < 60 ? to->key_len : 60), at,
                         value ? "too long" : "missing");
        memcpy(to->value, text, value);
        at += len;
        int err = is_key(to, layer) ? expand_line(p, to) : 0;
        if (err)
            return err;
    }
    return 0;
}

/* The value of a frame key, which is then used up; NULL if it isn't given.  Given twice: *err. */
static const char *
take(struct parse *p, const char *key, int *err)
{
    const char *value = NULL;
    for (unsigned i = 0; i < p->n; i++) {
        if (!is_key(&p->pairs[i], key))
            continue;
        if (value)
            *err = wrong(p, "%s is given twice", key);
        value = p->pairs[i].value;
        p->pairs[i].used = true;
    }
    return value;
}

static int
parse_cmd(struct parse *p, const char *text, struct qos_request *r)
{
    static const struct {
        const char *name;
        uint8_t action;
    } words[] = {
        {"add", OFP_QOS_ADD},         {"del", OFP_QOS_DEL},    {"delete", OFP_QOS_DEL},
        {"change", OFP_QOS_CHANGE},   {"mod", OFP_QOS_CHANGE}, {"modify", OFP_QOS_CHANGE},
        {"replace", OFP_QOS_REPLACE},
    };
    if (!text && r->sched->id == OFP_QOS_SCHED_NONE)
        text = "del";
    if (!text)
        return wrong(p, "cmd is missing; give cmd=add, del, change or replace");
    for (size_t i = 0; i < QOS_COUNT(words); i++) {
        if (strcasecmp(words[i].name, text) == 0) {
            r->action_type = words[i].action;
            return 0;
        }
    }
    return wrong(p, "cmd=%.40s is unknown; give add, del, change or replace", text);
}

static int
parse_port(struct parse *p, const char *text, struct qos_request *r)
{
    uint64_t v;
    if (!text)
        return wrong(p, "port is missing; give port=NUMBER%s",
                     r->sched->id == OFP_QOS_SCHED_NONE ? " or any" : "");
    if (strcasecmp(text, "any") == 0 || strcasecmp(text, "all") == 0)
        v = OFPP_ANY;
    else if (strcasecmp(text, "local") == 0)
        v = OFPP_LOCAL;
    else if (qos_parse_number(text, &v, NULL, 0) || v > UINT32_MAX)
        return wrong(p, "port=%.40s is not a port; give a number%s", text,
                     r->sched->id == OFP_QOS_SCHED_NONE ? " or any" : " or local");
    r->port_no = (uint32_t)v;
    return 0;
}

static int
parse_class(struct parse *p, const char *key, const char *text, struct qos_request *r)
{
    uint64_t v;
    const char *minor = strchr(text, ':'); /* tc's 1:10, which is hexadecimal */
    if (minor && minor[1] && strspn(minor + 1, "0123456789abcdefABCDEF") == strlen(minor + 1))
        return wrong(
            p,
            "%s=%.40s is tc's way, in hexadecimal: write %s=0x%.8s, or the number that a queue has here",
            key, text, key, minor + 1);
    if (qos_parse_number(text, &v, NULL, 0) || v > UINT32_MAX)
        return wrong(p, "%s=%.40s is not a class; give 1 to %u (0x1 to 0x%x)", key, text,
                     QOS_CLASS_MAX, QOS_CLASS_MAX);
    r->class_id = (uint32_t)v;
    return 0;
}

/* The object that is named, else the one that the other keys imply. */
static int
parse_object(struct parse *p, const char *object, const char *class, const char *def,
             struct qos_request *r)
{
    bool classful = r->sched->classful;
    if (object && strcasecmp(object, "qdisc") && strcasecmp(object, "class"))
        return wrong(p, "object=%.40s is unknown; give qdisc or class", object);
    if (def && !classful)
        return wrong(p, "%s has no default class; give class= instead", r->sched->name);
    if (def && (class || (object && strcasecmp(object, "class") == 0)))
        return wrong(p, "default= is for the qdisc, class= for a class; give one of them");
    if (object)
        r->object_type = strcasecmp(object, "class") == 0 ? OFP_QOS_CLASS : OFP_QOS_QDISC;
    else
        r->object_type = classful && !def ? OFP_QOS_CLASS : OFP_QOS_QDISC;
    if (classful && !object && !def && !class)
        return wrong(p, "class is missing; give class=NUMBER (0: the port's root class), or "
                        "default=NUMBER for the qdisc");
    return 0;
}

static int
parse_frame(struct parse *p, struct qos_request *r)
{
    int err = 0;
    const char *cmd = take(p, "cmd", &err), *port = take(p, "port", &err);
    const char *class = take(p, "class", &err), *def = take(p, "default", &err);
    const char *object = take(p, "object", &err);
    struct qos_error e;
    if (err || (err = parse_cmd(p, cmd, r)) || (err = parse_port(p, port, r)) ||
        (err = parse_object(p, object, class, def, r)) ||
        (class && (err = parse_class(p, "class", class, r))) ||
        (def && (err = parse_class(p, "default", def, r))))
        return err;
    return qos_request_check_head(r, &e) ? wrong(p, "%s", e.text) : 0;
}

static bool
pair_names(const struct pair *pair, const struct qos_field *f)
{
    return qos_field_named(f, pair->key, pair->key_len);
}

/* The field that a key means: of two with the same name, the share if the value has a %. */
static const struct qos_field *
field_for(const struct pair *pair, const struct qos_request *r)
{
    const struct qos_field *f, *found = NULL;
    bool percent = strchr(pair->value, '%') != NULL;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!pair_names(pair, f) || !qos_field_applies(f, r->object_type, r->action_type))
            continue;
        if (!found || (percent && f->unit == QOS_U_SHARE))
            found = f;
    }
    return found;
}

static const char *const frame_keys[] = {"cmd", "port", "class", "default", "object"};

static int
unknown_key(struct parse *p, const struct pair *pair, const struct qos_request *r)
{
    char keys[512] = "", name[32], text[OF_NEAR_TEXT];
    struct of_near near = of_near(pair->key, pair->key_len);
    size_t at = 0;
    const struct qos_field *f;
    for (size_t i = 0; i < QOS_COUNT(frame_keys); i++)
        of_near_try(&near, frame_keys[i]);
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++)
        if (qos_field_applies(f, r->object_type, r->action_type))
            of_near_try(&near, qos_field_name(f, name, sizeof name));
    if (near.count)
        return wrong(p, "unknown key %.*s%s", (int)(pair->key_len < 40 ? pair->key_len : 40),
                     pair->key, of_near_text(&near, text, sizeof text));
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (f->unit != QOS_U_SHARE && qos_field_applies(f, r->object_type, r->action_type) &&
            at < sizeof keys)
            at += (size_t)snprintf(keys + at, sizeof keys - at, ", %s",
                                   qos_field_name(f, name, sizeof name));
    }
    return wrong(p, "unknown key %.*s; cmd=%s of a %s %s takes cmd, port, class, object%s%s",
                 (int)(pair->key_len < 40 ? pair->key_len : 40), pair->key,
                 qos_action_name(r->action_type), r->sched->name, qos_object_name(r->object_type),
                 r->sched->classful ? ", default" : "", keys);
}

/* A request that is right may have several. */
static void
put_remark(struct parse *p, const char *text)
{
    size_t n = strnlen(p->why, p->why_len);
    if (n < p->why_len)
        snprintf(p->why + n, p->why_len - n, "%s%s", n ? "; " : "", text);
}

static void
remark_rate(struct parse *p, const struct qos_field *f, const struct pair *pair)
{
    const char *last = strrchr(pair->value, '/');
    const char *rate = f->unit == QOS_U_CURVE && last ? last + 1 : pair->value;
    char key[40], why[256];
    snprintf(key, sizeof key, "%.*s", (int)pair->key_len, pair->key);
    if ((f->unit == QOS_U_RATE || f->unit == QOS_U_CURVE) &&
        qos_rate_doubt(key, rate, why, sizeof why))
        put_remark(p, why);
}

static int
parse_pair(struct parse *p, const struct pair *pair, struct qos_request *r, struct qos_slots *seen)
{
    char what[256], name[32];
    const struct qos_field *f = field_for(pair, r);
    if (!f)
        return unknown_key(p, pair, r);
    qos_field_name(f, name, sizeof name);
    if (qos_slots_has(seen, f->slot))
        return wrong(p, "%s is given twice", name);
    qos_slots_add(seen, f->slot);
    if (qos_field_parse(f, pair->value, &r->values, what, sizeof what))
        return wrong(p, "%s: %s", name, what);
    remark_rate(p, f, pair);
    return 0;
}

/* Reports a mistyped key before the one that is missing because of it. */
static int
check_keys(struct parse *p, const struct qos_request *r)
{
    struct qos_request any = *r;
    for (unsigned i = 0; i < p->n; i++) {
        bool known = false;
        const struct qos_field *f;
        for (size_t k = 0; k < QOS_COUNT(frame_keys); k++)
            known |= is_key(&p->pairs[i], frame_keys[k]);
        for (unsigned k = 0; (f = qos_sched_field(r->sched, k)); k++)
            known |= pair_names(&p->pairs[i], f);
        any.object_type = r->sched->classful ? OFP_QOS_CLASS : OFP_QOS_QDISC;
        any.action_type = OFP_QOS_ADD;
        if (!known)
            return unknown_key(p, &p->pairs[i], &any);
    }
    return 0;
}

/* Sets fixed parameters that aren't given to 0, their default; those without one must be given. */
static int
complete(struct parse *p, struct qos_request *r, const struct qos_slots *seen)
{
    char name[32];
    const struct qos_field *f, *g;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!qos_field_applies(f, r->object_type, r->action_type))
            continue;
        if (f->fixed)
            qos_put(&r->values, f->slot, r->values.v[f->slot]);
        if (!(f->where & QOS_NEEDED) || r->action_type != OFP_QOS_ADD)
            continue;
        qos_field_name(f, name, sizeof name);
        bool given = false;
        for (unsigned j = 0; (g = qos_sched_field(r->sched, j)); j++)
            given |= qos_field_named(g, name, strlen(name)) && qos_slots_has(seen, g->slot);
        if (!given)
            return wrong(p, "%s is missing: %s", name, f->help);
    }
    return 0;
}

int
qos_request_parse(struct qos_request *r, const struct qos_sched *sched, const char *args, char *why,
                  size_t n)
{
    static char nowhere[1];
    struct parse p = {.sched = sched, .why = n ? why : nowhere, .why_len = n ? n : 1};
    struct qos_request tmp = {.sched = sched};
    struct qos_slots seen = {0};
    p.why[0] = '\0';
    int err;
    if ((err = split(&p, args)) || (err = check_keys(&p, &tmp)) || (err = parse_frame(&p, &tmp)))
        return err;
    for (unsigned i = 0; i < p.n; i++)
        if (!p.pairs[i].used && (err = parse_pair(&p, &p.pairs[i], &tmp, &seen)))
            return err;
    err = complete(&p, &tmp, &seen);
    if (!err)
        *r = tmp;
    return err;
}

/* ----------------------------------------------------------------- printing */

/* A zero in a fixed parameter is left out, unless parsing needs it. */
static bool
silent(const struct qos_request *r, const struct qos_field *f)
{
    if (!qos_has(&r->values, f->slot) || !qos_field_applies(f, r->object_type, r->action_type))
        return true;
    if (!f->fixed || r->values.v[f->slot])
        return false;
    return !(f->where & QOS_NEEDED) || r->action_type != OFP_QOS_ADD ||
           (f->rival && qos_has(&r->values, f->rival));
}

int
qos_request_print(const struct qos_request *r, char *buf, size_t n)
{
    char name[32], value[VALUE_MAX];
    const struct qos_field *f;
    int at = 0;
    qos_append(buf, n, &at, "cmd=%s", qos_action_name(r->action_type));
    if (r->port_no == OFPP_ANY)
        qos_append(buf, n, &at, ",port=any");
    else if (r->port_no == OFPP_LOCAL)
        qos_append(buf, n, &at, ",port=local");
    else
        qos_append(buf, n, &at, ",port=%" PRIu32, r->port_no);
    if (r->sched->classful || r->class_id)
        qos_append(buf, n, &at, ",%s=%" PRIu32,
                   r->sched->classful && r->object_type == OFP_QOS_QDISC ? "default" : "class",
                   r->class_id);
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (silent(r, f))
            continue;
        qos_append(buf, n, &at, ",%s=%s", qos_field_name(f, name, sizeof name),
                   qos_field_format(f, &r->values, value, sizeof value));
    }
    return at;
}
