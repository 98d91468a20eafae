/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that printing and parsing share: short names, and how lists are written. */
#include "text.h"

#include <oflib/messages10.h>

#include <ctype.h>
#include <stdio.h>

/* The short names are those of BOFUSS's dpctl, which people know. */
const struct of_alias of_field_aliases[] = {
    {"command", "cmd"},
    {"table_id", "table"},
    {"priority", "prio"},
    {"idle_timeout", "idle"},
    {"hard_timeout", "hard"},
    {"buffer_id", "buffer"},
    {"group_id", "group"},
    {"meter_id", "meter"},
    {"queue_id", "queue"},
    {"port_no", "port"},
    {"watch_port", "port"},
    {"watch_group", "group"},
    {"burst_size", "burst"},
    {"hw_addr", "addr"},
    {"config", "conf"},
    {"advertise", "adv"},
    {"miss_send_len", "miss"},
    {"datapath_id", "dpid"},
    {"generation_id", "generation"},
    {NULL, NULL},
};

const struct of_alias of_oxm_aliases[] = {
    {"ipv4_src", "ip_src"},       {"ipv4_dst", "ip_dst"}, {"icmpv4_type", "icmp_type"},
    {"icmpv4_code", "icmp_code"}, {"metadata", "meta"},   {"tunnel_id", "tunn_id"},
    {"ipv6_exthdr", "ext_hdr"},   {NULL, NULL},
};

const struct of_alias of_value_aliases[] = {
    {"OFPP_CONTROLLER", "ctrl"},     {"OFPFC_MODIFY", "mod"},
    {"OFPFC_MODIFY_STRICT", "mods"}, {"OFPFC_DELETE", "del"},
    {"OFPFC_DELETE_STRICT", "dels"}, {"OFPGC_MODIFY", "mod"},
    {"OFPGC_DELETE", "del"},         {"OFPMC_MODIFY", "mod"},
    {"OFPMC_DELETE", "del"},         {"OFPGT_SELECT", "sel"},
    {"OFPGT_FF", "fast_failover"},   {"OFPGT_INDIRECT", "ind"},
    {"OFP_NO_BUFFER", "none"},       {"OFPCML_NO_BUFFER", "none"},
    {"OFPIEH_NONEXT", "no_next"},    {NULL, NULL},
};

const struct of_alias of_tag_aliases[] = {
    {"OFPAT_DEC_NW_TTL", "dec_ttl"},      {"OFPAT_SET_NW_TTL", "set_ttl"},
    {"OFPAT_COPY_TTL_OUT", "copy_ttl"},   {"OFPMBT_DSCP_REMARK", "dscp"},
    {"OFPIT_WRITE_METADATA", "metadata"}, {NULL, NULL},
};

static const struct of_list_style styles[] = {
    {&of_list_actions, '=', true, ','},
    {&of_list_v10_actions, '=', true, ','},
    {&of_list_instructions, ':', true, ' '},
    {NULL, ':', false, ' '},
};

const struct of_list_style *
of_list_style(const struct of_list_row *list)
{
    const struct of_list_style *s = styles;
    while (s->list && s->list != list)
        s++;
    return s;
}

bool
of_field_is_mask(const struct of_field_row *f)
{
    static const char suffix[] = "_mask";
    size_t n = strlen(f->name), m = sizeof suffix - 1;
    return n > m && !strcmp(f->name + n - m, suffix);
}

uint64_t
of_field_default(const struct of_struct_row *row, const struct of_field_row *f, const void *body)
{
    if (of_field_is_mask(f))
        return UINT64_MAX;
    /* max_len counts only for an output to the controller (7.2.5). */
    if (f->fmt == &of_fmt_MAX_LEN && f > row->fields)
        return of_field_number(f - 1, body) == OFPP_CONTROLLER ? OFPCML_NO_BUFFER : 0;
    return 0;
}

bool
of_field_shown(const struct of_field_row *f)
{
    return f->kind != OFK_PAD && f->kind != OFK_LISTLEN && f->fmt != &of_fmt_LEN;
}

const struct of_list_row *
of_typeids_list(const struct of_tag_row *tag)
{
    return tag && tag->type <= OFPTFPT_INSTRUCTIONS_MISS ? &of_list_instructions : &of_list_actions;
}

const char *
of_field_short_name(const struct of_field_row *f)
{
    for (const struct of_alias *a = of_field_aliases; a->name; a++)
        if (!strcmp(a->name, f->name))
            return a->alias;
    return f->name;
}

static bool
equals(const char *a, const char *b, size_t n)
{
    return strlen(a) == n && !memcmp(a, b, n);
}

