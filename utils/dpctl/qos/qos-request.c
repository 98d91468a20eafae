/* SPDX-License-Identifier: Apache-2.0 */
/* A command for each scheduler of the qos library, and qos-clear. */
#include <core/complete.h>
#include <core/keys.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/queues.h>

#include <qos/sched/delay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Replaces names behind port= by numbers: the qos library knows no names. */
static enum status
number_ports(struct ctx *c, const char *text, char *out, size_t size)
{
    struct of_wr w = of_wr_fixed(out, size - 1);
    enum status st;
    uint32_t no;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        const char *word = words_keep(c, text, n);
        if (!word)
            return say_memory(c);
        if (strncasecmp(word, "port=", 5) || !word[5] || !strcasecmp(word + 5, "all"))
            of_printf(&w, "%s,", word);
        else if ((st = ports_number(c, word + 5, &no)))
            return st;
        else
            of_printf(&w, "port=%u,", (unsigned)no);
    }
    out[w.len] = '\0';
    return w.overflow ? say_usage(c, "the request is longer than %zu characters", size - 1)
                      : DPCTL_OK;
}

/* ------------------------------------------------------------------------- classes by name */

/* Of what is in the bundle so far, which the switch doesn't know yet; the last one counts. */
static struct {
    struct named {
        uint32_t port_no, class_id;
        enum qos_direction dir;
        char name[QOS_NAME_ROOM];
    } * v;
    size_t n;
} bundled;

static enum qos_direction
direction_of(const struct qos_request *r)
{
    return r->values.v[QOS_DIRECTION] == QOS_IN ? QOS_IN : QOS_OUT;
}

static bool
note_name(const struct qos_request *r)
{
    char name[QOS_NAME_ROOM];
    if (r->object_type != OFP_QOS_CLASS || !*queues_name(r, name))
        return true;
    struct named *v = reallocarray(bundled.v, bundled.n + 1, sizeof *v);
    if (!v)
        return false;
    bundled.v = v;
    v += bundled.n++;
    *v = (struct named){.port_no = r->port_no, .class_id = r->class_id, .dir = direction_of(r)};
    strcpy(v->name, name);
    return true;
}

/* Which tree a request is about. */
struct place {
    uint32_t port_no;
    enum qos_direction dir;
};

static enum status
find_class(struct ctx *c, const struct place *at, const char *name, uint32_t *out)
{
    struct queue_entries all;
    uint64_t slots[QOS_NAME_SLOTS] = {0};
    char has[QOS_NAME_ROOM], wanted[QOS_NAME_ROOM], names[160] = "", why[200];
    size_t len = 0;
    if (qos_name_parse(name, slots, why, sizeof why))
        return say_usage(c, "%s is no class: %s", name, why);
    qos_name_get(slots, wanted);
    for (size_t i = c->bundle ? bundled.n : 0; i-- > 0;)
        if (bundled.v[i].port_no == at->port_no && bundled.v[i].dir == at->dir &&
            !strcmp(bundled.v[i].name, wanted)) {
            *out = bundled.v[i].class_id;
            return DPCTL_OK;
        }
    enum status st = queues_ask(c, at->port_no, QOS_ALL_CLASSES, &all);
    for (size_t i = 0; !st && i < all.n; i++) {
        const struct qos_request *r = &all.v[i].config;
        if (queues_direction(&all.v[i]) != at->dir || r->object_type != OFP_QOS_CLASS ||
            !*queues_name(r, has))
            continue;
        *out = r->class_id;
        if (!strcmp(has, wanted))
            return DPCTL_OK;
        if (len < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", has);
    }
    return st ? st
              : say_usage(c, "port %u has no class of the name %s%s%s", (unsigned)at->port_no, name,
                          len ? "; it has " : ": give a number, and name= gives it a name", names);
}

/* "parent=", ...: the length of the key of a class that isn't a number; 0: something else. */
static size_t
class_key(const char *word)
{
    static const char *const keys[] = {"parent=", "class=", "default="};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t n = strlen(keys[i]);
        if (!strncasecmp(word, keys[i], n))
            return word[n] && (word[n] < '0' || word[n] > '9') && word[n] != '-' ? n : 0;
    }
    return 0;
}

