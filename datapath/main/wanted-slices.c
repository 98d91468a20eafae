/* SPDX-License-Identifier: Apache-2.0 */
/* The slices that the settings want (docs/how-to/slices.md). */
#include "wanted.h"

#include <slice/slice.h>
#include <stream/address.h>

#include <stdio.h>
#include <string.h>

/* In the order in which they are to be applied, each with its key in the section. */
static const struct {
    const char *option, *key;
} rows[] = {
    {"slice", "may"},
    {"slice-connection", "connection"},
    {"slice-common-name", "common-name"},
    {"slice-ports", "ports"},
    {"slice-tables", "tables"},
    {"slice-shared-tables", "shared-tables"},
    {"slice-queues", "queues"},
    {"slice-below", "below"},
    {"slice-groups", "groups"},
    {"slice-meters", "meters"},
    {"slice-metadata", "metadata"},
};

static struct slice *
find(const struct slices *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->v[i]->name, name))
            return all->v[i];
    return NULL;
}

/* The slice before the colon of "red:1-3", made where it is new. */
static struct slice *
slice_of(struct daemon_settings *s, const struct daemon_setting *at, struct slices *all)
{
    char name[SLICE_NAME_MAX];
    size_t n = strcspn(at->value, ":");
    if (!n || n >= sizeof name) {
        daemon_settings_fault(s, at, "must begin with the slice's name, of 1 to %d characters",
                              SLICE_NAME_MAX - 1);
        return NULL;
    }
    snprintf(name, sizeof name, "%.*s", (int)n, at->value);
    struct slice *found = find(all, name);
    if (found)
        return found;
    found = all->n < SLICES_MAX ? slice_new(name) : NULL;
    if (!found)
        daemon_settings_fault(s, at, "is one slice too many: there may be %d", SLICES_MAX);
    else
        all->v[all->n++] = found;
    return found;
}

static void
take(struct daemon_settings *s, const struct daemon_setting *at, const char *key,
     struct slices *all)
{
    char why[256];
    struct slice *slice = slice_of(s, at, all);
    const char *value = strchr(at->value, ':');
    if (slice && value && slice_set_key(slice, key, value + 1, why, sizeof why))
        daemon_settings_fault(s, at, "%s, not '%.100s'", why, value + 1);
}

static bool
is_connection(const struct daemon_settings *s, const char *text)
{
    static const char *const options[] = {"listen", "controller"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        for (const struct daemon_setting *t = NULL; (t = daemon_settings_next(s, options[i], t));)
            if (!strcmp(t->value, text))
                return true;
    const struct daemon_setting *t = daemon_settings_next(s, "socket", NULL);
    return t && !strncmp(text, "punix:", 6) && !strcmp(text + 6, t->value);
}

static bool
has_certificates(const char *connection)
{
    struct stream_address a;
    char why[256];
    return !stream_parse(connection, &a, why, sizeof why) && a.tls;
}

static void
check_slice(struct daemon_settings *s, const struct slice *slice)
{
    if (!slice->n_peers && !slice->common_name)
        daemon_settings_fault(
            s, NULL,
            "slice %s has no connection: give it connection = or common-name =", slice->name);
    for (unsigned i = 0; slice->common_name && i < slice->n_peers; i++)
        if (!has_certificates(slice->peers[i]))
            daemon_settings_fault(
                s, NULL,
                "slice %s: nobody has a common name at %s: leave common-name out, "
                "or name a ptls: or tls: connection",
                slice->name, slice->peers[i]);
}

/* Refuses a slice without connections: those that were meant would keep all rights. */
static void
check_whose(struct daemon_settings *s, const struct slices *all)
{
    for (const struct daemon_setting *t = NULL;
         (t = daemon_settings_next(s, "slice-connection", t));) {
        const char *value = strchr(t->value, ':');
        if (!value || !is_connection(s, value + 1))
            daemon_settings_fault(
                s, t,
                "must be one of the switch's own, as listen or controller has it, "
                "not '%.100s'",
                value ? value + 1 : t->value);
    }
    for (size_t i = 0; i < all->n; i++)
        check_slice(s, all->v[i]);
}

void
wanted_make_slices(struct daemon_settings *s, struct slices *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (const struct daemon_setting *t = NULL;
             (t = daemon_settings_next(s, rows[i].option, t));)
            take(s, t, rows[i].key, out);
    check_whose(s, out);
}
