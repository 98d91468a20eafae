/* SPDX-License-Identifier: Apache-2.0 */
#include <core/say.h>
#include <queues/profile.h>

#include <errno.h>

struct reading {
    struct ctx *c;
    const char *file;
    unsigned warnings;
};

static void
warn(void *ctx, const char *file, unsigned line, const char *text)
{
    struct reading *r = ctx;
    r->warnings++;
    say_line(r->c, file, line, "%s", text);
}

static void
tell_mistake(void *ctx, enum qos_profile_fault fault, unsigned line, const char *text)
{
    struct reading *r = ctx;
    if (fault == QOS_PROFILE_LINE)
        say_line(r->c, r->file, line, "%s", text);
    else
        say_usage(r->c, "%s", text);
}

enum status
profile_read(struct ctx *c, const char *file, char *const *sets, int n_sets,
             struct qos_profile *out)
{
    struct qos_profile_text text = {.file = file, .sets = sets, .n_sets = n_sets};
    struct reading r = {c, file, 0};
    struct qos_profile_report report = {.mistake = tell_mistake, .warn = warn, .ctx = &r};
    int err = qos_profile_read(&c->parse, &text, out, &report);
    if (err == -ENOMEM)
        return say_memory(c);
    if (report.mistakes >= QOS_PROFILE_MISTAKES)
        return say_line(c, file, 0, "and perhaps more: the first %u mistakes are told",
                        report.mistakes);
    return err ? DPCTL_USAGE : r.warnings ? say_go_on(c) : DPCTL_OK;
}

/* A scheduler in an unknown state counts as missing. */
static bool
has_scheduler(void *ctx, const struct qos_request *r)
{
    const struct queue_kernel *kernel = ctx;
    for (size_t i = 0; i < kernel->n; i++)
        if (kernel->v[i].sched == r->sched)
            return kernel->v[i].state == KERNEL_YES;
    return false;
}

enum status
profile_fit(struct ctx *c, struct qos_profile *p)
{
    struct queue_kernel kernel;
    enum status st = qos_profile_is_optional(p) ? queues_ask_kernel(c, &kernel) : DPCTL_OK;
    if (!st && qos_profile_is_optional(p))
        qos_profile_fit(p, has_scheduler, &kernel);
    return st;
}