/* Replaces the names of classes by their numbers; the ports have numbers already. */
static enum status
number_classes(struct ctx *c, const char *text, char *out, size_t size)
{
    struct of_wr w = of_wr_fixed(out, size - 1);
    struct place at = {0};
    const char *word;
    uint32_t id = 0;
    bool some = false;
    for (const char *p = text; *p; p += strcspn(p, ","), p += *p == ',') {
        some |= class_key(p) > 0;
        if (!strncasecmp(p, "port=", 5))
            at.port_no = (uint32_t)strtoul(p + 5, NULL, 10);
        at.dir = strncasecmp(p, "direction=in", 12) ? at.dir : QOS_IN;
    }
    if (!some || !at.port_no) {
        of_printf(&w, "%s", text);
        out[w.len] = '\0';
        return DPCTL_OK;
    }
    for (size_t n, key; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (!(word = words_keep(c, text, n)))
            return say_memory(c);
        enum status st = (key = class_key(word)) ? find_class(c, &at, word + key, &id) : DPCTL_OK;
        if (st)
            return st;
        if (key)
            of_printf(&w, "%.*s%u,", (int)key, word, (unsigned)id);
        else
            of_printf(&w, "%s,", word);
    }
    out[w.len] = '\0';
    return DPCTL_OK;
}

static enum status
request(struct ctx *c, const struct qos_sched *sched, const char *text)
{
    struct qos_request r;
    char why[768] = "", ports[4096], numbered[4096];
    enum status st;
    if ((st = number_ports(c, text, ports, sizeof ports)) ||
        (st = number_classes(c, ports, numbered, sizeof numbered)))
        return st;
    if (qos_request_parse(&r, sched, numbered, why, sizeof why))
        return say_usage(c, "%s", why);
    st = say_doubt(c, why);
    st = st ? st : say_doubt(c, qos_delay_doubt(&r.values, 0, why, sizeof why));
    if (!st && c->bundle && !note_name(&r))
        st = say_memory(c);
    return st ? st : queues_send(c, &r);
}

static enum status
qos_request(struct ctx *c, const struct command *self, char **words, int n)
{
    const char *text = words_join(c, words, n, ',');
    return text ? request(c, self->sched, text) : say_memory(c);
}

/* What qos-clear removes. */
struct clearing {
    const char *port, *class, *direction;
};

#define TO(member) KEY_TO(struct clearing, member)
static const struct key clearing_keys[] = {
    {"port", key_text, TO(port), .bare = KEY_BARE, .need = "port=N, or port=any for all ports"},
    {"class", key_text, TO(class)},
    {"direction", key_text, TO(direction)},
    {NULL},
};

static bool
is_class(const struct queue_entries *all, size_t i, const char *class, const char *direction)
{
    const struct qos_request *r = &all->v[i].config;
    char name[QOS_NAME_ROOM], *end;
    unsigned long number = strtoul(class, &end, 0);
    bool in = queues_direction(&all->v[i]) == QOS_IN;
    if (r->object_type != OFP_QOS_CLASS || (direction && in != !strcasecmp(direction, "in")))
        return false;
    return *end ? !strcmp(queues_name(r, name), class) : r->class_id == number;
}

/* The class goes by the command of its scheduler. */
static enum status
clear_class(struct ctx *c, const struct clearing *k)
{
    struct queue_entries all;
    uint32_t no = OFPP_ANY;
    char text[96];
    bool some = false;
    bool any = !strcasecmp(k->port, "any") || !strcasecmp(k->port, "all");
    enum status st = any ? DPCTL_OK : ports_number(c, k->port, &no);
    st = st ? st : queues_ask(c, no, QOS_ALL_CLASSES, &all);
    for (size_t i = 0; !st && i < all.n; i++) {
        const struct qos_request *r = &all.v[i].config;
        if (!is_class(&all, i, k->class, k->direction))
            continue;
        some = true;
        snprintf(text, sizeof text, "cmd=del,port=%u,class=%u,direction=%s", (unsigned)r->port_no,
                 (unsigned)r->class_id, queues_direction(&all.v[i]) == QOS_IN ? "in" : "out");
        st = request(c, r->sched, text);
    }
    return st || some
               ? st
               : say_failed(c, "port %s has no class %s: qos-show shows those that there are",
                            k->port, k->class);
}

