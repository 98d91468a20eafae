/* SPDX-License-Identifier: Apache-2.0 */
#include <queues/qos-notify.h>
#include <switch/switch.h>

#include <daemon/log.h>
#include <oflib/text.h>

#include <net/if.h>
#include <stdio.h>

/* "1:a", "10:", "root"; into buf. */
static const char *
handle_text(uint32_t handle, char *buf, size_t n)
{
    if (handle == QOS_PARENT_ROOT)
        return "root";
    if (qos_minor(handle))
        snprintf(buf, n, "%x:%x", handle >> 16, qos_minor(handle));
    else
        snprintf(buf, n, "%x:", handle >> 16);
    return buf;
}

static void
print_values(struct of_wr *w, const struct qos_op *op)
{
    const struct qos_field *f;
    char name[32], value[128];
    for (unsigned i = 0; !qos_op_deletes(op) && (f = qos_sched_field(op->sched, i)); i++)
        if (qos_has(&op->values, f->slot))
            of_printf(w, " %s %s", qos_field_name(f, name, sizeof name),
                      qos_field_format(f, &op->values, value, sizeof value));
}

/* As somebody would type it to tc: "class add dev eth1 parent 1:ffff classid 1:a htb rate 6mbit". */
static void
print_operation(struct of_wr *w, const struct qos_op *op)
{
    static const char *const words[] = {
        [QOS_OP_QDISC_ADD] = "qdisc add", [QOS_OP_QDISC_CHANGE] = "qdisc change",
        [QOS_OP_QDISC_DEL] = "qdisc del", [QOS_OP_QDISC_REPLACE] = "qdisc replace",
        [QOS_OP_CLASS_ADD] = "class add", [QOS_OP_CLASS_CHANGE] = "class change",
        [QOS_OP_CLASS_DEL] = "class del"};
    char name[IF_NAMESIZE], parent[16], handle[16];
    of_printf(w, "tc %s dev %s", words[op->kind],
              if_indextoname((unsigned)op->ifindex, name) ? name : "(gone)");
    if (op->parent)
        of_printf(w, " parent %s", handle_text(op->parent, parent, sizeof parent));
    if (op->handle)
        of_printf(w, " %s %s", op->kind >= QOS_OP_CLASS_ADD ? "classid" : "handle",
                  handle_text(op->handle, handle, sizeof handle));
    of_printf(w, " %s", op->sched ? op->sched->name : "");
    if (op->sched)
        print_values(w, op);
}

void
sw_qos_log(void *ctx, const struct qos_op *op, enum qos_op_state state)
{
    if (!log_is_on(QOS, LOG_DEBUG))
        return;
    struct of_wr w = of_wr_grow(4096);
    print_operation(&w, op);
    log_debug(QOS, "%.*s: %s", (int)w.len, (const char *)w.buf,
              state == QOS_OP_DONE ? "done" : "refused");
    of_wr_free(&w);
}
