/* SPDX-License-Identifier: Apache-2.0 */
/* A QoS request of any bytes: never crashes; what is accepted is the same after encoding and
 * decoding, encodes to the same bytes again, and is the same after printing and parsing. */
#include "structure.h"

#include <qos/wire/entry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW_BODY;

static void
same(const struct qos_request *a, const struct qos_request *b, const char *after)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return;
    fprintf(stderr, "not the same after %s\n", after);
    abort();
}

static void
try_request(const uint8_t *data, size_t size)
{
    struct qos_request r, again;
    struct qos_error e;
    uint8_t out[2][2048];
    char line[QOS_REQUEST_TEXT], why[512];
    if (qos_request_decode(&r, data, size, &e)) {
        if (!e.text[0])
            abort();
        return;
    }
    struct of_wr w = of_wr_fixed(out[0], sizeof out[0]);
    qos_request_encode(&w, &r);
    if (w.overflow || qos_request_decode(&again, out[0], w.len, &e))
        abort();
    same(&r, &again, "encoding and decoding");
    struct of_wr w2 = of_wr_fixed(out[1], sizeof out[1]);
    qos_request_encode(&w2, &again);
    if (w2.len != w.len || memcmp(out[0], out[1], w.len))
        abort();
    if (qos_request_print(&r, line, sizeof line) >= (int)sizeof line)
        abort();
    if (r.sched->named && r.action_type == OFP_QOS_ADD && !qos_has(&r.values, QOS_NAME))
        return; /* dpctl's grammar wants the NAME at once (QOS_NEEDED), the protocol when it is carried out */
    if (qos_request_parse(&again, r.sched, line, why, sizeof why)) {
        fprintf(stderr, "%s: %s\n", line, why);
        abort();
    }
    same(&r, &again, line);
}

static void
try_entry(const uint8_t *data, size_t size)
{
    struct qos_entry entry, again;
    struct qos_error e;
    uint8_t out[2048];
    struct of_rd rd = of_rd(data, size);
    if (qos_entry_decode(&entry, &rd, &e))
        return;
    struct of_wr w = of_wr_fixed(out, sizeof out);
    qos_entry_encode(&w, &entry);
    rd = of_rd(out, w.len);
    if (w.overflow || qos_entry_decode(&again, &rd, &e) || memcmp(&entry, &again, sizeof entry))
        abort();
}

static void
try_text(const uint8_t *data, size_t size)
{
    struct qos_request r;
    char text[512], why[512];
    if (size < 2)
        return;
    const struct qos_sched *s = qos_sched_by_id(data[0] % 17);
    size = size - 1 < sizeof text - 1 ? size - 1 : sizeof text - 1;
    memcpy(text, data + 1, size);
    text[size] = 0;
    why[0] = 0;
    if (qos_request_parse(&r, s, text, why, sizeof why) && !why[0])
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_request(data, size);
    try_entry(data, size);
    try_text(data, size);
    return 0;
}
