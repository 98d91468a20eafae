/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include "test.h"

struct qos *qos;
struct qos_error err;

int
run(const char *sched, const char *args)
{
    struct qos_request r;
    char why[512] = "";
    if (qos_request_parse(&r, qos_sched_by_name(sched), args, why, sizeof why))
        fail_msg("%s", why);
    return qos_execute(qos, &r, &err);
}
