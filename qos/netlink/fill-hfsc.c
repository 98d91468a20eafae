/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_hfsc_qopt opt = {.defcls = (uint16_t)v->v[QOS_DEFAULT]};
    return nla_put(msg, TCA_OPTIONS, sizeof opt, &opt);
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_hfsc_qopt opt;
    if (nla_len(options) < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(options), sizeof opt);
    qos_put(v, QOS_DEFAULT, opt.defcls);
}

const struct filler netlink_fill_hfsc = {fill, read_options, false};
