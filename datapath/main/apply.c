/* SPDX-License-Identifier: Apache-2.0 */
#include "apply.h"

#include "assembly.h"
#include "queues.h"

#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <punt/fail.h>
#include <requests/handlers.h>

#include <daemon/log.h>
#include <normal/vlans.h>
#include <stream/address.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ ports */

#define ADD_TRIES   5
#define ADD_WAIT_MS 20

/* Ports that the settings had and have no longer, or under another number. */
static void
remove_ports(const struct running *r)
{
    for (size_t i = 0; r->was && i < r->was->n_ports; i++) {
        const struct wanted_port *old = &r->was->ports[i];
        if (old->files) {
            if (!wanted_has_files(r->now, old->files))
                log_warning(PORT, "%s is still a port: removing it needs a restart", old->files);
            continue;
        }
        const struct wanted_port *new = wanted_find_port(r->now, old->name);
        const struct sw_port *p = sw_ports_by_name(r->sw, old->name);
        if (!p || p->no == OFPP_LOCAL || (new &&new->no == p->no))
            continue;
        struct qos_error e = {0};
        uint32_t no = p->no;
        if (sw_ports_del(r->sw, no, &e))
            log_warning(PORT, "port %u (%s) stays, dpctl port-del tries again: %s", (unsigned)no,
                        old->name, e.text);
        else
            log_notice(PORT, "port %u (%s): removed, as the configuration says", (unsigned)no,
                       old->name);
    }
}

/* Whether the error may be gone a moment later. */
static bool
may_pass(int err)
{
    return err == -ENOMEM || err == -ENOBUFS || err == -EAGAIN || err == -EBUSY ||
           err == -ETIMEDOUT || err == -EMFILE || err == -ENFILE;
}

static void
wait_a_moment(struct sw *sw)
{
    loop_leave(sw->loop);
    poll(NULL, 0, ADD_WAIT_MS);
    loop_enter(sw->loop);
}

int
apply_interface(struct sw *sw, const char *name, uint32_t no, bool waits, char *why, size_t why_len)
{
    int err = sw_ports_add(sw, name, no, why, why_len);
    for (int tries = 1; may_pass(err) && tries < ADD_TRIES; tries++) {
        wait_a_moment(sw);
        err = sw_ports_add(sw, name, no, why, why_len);
    }
    return err == -ENODEV && waits ? sw_ports_expect(sw, name, no, why, why_len) : err;
}

int
apply_vlans(struct sw *sw, const struct wanted_port *p, char *why, size_t why_len)
{
    int err = sw_ports_set_vlans(sw, p->no, p->vlans);
    if (err)
        snprintf(why, why_len, "no memory for its VLANs");
    return err;
}

int
apply_port(struct sw *sw, const struct main_options *options, const struct wanted_port *p,
           char *why, size_t why_len)
{
    if (p->files)
        return sw_ports_add_files(sw, p->files, why, why_len);
    int err = apply_vlans(sw, p, why, why_len); /* before it takes packets */
    if (!err)
        err = apply_interface(sw, p->name, p->no, options->wait_for_interfaces, why, why_len);
    if (err && !sw_ports_find(sw, p->no))
        sw_ports_set_vlans(sw, p->no, NULL);
    return err;
}

static bool
is_there(const struct running *r, const struct wanted_port *p)
{
    return p->files ? wanted_has_files(r->was, p->files) : sw_ports_by_name(r->sw, p->name) != NULL;
}

/* Those of a port that stays: what dpctl has set meanwhile counts unless the settings change. */
static void
follow_vlans(const struct running *r, const struct wanted_port *p)
{
    const struct wanted_port *was = r->was ? wanted_find_port(r->was, p->name) : NULL;
    bool same = was && !was->vlans == !p->vlans &&
                (!p->vlans || !memcmp(was->vlans, p->vlans, sizeof *p->vlans));
    char why[64];
    if (p->files || same)
        return;
    if (apply_vlans(r->sw, p, why, sizeof why))
        log_error(PORT, "port %u (%s) keeps its VLANs: %s", (unsigned)p->no, p->name, why);
    else
        log_notice(PORT, "port %u (%s): has other VLANs, as the configuration says",
                   (unsigned)p->no, p->name);
}

void
apply_ports(void *ctx)
{
    const struct running *r = ctx;
    char why[256], where[480];
    unsigned n = 0;
    if (r->options->sw.force && !r->sw->opt.force)
        sw_ports_look_again(r->sw); /* some may wait for their owners */
    r->sw->opt.force = r->options->sw.force;
    remove_ports(r);
    for (size_t i = 0; i < r->now->n_ports; i++)
        n += !r->now->ports[i].files && !is_there(r, &r->now->ports[i]);
    port_rings_ahead(n);
    for (size_t i = 0; i < r->now->n_ports; i++) {
        const struct wanted_port *p = &r->now->ports[i];
        if (is_there(r, p)) {
            follow_vlans(r, p);
            continue;
        }
        if (apply_port(r->sw, r->options, p, why, sizeof why))
            log_error(PORT, "%s: port %s is not added: %s",
                      daemon_settings_where(r->now->s, p->at, where, sizeof where),
                      p->files ? p->files : p->name, why);
        else
            log_notice(PORT, "port %u (%s): added, as the configuration says", (unsigned)p->no,
                       p->files ? p->files : p->name);
        queue_jobs_port(r->jobs, p->name);
    }
    port_rings_ahead(0);
}