const struct of_field_row *
of_field_by_name(const struct of_struct_row *row, const char *name, size_t n)
{
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (of_field_shown(f) &&
            (equals(f->name, name, n) || equals(of_field_short_name(f), name, n)))
            return f;
    }
    return NULL;
}

uint64_t
of_field_number(const struct of_field_row *f, const void *body)
{
    const void *p = (const uint8_t *)body + f->off;
    switch (f->kind) {
    case OFK_U8: return *(const uint8_t *)p;
    case OFK_U16: return *(const uint16_t *)p;
    case OFK_U32: return *(const uint32_t *)p;
    case OFK_U64: return *(const uint64_t *)p;
    default: return 0; /* LCOV_EXCL_LINE: no row leads there */
    }
}

void
of_field_set_number(const struct of_field_row *f, void *body, uint64_t v)
{
    void *p = (uint8_t *)body + f->off;
    switch (f->kind) {
    case OFK_U8: *(uint8_t *)p = (uint8_t)v; break;
    case OFK_U16: *(uint16_t *)p = (uint16_t)v; break;
    case OFK_U32: *(uint32_t *)p = (uint32_t)v; break;
    case OFK_U64: *(uint64_t *)p = v; break;
    default: break; /* LCOV_EXCL_LINE: no row leads there */
    }
}

char *
of_short_name(const struct of_fmt *fmt, const char *name, char *buf, size_t n)
{
    size_t i = 0;
    for (name += fmt->prefix; *name && i + 1 < n; name++)
        buf[i++] = (char)tolower((unsigned char)*name);
    if (n)
        buf[i] = '\0';
    return buf;
}

char *
of_port_text(uint32_t no, char buf[OF_PORT_TEXT])
{
    const char *name = of_fmt_name(&of_fmt_PORT, no);
    if (name)
        return of_short_name(&of_fmt_PORT, name, buf, OF_PORT_TEXT);
    snprintf(buf, OF_PORT_TEXT, "%u", (unsigned)no);
    return buf;
}

/* OFPET_EXPERIMENTER errors of the QoS extension have the contents of OFPET_SCHED_FAILED.  Those of
 * ONF's bundles have the codes of OFPET_BUNDLE_FAILED plus 2300. */
static void
unwrap_experimenter(struct of_error_info *out, struct of_bytes *data)
{
    if (out->type != OFPET_EXPERIMENTER || data->n < 4)
        return;
    uint32_t experimenter = of_get32(data->p);
    if (experimenter == OFP_QOS_EXPERIMENTER) {
        out->type = OFPET_SCHED_FAILED;
    } else if (experimenter == OFP_ONF_EXPERIMENTER && out->code >= OFP_ONF_BUNDLE_ERROR &&
               out->code <= OFP_ONF_BUNDLE_ERROR + OFPBFC_BUNDLE_IN_PROGRESS) {
        out->type = OFPET_BUNDLE_FAILED;
        out->code -= OFP_ONF_BUNDLE_ERROR;
    } else {
        return;
    }
    *data = (struct of_bytes){data->p + 4, data->n - 4};
}

/* What follows the first 64 bytes of the request in a QoS error. */
#define QOS_ERROR_HEAD (64 + 4)

/* Has the error the data of a QoS error?  So has OFPET_QUEUE_OP_FAILED where it answers one of
 * BOFUSS's queue messages. */
static bool
has_reason(const struct of_error_info *e, struct of_bytes data)
{
    bool queue = e->type == OFPET_QUEUE_OP_FAILED && data.n >= 12 &&
                 data.p[1] == OFPT_EXPERIMENTER &&
                 of_get32(data.p + 8) == OFP_OPENFLOW_EXPERIMENTER &&
                 data.n != of_get16(data.p + 2); /* BOFUSS returns the whole request */
    return (e->qos || queue) && data.n >= QOS_ERROR_HEAD;
}

void
of_error_explain(const struct of_error *e, struct of_error_info *out)
{
    struct of_bytes data = e->data;
    *out = (struct of_error_info){.type = e->type, .code = e->code};
    unwrap_experimenter(out, &data);
    out->qos = out->type == OFPET_SCHED_FAILED;
    out->type_name = of_fmt_name(&of_fmt_OFPET, out->type);
    out->code_name = of_error_code_name(out->type, out->code);
    if (e->type == OFPET_HELLO_FAILED) {
        out->text = data;
    } else if (has_reason(out, data)) {
        out->request = (struct of_bytes){data.p, 64};
        out->errnum = of_get32(data.p + 64);
        out->text = (struct of_bytes){data.p + QOS_ERROR_HEAD, data.n - QOS_ERROR_HEAD};
    } else {
        out->request = data;
    }
}
