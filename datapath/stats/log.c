/* SPDX-License-Identifier: Apache-2.0 */
/* LOG and LOG_SET (docs/reference/extensions.md): the levels of the log. */
#include <admission/request.h>

#include <daemon/log.h>
#include <qos/sched/error.h>

#include <stdio.h>
#include <string.h>

#define SECONDS_MAX 86400
#define TEXT_MAX    1024 /* bytes of LOG_SET's text */

static int
log_set(struct sw *sw, struct conn *c, struct of_bytes data, struct qos_error *e)
{
    char text[TEXT_MAX + 1], why[256], what[64] = "";
    uint32_t seconds = of_get32(data.p);
    size_t n = data.n - 4;
    memcpy(text, data.p + 4, n);
    text[n] = '\0';
    if (seconds > SECONDS_MAX)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "levels are set for at most %d seconds, or 0: for good", SECONDS_MAX);
    if (!log_levels_set(text, seconds, why, sizeof why))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM), "%s", why);
    if (seconds)
        snprintf(what, sizeof what, " for %u s", seconds);
    log_notice_by(DAEMON, conn_by(c), "log levels: %s%s", text, what);
    return 0;
}

const struct request request_log_set = {
    .access = ACCESS_WRITE, .least = 5, .most = 4 + TEXT_MAX, .run_data = log_set};

static void
put_text(struct of_wr *w, const char *s)
{
    char text[16] = "";
    strncpy(text, s, sizeof text - 1);
    of_wr_bytes(w, text, sizeof text);
}

static size_t
all_of(struct of_bytes left)
{
    return left.n;
}

static int
handle_log(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(64u << 10);
    put_text(&w, log_to_name());
    of_wr64(&w, log_lost());
    for (unsigned i = 0; i < LOG_MODULES_COUNT; i++) {
        struct log_state s;
        log_state((enum log_module)i, &s);
        put_text(&w, s.name);
        of_wr8(&w, (uint8_t)LOG_SEVERITY(s.level));
        of_wr8(&w, (uint8_t)LOG_SEVERITY(s.then));
        of_wr_add(&w, 2);
        of_wr32(&w, s.seconds);
        of_wr64(&w, s.lines);
        of_wr64(&w, s.left_out);
    }
    return conn_dump_encoded(c, m, &w, all_of);
}

const struct request request_log = {.access = ACCESS_READ, .run = handle_log};
