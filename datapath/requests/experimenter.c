/* SPDX-License-Identifier: Apache-2.0 */
/* Experimenter messages (docs/reference/extensions.md). */
#include "qos-request.h"
#include <admission/request.h>

#include <ports/ports.h>
#include <punt/capture.h>
#include <punt/fail.h>

#include <daemon/log.h>
#include <oflib/fmt.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An error of sw_ports_add as the QoS extension's. */
static int
port_error(struct qos_error *e, int err, const char *why)
{
    int code = err == -EEXIST   ? OFPSFC_EXISTS
               : err == -EINVAL ? OFPSFC_BAD_PARAM
               : err == -EPERM  ? OFPSFC_PERM
                                : OFPSFC_KERNEL;
    qos_fail(e, QOS_ERR(code), "%s", *why ? why : strerror(-err));
    e->errnum = code == OFPSFC_KERNEL ? -err : 0;
    return e->err;
}

/* vlans NULL: all.  They are set before the port takes packets. */
static int
add_with_vlans(struct sw *sw, const char *name, uint32_t no, const struct vlans *vlans,
               bool queues_only, char *why, size_t why_len)
{
    for (uint32_t i = 1; !no && i <= PORT_MAX; i++)
        if (!sw_ports_find(sw, i))
            no = i;
    bool is_new = no && !sw_ports_find(sw, no);
    int err = is_new ? sw_ports_set_vlans(sw, no, vlans) : 0;
    if (!err)
        err = (queues_only ? sw_ports_add_queues : sw_ports_add)(sw, name, no, why, why_len);
    if (err && is_new)
        sw_ports_set_vlans(sw, no, NULL);
    return err;
}

/* "vlan=10,trunk=20:30" */
static bool
take_vlans(struct of_bytes text, struct vlans *out, char *why, size_t why_len)
{
    char copy[VLANS_TEXT], *rest = copy;
    snprintf(copy, sizeof copy, "%.*s", (int)text.n, (const char *)text.p);
    for (char *word; (word = strsep(&rest, ","));)
        if (!vlans_take(out, word, why, why_len))
            return false;
    return true;
}

static int
port_add(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    uint32_t no = of_get32(data.p);
    const char *name = (const char *)data.p + 4;
    char why[256] = "";
    if (no > PORT_MAX)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "a port's number is 1 to %d", PORT_MAX);
    if (!memchr(name, '\0', IFNAMSIZ))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "the interface's name is longer than 15 characters");
    if (sw_ports_is_files(name))
        return qos_fail(e, QOS_ERR(OFPSFC_PERM),
                        "ports out of files are made where the switch is started: ofdatapath -i "
                        "pcap:IN:OUT");
    if (data.n != 4 + IFNAMSIZ && data.n < 8 + IFNAMSIZ)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "flags have four bytes, not %zu",
                        data.n - 4 - IFNAMSIZ);
    bool has_vlans = data.n > 8 + IFNAMSIZ;
    struct vlans vlans = {0};
    if (has_vlans && !take_vlans((struct of_bytes){data.p + 8 + IFNAMSIZ, data.n - 8 - IFNAMSIZ},
                                 &vlans, why, sizeof why))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "%s", why);
    uint32_t flags = data.n > 4 + IFNAMSIZ ? of_get32(data.p + 4 + IFNAMSIZ) : 0;
    const bool queues_only = flags & OFPORT_ADD_QUEUES_ONLY;
    if (flags & ~(uint32_t)(OFPORT_ADD_FORCE | OFPORT_ADD_QUEUES_ONLY))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "flags 0x%x are unknown: FORCE is 1, QUEUES_ONLY is 2", flags);
    if (queues_only && has_vlans)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "a port of queues only has no VLANs: the switch forwards nothing by it");
    const bool force = sw->opt.force;
    sw->opt.force |= flags & OFPORT_ADD_FORCE;
    int err = add_with_vlans(sw, name, no, has_vlans ? &vlans : NULL, queues_only, why, sizeof why);
    sw->opt.force = force;
    if (err)
        return port_error(e, err, why);
    log_notice_by(PORT, conn_by(c), "added interface %s as a port%s", name,
                  queues_only ? " of queues only" : "");
    return 0;
}

const struct request request_port_add = {.access = ACCESS_WRITE,
                                         .needs = QUEUES,
                                         .blocks = true,
                                         .least = 4 + IFNAMSIZ,
                                         .most = 8 + IFNAMSIZ + VLANS_TEXT,
                                         .run_data = port_add};

static int
port_del(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    uint32_t no = of_get32(data.p);
    if (no == OFPP_LOCAL)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "the local port can't be removed");
    int err = sw_ports_del(sw, no, e);
    if (err)
        return err;
    log_notice_by(PORT, conn_by(c), "removed port %u", no);
    return 0;
}

