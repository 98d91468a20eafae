/* SPDX-License-Identifier: Apache-2.0 */
/* One option's argument. */
#include <daemon/options.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool
take_number(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    char *end, such_as[40] = "";
    errno = 0;
    unsigned long value = strtoul(arg, &end, 10);
    if (*arg >= '0' && *arg <= '9' && !*end && !errno && value >= o->min && value <= o->max) {
        *o->to.number = (unsigned)value;
        return true;
    }
    if (*o->to.number)
        snprintf(such_as, sizeof such_as, ", such as %u", *o->to.number);
    snprintf(why, n, "must be a number from %u to %u%s", o->min, o->max, such_as);
    return false;
}

static bool
take_seconds(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    char *end;
    double seconds = strtod(arg, &end);
    bool number = *arg && !*end && !arg[strspn(arg, "0123456789.")];
    bool zero = o->may_be_0 && seconds == 0;
    if (number && (zero || (seconds >= 0.1 && seconds <= 3600))) {
        *o->to.number = zero ? o->zero : (unsigned)(seconds * 1000 + 0.5);
        return true;
    }
    snprintf(why, n, "must be a number of seconds from 0.1 to 3600, such as 2.5%s",
             o->may_be_0 ? ", or 0 for never" : "");
    return false;
}

static bool
take_word(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    int len = snprintf(why, n, "must be");
    for (const struct daemon_word *w = o->words; w->word; w++) {
        if (!strcmp(arg, w->word)) {
            *o->to.number = w->value;
            return true;
        }
        if ((size_t)len < n)
            len += snprintf(why + len, n - (size_t)len, "%s %s",
                            w == o->words ? ""
                            : w[1].word   ? ","
                                          : " or",
                            w->word);
    }
    return false;
}

/* An option alone says yes. */
static bool
take_flag(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    bool no = arg && !strcmp(arg, "no");
    snprintf(why, n, "must be yes or no");
    *o->to.flag = !no;
    return no || !arg || !strcmp(arg, "yes");
}

void
daemon_applied(void *ctx)
{
}

bool
daemon_option_take(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    switch (o->kind) {
    case OPTION_IS_IGNORED: return true;
    case OPTION_IS_FLAG: return take_flag(o, arg, why, n);
    case OPTION_IS_NUMBER: return take_number(o, arg, why, n);
    case OPTION_IS_SECONDS: return take_seconds(o, arg, why, n);
    case OPTION_IS_TEXT: *o->to.text = arg ? arg : ""; return true;
    case OPTION_IS_WORD: return take_word(o, arg, why, n);
    case OPTION_IS_CALL: return o->to.call(arg, why, n);
    case OPTION_IS_LIST: return true;
    }
    return false;
}
