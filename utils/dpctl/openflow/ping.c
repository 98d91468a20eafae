/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include <core/ask.h>
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define PAUSE_US 200000

static void
print_echo(struct of_wr *w, bool json, uint64_t seq, size_t bytes, int64_t rtt_us)
{
    struct of_json j = of_json(w);
    if (!json) {
        of_printf(w, "echo %" PRIu64 ": %zu bytes, %" PRId64 " us", seq, bytes, rtt_us);
        return;
    }
    of_json_object(&j, NULL);
    of_json_uint(&j, "seq", seq);
    of_json_uint(&j, "bytes", bytes);
    of_json_uint(&j, "rtt_us", (uint64_t)rtt_us);
    of_json_end_object(&j);
}

static enum status
echo(struct ctx *c, uint64_t seq)
{
    uint8_t data[56] = {0};
    struct of_echo request = {{data, sizeof data}};
    struct of_msg reply;
    of_set64(data, seq);
    int64_t start = signals_clock_us(CLOCK_MONOTONIC);
    enum status st = ask_message(c, OFPT_ECHO_REQUEST, &request, &reply);
    int64_t rtt = signals_clock_us(CLOCK_MONOTONIC) - start;
    if (st)
        return st;
    const struct of_echo *back = reply.body;
    if (reply.type != OFPT_ECHO_REPLY || back->data.n != sizeof data ||
        memcmp(back->data.p, data, sizeof data))
        return say_failed(c, "the switch changed the echo's data");
    struct of_wr w = of_wr_grow(1024);
    print_echo(&w, c->json, seq, sizeof data, rtt);
    return view_line(c, &w);
}

static enum status
ping(struct ctx *c, const struct command *self, char **words, int n)
{
    uint64_t count = 1;
    enum status st = DPCTL_OK;
    if (n > 1)
        return say_usage(c, "write one number at most, the COUNT");
    if (n && of_parse_number(&c->parse, "count", words[0], &of_fmt_DEC, 31, &count))
        return say_parse(c, -EINVAL);
    for (uint64_t i = 0; !st && i < count; i++) {
        if (i)
            usleep(PAUSE_US);
        st = echo(c, i);
        of_arena_reset(&c->arena);
    }
    return st;
}

static const struct command rows[] = {
    {.name = "ping",
     .subject = SUBJECT_WATCH,
     .args = "[COUNT]",
     .help = "sends echo requests and shows their round trip times",
     .examples = "ping 3",
     .bridge = 2,
     .run = ping,
     .asks = true},
};

const struct command_table commands_ping = COMMAND_TABLE(rows);
