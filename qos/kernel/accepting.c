/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/kernel/accepting.h>

#include <errno.h>
#include <string.h>

#define SHAPER 0x40000000 /* no interface has such a number */

static int
apply(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state, struct qos_error *e)
{
    memset(state, QOS_OP_DONE, n);
    return 0;
}

static int
root(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
     struct qos_error *e)
{
    *out = (struct qos_object){.parent = parent};
    return 0;
}

/* LCOV_EXCL_START: a check of a configuration reads nothing back */
static int
each_qdisc(struct qos_kernel *k, int ifindex, qos_object_fn *fn, void *ctx, struct qos_error *e)
{
    return 0;
}

static int
each_class(struct qos_kernel *k, int ifindex, uint32_t qdisc, qos_object_fn *fn, void *ctx,
           struct qos_error *e)
{
    return 0;
}

static int
get(struct qos_kernel *k, int ifindex, uint32_t handle, struct qos_object *out, struct qos_error *e)
{
    return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "nothing is kept");
}

static int
has(struct qos_kernel *k, const struct qos_sched *sched, const struct qos_values *v)
{
    return 1;
}
/* LCOV_EXCL_STOP */

static int
shaper_add(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out,
           struct qos_error *e)
{
    *out = (struct qos_shaper){.tx_ifindex = SHAPER, .rx_ifindex = SHAPER + 1};
    return 0;
}

static int
shaper_find(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out)
{
    return -ENOENT;
}

/* LCOV_EXCL_START: a check of a configuration takes nothing away */
static void
shaper_del(struct qos_kernel *k, const struct qos_shaper *s)
{
}
/* LCOV_EXCL_STOP */

struct qos_kernel *
qos_kernel_accepting(void)
{
    static const struct qos_kernel_ops ops = {.apply = apply,
                                              .root = root,
                                              .each_qdisc = each_qdisc,
                                              .each_class = each_class,
                                              .get_class = get,
                                              .get_qdisc = get,
                                              .has = has,
                                              .shaper_add = shaper_add,
                                              .shaper_find = shaper_find,
                                              .shaper_del = shaper_del};
    static struct qos_kernel kernel = {.ops = &ops};
    return &kernel;
}
