/* SPDX-License-Identifier: Apache-2.0 */
/* save, restore: flows, groups, meters, port configuration and queues in a file (docs/how-to/state.md). */
#include "state-text.h"

#include <core/ask.h>
#include <core/command.h>
#include <core/file.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>
#include <queues/steps.h>

#include <oflib/plural.h>
#include <oflib/state.h>
#include <qos/diff/diff.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FILE_MAX   ((size_t)1 << 30)
#define RESTART_MS 150000 /* the switch gives up earlier */

static enum status
ask_state(struct ctx *c, struct of_bytes *out, struct of_state_mark *mark)
{
    char why[200];
    enum status st = ask_experimenter(c, OFP_EXP_STATE, (struct of_bytes){NULL, 0}, out);
    if (!st && of_state_check(*out, mark, why, sizeof why))
        st = say_failed(c, "the switch's answer is malformed: %s", why);
    return st;
}

/* ------------------------------------------------------------------ save */

static enum status
say_saved(struct ctx *c, const char *file, uint32_t messages, size_t bytes)
{
    struct of_wr w = of_wr_grow(4096);
    struct of_json j = of_json(&w);
    if (c->json) {
        of_json_object(&j, NULL);
        of_json_text(&j, "file", file);
        of_json_uint(&j, "messages", messages);
        of_json_uint(&j, "bytes", bytes);
        of_json_end_object(&j);
    } else {
        of_printf(&w, "saved %u message%s (%zu bytes) to %s", messages, OF_S(messages), bytes,
                  file);
    }
    return view_line(c, &w);
}

/* The commands, and above them what they are. */
static enum status
write_text(struct ctx *c, struct of_bytes state, const struct of_state_mark *mark, struct of_wr *w)
{
    char time[64] = "";
    const time_t when = (time_t)mark->time;
    struct tm tm;
    if (gmtime_r(&when, &tm))
        strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &tm);
    of_printf(w,
              "# The state of switch %016" PRIx64
              ", %s: dpctl restore makes a switch so; dpctl -F adds it.\n",
              mark->datapath_id, time);
    return state_to_text(c, state, w);
}

static enum status
save(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_bytes state;
    struct of_state_mark mark;
    bool bytes = n == 2 && !strcmp(words[1], "format=bytes");
    if (n != 1 && !bytes && (n != 2 || strcmp(words[1], "format=text") != 0))
        return say_usage(c, "name one file, such as save /var/lib/ofqos/br0.state (-: stdout), and "
                            "format=bytes if it is for ofdatapath --restore");
    enum status st = ask_state(c, &state, &mark);
    struct of_wr text = of_wr_grow(FILE_MAX);
    st = st || bytes ? st : write_text(c, state, &mark, &text);
    if (!st && !bytes)
        state = (struct of_bytes){text.buf, text.len};
    st = st ? st : file_replace(c, words[0], state);
    if (!st && strcmp(words[0], "-") != 0)
        st = say_saved(c, words[0], mark.count, state.n);
    of_wr_free(&text);
    return st;
}

/* ------------------------------------------------------------------ comparing two states */

/* A message of a state. */
struct item {
    struct of_bytes raw;
    uint32_t at;                      /* its place in the state */
    enum { OWN, SAME, CHANGED } fate; /* OWN: only this state has it */
    const struct item *other;         /* where CHANGED */
};

struct items {
    struct item *v; /* in the state's order */
    struct item **by_key;
    size_t n;
};

/* What two messages about the same thing have in common: a flow's table, priority and match; a
 * group's, a meter's, a port's number. */
static struct of_bytes
key_of(struct of_bytes raw)
{
    enum { MATCH = 48, MATCH_LEN = 50 };
    const uint8_t *p = raw.p;
    switch (p[1]) {
    case OFPT_FLOW_MOD: {
        size_t n = raw.n >= MATCH + 8 ? of_get16(p + MATCH_LEN) : 0;
        return (struct of_bytes){p + MATCH, n <= raw.n - MATCH ? n : 0};
    }
    case OFPT_PORT_MOD: return (struct of_bytes){p + 8, 4};
    default: return (struct of_bytes){p + 12, 4};
    }
}

/* A flow's table and priority; 0 of others. */
static uint32_t
place_of(struct of_bytes raw)
{
    return raw.p[1] == OFPT_FLOW_MOD && raw.n > 32
               ? (uint32_t)raw.p[24] << 16 | of_get16(raw.p + 30)
               : 0;
}

static int
by_key(const void *a, const void *b)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    int type = x->raw.p[1] - y->raw.p[1];
    uint32_t px = place_of(x->raw), py = place_of(y->raw);
    if (type || px != py)
        return type ? type : px < py ? -1 : 1;
    struct of_bytes kx = key_of(x->raw), ky = key_of(y->raw);
    int order = memcmp(kx.p, ky.p, kx.n < ky.n ? kx.n : ky.n);
    return order ? order : (kx.n > ky.n) - (kx.n < ky.n);
}

