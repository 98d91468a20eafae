/* SPDX-License-Identifier: Apache-2.0 */
#include "state-text.h"

#include <core/change.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/steps.h>

#include <oflib/state.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
state_is_text(struct of_bytes file)
{
    return file.n && file.p[0] != OFP_VERSION;
}

/* ------------------------------------------------------------------ writing */

static enum status
add_step(struct ctx *c, struct steps *s, struct of_bytes raw)
{
    struct of_msg m;
    struct qos_request r;
    struct qos_error e;
    if (raw.p[1] == OFPT_EXPERIMENTER) {
        if (raw.n < 16 || qos_request_decode(&r, raw.p + 16, raw.n - 16, &e))
            return say_failed(c, "a queue of the state is malformed");
        steps_qos(c, s, &r, NULL);
        return DPCTL_OK;
    }
    int err = of_decode(raw, &c->arena, &m);
    if (err)
        return err == -ENOMEM ? say_memory(c)
                              : say_failed(c, "a message of the state is malformed");
    if (m.type == OFPT_FLOW_MOD)
        steps_flow(c, s, m.body);
    else
        steps_message(c, s, m.type, m.body);
    return DPCTL_OK;
}

enum status
state_to_text(struct ctx *c, struct of_bytes state, struct of_wr *out)
{
    struct steps s = {0};
    struct of_bytes raw;
    enum status st = DPCTL_OK;
    for (size_t at = 0; !st && of_state_next(state, &at, &raw);)
        st = add_step(c, &s, raw);
    if (st || s.nomem)
        return st ? st : say_memory(c);
    steps_print(out, &s, false);
    of_printf(out, s.n ? "\n" : "");
    return out->overflow ? say_memory(c) : DPCTL_OK;
}

/* ------------------------------------------------------------------ reading */

static bool
is_part(uint8_t type)
{
    return type == OFPT_FLOW_MOD || type == OFPT_GROUP_MOD || type == OFPT_METER_MOD ||
           type == OFPT_PORT_MOD || type == OFPT_EXPERIMENTER;
}

/* Appends what the line has added to the bundle, as a state has it: without numbers. */
static enum status
take_messages(struct ctx *c, size_t *at, struct of_wr *out, uint32_t *count)
{
    struct of_bytes raw;
    while (change_next(c, at, &raw)) {
        if (!is_part(raw.p[1]))
            return say_usage(
                c,
                "this is no part of a state: flow-mod, group-mod, meter-mod, port-mod and qos-... are");
        size_t from = out->len;
        of_wr_bytes(out, raw.p, raw.n);
        if (out->overflow)
            return say_memory(c);
        of_set32(out->buf + from + 4, 0);
        ++*count;
    }
    return DPCTL_OK;
}

static enum status
run_lines(struct ctx *c, char *text, const char *file, struct of_wr *out, uint32_t *count)
{
    char where[300], *line;
    const char *outside = c->where;
    enum status st = DPCTL_OK;
    size_t at = 0;
    bool empty;
    for (unsigned number = 1; !st && (line = strsep(&text, "\n")); number++) {
        snprintf(where, sizeof where, "%.200s:%u", file, number);
        c->where = where;
        st = c->run_line(c, line, &empty);
        st = st ? st : take_messages(c, &at, out, count);
        c->where = outside;
    }
    return st;
}

enum status
state_of_text(struct ctx *c, struct of_bytes text, const char *file, struct of_wr *out)
{
    struct bundle *outer = c->bundle;
    const struct command *command = c->command;
    const bool experimenter = c->experimenter, dry_run = c->dry_run;
    struct of_state_mark mark = {0};
    char *copy = strndup((const char *)text.p, text.n);
    c->bundle = NULL;
    enum status st = copy ? change_begin(c) : say_memory(c);
    c->experimenter = true; /* a state has queues in this envelope */
    c->dry_run = false;
    of_state_mark_encode(out, &mark);
    if (!st)
        st = run_lines(c, copy, file, out, &mark.count);
    mark.is_end = 1;
    of_state_mark_encode(out, &mark);
    change_drop(c);
    c->bundle = outer;
    c->experimenter = experimenter;
    c->dry_run = dry_run;
    c->command = command;
    free(copy);
    return st ? st : out->overflow ? say_memory(c) : DPCTL_OK;
}
