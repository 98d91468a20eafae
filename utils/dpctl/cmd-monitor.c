/* SPDX-License-Identifier: Apache-2.0 */
/* monitor and ping. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
    interrupted = 1;
}

static enum status
show_line(struct ctx *c, struct of_bytes raw)
{
    struct of_msg msg;
    struct of_wr w = of_wr_grow(1 << 24);
    int err = of_decode(raw, &c->arena, &msg);
    if (err) {
        const char *code = err > 0 ? of_error_code_name(of_err_type(err), of_err_code(err)) : NULL;
        of_wr_free(&w);
        fprintf(stderr, "%s: a message of type %u can't be understood (%s)\n", c->where,
                raw.p[1], code ? code : "no memory");
        return DPCTL_OK;
    }
    if (c->json)
        of_json_msg(&w, &msg);
    else
        of_print_msg(&w, &msg);
    return put_line(c, &w);
}

/* Signals are let through only while waiting, so that none comes between the look at
 * `interrupted` and the wait. */
static bool
signal_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return interrupted || sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM);
}

static enum status
watch(struct ctx *c, int64_t until)
{
    struct of_bytes raw;
    enum status st = DPCTL_OK;
    while (!st && !signal_pending()) {
        int err = remote_recv(&c->remote, until, &raw);
        if (err == -ETIMEDOUT)
            break;
        if (err == -EINTR)
            continue;
        st = err ? failed(c, "%s", c->remote.why) : show_line(c, raw);
        of_arena_reset(&c->arena);
    }
    return st;
}

static enum status
monitor(struct ctx *c, char **words, int n)
{
    struct sigaction sa = {.sa_handler = on_signal};
    int64_t until = c->timeout_s >= 0 ? remote_now_ms() + (int64_t)c->timeout_s * 1000 : -1;
    sigset_t signals, before;
    if (n)
        return bad_args(c, "monitor takes no arguments");
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    c->remote.sigmask = &before;
    enum status st = watch(c, until);
    c->remote.sigmask = NULL;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}

static int64_t
now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static enum status
ping(struct ctx *c, char **words, int n)
{
    uint8_t data[56] = {0};
    uint64_t count = 1;
    if (n > 1 || (n && of_parse_number(&c->parse, "count", words[0], &of_fmt_DEC, 31, &count)))
        return n > 1 ? bad_args(c, "one number at most") : bad_parse(c, -EINVAL);
    for (uint64_t i = 0; i < count; i++) {
        struct of_echo echo = {{data, sizeof data}};
        struct of_msg reply;
        struct of_wr w = of_wr_grow(1024);
        of_set64(data, i);
        int64_t start = now_us();
        enum status st = transact(c, OFPT_ECHO_REQUEST, &echo, &reply);
        int64_t rtt = now_us() - start;
        if (st)
            return st;
        const struct of_echo *back = reply.body;
        if (reply.type != OFPT_ECHO_REPLY || back->data.n != sizeof data ||
            memcmp(back->data.p, data, sizeof data))
            return failed(c, "the echo came back changed");
        of_printf(&w, c->json ? "{\"seq\": %" PRIu64 ", \"bytes\": %zu, \"rtt_us\": %" PRId64 "}"
                              : "echo %" PRIu64 ": %zu bytes, %" PRId64 " us",
                  i, sizeof data, rtt);
        st = put_line(c, &w);
        if (st)
            return st;
        of_arena_reset(&c->arena);
        if (i + 1 < count)
            usleep(200000);
    }
    return DPCTL_OK;
}

const struct command monitor_commands[] = {
    {"ping", NULL, "[COUNT]", "echo requests and their round trip times", ping, NULL},
    {"monitor", NULL, "", "prints what the switch sends until SIGINT, or for --timeout seconds",
     monitor, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
