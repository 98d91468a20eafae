/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is decoded and allowed for the connection's role: checks the rest of its row, carries it out, logs it. */
#include "qos-request.h"
#include "rows.h"
#include "slice-check.h"

#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <oflib/text.h>
#include <requests/handlers.h>
#include <shared/rcu.h>

enum access
sw_request_access(void *sw, struct of_bytes frame)
{
    const struct request *r = request_find(frame);
    return r ? r->access : ACCESS_NONE;
}

/* What follows exp_type.  False: the message is no experimenter's. */
static bool
data_of(const struct of_msg *m, struct of_bytes *data)
{
    if (m->type == OFPT_EXPERIMENTER)
        *data = ((const struct of_experimenter *)m->body)->data;
    else if (m->type == OFPT_MULTIPART_REQUEST && m->mp->type == OFPMP_EXPERIMENTER)
        *data = ((const struct of_mp_experimenter *)m->body)->data;
    else
        return false;
    return true;
}

static int
carry_out(struct sw *sw, struct conn *c, const struct request *r, const struct of_msg *m)
{
    struct qos_error e = {0};
    struct of_bytes data;
    if (m->type == OFPT_MULTIPART_REQUEST)
        sw_offload_sync_lately(sw); /* so that all that is read includes the kernel's packets */
    if (data_of(m, &data) && (data.n < r->least || data.n > r->most))
        return OF_BAD_REQUEST(BAD_LEN);
    if (!r->run_data)
        return r->run(sw, c, m);
    return r->run_data(sw, c, data, &e) ? sw_qos_refuse(c, m, &e) : 0;
}

static void
print_message(const void *of, char *out, size_t n)
{
    struct of_wr w = of_wr_fixed((uint8_t *)out, n - 1);
    of_print_msg(&w, of);
    out[w.len] = '\0';
}

/* -> as a handler's. */
static int
handle(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct request *r = request_find(m->raw);
    struct qos_error e = {0};
    if (!r)
        return OF_BAD_REQUEST(BAD_TYPE);
    if (sw_slice_check(sw, c, m, &e))
        return sw_qos_refuse(c, m, &e);
    int err = carry_out(sw, c, r, m);
    if (!err && r->log)
        log_made_at(r->log, conn_by(c), "a change", print_message, m);
    return err;
}

int
sw_handle_message(void *sw, struct conn *c, const struct of_msg *m)
{
    int err = handle(sw, c, m);
    sw_offload_relieve(sw);
    rcu_relieve();
    return err;
}