/* The messages but QoS requests, which qos_diff compares. */
static enum status
index_state(struct ctx *c, struct of_bytes state, uint32_t count, struct items *out)
{
    size_t at = 0;
    struct of_bytes raw;
    *out = (struct items){of_arena_array(&c->arena, count + 1, sizeof *out->v),
                          of_arena_array(&c->arena, count + 1, sizeof *out->by_key), 0};
    if (!out->v || !out->by_key)
        return say_memory(c);
    while (of_state_next(state, &at, &raw)) {
        if (raw.p[1] == OFPT_EXPERIMENTER)
            continue;
        if (raw.n < 16)
            return say_failed(c, "a message of the state is too short");
        out->v[out->n] = (struct item){.raw = raw, .at = (uint32_t)out->n};
        out->by_key[out->n] = &out->v[out->n];
        out->n++;
    }
    qsort(out->by_key, out->n, sizeof *out->by_key, by_key);
    return DPCTL_OK;
}

static void
compare(struct items *now, struct items *want)
{
    for (size_t i = 0, k = 0; i < now->n && k < want->n;) {
        struct item *a = now->by_key[i], *b = want->by_key[k];
        int order = by_key(&a, &b);
        i += order <= 0;
        k += order >= 0;
        if (order)
            continue;
        bool same = a->raw.n == b->raw.n && !memcmp(a->raw.p, b->raw.p, a->raw.n);
        a->fate = b->fate = same ? SAME : CHANGED;
        a->other = b;
        b->other = a;
    }
}

/* ------------------------------------------------------------------ steps */

struct restoring {
    struct ctx *c;
    struct steps steps;
    struct of_list ports;
    enum status st;
};

static void *
decode(struct restoring *r, struct of_bytes raw)
{
    struct of_msg m;
    int err = of_decode(raw, &r->c->arena, &m);
    if (err && !r->st)
        r->st = say_failed(r->c, err == -ENOMEM ? "out of memory"
                                                : "a message of the state is malformed");
    return err ? NULL : m.body;
}

static void
remove_item(struct restoring *r, const struct item *i, uint8_t type)
{
    void *body = decode(r, i->raw);
    if (!body)
        return;
    if (type == OFPT_FLOW_MOD) {
        struct of_flow_mod *fm = body;
        fm->command = OFPFC_DELETE_STRICT;
        fm->cookie_mask = UINT64_MAX;
        fm->instructions = (struct of_list){0};
        steps_flow(r->c, &r->steps, fm);
        return;
    }
    if (type == OFPT_GROUP_MOD) {
        ((struct of_group_mod *)body)->command = OFPGC_DELETE;
        ((struct of_group_mod *)body)->buckets = (struct of_list){0};
    } else {
        ((struct of_meter_mod *)body)->command = OFPMC_DELETE;
        ((struct of_meter_mod *)body)->bands = (struct of_list){0};
    }
    steps_message(r->c, &r->steps, type, body);
}

static void
remove_all(struct restoring *r, const struct items *now, uint8_t type)
{
    for (size_t i = now->n; i-- > 0 && !r->st;) /* groups that lead to others come later */
        if (now->v[i].raw.p[1] == type && now->v[i].fate == OWN)
            remove_item(r, &now->v[i], type);
}

static void
set_item(struct restoring *r, const struct item *i, uint8_t type)
{
    void *body = decode(r, i->raw);
    if (!body)
        return;
    bool changed = i->fate == CHANGED;
    if (type == OFPT_FLOW_MOD) /* an ADD takes the place of one with the same match */
        steps_flow(r->c, &r->steps, body);
    else if (type == OFPT_GROUP_MOD)
        ((struct of_group_mod *)body)->command = changed ? OFPGC_MODIFY : OFPGC_ADD;
    else
        ((struct of_meter_mod *)body)->command = changed ? OFPMC_MODIFY : OFPMC_ADD;
    if (type != OFPT_FLOW_MOD)
        steps_message(r->c, &r->steps, type, body);
}

static void
set_all(struct restoring *r, const struct items *want, uint8_t type)
{
    for (size_t i = 0; i < want->n && !r->st; i++)
        if (want->v[i].raw.p[1] == type && want->v[i].fate != SAME)
            set_item(r, &want->v[i], type);
}

