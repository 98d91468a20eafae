/* SPDX-License-Identifier: Apache-2.0 */
/* Translates errors of 1.3 to those of 1.0, which has fewer (docs/reference/openflow10.md lists them). */
#include "inside.h"

#include <errno.h>

struct code {
    uint16_t type, code;
};

#define REFUSED                                                                                    \
    {                                                                                              \
        OFPET10_BAD_REQUEST, OFPBRC_EPERM                                                          \
    }
#define BAD_LENGTH                                                                                 \
    {                                                                                              \
        OFPET10_BAD_REQUEST, OFPBRC_BAD_LEN                                                        \
    }
#define BAD_ARGUMENT                                                                               \
    {                                                                                              \
        OFPET10_BAD_ACTION, OFPBAC_BAD_ARGUMENT                                                    \
    }
#define FLOW(c)                                                                                    \
    {                                                                                              \
        OFPET10_FLOW_MOD_FAILED, OFPFMFC10_##c                                                     \
    }

static struct code
of_bad_request(uint16_t code)
{
    static const struct code others[] = {
        [OFPBRC_BAD_TABLE_ID] = REFUSED,
        [OFPBRC_IS_SLAVE] = REFUSED,
        [OFPBRC_BAD_PORT] = REFUSED,
        [OFPBRC_BAD_PACKET] = BAD_LENGTH,
        [OFPBRC_MULTIPART_BUFFER_OVERFLOW] = REFUSED,
    };
    if (code <= OFPBRC10_LAST)
        return (struct code){OFPET10_BAD_REQUEST, code};
    return code < sizeof others / sizeof *others ? others[code] : (struct code)REFUSED;
}

static struct code
of_bad_action(uint16_t code)
{
    static const struct code others[] = {
        [OFPBAC_BAD_OUT_GROUP] = BAD_ARGUMENT,
        [OFPBAC_MATCH_INCONSISTENT] = FLOW(UNSUPPORTED),
        [OFPBAC_UNSUPPORTED_ORDER] = FLOW(UNSUPPORTED),
        [OFPBAC_BAD_TAG] = BAD_ARGUMENT,
        [OFPBAC_BAD_SET_TYPE] = BAD_ARGUMENT,
        [OFPBAC_BAD_SET_LEN] = BAD_ARGUMENT,
        [OFPBAC_BAD_SET_ARGUMENT] = BAD_ARGUMENT,
    };
    if (code <= OFPBAC10_LAST)
        return (struct code){OFPET10_BAD_ACTION, code};
    return code < sizeof others / sizeof *others ? others[code] : (struct code)REFUSED;
}

static struct code
of_flow_mod_failed(uint16_t code)
{
    static const struct code codes[] = {
        [OFPFMFC_UNKNOWN] = FLOW(EPERM),
        [OFPFMFC_TABLE_FULL] = FLOW(ALL_TABLES_FULL),
        [OFPFMFC_BAD_TABLE_ID] = FLOW(EPERM),
        [OFPFMFC_OVERLAP] = FLOW(OVERLAP),
        [OFPFMFC_EPERM] = FLOW(EPERM),
        [OFPFMFC_BAD_TIMEOUT] = FLOW(EPERM),
        [OFPFMFC_BAD_COMMAND] = FLOW(BAD_COMMAND),
        [OFPFMFC_BAD_FLAGS] = FLOW(UNSUPPORTED),
    };
    return code < sizeof codes / sizeof *codes ? codes[code] : (struct code)FLOW(EPERM);
}

/* type10: of the request. */
static struct code
translate(uint16_t type, uint16_t code, uint8_t type10)
{
    switch (type) {
    case OFPET_HELLO_FAILED: return (struct code){OFPET10_HELLO_FAILED, code};
    case OFPET_BAD_REQUEST: return of_bad_request(code);
    case OFPET_BAD_ACTION: return of_bad_action(code);
    case OFPET_BAD_MATCH:
    case OFPET_BAD_INSTRUCTION:
        return type10 == OFPT10_FLOW_MOD ? (struct code)FLOW(UNSUPPORTED) : (struct code)REFUSED;
    case OFPET_FLOW_MOD_FAILED: return of_flow_mod_failed(code);
    case OFPET_PORT_MOD_FAILED:
        if (code <= OFPPMFC_BAD_HW_ADDR)
            return (struct code){OFPET10_PORT_MOD_FAILED, code};
        return (struct code)REFUSED;
    case OFPET_QUEUE_OP_FAILED: return (struct code){OFPET10_QUEUE_OP_FAILED, code};
    case OFPET_SCHED_FAILED: return (struct code){OFPET10_SCHED_FAILED, code};
    case OF10_ERR_TYPE | OFPET10_FLOW_MOD_FAILED:
        return (struct code){OFPET10_FLOW_MOD_FAILED, code};
    default: return (struct code)REFUSED;
    }
}

/* The first 64 bytes of a QoS error's data are the request, with zeros behind a short one.  What
 * follows stays as it is. */
static int
write_qos(struct of10_door *d, const struct of_msg *m, const struct kept_request *request,
          struct of_v10_error *e, struct of_bytes data, struct of_wr *w)
{
    uint8_t *copy = of_arena_alloc(&d->arena, data.n);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, data.p, data.n);
    memcpy(copy, request->bytes, REQUEST_KEPT);
    e->data = (struct of_bytes){copy, data.n};
    return of10_write(w, OFPT10_ERROR, m->xid, e);
}

/* One that comes while no request is at work is about a request that the switch was at for many turns.  The next one
 * may be in the queue by then: it stays there. */
int
of10_out_error(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct kept_request *request = d->at_work ? &d->request : &d->late;
    const struct of_error *in = m->body;
    struct of_bytes data = in->data;
    uint16_t type = in->type;
    if (d->at_work)
        d->queue.len = d->queue_at = 0; /* the request is over */
    if (type == OFPET_EXPERIMENTER && data.n >= 4 && of_get32(data.p) == OFP_QOS_EXPERIMENTER) {
        type = OFPET_SCHED_FAILED; /* 1.0 has no errors of vendors */
        data = (struct of_bytes){data.p + 4, data.n - 4};
    }
    struct code code = translate(type, in->code, request->bytes[1]);
    struct of_v10_error e = {.type = code.type, .code = code.code, .data = data};
    if (type == OFPET_SCHED_FAILED && data.n >= REQUEST_KEPT)
        return write_qos(d, m, request, &e, data, w);
    if (type != OFPET_HELLO_FAILED)
        e.data = (struct of_bytes){request->bytes, request->n};
    return of10_write(w, OFPT10_ERROR, m->xid, &e);
}
