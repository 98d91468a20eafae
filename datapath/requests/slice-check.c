/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request lies within its connection's slice, by its row. */
#include "slice-check.h"
#include "rows.h"

#include <admission/request.h>

#include <daemon/log.h>
#include <oflib/fmt.h>
#include <requests/flows.h>

#include <stdio.h>

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
