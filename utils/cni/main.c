/* SPDX-License-Identifier: Apache-2.0 */
/* ofqos-cni: makes a container's interface a port of this node's switch, as a CNI plugin. */
#include "chain.h"
#include "cni.h"
#include "conf.h"
#include "door.h"
#include "group.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- commands */

static int
version(struct cni *c)
{
    json_t *all = json_array();
    for (int i = 0; i < CNI_VERSIONS; i++)
        json_array_append_new(all, json_string(cni_version_names[i]));
    json_t *v = json_pack("{s:s, s:o}", "cniVersion", cni_version_names[c->conf.version],
                          "supportedVersions", all);
    int err = v ? cni_print(c, v) : cni_no_memory(c);
    json_decref(v);
    return err;
}

enum { ID = 1, NETNS = 2, IFNAME = 4, PATH = 8 }; /* what must be in the environment */

static const struct command {
    const char *name;
    unsigned needs;
    enum cni_version since;
    int (*run)(struct cni *c), (*chained)(struct cni *c);
} commands[] = {
    {"ADD", ID | NETNS | IFNAME | PATH, CNI_0_4_0, cni_add, chain_add},
    {"DEL", ID | IFNAME | PATH, CNI_0_4_0, cni_del, chain_del},
    {"CHECK", ID | NETNS | IFNAME | PATH, CNI_0_4_0, cni_check, chain_check},
    {"GC", PATH, CNI_1_1_0, cni_gc, cni_gc},
    {"STATUS", 0, CNI_1_1_0, cni_status, cni_status},
    {"VERSION", 0, CNI_0_4_0, version, version},
};

static const struct command *
find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static const char *
env(const char *name)
{
    const char *text = getenv(name);
    return text ? text : "";
}

static int
check_environment(struct cni *c, const struct command *k)
{
    if (k->needs & ID && !conf_is_word(c->id))
        return cni_fail(
            c, CNI_BAD_ENVIRONMENT,
            "CNI_CONTAINERID must be letters, digits, _ . or -, the first a letter or digit");
    if (k->needs & NETNS && !*c->netns)
        return cni_fail(c, CNI_BAD_ENVIRONMENT,
                        "CNI_NETNS must be the path of the container's network namespace");
    if (k->needs & IFNAME && !conf_is_interface(c->ifname))
        return cni_fail(
            c, CNI_BAD_ENVIRONMENT,
            "CNI_IFNAME must be an interface's name: 1 to %d characters without blanks, / and :",
            IFNAMSIZ - 1);
    if (k->needs & PATH && !*c->path)
        return cni_fail(c, CNI_BAD_ENVIRONMENT, "CNI_PATH must name the directories of plugins");
    return 0;
}

static int
run(struct cni *c)
{
    const struct command *k = find_command(c->command);
    if (!k)
        return cni_fail(c, CNI_BAD_ENVIRONMENT,
                        "CNI_COMMAND must be ADD, DEL, CHECK, GC, STATUS or VERSION, not '%.40s'",
                        c->command);
    if (conf_read(c) || check_environment(c, k))
        return -1;
    if (c->conf.version < k->since)
        return cni_fail(c, CNI_BAD_VERSION, "%s needs cniVersion %s; the configuration has %s",
                        k->name, cni_version_names[k->since], cni_version_names[c->conf.version]);
    if (k->needs & NETNS &&
        (group_read(c) || door_needs(c))) /* not DEL, which wrong groups must not stop */
        return -1;
    return (c->conf.chained ? k->chained : k->run)(c);
}

int
main(int argc, char **argv)
{
    static struct cni c;
    c = (struct cni){.command = env("CNI_COMMAND"),
                     .id = env("CNI_CONTAINERID"),
                     .netns = env("CNI_NETNS"),
                     .ifname = env("CNI_IFNAME"),
                     .path = env("CNI_PATH"),
                     .args = env("CNI_ARGS"),
                     .conf.version = CNI_VERSIONS - 1};
    if (argc > 1 || !*c.command) { /* a person */
        fprintf(
            argc > 1 && !strcmp(argv[1], "--version") ? stdout : stderr,
            "ofqos-cni (ofqos) %s: CNI plugin, versions 0.4.0, 1.0.0 and 1.1.0; container runtimes run it "
            "(ofqos-cni(8))\n",
            OFQOS_VERSION);
        return argc > 1 && !strcmp(argv[1], "--version") ? 0 : 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int err = run(&c);
    if (err)
        cni_print_error(&c);
    conf_free(&c.conf);
    return err ? 1 : 0;
}
