/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the room: a door's state, and who translates what. */
#ifndef OF10_INSIDE_H
#define OF10_INSIDE_H

#include <of10/door.h>

#include <oflib/protocols.h>

#define REQUEST_KEPT 64 /* bytes of a request that its error carries */

/* An error of 1.0 that 1.3 has not: as OF_ERR, with a type that no 1.3 error has. */
#define OF10_ERR_TYPE              0x2000
#define OF10_FLOW_MOD_FAILED(code) OF_ERR(OF10_ERR_TYPE | OFPET10_FLOW_MOD_FAILED, OFPFMFC10_##code)

/* What table features say of a table, until the table statistics come. */
struct table_known {
    char name[OFP_MAX_TABLE_NAME_LEN];
    uint32_t max_entries;
};

/* The beginning of a request, with zeros behind a short one. */
struct kept_request {
    uint8_t bytes[REQUEST_KEPT];
    size_t n;
};

struct of10_door {
    struct of_arena arena;       /* of the message being translated */
    struct kept_request request; /* the last one */
    bool at_work;                /* it is being translated or carried out: errors are about it */
    struct kept_request late;    /* the last one that was carried out and may be refused later */
    struct of_wr queue;          /* what the last one became, from queue_at on */
    size_t queue_at;
    struct of_features_reply features; /* waits for the ports */
    struct of_wr ports;                /* struct ofp_phy_port, for it */
    struct table_known *tables;        /* OFPTT_MAX + 1 of them, or NULL */
};

/* door.c's rows name these.  m: of 1.0; what it becomes goes to d->queue. */
typedef int of10_in(struct of10_door *d, const struct of_msg *m);
of10_in of10_in_same, of10_in_vendor, of10_in_features, of10_in_set_config, of10_in_packet_out,
    of10_in_flow_mod, of10_in_port_mod, of10_in_stats, of10_in_barrier, of10_in_queue_config,
    of10_in_qos;

/* m: of 1.3; what it becomes goes to w. */
typedef int of10_out(struct of10_door *d, const struct of_msg *m, struct of_wr *w);
of10_out of10_out_same, of10_out_error, of10_out_features, of10_out_packet_in,
    of10_out_flow_removed, of10_out_port_status, of10_out_stats, of10_out_barrier,
    of10_out_queue_config, of10_out_role;

/* Appends a message of 1.0. */
static inline int
of10_write(struct of_wr *w, uint8_t type, uint32_t xid, const void *body)
{
    return of_encode_body_as(&of_dialect_10, w, type, xid, body);
}

/* ports.c */
void of10_port(const struct of_port *p, uint16_t port_no, struct of_v10_port *out);

/* actions-in.c: a list of 1.0's for packets that match m (NULL: any), as one of 1.3 in the arena. */
int of10_actions_in(struct of_arena *arena, const struct of_match *m, const struct of_list *in,
                    struct of_list *out);

/* actions-out.c: instructions of a flow as actions of 1.0.  False: it can't say them; or the arena is
 * full. */
bool of10_actions_out(struct of_arena *arena, const struct of_match *m,
                      const struct of_list *instructions, struct of_list *out);

/* What actions need to know about packets that match m. */
enum of10_vlan { OF10_VLAN_UNKNOWN, OF10_VLAN_UNTAGGED, OF10_VLAN_TAGGED };
struct of10_known {
    enum of10_vlan vlan;
    uint32_t eth_type, ip_proto; /* UINT32_MAX: not known */
};
struct of10_known of10_known(const struct of_match *m);

#endif