const struct request request_port_del = {.access = ACCESS_WRITE,
                                         .needs = QUEUES,
                                         .blocks = true,
                                         .least = 4,
                                         .most = 4,
                                         .run_data = port_del};

static int
set_desc(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    const char *end = memchr(data.p, '\0', sizeof sw->dp_desc);
    if (!end)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "the text is longer than 255 bytes");
    memset(sw->dp_desc, 0, sizeof sw->dp_desc);
    memcpy(sw->dp_desc, data.p, (size_t)(end - (const char *)data.p));
    log_info_by(SWITCH, conn_by(c), "dp_desc is \"%s\"", sw->dp_desc);
    return 0;
}

const struct request request_set_desc = {.access = ACCESS_WRITE,
                                         .needs = QUEUES,
                                         .least = OFP_DESC_STR_LEN,
                                         .most = OFP_DESC_STR_LEN,
                                         .run_data = set_desc};

/* RELAY */
static int
relay(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    struct of_relay r = {.connected = data.p[0], .targets = data.p[1], .fail = data.p[2]};
    if (!of_fmt_name(&of_fmt_OFP_FAIL, r.fail))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "fail is 0 (closed), 1 (open) or 255 (the switch's own), not %u", r.fail);
    if (r.connected > r.targets)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "%u controllers connected of %u", r.connected,
                        r.targets);
    conn_own(c)->relay = r;
    conn_own(c)->is_relay = true;
    sw_fail_update(sw);
    return 0;
}

const struct request request_relay = {
    .access = ACCESS_WRITE, .least = 8, .most = 8, .run_data = relay};

/* MONITOR */
static int
monitor(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    uint32_t what = of_get32(data.p);
#define OFPMON_BIT(name, bit) | (bit)
    uint32_t all = 0 OFPMON_ROWS(OFPMON_BIT);
    if (what & ~all)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "bits 0x%x are unknown: QOS is 1, ROLES is 2, PROMISES is 4, DROPS is 8, "
                        "DELAYS is 16",
                        what & ~all);
    conn_state(c)->monitor = what;
    return 0;
}

static int
may_monitor(const struct slice_request *a)
{
    const struct of_experimenter *q = a->m->body;
    return q->data.n >= 4 && of_get32(q->data.p) & OFPMON_ROLES
               ? slice_deny(a, QOS_ERR(OFPSFC_PERM), "the roles of others")
               : 0;
}

/* It changes the connection itself. */
const struct request request_monitor = {
    .access = ACCESS_READ, .slice = may_monitor, .least = 8, .most = 8, .run_data = monitor};

/* CAPTURE */
static int
capture(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    struct of_rd r = of_rd(data.p, data.n);
    struct of_capture q = {.what = of_rd32(&r),
                           .port_no = of_rd32(&r),
                           .queue_id = of_rd32(&r),
                           .reason = of_rd32(&r),
                           .snaplen = of_rd32(&r),
                           .rate = of_rd32(&r),
                           .limit = of_rd64(&r)};
    uint32_t unknown = q.what & ~(uint32_t)(OFPCAP_IN | OFPCAP_OUT | OFPCAP_MISS | OFPCAP_DROP);
    if (unknown)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "bits 0x%x are unknown: IN is 1, OUT 2, MISS 4, DROP 8", unknown);
    if (q.reason != OFPCAP_ANY && q.reason >= DROP_N)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "there is no reason %u: DROPS lists them, and 0xffffffff is any", q.reason);
    int err = sw_capture_set(sw, c, &q);
    if (err == -EUSERS)
        return qos_fail(e, QOS_ERR(OFPSFC_PERM),
                        "%d connections capture already; try again when one has ended",
                        CAPTURE_MAX);
    return err ? qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "%s", strerror(-err)) : 0;
}

/* It reads the traffic of others. */
const struct request request_capture = {
    .access = ACCESS_WRITE, .least = 32, .most = 32, .run_data = capture};

/* RESTART: if it succeeds there is no answer, for this process ends. */
static int
restart(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    char why[200];
    if (!conn_is_local(c) || !sw->restart)
        return qos_fail(e, QOS_ERR(OFPSFC_PERM), "only a peer at a Unix socket may restart it");
    log_notice_by(SWITCH, LOG_PEER(conn_peer(c)), "restart: a new process is to take over");
    int err = sw->restart(sw, why, sizeof why);
    log_error(SWITCH, "restart: %s; this process goes on", why);
    qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "%s; the old one goes on", why);
    e->errnum = (uint32_t)-err;
    return e->err;
}

const struct request request_restart = {
    .access = ACCESS_WRITE, .needs = QUEUES, .run_data = restart};

/* RELOAD */
static int
reload(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    char why[1024] = "the switch has no configuration";
    if (sw->reload && !sw->reload(sw->config_ctx, why, sizeof why))
        return 0;
    return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "%s", why);
}

const struct request request_reload = {
    .access = ACCESS_WRITE, .needs = QUEUES, .blocks = true, .run_data = reload};
