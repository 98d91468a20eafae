/* SPDX-License-Identifier: Apache-2.0 */
/* Why a QoS request was refused: an error value, the kernel's errno, a sentence for people. */
#ifndef QOS_ERROR_H
#define QOS_ERROR_H

#include <oflib/err.h>
#include <oflib/openflow.h>
#include <oflib/wire.h>

#include <stddef.h>

#define QOS_ERROR_REQUEST 64 /* bytes of the request in an error's data */

struct qos_error {
    int err;        /* OF_ERR(OFPET_SCHED_FAILED, OFPSFC_...), another OF_ERR, or -errno */
    int errnum;     /* what the kernel answered (positive); 0: the kernel was not asked */
    char text[256]; /* one UTF-8 sentence, terminated */
};

#define QOS_ERR(code)   OF_ERR(OFPET_SCHED_FAILED, code)
#define QOS_BAD_PARAM   QOS_ERR(OFPSFC_BAD_PARAM)
#define QOS_ERR_BAD_LEN OF_BAD_REQUEST(BAD_LEN)

/* Fills in *e (which may be NULL; errnum becomes 0) and returns err. */
__attribute__((format(printf, 3, 4))) int qos_fail(struct qos_error *e, int err, const char *fmt,
                                                   ...);

/* Appends an error's `data`: 64 bytes of the request, padded with zeros; uint32_t errno; text. */
void qos_error_data(struct of_wr *w, const uint8_t *request, size_t n, const struct qos_error *e);

/* "OFPSFC_BUSY" and the like for the code of an OFPET_SCHED_FAILED; NULL where unknown. */
const char *qos_error_name(unsigned code);

#endif
