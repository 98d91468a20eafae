/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about the switch as a whole and about the connection itself. */
#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <punt/packet-in.h>
#include <punt/packet-out.h>
#include <shared/rcu.h>

#include <stdio.h>
#include <string.h>

static int
handle_features(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_features_reply r = {.datapath_id = sw->opt.datapath_id,
                                  .n_buffers = 256,
                                  .n_tables = (uint8_t)tables_count(sw->dp.tables),
                                  .auxiliary_id = conn_aux(c),
                                  .capabilities = OFPC_FLOW_STATS | OFPC_TABLE_STATS |
                                                  OFPC_PORT_STATS | OFPC_GROUP_STATS |
                                                  OFPC_QUEUE_STATS};
    return conn_reply(c, OFPT_FEATURES_REPLY, m, &r);
}

const struct request request_features = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_features};

static int
handle_get_config(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_switch_config r = {.flags = sw->dp.frag, .miss_send_len = sw->miss_send_len};
    return conn_reply(c, OFPT_GET_CONFIG_REPLY, m, &r);
}

const struct request request_get_config = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_get_config};

static int
handle_set_config(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_switch_config *q = m->body;
    if (q->flags != OFPC_FRAG_NORMAL && q->flags != OFPC_FRAG_DROP) /* no reassembly here */
        return OF_SWITCH_CONFIG_FAILED(BAD_FLAGS);
    if (q->miss_send_len > OFPCML_MAX && q->miss_send_len != OFPCML_NO_BUFFER)
        return OF_SWITCH_CONFIG_FAILED(BAD_LEN);
    if (q->flags != sw->dp.frag)
        sw_offload_forget_all(sw);
    store_relaxed(&sw->dp.frag, q->flags);
    sw->miss_send_len = q->miss_send_len;
    return 0;
}

const struct request request_set_config = {.access = ACCESS_WRITE,
                                           .denied = OF_SWITCH_CONFIG_FAILED(EPERM),
                                           .needs = QUEUES,
                                           LOGGED(SWITCH),
                                           .run = handle_set_config};

/* Everything before is done: it was not ready until then. */
static int
handle_barrier(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return conn_reply(c, OFPT_BARRIER_REPLY, m, NULL);
}

/* When every worker uses the new flows (6.2.1), and flow-removed messages are sent. */
static bool
barrier_ready(struct sw *sw, struct conn *c, struct of_bytes frame)
{
    if (!sw_packet_outs_are_sent(sw, c))
        return false;
    rcu_wait();
    return true;
}

const struct request request_barrier = {
    .access = ACCESS_READ, .slice = slice_anything, .ready = barrier_ready, .run = handle_barrier};

static int
handle_role(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_role *q = m->body;
    int err = conn_set_role(c, q->role, q->generation_id);
    if (err)
        return err;
    struct of_role r = {.role = conn_state(c)->role, .generation_id = UINT64_MAX};
    conn_generation(c, &r.generation_id);
    return conn_reply(c, OFPT_ROLE_REPLY, m, &r);
}

/* A slice's connections have their roles among themselves. */
const struct request request_role = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_role};

static int
handle_get_async(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return conn_reply(c, OFPT_GET_ASYNC_REPLY, m, &conn_state(c)->async);
}

const struct request request_get_async = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_get_async};

static int
handle_set_async(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    conn_state(c)->async = *(const struct of_async *)m->body;
    return 0;
}

/* It changes the connection itself. */
const struct request request_set_async = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_set_async};

static int
handle_desc(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct sw_desc *d = &sw->opt.desc;
    struct of_mp_desc r = {0};
    char id[17];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)sw->opt.datapath_id);
    snprintf(r.mfr_desc, sizeof r.mfr_desc, "%s", d->mfr ? d->mfr : "the ofqos developers");
    snprintf(r.hw_desc, sizeof r.hw_desc, "%s", d->hw ? d->hw : "Linux AF_PACKET");
    snprintf(r.sw_desc, sizeof r.sw_desc, "%s", d->sw ? d->sw : SW_NAME " " OFQOS_VERSION);
    snprintf(r.serial_num, sizeof r.serial_num, "%s", d->serial ? d->serial : id);
    memcpy(r.dp_desc, sw->dp_desc, sizeof r.dp_desc);
    return conn_reply(c, OFPT_MULTIPART_REPLY, m, &r);
}

const struct request request_desc = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_desc};
