/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's options, which are the configuration file's keys, too. */
#ifndef MAIN_OPTIONS_H
#define MAIN_OPTIONS_H

#include "saved.h"

#include <daemon/config.h>
#include <daemon/confine.h>
#include <daemon/daemon.h>
#include <stream/tls.h>
#include <switch/switch.h>

enum qos_refused { REFUSED_RUN, REFUSED_END };
enum plain_listen { PLAIN_WARN, PLAIN_ALLOW, PLAIN_REFUSE };

struct main_options {
    struct sw_options sw;
    struct stream_tls_options tls;
    struct daemon daemon;
    struct confine confine;
    const char *config, *check;                                 /* NULL: not given */
    unsigned fail, foreign, backend, plain_listen, qos_refused; /* words' values */
    uint64_t ring_memory;                                       /* 0: by main memory */
    const char *socket_group, *socket;
    struct saved saved;
    bool qos_reset, no_local_port, wait_for_interfaces;
};

/* What the settings in force say; their texts live as long as the settings. */
extern struct main_options main_options;
extern const struct daemon_program main_program;

/* Before any setting is taken: the defaults that the machine decides. */
void main_options_init(void);

/* After all settings are taken: what follows from several of them, and what is wrong with that. */
void main_options_complete(struct daemon_settings *s);

#endif
