/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl: what its commands share. */
#ifndef DPCTL_H
#define DPCTL_H

#include "remote.h"

#include <oflib/text.h>

/* Exit statuses, and what commands answer. */
enum status {
    DPCTL_OK = 0,
    DPCTL_FAILED = 1, /* the switch refused, or could not be reached; stderr says why */
    DPCTL_USAGE = 2,  /* bad arguments; stderr says what would be right */
};

struct command;
struct bundle;

/* The switch's ports by name (ports.c). */
struct port_names {
    struct port_name {
        uint32_t no;
        char name[OFP_MAX_PORT_NAME_LEN];
    } * v;
    size_t n;
    bool fresh; /* asked for by the command that runs */
};

/* One run of dpctl. */
struct ctx {
    bool json;
    bool experimenter; /* QoS requests in the experimenter's envelope */
    bool dry_run;      /* qos-apply, qos-map, bw-: only show what would be done */
    bool strict;       /* mod-flows, del-flows: the very flow entry */
    bool kernel;       /* qos-show: what the kernel has */
    bool quiet;        /* a refusal isn't told: the caller does without */
    int timeout_s;     /* --timeout, -1: not given */
    const char *where; /* before messages: "dpctl", "FILE:12" */
    const struct command *command;
    const struct command *typed; /* what `command` was typed as; NULL: as itself */
    struct of_arena arena;       /* reset after each command */
    struct of_parse parse;
    struct port_names ports;
    struct remote remote;
    struct bundle *bundle; /* where modify() collects; NULL: it sends */
};

struct command {
    const char *name;
    const char *alias; /* another name, or NULL */
    const char *args;
    const char *help;
    enum status (*run)(struct ctx *c, char **words, int n);
    const struct command_more *more; /* NULL: nothing more than the line says */
};

/* What a command is besides its line.  What isn't so is left out. */
struct command_more {
    const char *text;                 /* what `help COMMAND` says beyond the line */
    const struct of_struct_row *keys; /* what the command's keys are, with the row's lists */
    const struct query *query;        /* of a command that asks (commands.h) */
    const struct qos_sched *sched;    /* of a scheduler's command */
    const struct of10_command *of10;  /* of one of OpenFlow 1.0's (of10.h) */
    bool verbatim;                    /* the arguments are a text as it is */
};

#define MORE(...) (&(const struct command_more){__VA_ARGS__})

/* By name; "_" and "-" in it are the same.  NULL: unknown.  The commands for the schedulers of the
 * qos library are among them. */
const struct command *find_command(const char *name);

/* What to say behind "there is no command X": the nearest ones. */
const char *near_commands(const char *name, char *buf, size_t size);

/* Whether it only asks, and changes nothing. */
bool command_asks(const struct command *command);

/* What --help prints. */
void print_help(void);

/* Says what is wrong with the arguments, and how the command is used. */
__attribute__((format(printf, 2, 3))) enum status bad_args(struct ctx *c, const char *fmt, ...);

/* What is wrong with a file that was given (line 0: with all of it), and what would be right. */
__attribute__((format(printf, 4, 5))) enum status wrong_line(struct ctx *c, const char *file,
                                                             unsigned line, const char *fmt, ...);

/* The same where oflib's parser said it (err is -EINVAL) or memory ran out. */
enum status bad_parse(struct ctx *c, int err);

/* A file's commands that were carried out before one that failed: how many, and their lines. */
struct done {
    unsigned n, first, last;
};
void note_done(struct done *d, unsigned line);
/* Says on stderr what was done of the file; `what`: "commands". */
void say_done(const char *file, const struct done *d, const char *what);

/* A message on stderr. */
__attribute__((format(printf, 2, 3))) enum status failed(struct ctx *c, const char *fmt, ...);

/* ------------------------------------------------- exchanges (exchange.c)
 * All say on stderr what went wrong. */

/* Sends a message, whose xid is then c->remote.xid, and waits for nothing. */
enum status send_body(struct ctx *c, uint8_t type, const void *body);

/* Sends a message and waits for its reply (of any type). */
enum status transact(struct ctx *c, uint8_t type, const void *body, struct of_msg *reply);
/* Likewise for the queues: all replies as one. */
enum status transact_queues(struct ctx *c, const void *body, struct of_msg *reply);

/* Sends a message that has no reply, and a barrier: so an error is known. */
enum status modify(struct ctx *c, uint8_t type, const void *body);

/* Between the two modify() collects; then all of it is done as one bundle, or nothing.  What is
 * refused is said with the c->where that its message had, and c->where must be back to the caller's
 * own by the time of the commit.  bundle_drop forgets what was collected; after a commit, also one
 * that failed, nothing is left. */
enum status bundle_begin(struct ctx *c);
enum status bundle_commit(struct ctx *c);
void bundle_drop(struct ctx *c);
enum status bundle_collect(struct ctx *c, uint8_t type, const void *body); /* modify()'s part */

/* A multipart request; the parts of the reply are put together. */
enum status multipart(struct ctx *c, uint16_t mp, const void *body, struct of_msg *reply);

/* One of the switch's own (docs/extensions.md); the reply: what follows exp_type. */
enum status ask_experimenter(struct ctx *c, uint32_t exp_type, struct of_bytes request,
                             struct of_bytes *reply);

/* Ports as OFPMP_PORT_DESC tells them, in the arena. */
enum status ask_ports(struct ctx *c, struct of_list *ports);

/* For struct of_parse: a port's number by its name. */
int ports_find(struct of_parse *p, const char *what, const char *name, size_t n, uint64_t *out);
void ports_forget(struct ctx *c); /* they may be others now */

/* "5", "local", "eth1": a port as somebody writes it. */
enum status port_number(struct ctx *c, const char *word, uint32_t *no);

/* The switch's port of this number or name; *out lives in c's arena. */
enum status find_port(struct ctx *c, const char *which, const struct of_port **out);

/* An error message: to stderr, and with --json to stdout. */
enum status report_error(struct ctx *c, const struct of_msg *msg);

/* --------------------------------------------------------- output (view.c) */

/* The message to stdout, as JSON or laid out for people. */
enum status show(struct ctx *c, const struct of_msg *msg);

/* Puts the message's lists in order: flows by table and priority, groups by number, ... */
void put_in_order(const struct of_msg *msg);

/* Writes out a writer's text and a newline, and releases it. */
enum status put_line(struct ctx *c, struct of_wr *w);

/* ------------------------------------------------------------------ helpers */

/* A command's arguments, tidied: those in one pair of quotes apart, and what follows a comma with what
 * is before it.  In the arena. */
enum status tidy_words(struct ctx *c, char ***words, int *n);

/* All words joined by `sep`, in the arena; NULL: no memory. */
char *join_words(struct ctx *c, char *const *words, int n, char sep);
/* The first n characters, terminated; NULL: no memory. */
char *keep_text(struct ctx *c, const char *text, size_t n);

#endif