/* A port-mod must have the port's present address; a port that is missing is left out. */
static void
set_port(struct restoring *r, struct of_bytes raw, bool wanted)
{
    struct of_port_mod *pm = decode(r, raw);
    const struct of_port *port = pm ? ports_desc(&r->ports, pm->port_no) : NULL;
    if (!port)
        return;
    memcpy(pm->hw_addr, port->hw_addr, sizeof pm->hw_addr);
    uint32_t config = wanted ? pm->config : 0;
    pm->mask = port->config ^ config;
    pm->config = config & pm->mask;
    if (pm->mask)
        steps_message(r->c, &r->steps, OFPT_PORT_MOD, pm);
}

static void
set_ports(struct restoring *r, const struct items *now, const struct items *want)
{
    for (size_t i = 0; i < now->n; i++)
        if (now->v[i].raw.p[1] == OFPT_PORT_MOD && now->v[i].fate == OWN)
            set_port(r, now->v[i].raw, false);
    for (size_t i = 0; i < want->n; i++)
        if (want->v[i].raw.p[1] == OFPT_PORT_MOD && want->v[i].fate != SAME)
            set_port(r, want->v[i].raw, true);
}

/* ------------------------------------------------------------------ queues */

static enum status
wanted_queues(struct ctx *c, struct of_bytes state, uint32_t count, struct qos_request **out,
              size_t *n)
{
    struct of_bytes raw;
    struct qos_error e;
    size_t at = 0;
    *out = of_arena_array(&c->arena, count + 1, sizeof **out);
    *n = 0;
    if (!*out)
        return say_memory(c);
    while (of_state_next(state, &at, &raw)) {
        if (raw.p[1] != OFPT_EXPERIMENTER)
            continue;
        if (qos_request_decode(*out + *n, raw.p + 16, raw.n - 16, &e))
            return say_failed(c, "a queue of the state is malformed: %s", e.text);
        ++*n;
    }
    return DPCTL_OK;
}

static bool
take_step(void *ctx, const struct qos_request *step)
{
    struct restoring *r = ctx;
    steps_qos(r->c, &r->steps, step, NULL);
    return !r->steps.nomem;
}

static enum status
set_tree(struct restoring *r, const struct of_port *p, enum qos_direction dir,
         const struct queue_entries *now, const struct qos_request *all, size_t n_all)
{
    struct qos_request *want = of_arena_array(&r->c->arena, n_all + 1, sizeof *want);
    struct qos_diff d = {.port = {p->port_no, dir, queues_env(ports_speed(p))},
                         .now = now->v,
                         .n_now = now->n,
                         .want = want,
                         .fn = take_step,
                         .ctx = r};
    struct qos_error e;
    if (!want)
        return say_memory(r->c);
    for (size_t i = 0; i < n_all; i++)
        if (all[i].port_no == p->port_no && all[i].values.v[QOS_DIRECTION] == (uint64_t)dir)
            want[d.n_want++] = all[i];
    if (qos_diff(&d, &e))
        return say_failed(r->c, "port %u: %s", (unsigned)p->port_no, e.text);
    return DPCTL_OK;
}

static enum status
set_queues(struct restoring *r, struct of_bytes state, uint32_t count)
{
    struct queue_entries now;
    struct queue_trees trees;
    struct qos_request *want;
    size_t n;
    enum status st = wanted_queues(r->c, state, count, &want, &n);
    st = st ? st : queues_ask(r->c, OFPP_ANY, QOS_ALL_CLASSES, &now);
    st = st ? st : queues_ask_defaults(r->c, &now, &trees);
    for (uint32_t i = 0; !st && i < r->ports.n; i++)
        for (int dir = QOS_OUT; !st && dir <= QOS_IN; dir++)
            st = set_tree(r, OF_AT(&r->ports, i, struct of_port), (enum qos_direction)dir, &now,
                          want, n);
    return st;
}

/* ------------------------------------------------------------------ restore */

/* Flows are deleted first and added last, because they use groups and meters. */
static void
list_steps(struct restoring *r, struct items *now, struct items *want)
{
    compare(now, want);
    remove_all(r, now, OFPT_FLOW_MOD);
    set_all(r, want, OFPT_METER_MOD);
    set_all(r, want, OFPT_GROUP_MOD);
    set_all(r, want, OFPT_FLOW_MOD);
    remove_all(r, now, OFPT_GROUP_MOD);
    remove_all(r, now, OFPT_METER_MOD);
    set_ports(r, now, want);
}

static enum status
restore_state(struct ctx *c, struct of_bytes state, const char *file)
{
    struct restoring r = {.c = c};
    struct of_bytes present;
    struct of_state_mark mark, mark_now;
    struct items now, want;
    char why[200];
    if (of_state_check(state, &mark, why, sizeof why))
        return say_failed(c, "%s: %s", file, why);
    enum status st;
    if ((st = ask_state(c, &present, &mark_now)) || (st = ports_ask(c, &r.ports)) ||
        (st = index_state(c, present, mark_now.count, &now)) ||
        (st = index_state(c, state, mark.count, &want)))
        return st;
    list_steps(&r, &now, &want);
    st = r.st ? r.st : set_queues(&r, state, mark.count);
    return st ? st : steps_run(c, &r.steps);
}

