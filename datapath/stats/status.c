/* SPDX-License-Identifier: Apache-2.0 */
/* STATUS (docs/reference/extensions.md): lines "key=value". */
#include <admission/request.h>

#include <daemon/machine-memory.h>
#include <megaflow/cut.h>
#include <megaflow/megaflow.h>
#include <megaflow/wire.h>
#include <oflib/text.h>
#include <ports/ports.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct status {
    struct of_wr out; /* whole lines */
    unsigned n_conns;
};

__attribute__((format(printf, 2, 3))) static void
line(struct status *s, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++) /* a socket's path may hold anything */
        if (iscntrl((unsigned char)*p))
            *p = '?';
    of_printf(&s->out, "%s\n", text);
}

static const char *
yes_no(bool b)
{
    return b ? "true" : "false";
}

/* Bytes of this process that are in main memory; 0: unknown. */
static uint64_t
resident_memory(void)
{
    unsigned long long size, resident;
    FILE *f = fopen("/proc/self/statm", "re");
    bool ok = f && fscanf(f, "%llu %llu", &size, &resident) == 2;
    if (f)
        fclose(f);
    return ok ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* port.2.vlan=10, port.2.trunk=20:30 */
static void
put_vlans(struct status *s, const struct sw *sw)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        char text[VLANS_TEXT], *rest = text;
        if (!dp_vlans(&sw->dp, p->no))
            continue;
        vlans_text(dp_vlans(&sw->dp, p->no), text);
        for (char *word; (word = strsep(&rest, ","));)
            line(s, "port.%u.%s", (unsigned)p->no, word);
    }
}

static void
put_switch(struct status *s, const struct sw *sw)
{
    struct channel_controllers n = channel_controllers(sw->channel);
    unsigned ports = 0;
    uint64_t flows = 0;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        ports++;
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++) {
        const struct flow_table *ft = tables_get(sw->dp.tables, (uint8_t)i);
        flows += ft ? ft->flows.n_flows : 0;
    }
    line(s, "remote.is-connected=%s", yes_no(sw->controlled));
    line(s, "local.is-connected=true"); /* it answers */
    line(s, "controllers=%u", n.targets);
    line(s, "controllers.connected=%u", n.connected);
    line(s, "fail-mode=%s", sw->opt.fail_open ? "open" : "closed");
    line(s, "standalone=%s", yes_no(sw->dp.standalone));
    line(s, "standalone.times=%" PRIu64, sw->counters.standalone_times);
    line(s, "version=%s", OFQOS_VERSION);
    line(s, "uptime=%" PRIu64, (loop_now(sw->loop) - sw->started) / 1000000000);
    line(s, "pid=%d", (int)getpid());
    line(s, "datapath-id=%016" PRIx64, sw->opt.datapath_id);
    line(s, "ports=%u", ports);
    put_vlans(s, sw);
    line(s, "ring-memory=%" PRIu64, port_rings_bytes());
    line(s, "ring-memory.limit=%" PRIu64, port_rings_limit());
    line(s, "offload-memory=%" PRIu64, sw_offload_memory(sw));
    line(s, "latency=%s", sw->opt.no_latency ? "off" : "on");
    line(s, "flows=%" PRIu64, flows);
    line(s, "memory=%" PRIu64, resident_memory());
    line(s, "memory.limit=%" PRIu64, machine_memory());
}

/* ------------------------------------------------------------------ of some ports */

static bool
inside_text(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    (void)sw;
    uint8_t kinds = p->port ? port_inside(p->port) : 0;
    snprintf(out, n, "%s%s%s", kinds & PACKET_INSIDE_PPPOE ? "pppoe" : "",
             kinds == (PACKET_INSIDE_PPPOE | PACKET_INSIDE_MPLS) ? ":" : "",
             kinds & PACKET_INSIDE_MPLS ? "mpls" : "");
    return kinds;
}

/* Its packets are left to the kernel. */
static bool
queues_only_text(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    (void)sw;
    snprintf(out, n, "true");
    return p->queues_only;
}

/* What is said only of the ports for which it has a text. */
static const struct of_some {
    const char *name;
    bool (*text)(const struct sw *sw, const struct sw_port *p, char *out, size_t n);
} of_some[] = {
    {"shared-with", sw_port_shared_with}, {"cannot-carry", sw_cutter_loss},
    {"fail-to-wire", sw_wire_text},       {"inside", inside_text},
    {"queues-only", queues_only_text},
};

static void
put_some_ports(struct status *s, const struct sw *sw)
{
    char text[SW_LOSS_LEN]; /* the longest */
    for (size_t i = 0; i < sizeof of_some / sizeof *of_some; i++) {
        uint32_t no = 0;
        for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
            if (of_some[i].text(sw, p, text, sizeof text))
                line(s, "port.%u.%s=%s", (unsigned)p->no, of_some[i].name, text);
    }
}

/* What the switch should do by its configuration, and doesn't. */
static void
put_refused(struct status *s, const struct sw *sw)
{
    const char *what;
    for (unsigned i = 0; sw->config_refused && (what = sw->config_refused(sw->config_ctx, i)); i++)
        line(s, "configuration.refused.%u=%s", i + 1, what);
}

static void
put_conn(void *ctx, const char *peer, struct conn *c, const char *why)
{
    struct status *s = ctx;
    unsigned i = ++s->n_conns;
    line(s, "connection.%u.peer=%s", i, peer);
    line(s, "connection.%u.state=%s", i, c ? conn_phase_name(c) : "waiting");
    if (*why)
        line(s, "connection.%u.error=%s", i, why);
    if (!c)
        return;
    const struct channel_counters *n = conn_counters(c);
    const struct conn_own *own = conn_own(c);
    of_printf(&s->out, "connection.%u.role=", i);
    of_print_number(&s->out, &of_fmt_OFPCR_ROLE, conn_state(c)->role);
    of_printf(&s->out, "\n");
    line(s, "connection.%u.aux=%u", i, conn_aux(c));
    line(s, "connection.%u.messages-in=%" PRIu64, i, n->messages_in);
    line(s, "connection.%u.messages-out=%" PRIu64, i, n->messages_out);
    line(s, "connection.%u.dropped=%" PRIu64, i, conn_lost(c));
    if (own->slice)
        line(s, "connection.%u.slice=%s", i, own->slice->name);
    if (own->is_relay)
        line(s, "connection.%u.relay=%u/%u", i, own->relay.connected, own->relay.targets);
}

/* A line is an element of the reply, so none is cut. */
static size_t
line_len(struct of_bytes left)
{
    const uint8_t *end = memchr(left.p, '\n', left.n);
    return end ? (size_t)(end - left.p) + 1 : left.n;
}

static int
handle_status(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct status s = {.out = of_wr_grow(1u << 20)};
    put_switch(&s, sw);
    put_some_ports(&s, sw);
    put_refused(&s, sw);
    channel_each(sw->channel, put_conn, &s);
    return conn_dump_encoded(c, m, &s.out, line_len);
}

const struct request request_status = {.access = ACCESS_READ, .run = handle_status};
