/* SPDX-License-Identifier: Apache-2.0 */
/* DROPS (docs/reference/extensions.md): how many packets were dropped for each reason, what that means, and the
 * last of them. */
#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <packet/headers.h>
#include <shared/clock.h>
#include <shared/reply.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN DROP_SAMPLES /* of each reason, the last of all workers */

static const struct {
    const char *name, *text, *help;
} rows[] = {
#define ROW(name, text, help) {#name, text, help},
    DROP_ROWS(ROW)};
#define FITS(name, text, help)                                                                     \
    _Static_assert(sizeof #name <= OFP_DROP_NAME_LEN && sizeof(text) <= OFP_DROP_TEXT_LEN &&       \
                       sizeof(help) <= OFP_DROP_HELP_LEN,                                          \
                   #name " is too long");
DROP_ROWS(FITS)

static int
later_first(const void *a, const void *b)
{
    uint64_t x = ((const struct drop_sample *)a)->time, y = ((const struct drop_sample *)b)->time;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* -> how many of all workers and the control thread are in v, the last first. */
static unsigned
collect(const struct sw *sw, enum drop_reason why, struct drop_sample *v)
{
    unsigned n = 0;
    for (unsigned w = 0; w <= sw->dp.n_workers; w++)
        for (unsigned i = 0; i < DROP_SAMPLES; i++)
            n += drop_log_read(w ? sw->dp.workers[w - 1]->drop_log : sw->drop_log, why, i, &v[n]);
    qsort(v, n, sizeof *v, later_first);
    return n < SHOWN ? n : SHOWN;
}

/* A sample as it is sent, with room for what it points to. */
struct shown {
    struct of_drop_sample wire;
    struct of_oxm fields[OXM_N];
};

static void
show(const struct sw *sw, struct shown *to, struct drop_sample *s, uint64_t since_1970)
{
    to->wire = (struct of_drop_sample){.table_id = s->at.table_id,
                                       .in_port = s->at.in_port,
                                       .time = s->time + since_1970,
                                       .out_port = s->at.out_port,
                                       .queue_id = s->at.queue,
                                       .cookie = s->at.cookie,
                                       .total_len = s->len,
                                       .segments = s->segments,
                                       .match.v = to->fields,
                                       .data = {s->data, s->n}};
    if (s->n >= ETH_HEADER)
        packet_describe(s->data, s->n, s->at.in_port, dp_inside(&sw->dp, s->at.in_port),
                        &to->wire.match);
}

static void
put_reason(struct of_wr *w, const struct sw *sw, enum drop_reason why, struct drop_sample *room)
{
    struct shown shown[SHOWN];
    void *list[SHOWN];
    struct of_drop d = {.reason = (uint16_t)why};
    uint64_t since_1970 = clock_ns_of(CLOCK_REALTIME) - clock_ns();
    unsigned n = collect(sw, why, room);
    for (unsigned i = 0; i < n; i++) {
        show(sw, &shown[i], &room[i], since_1970);
        list[i] = &shown[i].wire;
    }
    d.packets = sw_drops(sw, why);
    strcpy(d.name, rows[why].name); /* FITS */
    strcpy(d.text, rows[why].text);
    strcpy(d.help, rows[why].help);
    d.samples = OF_LIST(list, n);
    void *one[] = {&d};
    of_encode_struct(w, &of_row_drops, &(struct of_drops){OF_LIST(one, 1)});
}

static int
handle_drops(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(1u << 20);
    struct drop_sample *room = calloc(sw->dp.n_workers + 1, DROP_SAMPLES * sizeof *room);
    if (!room)
        return -ENOMEM;
    for (int i = 0; i < DROP_N; i++)
        put_reason(&w, sw, (enum drop_reason)i, room);
    free(room);
    return conn_dump_encoded(c, m, &w, conn_dump_len16);
}

const struct request request_drops = {.access = ACCESS_READ, .run = handle_drops};
