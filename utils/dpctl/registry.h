/* SPDX-License-Identifier: Apache-2.0 */
/* All commands: those of the files that dpctl/meson.build lists. */
#ifndef DPCTL_REGISTRY_H
#define DPCTL_REGISTRY_H

#include <core/command.h>

/* By name or alias; NULL: there is none. */
const struct command *registry_find(const char *name);

/* What to append to "there is no command X": the nearest commands.  Returns buf or a constant. */
const char *registry_near(const char *name, char *buf, size_t size);

/* The i-th command, in the order of --help=all; NULL past the last. */
const struct command *registry_at(size_t i);

/* dpctl-NAME(1), which explains the commands of a subject. */
struct page {
    const char *name, *title;
};

const struct page *registry_page(const struct command *k);

#endif
