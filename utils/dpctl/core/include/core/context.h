/* SPDX-License-Identifier: Apache-2.0 */
/* One run of dpctl: what was asked for on the command line, and what all commands work with. */
#ifndef DPCTL_CORE_CONTEXT_H
#define DPCTL_CORE_CONTEXT_H

#include <core/remote.h>

#include <oflib/text.h>

/* What functions and commands return, and dpctl's exit status. */
enum status {
    DPCTL_OK = 0,
    DPCTL_FAILED = 1, /* the switch refused, or could not be reached; stderr says why */
    DPCTL_USAGE = 2,  /* bad arguments; stderr says what to type instead */
};

/* Bytes of a message that is not printed (struct ctx). */
#define CTX_SAID 512

struct command;
struct bundle;

/* The switch's ports by name (ports.h). */
struct port_names {
    struct port_name {
        uint32_t no;
        char name[OFP_MAX_PORT_NAME_LEN];
    } * v;
    size_t n;
    bool fresh; /* the running command has asked for them */
};

struct ctx {
    bool json;
    bool experimenter;   /* QoS requests in the experimenter's envelope */
    bool dry_run;        /* show what would be done; only for commands that have --dry-run */
    bool strict;         /* mod-flows, del-flows: exactly this flow entry */
    bool kernel;         /* qos-show: what the kernel has */
    bool openconfig;     /* qos-show: in OpenConfig's models */
    bool quiet;          /* a refusal is not reported: the caller does without */
    const char *to;      /* --to: the file, "-": stdout; NULL: not given */
    int timeout_s;       /* --timeout, -1: not given */
    const char *address; /* of the switch */
    const char *where;   /* what messages begin with: "dpctl", "FILE:12" */
    bool once;           /* top: one table */
    bool yes;            /* tour: goes on without being asked */
    char *said;          /* CTX_SAID bytes: messages go here and not to stderr; NULL: to stderr */
    const struct command *command; /* the one that was typed; NULL: none yet */
    struct of_arena arena;         /* reset after each command */
    struct of_parse parse;
    struct port_names ports;
    struct remote remote;
    struct bundle *bundle; /* where change_send() collects; NULL: it sends at once */
    /* A line with a command, as -F has it; *empty: only a comment. */
    enum status (*run_line)(struct ctx *c, char *line, bool *empty);
};

#endif