static enum status
qos_clear(struct ctx *c, const struct command *self, char **words, int n)
{
    char text[160];
    struct clearing k = {0};
    enum status st = keys_take(c, clearing_keys, words, n, &k);
    if (st)
        return st;
    if (k.class)
        return clear_class(c, &k);
    for (int dir = QOS_OUT; !st && dir <= (k.direction ? QOS_OUT : QOS_IN); dir++) {
        const char *named = k.direction ? k.direction : dir == QOS_IN ? "in" : "";
        snprintf(text, sizeof text, "cmd=del,port=%.60s%s%.20s", k.port,
                 *named ? ",direction=" : "", named);
        st = request(c, qos_sched_by_id(OFP_QOS_SCHED_NONE), text);
    }
    return st;
}

/* ------------------------------------------------------------------------- the rows */

/* The scheduler's parameters, as the qos library describes them. */
static void
scheduler_more(struct of_wr *w, const struct command *self)
{
    char text[4096];
    if (qos_sched_usage(self->sched, text, sizeof text) < (int)sizeof text)
        of_printf(w, "\n%s\n", text);
}

static void
scheduler_offer(struct complete *k, const struct command *self)
{
    const struct qos_field *f;
    char name[32];
    complete_key(k, "cmd", "add|del|change|replace", NULL);
    complete_key(k, "port", "PORT", NULL);
    complete_key(k, "class", "CLASS", NULL);
    complete_key(k, "object", "qdisc|class", NULL);
    if (self->sched->classful)
        complete_key(k, "default", "CLASS", "where packets without a queue go");
    for (unsigned i = 0; (f = qos_sched_field(self->sched, i)); i++)
        complete_key(k, qos_field_name(f, name, sizeof name), qos_field_hint(f), f->help);
}

/* The scheduler that most begin with. */
static const struct first first_scheduler = {
    TASK_SHAPE, "qos-htb cmd=add,port=eth1,class=10,rate=6mbit", "a queue and its rate"};

static const char clear_help[] =
    "  port=N           the port; port=any: every port\n"
    "  class=N          only this class (its number or name), and what is below it\n"
    "  direction=out    only the queues for outgoing packets (in: incoming); default: both";

static const struct command clear = {
    .name = "qos-clear",
    .subject = SUBJECT_QOS,
    .first = {TASK_SHAPE, "qos-clear port=eth1", "removes all queues of a port"},
    .args = "port=N|any [class=CLASS] [direction=out|in]",
    .help =
        "removes all queues of a port or of all ports, in one direction or in both, or one class",
    .text = clear_help,
    .examples = "qos-clear port=2\nqos-clear port=any\nqos-clear port=2,class=12",
    .run = qos_clear,
};

/* qos-clear, which stands for the scheduler "none", then a command for each other scheduler. */
static const struct command *
scheduler_row(size_t i)
{
    static struct {
        struct command row;
        char name[32];
    } made[256];
    const struct qos_sched *s;
    size_t n = 0;
    if (!i)
        return &clear;
    for (unsigned k = 0; (s = qos_sched_at(k)); k++)
        if (s->id != OFP_QOS_SCHED_NONE && ++n == i)
            break;
    if (!s)
        return NULL;
    snprintf(made[n].name, sizeof made[n].name, "qos-%s", s->name);
    made[n].row =
        (struct command){.name = made[n].name,
                         .subject = SUBJECT_QOS,
                         .args = "cmd=add|del|change|replace,port=N,class=N,...",
                         .help = s->help,
                         .first = s->id == OFP_QOS_SCHED_HTB ? first_scheduler : (struct first){0},
                         .run = qos_request,
                         .more = scheduler_more,
                         .offer = scheduler_offer,
                         .sched = s};
    return &made[n].row;
}

const struct command_table commands_qos_request = {.row = scheduler_row};
