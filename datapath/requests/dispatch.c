/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of requests.h as tables of functions. */
#include "qos-request.h"
#include "requests.h"
#include "slice.h"

#include <daemon/log.h>
#include <megaflow/megaflow.h>
#include <oflib/text.h>
#include <requests/handlers.h>
#include <shared/rcu.h>

#define ROW(type, name, ...) [type] = handle_##name,

static request_handler *const messages[] = {CONTROL_REQUESTS(ROW)};
static request_handler *const multiparts[] = {MULTIPART_REQUESTS(ROW)};

static const struct {
    uint32_t exp_type;
    uint16_t len; /* of what follows exp_type in the request */
    request_handler *handle;
} mp_experimenters[] = {
#define MP_EXPERIMENTER(type, name, needs, len) {type, len, handle_##name},
    MP_EXPERIMENTER_REQUESTS(MP_EXPERIMENTER)};

static int
handle_mp_experimenter(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *q = m->body;
    if (q->experimenter != OFP_QOS_EXPERIMENTER)
        return OF_BAD_REQUEST(BAD_EXPERIMENTER);
    for (size_t i = 0; i < sizeof mp_experimenters / sizeof *mp_experimenters; i++) {
        uint16_t len = mp_experimenters[i].len;
        if (mp_experimenters[i].exp_type == q->exp_type)
            return q->data.n == len || len == ANY_LENGTH ? mp_experimenters[i].handle(sw, c, m)
                                                         : OF_BAD_REQUEST(BAD_LEN);
    }
    return OF_BAD_REQUEST(BAD_EXP_TYPE);
}

int
handle_multipart(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    sw_offload_sync_lately(sw); /* so that all that is read includes the kernel's packets */
    if (m->mp->type == OFPMP_EXPERIMENTER)
        return handle_mp_experimenter(sw, c, m);
    return multiparts[m->mp->type](sw, c, m);
}

/* ------------------------------------------------------------------ who did what */

static void
print_message(const void *of, char *out, size_t n)
{
    struct of_wr w = of_wr_fixed((uint8_t *)out, n - 1);
    of_print_msg(&w, of);
    out[w.len] = '\0';
}

#define LOG_DONE(module) log_info_made(module, conn_by(c), "a change", print_message, m)

/* QoS requests, ports and levels are logged where they are carried out, bundles when they are
 * committed. */
static void
log_done(const struct conn *c, const struct of_msg *m)
{
    switch (m->type) {
    case OFPT_FLOW_MOD:
    case OFPT_TABLE_MOD: LOG_DONE(FLOW); break;
    case OFPT_GROUP_MOD: LOG_DONE(GROUP); break;
    case OFPT_METER_MOD: LOG_DONE(METER); break;
    case OFPT_PORT_MOD: LOG_DONE(PORT); break;
    case OFPT_SET_CONFIG: LOG_DONE(SWITCH); break;
    case OFPT_PACKET_OUT: log_debug_by(PACKET, conn_by(c), "packet-out of %zu bytes", m->raw.n);
    }
}

/* -> as a handler's. */
static int
handle(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    request_handler *h = m->type < sizeof messages / sizeof *messages ? messages[m->type] : NULL;
    struct qos_error e = {0};
    if (sw_slice_check(sw, c, m, &e))
        return sw_slice_refuse(c, m, &e);
    int err = h ? h(sw, c, m) : OF_BAD_REQUEST(BAD_TYPE);
    if (!err)
        log_done(c, m);
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
