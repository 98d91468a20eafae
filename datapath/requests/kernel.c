/* SPDX-License-Identifier: Apache-2.0 */
/* KERNEL (docs/reference/extensions.md): the schedulers of the running kernel, asked once at the start. */
#include <admission/request.h>

#include <requests/handlers.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { NO, YES, UNKNOWN };

#define RELEASE_LEN 64
#define ENTRY_LEN   4 /* sched_type, state, pad[2] */

/* The reply without its experimenter header: the release, then an entry per scheduler. */
static uint8_t answer[RELEASE_LEN + 256 * ENTRY_LEN];
static size_t answer_len;

static uint8_t
state_of(struct sw *sw, const struct qos_sched *s)
{
    int has = sw->opt.no_slicing || !sw->kernel ? -EPERM : qos_kernel_has(sw->kernel, s, NULL);
    return has < 0 ? UNKNOWN : has ? YES : NO;
}

/* As names with a space before each. */
static void
note_missing(char *names, size_t n, const struct qos_sched *s, uint8_t state)
{
    size_t len = strlen(names);
    if (state == NO)
        snprintf(names + len, n - len, " %s", s->name);
}

void
sw_kernel_ask(struct sw *sw)
{
    char missing[256] = "";
    const struct qos_sched *s;
    struct utsname name = {0};
    uname(&name);
    memset(answer, 0, sizeof answer);
    memcpy(answer, name.release, strnlen(name.release, RELEASE_LEN - 1));
    answer_len = RELEASE_LEN;
    for (unsigned i = 0; (s = qos_sched_at(i)); i++) {
        if (s->id == OFP_QOS_SCHED_NONE)
            continue;
        answer[answer_len] = s->id;
        answer[answer_len + 1] = state_of(sw, s);
        note_missing(missing, sizeof missing, s, answer[answer_len + 1]);
        answer_len += ENTRY_LEN;
    }
    if (*missing)
        log_info(QOS, "the kernel lacks these schedulers:%s", missing);
}

static bool
step(struct conn_dump *to, void *ctx)
{
    conn_dump_add_bytes(to, (struct of_bytes){answer, answer_len});
    return false;
}

static int
handle_kernel(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return conn_dump(c, m, step, NULL, NULL);
}

const struct request request_kernel = {.access = ACCESS_READ, .run = handle_kernel};
