/* SPDX-License-Identifier: Apache-2.0 */
/* A QoS request of any bytes: never crashes; what is accepted is the same after encoding and
 * decoding, encodes to the same bytes again, and is the same after printing and parsing. */
#include "structure.h"

#include <qos/sched/sched.h>
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

/* Any bytes are a tree, so what they mean is all that comes back. */
static void
try_tree(const uint8_t *data, size_t size)
{
    struct qos_tree tree, again;
    if (size < QOS_TREE_LEN)
        return;
    qos_tree_decode(&tree, data);
    struct of_wr w = of_wr_grow(QOS_TREE_LEN);
    qos_tree_encode(&w, &tree);
    if (w.overflow || w.len != QOS_TREE_LEN)
        abort();
    qos_tree_decode(&again, w.buf);
    if (again.port_no != tree.port_no || again.sched != tree.sched || again.dir != tree.dir ||
        again.n_queues != tree.n_queues || again.default_id != tree.default_id)
        abort();
    of_wr_free(&w);
}

/* What help and completion say of a field. */
static void
describe(const struct qos_sched *s)
{
    char text[4096], range[64];
    if (qos_sched_usage(s, text, sizeof text) >= (int)sizeof text)
        abort();
    for (unsigned i = 0; i < s->n_fields; i++) {
        qos_field_range(&s->fields[i], range, sizeof range);
        if (!qos_field_hint(&s->fields[i]))
            abort();
    }
}

/* Words behind a scheduler's number, or behind its name and a blank. */
static void
try_text(const uint8_t *data, size_t size)
{
    struct qos_request r;
    char text[512], why[512], *words = text + 1;
    if (size < 2)
        return;
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = 0;
    const struct qos_sched *s = qos_sched_by_id(data[0] % 17);
    char *blank = data[0] < 32 ? NULL : strchr(text, ' ');
    if (blank) {
        *blank = 0;
        words = blank + 1;
        s = qos_sched_by_name(text);
    }
    if (!s)
        return;
    why[0] = 0;
    if (qos_request_parse(&r, s, words, why, sizeof why) && !why[0])
        abort();
    if (blank)
        describe(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_request(data, size);
    try_entry(data, size);
    try_tree(data, size);
    try_text(data, size);
    return 0;
}