static enum status
restore(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_wr w, of_text = of_wr_grow(FILE_MAX);
    char file[4096];
    if (n != 1)
        return say_usage(c, "name one file that save has written");
    snprintf(file, sizeof file, "%s", words[0]); /* it may be in the arena */
    enum status st = file_read(c, file, FILE_MAX, &w);
    if (st)
        return st;
    struct of_bytes state = {w.buf, w.len};
    if (state_is_text(state)) {
        st = state_of_text(c, state, file, &of_text);
        state = (struct of_bytes){of_text.buf, of_text.len};
    }
    st = st ? st : restore_state(c, state, file);
    of_wr_free(&w);
    of_wr_free(&of_text);
    return st;
}

/* ------------------------------------------------------------------ restart */

/* Waits for the new process, which begins to listen a little later. */
static enum status
meet_new(struct ctx *c, int64_t until)
{
    struct of_wr w = of_wr_grow(256);
    const struct timespec pause = {.tv_nsec = 10000000};
    remote_close(&c->remote);
    while (remote_open(&c->remote, c->address, c->remote.timeout_ms)) {
        if (remote_now_ms() >= until)
            return say_failed(c, "the old process has ended, and the new one does not answer: %s",
                              c->remote.why);
        nanosleep(&pause, NULL);
    }
    of_printf(&w, c->json ? "{\"restarted\": true}" : "restarted");
    return view_line(c, &w);
}

/* The old process closes the connection when it hands over. */
static enum status
restart(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_RESTART, {NULL, 0}};
    struct of_msg answer;
    struct of_bytes raw;
    if (n)
        return say_usage(c, "restart takes no arguments");
    enum status st = ask_send(c, OFPT_EXPERIMENTER, &m);
    if (st)
        return st;
    int64_t until = remote_now_ms() + RESTART_MS;
    for (;;) {
        int err = remote_recv(&c->remote, until, &raw);
        if (err == -ECONNRESET)
            return meet_new(c, until);
        if (err)
            return say_failed(c, "%s", c->remote.why);
        if (raw.p[1] == OFPT_ERROR && of_get32(raw.p + 4) == c->remote.xid)
            return of_decode(raw, &c->arena, &answer) ? say_malformed(c) : view_error(c, &answer);
    }
}

/* ------------------------------------------------------------------ rows */

static const char restart_help[] =
    "A new process of the program that is installed now takes over, with ports, flows, groups,\n"
    "meters and queues.  Packets stand still only while the ports change hands, for as long as\n"
    "the log says.  Controllers lose their connection and connect again.  If the new process does\n"
    "not start, the old one goes on.  Only at a Unix socket.";

static const char save_help[] =
    "  FILE          is written as a whole or not at all (-: stdout)\n"
    "  format=text   the commands that make it, for restore, -F and people\n"
    "  format=bytes  OpenFlow messages, for ofdatapath --restore, and for restore\n"
    "It has the flows, groups, meters, ports' configuration and queues; no counters, and no time\n"
    "that a flow has lived.";

static const char restore_help[] =
    "  FILE       what save, or ofdatapath --state, has written\n"
    "  --dry-run  shows the commands that would do it, and does nothing\n"
    "What is not in the file is removed, what differs is changed, and the rest keeps its counters,\n"
    "all of it in one step; if the switch refuses anything, nothing is changed.";

static const struct command rows[] = {
    {.name = "save",
     .first = {TASK_KEEP, "save FILE", "flows, groups, meters, queues"},
     .args = "FILE|- [format=text|bytes]",
     .help = "writes flows, groups, meters and queues to a file",
     .text = save_help,
     .examples = "save /var/lib/ofqos/br0.state\nsave /etc/ofqos/factory.state format=bytes",
     .run = save,
     .asks = true},
    {.name = "restore",
     .first = {TASK_KEEP, "restore FILE", "makes them what the file says"},
     .args = "FILE [--dry-run]",
     .help = "makes flows, groups, meters and queues what a file says",
     .text = restore_help,
     .examples = "restore /var/lib/ofqos/br0.state\nrestore /var/lib/ofqos/br0.state --dry-run",
     .run = restore,
     .options = COMMAND_DRY_RUN},
    {.name = "restart",
     .help = "exchanges the running program for the installed one, without losing its state",
     .text = restart_help,
     .examples = "restart",
     .run = restart,
     .asks = true},
};

const struct command_table commands_state = COMMAND_TABLE(rows);
