/* SPDX-License-Identifier: Apache-2.0 */
#include "saved.h"

#include <requests/state.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>

static const char *
file_of(const struct saved *s)
{
    return s->restore ? s->restore : s->state;
}

static void
close_file(struct saved *s)
{
    if (s->open)
        sw_state_close(s->bytes);
    s->open = false;
}

/* Somebody named the file of --restore and expects it to be used, so the start fails.  The file
 * of --state is the switch's own: not starting would be worse than starting without its flows. */
static int
failed(struct saved *s, int err, const char *why)
{
    char bad[4096];
    close_file(s);
    if (s->restore)
        return err;
    snprintf(bad, sizeof bad, "%s.bad", s->state);
    if (rename(s->state, bad))
        log_error(SWITCH, "--state: %s; the switch starts without it", why);
    else
        log_error(SWITCH, "--state: %s; the switch starts without it, and it is kept as %s", why,
                  bad);
    return 0;
}

int
saved_load_tables(struct saved *s, struct sw *sw, char *why, size_t n)
{
    char text[300];
    if (!file_of(s))
        return 0;
    int err = sw_state_open(file_of(s), &s->bytes, text, sizeof text);
    if (err == -ENOENT && !s->restore)
        return 0;
    s->open = !err;
    if (!err)
        err = sw_state_load_tables(sw, s->bytes, text, sizeof text);
    if (!err)
        return 0;
    snprintf(why, n, "%s", text);
    return failed(s, err, text);
}

int
saved_load_ports(struct saved *s, struct sw *sw, char *why, size_t n)
{
    char text[300];
    if (!s->open)
        return 0;
    int err = sw_state_load_ports(sw, s->bytes, text, sizeof text);
    close_file(s);
    if (!err)
        return 0;
    snprintf(why, n, "%s: %s", file_of(s), text);
    if (s->restore && !s->takes_over)
        return err;
    log_error(SWITCH, "%s%s; the switch starts without these queues",
              s->restore ? "" : "--state: ", why);
    return 0;
}

void
saved_write(const struct saved *s, struct sw *sw)
{
    char why[300];
    if (s->state && sw_state_write(sw, s->state, why, sizeof why))
        log_error(SWITCH, "the state is not saved: %s", why);
}
