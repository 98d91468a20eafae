/* SPDX-License-Identifier: Apache-2.0 */
/* A frame, and a DNS message, of any bytes: never crashes, and what is read keeps to its bounds. */
#include <qos/profile/names.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_message(struct of_bytes message)
{
    static struct qos_names_entry room[4];
    struct qos_names t = {.limits = {60, 3600, 2, 4}, .v = room};
    struct qos_dns_answer a;
    if (!qos_dns_read(message, &a))
        return;
    if (!a.n_names || a.n_names > QOS_DNS_CHAIN || a.n > QOS_DNS_ADDRESSES)
        abort();
    for (size_t i = 0; i < a.n_names; i++)
        if (!memchr(a.names[i], 0, QOS_DNS_NAME))
            abort();
    for (size_t i = 0; i < a.n; i++) {
        if (a.v[i].name >= a.n_names)
            abort();
        const char *name = a.names[a.v[i].name];
        qos_dns_fits("*.example.org", name);
        qos_names_learn(&t, 0, name, &a.v[i], i);
        if (t.n > t.limits.all)
            abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct of_bytes all = {data, size}, found = qos_dns_find(all);
    if (found.n && (found.p < data || found.p + found.n > data + size))
        abort();
    try_message(found);
    try_message(all);
    return 0;
}
