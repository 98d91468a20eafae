/* SPDX-License-Identifier: Apache-2.0 */
/* A state from a file, at the start (docs/how-to/state.md). */
#include "flow-mod.h"
#include "qos-request.h"
#include "state-queues.h"

#include <ports/ports.h>
#include <requests/flows.h>
#include <requests/state.h>
#include <switch/switch.h>

#include <oflib/fmt.h>
#include <oflib/state.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the file */

int
sw_state_open(const char *file, struct of_bytes *out, char *why, size_t n)
{
    struct of_state_mark mark;
    struct stat st;
    char text[200];
    void *p = MAP_FAILED;
    *out = (struct of_bytes){0};
    int fd = open(file, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;
    if (!err && fstat(fd, &st))
        err = -errno;
    if (!err && (!S_ISREG(st.st_mode) || st.st_size < OF_STATE_MARK_LEN))
        err = -EINVAL;
    if (!err && (p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        err = -errno;
    if (fd >= 0)
        close(fd);
    if (err) {
        snprintf(why, n, "%s: %s", file,
                 err == -EINVAL ? "it is not a saved state" : strerror(-err));
        return err;
    }
    *out = (struct of_bytes){p, (size_t)st.st_size};
    err = of_state_check(*out, &mark, text, sizeof text);
    if (err) {
        snprintf(why, n, "%s: %s", file, text);
        sw_state_close(*out);
    }
    return err;
}

void
sw_state_close(struct of_bytes state)
{
    munmap((void *)(uintptr_t)state.p, state.n);
}

/* ------------------------------------------------------------------ its messages */

/* What is wrong with the message, in words. */
static void
explain(const struct of_msg *m, unsigned number, int err, char *why, size_t n)
{
    const char *code = err > 0 ? of_error_code_name(of_err_type(err), of_err_code(err)) : NULL;
    snprintf(why, n, "message %u of the state (type %u): %s", number, m->type,
             err < 0 ? strerror(-err)
             : code  ? code
                     : "an error");
}

typedef int load_fn(struct sw *sw, const struct of_msg *m);

/* The state doesn't say whose a flow was: it is that slice's which might have made it. */
static const struct slice *
owner_of(const struct sw *sw, const struct of_flow_mod *fm)
{
    char why[SLICE_WHY];
    for (size_t i = 0; i < sw->slices.n; i++)
        if (!slice_check_flow_mod(sw->slices.v[i], fm, why))
            return sw->slices.v[i];
    return NULL;
}

static int
load_table(struct sw *sw, const struct of_msg *m)
{
    uint64_t now = loop_now(sw->loop);
    switch (m->type) {
    case OFPT_METER_MOD: return tables_meter_mod(sw->dp.tables, m->body, UINT32_MAX, now);
    case OFPT_GROUP_MOD: return tables_group_mod(sw->dp.tables, m->body, UINT32_MAX, now);
    default: sw_bind_queues(sw, owner_of(sw, m->body)); return sw_flow_mod(sw, m->body);
    }
}

/* An interface may have another address now. */
static int
load_port(struct sw *sw, const struct of_msg *m)
{
    struct of_port_mod pm = *(const struct of_port_mod *)m->body;
    const struct sw_port *p = sw_ports_find(sw, pm.port_no);
    if (!p)
        return 0;
    memcpy(pm.hw_addr, p->link.mac, sizeof pm.hw_addr);
    return sw_ports_mod(sw, &pm);
}

/* Port-mods, or the messages for the tables. */
static int
each_message(struct sw *sw, struct of_bytes state, bool ports, load_fn *load, char *why, size_t n)
{
    struct of_arena arena;
    struct of_bytes raw;
    size_t at = 0;
    int err = 0;
    of_arena_init(&arena, OF_ARENA_MESSAGE);
    for (unsigned i = 1; !err && of_state_next(state, &at, &raw); i++) {
        struct of_msg m;
        if (raw.p[1] == OFPT_EXPERIMENTER || (raw.p[1] == OFPT_PORT_MOD) != ports)
            continue;
        err = of_decode(raw, &arena, &m);
        if (!err)
            err = load(sw, &m);
        if (err)
            explain(&m, i, err, why, n);
        of_arena_reset(&arena);
    }
    of_arena_free(&arena);
    return err > 0 ? -EINVAL : err;
}

/* ------------------------------------------------------------------ tables */

static void
empty_tables(struct sw *sw)
{
    uint64_t now = loop_now(sw->loop);
    const struct of_flow_mod flows = {.command = OFPFC_DELETE,
                                      .table_id = OFPTT_ALL,
                                      .buffer_id = OFP_NO_BUFFER,
                                      .out_port = OFPP_ANY,
                                      .out_group = OFPG_ANY};
    const struct of_group_mod groups = {.command = OFPGC_DELETE, .group_id = OFPG_ALL};
    const struct of_meter_mod meters = {.command = OFPMC_DELETE, .meter_id = OFPM_ALL};
    sw_flow_mod(sw, &flows);
    tables_group_mod(sw->dp.tables, &groups, UINT32_MAX, now);
    tables_meter_mod(sw->dp.tables, &meters, UINT32_MAX, now);
}

int
sw_state_load_tables(struct sw *sw, struct of_bytes state, char *why, size_t n)
{
    sw->loading = true;
    int err = each_message(sw, state, false, load_table, why, n);
    sw->loading = false;
    sw_bind_queues(sw, NULL);
    if (err)
        empty_tables(sw);
    sw_flows_expire(sw);
    return err;
}

/* ------------------------------------------------------------------ ports and queues */

struct queues {
    struct qos_request *v;
    size_t n, cap;
};

static int
add_queue(struct queues *q, const struct of_msg *m, char *why, size_t n)
{
    struct qos_error e = {0};
    if (q->n == q->cap) {
        size_t cap = q->cap ? q->cap * 2 : 64;
        struct qos_request *more = reallocarray(q->v, cap, sizeof *more);
        if (!more)
            return -ENOMEM;
        q->v = more;
        q->cap = cap;
    }
    if (sw_qos_decode(m, &q->v[q->n], &e)) {
        snprintf(why, n, "%s", e.text);
        return -EINVAL;
    }
    q->n++;
    return 0;
}

static int
read_queues(struct of_bytes state, struct queues *q, char *why, size_t n)
{
    struct of_arena arena;
    struct of_bytes raw;
    struct of_msg m;
    size_t at = 0;
    int err = 0;
    of_arena_init(&arena, OF_ARENA_MESSAGE);
    while (!err && of_state_next(state, &at, &raw)) {
        if (raw.p[1] != OFPT_EXPERIMENTER)
            continue;
        err = of_decode(raw, &arena, &m) ? -EINVAL : add_queue(q, &m, why, n);
        of_arena_reset(&arena);
    }
    of_arena_free(&arena);
    return err;
}

int
sw_state_load_ports(struct sw *sw, struct of_bytes state, char *why, size_t n)
{
    struct queues q = {0};
    snprintf(why, n, "a queue of the state is malformed");
    int err = read_queues(state, &q, why, n);
    if (!err)
        err = each_message(sw, state, true, load_port, why, n);
    if (!err && !sw->opt.no_slicing)
        err = sw_state_set_queues(sw, q.v, q.n, why, n) ? -EIO : 0;
    free(q.v);
    return err;
}
