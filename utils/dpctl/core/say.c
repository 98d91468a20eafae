/* SPDX-License-Identifier: Apache-2.0 */
#include <core/command.h>
#include <core/say.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((format(printf, 2, 0))) static void
complain(struct ctx *c, const char *fmt, va_list ap)
{
    if (c->said) {
        vsnprintf(c->said, CTX_SAID, fmt, ap);
        return;
    }
    fprintf(stderr, "%s: ", c->where);
    if (c->command)
        fprintf(stderr, "%s: ", c->command->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

enum status
say_usage(struct ctx *c, const char *fmt, ...)
{
    const struct command *k = c->command;
    va_list ap;
    va_start(ap, fmt);
    complain(c, fmt, ap);
    va_end(ap);
    if (k && !c->said)
        fprintf(stderr, "usage: dpctl %s%s %s (more: dpctl help %s)\n", k->alone ? "" : "SWITCH ",
                k->name, k->args ? k->args : "", k->name);
    return DPCTL_USAGE;
}

enum status
say_failed(struct ctx *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(c, fmt, ap);
    va_end(ap);
    return DPCTL_FAILED;
}

enum status
say_parse(struct ctx *c, int err)
{
    return err == -ENOMEM ? say_memory(c) : say_usage(c, "%s", c->parse.why);
}

enum status
say_memory(struct ctx *c)
{
    return say_failed(c, "out of memory");
}

enum status
say_malformed(struct ctx *c)
{
    return say_failed(c, "the switch's answer is malformed");
}

enum status
say_unexpected(struct ctx *c)
{
    return say_failed(c, "the switch answered with a message of another type than asked for");
}

enum status
say_line(struct ctx *c, const char *file, unsigned line, const char *fmt, ...)
{
    va_list ap;
    const char *name = strcmp(file, "-") ? file : "stdin";
    if (line)
        fprintf(stderr, "%s:%u: ", name, line);
    else
        fprintf(stderr, "%s: ", name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return DPCTL_USAGE;
}

/* Nobody can be asked about a command from a file: the answer could be the file's next line. */
static bool
at_terminal(const struct ctx *c)
{
    return !strcmp(c->where, "dpctl") && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

enum status
say_doubt(struct ctx *c, const char *remark)
{
    if (!*remark)
        return DPCTL_OK;
    say_failed(c, "%s", remark);
    return say_go_on(c);
}

enum status
say_go_on(struct ctx *c)
{
    char answer[16] = "";
    if (!at_terminal(c))
        return DPCTL_OK;
    fprintf(stderr, "Go on? [y/N] ");
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return DPCTL_OK;
    fprintf(stderr, "nothing was done\n");
    return DPCTL_USAGE;
}

void
done_add(struct done *d, unsigned line)
{
    d->first = d->n++ ? d->first : line;
    d->last = line;
}

void
done_say(const char *file, const struct done *d, const char *what)
{
    if (!d->n)
        fprintf(stderr, "%s: nothing was carried out\n", file);
    else if (d->first == d->last)
        fprintf(stderr, "%s: line %u was carried out and stays in effect\n", file, d->first);
    else
        fprintf(stderr, "%s: %u %s, in lines %u to %u, were carried out and stay in effect\n", file,
                d->n, what, d->first, d->last);
}