/* ------------------------------------------------------------------ connections */

/* Whether the settings have this connection. */
static bool
has_connection(const struct daemon_settings *s, const char *name, const char *text)
{
    for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(s, name, t));)
        if (!strcmp(t->value, text))
            return true;
    return false;
}

int
apply_connection(struct sw *sw, const struct main_options *options, const char *text, char *why,
                 size_t why_len)
{
    struct stream_address a;
    int err = channel_add(sw->channel, text, why, why_len);
    for (int tries = 1; (may_pass(err) || err == -EADDRINUSE) && tries < ADD_TRIES; tries++) {
        wait_a_moment(sw);
        err = channel_add(sw->channel, text, why, why_len);
    }
    if (!err && options->plain_listen == PLAIN_WARN && !stream_parse(text, &a, why, why_len) &&
        stream_is_exposed(&a))
        log_warning(CONN,
                    "%s: whoever reaches this address can change the switch: use ptls:, or "
                    "--plain-listen=allow if only you can",
                    text);
    return err;
}

static void
apply_connections_of(const struct running *r, const char *name)
{
    const struct daemon_setting *t;
    const struct daemon_settings *was = r->was->s, *now = r->now->s;
    char why[256], where[480];
    for (t = NULL; (t = daemon_settings_next(was, name, t));) {
        if (has_connection(now, name, t->value))
            continue;
        channel_remove(r->sw->channel, t->value);
        log_notice(CONN, "%s: removed, as the configuration says", t->value);
    }
    for (t = NULL; (t = daemon_settings_next(now, name, t));) {
        if (has_connection(was, name, t->value))
            continue;
        if (apply_connection(r->sw, r->options, t->value, why, sizeof why))
            log_error(CONN, "%s: %s is not added: %s",
                      daemon_settings_where(now, t, where, sizeof where), t->value, why);
        else
            log_notice(CONN, "%s: added, as the configuration says", t->value);
    }
}

void
apply_slices(void *ctx)
{
    const struct running *r = ctx;
    sw_slices_set(r->sw, r->now->slices);
}

void
apply_connections(void *ctx)
{
    const struct running *r = ctx;
    apply_connections_of(r, "listen");
    apply_connections_of(r, "controller");
    sw_fail_update(r->sw);
}

/* ------------------------------------------------------------------ numbers and words */

void
apply_channel(void *ctx)
{
    const struct running *r = ctx;
    unsigned aux = r->sw->opt.channel.aux; /* of the controllers that there are */
    r->sw->opt.channel = r->options->sw.channel;
    r->sw->opt.channel.aux = aux;
    channel_set_options(r->sw->channel, &r->sw->opt.channel);
}

void
apply_limits(void *ctx)
{
    const struct running *r = ctx;
    struct sw *sw = r->sw;
    sw->opt.limits = r->options->sw.limits;
    tables_limit(sw->dp.tables, &sw->opt.limits);
    groups_limit(sw->dp.groups, &sw->opt.limits);
    meters_limit(sw->dp.meters, &sw->opt.limits);
}

void
apply_busy_poll(void *ctx)
{
    const struct running *r = ctx;
    struct sw *sw = r->sw;
    sw->dp.busy_poll_us = sw->opt.busy_poll_us = r->options->sw.busy_poll_us;
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        awake_set(&sw->dp.workers[i]->awake, sw->dp.busy_poll_us);
}

void
apply_offload(void *ctx)
{
    const struct running *r = ctx;
    if (sw_offload_set_off(r->sw, (const char(*)[IFNAMSIZ])r->now->offload_off,
                           (unsigned)r->now->n_offload_off))
        log_error(PORT, "port-offload stays as it was: out of memory");
}

/* A description that a controller has set is replaced only if the setting has changed. */
void
apply_descriptions(void *ctx)
{
    const struct running *r = ctx;
    const char *old = r->sw->opt.desc.dp, *new = r->options->sw.desc.dp;
    if (!old != !new || (old && strcmp(old, new))) {
        memset(r->sw->dp_desc, 0, sizeof r->sw->dp_desc);
        snprintf(r->sw->dp_desc, sizeof r->sw->dp_desc, "%s", new ? new : SW_NAME);
    }
}

void
apply_fail(void *ctx)
{
    const struct running *r = ctx;
    r->sw->opt.fail_open = r->options->sw.fail_open;
    sw_fail_update(r->sw);
}

void
apply_reserved(void *ctx)
{
    const struct running *r = ctx;
    r->sw->opt.reserved = r->options->sw.reserved;
    store_relaxed(&r->sw->dp.group_fwd, (uint16_t)(r->sw->opt.reserved | DP_GROUP_STP));
    sw_offload_forget_all(r->sw);
}

void
apply_queue_options(void *ctx)
{
    const struct running *r = ctx;
    r->sw->opt.qos_keep = r->options->sw.qos_keep;
    r->sw->opt.qos_foreign = r->options->sw.qos_foreign;
    qos_set_foreign(r->sw->qos, r->sw->opt.qos_foreign);
    r->sw->opt.qos_leaf = r->options->sw.qos_leaf;
    r->sw->opt.qos_leaf_config = r->options->sw.qos_leaf_config;
    sw_set_leaf(r->sw);
}

void
apply_always(void *ctx)
{
    const struct running *r = ctx;
    r->sw->opt.desc = r->options->sw.desc;
    r->sw->opt.local_port = r->options->sw.local_port;
}
