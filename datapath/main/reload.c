/* SPDX-License-Identifier: Apache-2.0 */
#include "reload.h"

#include <oflib/plural.h>

#include "queues.h"

#include <daemon/log.h>
#include <stream/address.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ reading */

/* Sets the options' variables, and finds what is wrong.  NULL: no memory. */
static struct state *
read_state(struct configuration *c, bool must_exist)
{
    struct state *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    daemon_settings_load(c->program, &c->line, &k->settings);
    daemon_settings_take(c->program, &k->settings, c->now ? &c->now->settings : NULL);
    main_options_complete(&k->settings);
    if (!k->settings.n_faults || k->settings.n != c->line.n) { /* the file can be read */
        wanted_make(&k->wanted, &k->settings, &main_options, c->running.sw, must_exist);
        wanted_make_queues(&k->wanted);
        wanted_check_queues(&k->wanted);
    }
    daemon_settings_check_memory(&k->settings, &c->line);
    return k;
}

static void
free_state(struct state *k)
{
    if (!k)
        return;
    wanted_free(&k->wanted);
    daemon_settings_free(&k->settings);
    free(k);
}

/* A connection is a --listen or a --controller. */
static void
take_words(struct configuration *c, char **words)
{
    struct stream_address a;
    char why[256];
    for (; *words; words++) {
        if (if_nametoindex(*words))
            daemon_die("%s is an interface: interfaces are one word, such as -i eth1,eth2", *words);
        if (stream_parse(*words, &a, why, sizeof why))
            daemon_die("%s", why);
        daemon_settings_add(&c->line, c->program, a.passive ? "listen" : "controller", *words);
    }
}

__attribute__((noreturn)) static void
end_check(const struct state *k)
{
    const struct wanted *w = &k->wanted;
    printf("%s: ok: %zu port%s, %zu of them with queues, %zu set%s of rules\n",
           k->settings.file ? k->settings.file : "the command line", w->n_ports, OF_S(w->n_ports),
           w->n_queues, w->n_maps, OF_S(w->n_maps));
    exit(0);
}

/* Interfaces may be missing where a file is only checked. */
static void
warn_of_interfaces(const struct wanted *w)
{
    char where[480];
    for (size_t i = 0; !main_options.backend && i < w->n_ports; i++)
        if (!w->ports[i].files && !if_nametoindex(w->ports[i].name))
            fprintf(stderr, "%s: warning: there is no interface %s now\n",
                    daemon_settings_where(w->s, w->ports[i].at, where, sizeof where),
                    w->ports[i].name);
}

void
configuration_begin(struct configuration *c, int argc, char **argv)
{
    *c = (struct configuration){.program = &main_program};
    main_options_init();
    take_words(c, argv + daemon_settings_of_line(&main_program, argc, argv, &c->line));
    bool check = daemon_settings_next(&c->line, "check", NULL) != NULL;
    c->now = read_state(c, !check);
    if (!c->now)
        daemon_die("out of memory");
    const struct daemon_settings *s = &c->now->settings;
    for (size_t i = 0; i < s->n_faults; i++)
        fprintf(stderr, "%s%s%s\n", s->file ? "" : program_invocation_short_name,
                s->file ? "" : ": ", s->faults[i]);
    if (s->n_faults)
        exit(1);
    if (check)
        warn_of_interfaces(&c->now->wanted);
    if (check)
        end_check(c->now);
    c->running.options = &main_options;
    c->running.now = &c->now->wanted;
}

/* ------------------------------------------------------------------ again */

/* Each function once, in the order of the rows. */
static bool
is_called(const struct daemon_option *first, const struct daemon_option *o, const bool *changed)
{
    for (const struct daemon_option *before = first; before < o; before++)
        if (before->apply == o->apply && changed[before - first])
            return true;
    return false;
}

static void
apply_changes(struct configuration *c, const struct state *was)
{
    const struct daemon_option *first = c->program->options;
    bool changed[DAEMON_OPTIONS_MAX] = {false};
    unsigned n = 0, restart = 0;
    queue_jobs_retry(c->running.jobs, NULL);
    for (const struct daemon_option *o = first; o->name || o->help; o++)
        changed[o - first] = o->name && !daemon_settings_same(&was->settings, &c->now->settings, o);
    for (const struct daemon_option *o = first; o->name || o->help; o++) {
        if (!changed[o - first])
            continue;
        n++;
        restart += !o->apply;
        if (!o->apply)
            log_warning(DAEMON, "%s: %s has changed, and needs a restart", c->now->settings.file,
                        o->name);
        else if (!is_called(first, o, changed))
            o->apply(&c->running);
    }
    apply_always(&c->running);
    log_notice(DAEMON, "%s: read again: %u key%s changed%s", c->now->settings.file, n,
               n == 1 ? " has" : "s have", restart ? ", not all of them in effect" : "");
}

/* Sets the variables back to what is in force. */
static void
take_back(struct configuration *c, const struct state *k)
{
    daemon_settings_take(c->program, &c->now->settings, &k->settings);
    main_options_complete(&c->now->settings);
}

static int
refuse(struct configuration *c, const struct state *k, char *why, size_t why_len)
{
    const struct daemon_settings *s = &k->settings;
    for (size_t i = 0; i < s->n_faults; i++)
        log_error(DAEMON, "%s", s->faults[i]);
    log_error(DAEMON, "%s: not applied, so everything stays as it was", s->file);
    snprintf(why, why_len, "%s", s->faults[0]);
    take_back(c, k);
    return -EINVAL;
}

int
configuration_reload(void *ctx, char *why, size_t why_len)
{
    struct configuration *c = ctx;
    struct state *was = c->now, *k;
    if (!was->settings.file) {
        snprintf(why, why_len,
                 "there is no configuration file: the switch was started without "
                 "--config=FILE");
        return -EINVAL;
    }
    if (!(k = read_state(c, true))) {
        log_error(DAEMON, "%s: out of memory: not applied, so everything stays as it was",
                  was->settings.file);
        snprintf(why, why_len, "out of memory");
        return -ENOMEM;
    }
    if (k->settings.n_faults) {
        int err = refuse(c, k, why, why_len);
        free_state(k);
        return err;
    }
    c->now = k;
    c->running.was = &was->wanted;
    c->running.now = &k->wanted;
    apply_changes(c, was);
    c->running.was = NULL;
    free_state(was);
    return 0;
}

void
configuration_port_has_come(void *ctx, const char *name, bool again)
{
    const struct configuration *c = ctx;
    if (again)
        queue_jobs_retry(c->running.jobs, name);
    else
        queue_jobs_port(c->running.jobs, name);
}

const char *
configuration_refused(void *ctx, unsigned i)
{
    const struct configuration *c = ctx;
    return queue_jobs_refused(c->running.jobs, i);
}

void
configuration_end(struct configuration *c)
{
    free_state(c->now);
    daemon_settings_free(&c->line);
}
