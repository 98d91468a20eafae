/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/sched/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
qos_fail(struct qos_error *e, int err, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
        e->err = err;
        e->errnum = 0;
    }
    return err;
}

void
qos_error_data(struct of_wr *w, const uint8_t *request, size_t n, const struct qos_error *e)
{
    uint8_t *head = of_wr_add(w, QOS_ERROR_REQUEST);
    if (head && n)
        memcpy(head, request, n < QOS_ERROR_REQUEST ? n : QOS_ERROR_REQUEST);
    of_wr32(w, (uint32_t)e->errnum);
    of_wr_bytes(w, e->text, strlen(e->text));
}
