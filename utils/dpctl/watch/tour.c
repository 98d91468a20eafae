/* SPDX-License-Identifier: Apache-2.0 */
/* tour: runs dpctl-tour.sh, which makes a lab and goes through it with dpctl's own commands. */
#include <core/command.h>
#include <core/say.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT "dpctl-tour.sh"

/* The directory of the running program; false: /proc is not there. */
static bool
own_directory(char *dir, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", dir, size - 1);
    if (n < 0)
        return false;
    dir[n] = '\0';
    char *slash = strrchr(dir, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static enum status
run_tour(struct ctx *c, const struct command *self, char **words, int n)
{
    static const char *const places[] = {"/" SCRIPT, "/../share/ofqos/" SCRIPT};
    char dir[PATH_MAX], path[PATH_MAX + 64];
    if (n)
        return say_usage(c, "tour takes no arguments, not '%s'", words[0]);
    if (c->json)
        return say_usage(c, "tour is for people: there is no --json of it");
    if (!own_directory(dir, sizeof dir))
        return say_failed(c, "/proc/self/exe: %s", strerror(errno));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s", dir, places[i]);
        if (access(path, R_OK))
            continue;
        execl("/bin/sh", "sh", path, dir, c->yes ? "--yes" : NULL, NULL);
        return say_failed(c, "/bin/sh: %s", strerror(errno));
    }
    return say_failed(
        c, "%s is not installed: it must be in %s/../share/ofqos (OpenWrt: package ofqos-tour)",
        SCRIPT, dir);
}

static const char tour_help[] =
    "Two hosts and a switch in a network of their own; each step shows its command, runs it after\n"
    "Enter (q ends) and says what to see.  Needs root; changes nothing outside the lab, which is\n"
    "gone at the end, however it ends.";

static const struct command rows[] = {
    {.name = "tour",
     .subject = SUBJECT_WATCH,
     .args = "[--yes]",
     .help = "a walk through queue, rule, watch and trace on a throw-away lab",
     .text = tour_help,
     .examples = "tour\ntour --yes",
     .run = run_tour,
     .options = COMMAND_YES,
     .alone = true,
     .asks = true},
};

const struct command_table commands_tour = COMMAND_TABLE(rows);
