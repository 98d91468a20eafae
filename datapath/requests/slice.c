/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

#include "requests.h"

#include <requests/flows.h>

#include <oflib/fmt.h>

#include <stdio.h>

int
slice_anything(const struct slice_request *q)
{
    return 0;
}

int
slice_deny_port(const struct slice_request *q, int err, uint32_t no)
{
    return slice_deny(q, err, "port %u", (unsigned)no);
}

/* ------------------------------------------------------------------ whether it may */

static int
denied(const struct request *r, const struct of_msg *m)
{
    if (r && r->denied)
        return r->denied;
    return m->type == OFPT_EXPERIMENTER || (m->mp && m->mp->type == OFPMP_EXPERIMENTER)
               ? SLICE_PERM
               : OF_BAD_REQUEST(EPERM);
}

static int
check(const struct slice_request *q)
{
    const struct request *r = request_find(q->m->raw);
    if (!r || !r->slice)
        return slice_deny(q, denied(r, q->m), "this request, which is for no slice");
    if (r->access == ACCESS_WRITE && q->slice->read_only && !r->also_read_only)
        return slice_deny(q, denied(r, q->m), "changing anything");
    return r->slice(q);
}

static void
explain(struct slice *s, struct conn *c, const struct of_msg *m, struct qos_error *e)
{
    char right[sizeof e->text];
    const char *type = of_fmt_name(&of_fmt_OFPT, m->type);
    snprintf(right, sizeof right, "%s", e->text);
    snprintf(e->text, sizeof e->text, "slice %s lacks a right: %.200s", s->name, right);
    s->refused++;
    log_info_by(CONN, LOG_REQUEST(c ? conn_peer(c) : "a peer that has gone", m->xid),
                "refused %s: %s", type ? type : "a message", e->text);
}

int
sw_slice_check_for(struct sw *sw, struct slice *s, struct conn *c, const struct of_msg *m,
                   struct qos_error *e)
{
    struct slice_request q = {sw, s, m, e};
    sw_bind_queues(sw, s);
    if (!s)
        return 0;
    int err = check(&q);
    if (err)
        explain(s, c, m, e);
    return err;
}

int
sw_slice_check(struct sw *sw, struct conn *c, const struct of_msg *m, struct qos_error *e)
{
    return sw_slice_check_for(sw, sw_slice_of(c), c, m, e);
}

/* ------------------------------------------------------------------ what it sees */

bool
sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f)
{
    struct of_oxm oxms[OXM_N];
    struct of_flow_stats described;
    if (!s || slice_set_has(&s->tables, f->table_id))
        return true;
    if (!slice_set_has(&s->shared, f->table_id))
        return false;
    sw_flow_describe(sw, f, oxms, &described);
    return slice_has_flow(s, f->table_id, &described.match);
}
