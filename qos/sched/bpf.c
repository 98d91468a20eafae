/* SPDX-License-Identifier: Apache-2.0 */
/* BPF: a qdisc that a BPF program has registered (struct_ops, Linux 6.16); its kind is NAME.
 *
 * The kernel looks for a module sch_KIND where nobody has registered the kind, so kinds of the
 * kernel's own modules are refused. */
#include "rows.h"

#include <qos/sched/name.h>

#include <string.h>

#define KIND_MAX 15 /* IFNAMSIZ with its NUL */

static const struct qos_field fields[] = {
    {QOS_FIELD("name|kind", NAME, NAME, QOS_QDISC_SET | QOS_NEEDED), QOS_PROP(NAME),
     .help = "kind that the BPF program has registered: 1 to 15 of a to z, 0 to 9 and _"},
};

/* Those of the table (a row's name is its scheduler's), then others of the kernel's own. */
static const char *const taken[] = {
#define ROW(name, id, row) #row,
    QOS_SCHED_ROWS(ROW)
#undef ROW
        "atm",
    "blackhole",
    "cbq",
    "clsact",
    "dsmark",
    "hhf",
    "ingress",
    "multiq",
    "noop",
    "noqueue",
    "pfifo_fast",
    "plug",
    "qfq",
    "sfb",
    "skbprio",
    "pfifo_head_drop",
};

bool
qos_kind_is_free(const char *kind)
{
    size_t n = strlen(kind);
    if (!n || n > KIND_MAX || strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_") != n)
        return false;
    for (size_t i = 0; i < QOS_COUNT(taken); i++) {
        if (!strcmp(kind, taken[i]))
            return false;
    }
    return strncmp(kind, "teql", 4) != 0; /* teql0, teql1, ... are interfaces' */
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    char kind[QOS_NAME_ROOM];
    qos_name_get(&v->v[QOS_NAME], kind);
    if (!*kind)
        return qos_fail(
            e, QOS_BAD_PARAM,
            "bpf needs a name, the kind of the qdisc that a BPF program has registered");
    if (qos_kind_is_free(kind))
        return 0;
    return qos_fail(e, QOS_BAD_PARAM,
                    "%s can't be the kind of a BPF program's qdisc: 1 to %d characters of a to z, "
                    "0 to 9 and _, and no scheduler of the kernel's own",
                    kind, KIND_MAX);
}

const struct qos_sched qos_sched_bpf = {
    .id = OFP_QOS_SCHED_BPF,
    .named = true,
    .name = "bpf",
    .help = "a qdisc of a BPF program, by its kind (Linux 6.16 and later)",
    .module = "-",
    .package = "-",
    QOS_FIELDS(fields),
    .check = check,
};
