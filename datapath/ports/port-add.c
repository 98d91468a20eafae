/* SPDX-License-Identifier: Apache-2.0 */
/* Adding and removing ports. */
#include "port-attach.h"

#include <megaflow/wire.h>
#include <ports/ports.h>
#include <queues/port-queues.h>

#include <daemon/log.h>
#include <oflib/text.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a port without its interface. */
static int
make_port(struct sw *sw, const char *name, uint32_t no, struct sw_port **out, char *why,
          size_t why_len)
{
    struct sw_port *p;
    if (!*name || strlen(name) >= IFNAMSIZ) {
        snprintf(why, why_len, "'%s' is no interface name: that has 1 to %d characters", name,
                 IFNAMSIZ - 1);
        return -EINVAL;
    }
    if ((p = sw_ports_by_name(sw, name))) {
        snprintf(why, why_len, "interface %s is port %s already", name,
                 of_port_text(p->no, (char[OF_PORT_TEXT]){0}));
        return -EEXIST;
    }
    if (sw_ports_find(sw, no)) {
        snprintf(why, why_len, "port %u is %s already", no, sw_ports_find(sw, no)->name);
        return -EEXIST;
    }
    for (uint32_t i = 1; !no && i <= PORT_MAX; i++)
        if (!sw->ports[i])
            no = i;
    if (!no) {
        snprintf(why, why_len, "no more than %d ports", PORT_MAX);
        return -ENOSPC;
    }
    p = no == OFPP_LOCAL ? &sw->local : calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->no = no;
    p->created = loop_now(sw->loop);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (no != OFPP_LOCAL)
        sw->ports[no] = p;
    if (no != OFPP_LOCAL && no > sw->n_ports)
        sw->n_ports = no;
    *out = p;
    return 0;
}

/* Takes files, but for an error. */
int
sw_port_add(struct sw *sw, const char *name, uint32_t no, struct port_files *files,
            bool queues_only, char *why, size_t why_len)
{
    struct sw_port *p;
    int err = make_port(sw, name, no, &p, why, why_len);
    if (err)
        return err;
    no = p->no;
    p->files = files;
    p->queues_only = queues_only;
    if (queues_only)
        p->config |= SW_QUEUES_ONLY;
    err = sw_port_attach(sw, p, why, why_len);
    if (!err) {
        if (!files)
            sw_port_queues_adopt(sw, p);
        sw_port_announce(sw, p, OFPPR_ADD);
        return 0;
    }
    if (no == OFPP_LOCAL) {
        *p = (struct sw_port){0};
    } else {
        sw->ports[no] = NULL;
        free(p);
    }
    return err;
}

int
sw_ports_add(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len)
{
    return sw_port_add(sw, name, no, NULL, false, why, why_len);
}

int
sw_ports_add_queues(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len)
{
    return sw_port_add(sw, name, no, NULL, true, why, why_len);
}

int
sw_ports_expect(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len)
{
    struct sw_port *p;
    int err = make_port(sw, name, no, &p, why, why_len);
    if (err)
        return err;
    p->expected = true;
    log_warning(PORT, "port %u (%s): there is no such interface; the port waits for it", p->no,
                p->name);
    sw_port_announce(sw, p, OFPPR_ADD);
    return 0;
}

/* Memory or an answer may be missing for a moment only. */
static int
remove_queues(struct sw *sw, uint32_t no, struct qos_error *e)
{
    return qos_port_remove(sw->qos, no, true, e) ? qos_port_remove(sw->qos, no, true, e) : 0;
}

int
sw_ports_del(struct sw *sw, uint32_t no, struct qos_error *e)
{
    struct sw_port *p = no == OFPP_LOCAL ? NULL : sw_ports_find(sw, no);
    if (!p)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %s",
                        of_port_text(no, (char[OF_PORT_TEXT]){0}));
    int err = remove_queues(sw, no, e);
    if (err)
        return err;
    sw_port_detach(sw, p);
    sw_port_announce(sw, p, OFPPR_DELETE);
    sw_ports_set_vlans(sw, no, NULL);
    sw->ports[no] = NULL;
    free(p->files);
    free(p);
    return 0;
}

void
sw_ports_close_local(struct sw *sw)
{
    sw_port_detach(sw, &sw->local);
}

void
sw_ports_close_all(struct sw *sw)
{
    for (uint32_t no = 1; no <= sw->n_ports; no++) {
        if (!sw->ports[no])
            continue;
        struct qos_error e = {0};
        if (!sw->opt.qos_keep && !sw_wire_keeps_queues(sw, sw->ports[no]->name) &&
            remove_queues(sw, no, &e))
            log_warning(QOS, "port %u (%s): its queues stay on the interface: %s", (unsigned)no,
                        sw->ports[no]->name, e.text);
        qos_port_remove(sw->qos, no, false, NULL);
        sw_port_detach(sw, sw->ports[no]);
        sw_ports_set_vlans(sw, no, NULL);
        free(sw->ports[no]->files);
        free(sw->ports[no]);
        sw->ports[no] = NULL;
    }
    sw_port_detach(sw, &sw->local);
    struct port_list *last = sw->dp.ports;
    rcu_assign_pointer(sw->dp.ports, NULL);
    if (last) /* workers still run */
        rcu_defer_free(last);
    free(sw->spare_list);
    sw->spare_list = NULL;
}
