/* SPDX-License-Identifier: Apache-2.0 */
/* The QoS library's codec as a filter, for tests in other languages.  A line of the input is one of
 *
 *   request HEX        the content of a QoS message
 *   entry HEX          an entry of a QOS_DUMP reply
 *   text SCHED ARGS    a request in dpctl's grammar
 *
 * and its answer one of
 *
 *   ok HEX TEXT        it was decoded (parsed), and encodes again to this; TEXT in dpctl's grammar
 *   error T C          refused with this OpenFlow error type and code
 *   fail N             -errno
 *
 * With --fields it writes the rows of all schedulers instead, one field a line.
 */
#include "hex.h"

#include <qos/wire/entry.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void
print_field(const struct qos_sched *s, const struct qos_field *f)
{
    char name[32];
    printf("%u %s %s where=%u unit=%u fixed=%u pad=%u prop=%u size=%u sub=%u min=%" PRIu64
           " max=%" PRIu64 " words=%s\n",
           s->id, s->name, qos_field_name(f, name, sizeof name), f->where, f->unit, f->fixed,
           f->pad, f->prop, f->fixed ? f->fixed : qos_prop_size(f->prop), f->sub, f->min, f->max,
           f->words ? f->words : "");
}

static void
print_fields(void)
{
    const struct qos_sched *s;
    const struct qos_field *f;
    for (unsigned i = 0; (s = qos_sched_at(i)); i++) {
        for (unsigned j = 0; (f = qos_sched_field(s, j)); j++)
            print_field(s, f);
    }
}

static int
encode_again(const char *kind, const char *rest, struct of_wr *w, struct qos_request *r)
{
    static uint8_t raw[0x10000];
    struct qos_error e;
    char why[512], sched[16];
    int err, at = 0;
    if (strcmp(kind, "text") == 0) {
        const struct qos_sched *s = NULL;
        if (sscanf(rest, "%15s %n", sched, &at) == 1)
            s = qos_sched_by_name(sched);
        err = s ? qos_request_parse(r, s, rest + at, why, sizeof why) : -22;
        if (!err)
            qos_request_encode(w, r);
        return err;
    }
    long n = hex_bytes(rest, raw, sizeof raw);
    if (n < 0)
        return -22;
    if (strcmp(kind, "entry") == 0) {
        struct qos_entry entry;
        struct of_rd rd = of_rd(raw, (size_t)n);
        err = qos_entry_decode(&entry, &rd, &e);
        if (!err) {
            qos_entry_encode(w, &entry);
            *r = entry.config;
        }
        return err;
    }
    err = qos_request_decode(r, raw, (size_t)n, &e);
    if (!err)
        qos_request_encode(w, r);
    return err;
}

static void
answer(char *line)
{
    static uint8_t buf[0x10000];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct qos_request r = {0};
    char text[QOS_REQUEST_TEXT];
    line[strcspn(line, "\n")] = 0;
    char *rest = strchr(line, ' ');
    int err = -22;
    if (rest) {
        *rest++ = 0;
        err = encode_again(line, rest, &w, &r);
    }
    if (err > 0) {
        printf("error %u %u\n", of_err_type(err), of_err_code(err));
    } else if (err < 0) {
        printf("fail %d\n", err);
    } else {
        printf("ok ");
        for (size_t i = 0; i < w.len; i++)
            printf("%02x", buf[i]);
        qos_request_print(&r, text, sizeof text);
        printf(" %s\n", text);
    }
}

int
main(int argc, char **argv)
{
    char *line = NULL;
    size_t cap = 0;
    if (argc > 1 && !strcmp(argv[1], "--fields")) {
        print_fields();
        return 0;
    }
    while (getline(&line, &cap, stdin) > 0)
        answer(line);
    free(line);
    return 0;
}
