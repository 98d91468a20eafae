/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands about queues share. */
#ifndef DPCTL_QOS_CMD_H
#define DPCTL_QOS_CMD_H

#include "commands.h"

#include <qos/wire/entry.h>

/* Interfaces as they are nearly everywhere: a switch doesn't tell these two of its own. */
#define USUAL_MTU        1500
#define USUAL_TXQUEUELEN 1000

/* -------------------------------------------------------------- asking (qos-ask.c) */

/* The entries of a QOS_DUMP. */
struct qos_entries {
    struct qos_entry *v; /* in the arena */
    size_t n;
};

enum qos_direction entry_direction(const struct qos_entry *e);

enum status ask_queues(struct ctx *c, uint32_t port, uint32_t class, struct qos_entries *out);

/* QOS_PORTS: the trees as a whole. */
struct qos_trees {
    struct qos_tree *v; /* in the arena */
    size_t n;
};

enum status ask_trees(struct ctx *c, struct qos_trees *out);
/* Which schedulers the switch's kernel has, by OFP_QOS_SCHED_; one that can't be told counts as
 * missing. */
enum status ask_schedulers(struct ctx *c, bool has[256]);

/* A dump doesn't tell which class packets without a queue go to: the roots get it from these, as in a
 * request. */
enum status ask_defaults(struct ctx *c, struct qos_entries *all, struct qos_trees *trees);
const struct qos_tree *find_tree(const struct qos_trees *trees, uint32_t port_no,
                                 enum qos_direction dir); /* NULL */

const struct of_port *find_port_desc(const struct of_list *ports, uint32_t no); /* NULL */
uint64_t port_speed(const struct of_port *port); /* bit/s; 0: unknown, also of NULL */

/* A tree out of entries, for showing it: in order of ports, directions (out first) and the tree,
 * what is below an entry behind it. */
struct qos_view {
    struct qos_view_node {
        const struct qos_entry *entry;
        enum qos_direction dir;
        int depth;
        uint64_t rate, ceil; /* what a class's come to, bit/s */
    } * v;
    size_t n;
};

/* Asks for whatever it takes; class QOS_ALL_CLASSES: all.  trees: asked for as well; may be NULL. */
enum status view_queues(struct ctx *c, uint32_t port, uint32_t class, struct qos_trees *trees,
                        struct qos_view *out);

/* "root class", "class 10", "sfq" */
void print_queue_name(struct of_wr *w, const struct qos_request *r);

/* Parameters as the member "config": rates in bit/s, sizes in bytes, times in microseconds (perturb: seconds),
 * shares in ppm. */
void json_qos_config(struct of_json *j, const struct qos_request *r);
/* The members that say which queue it is: port_no, direction, object, sched, class_id, parent_id. */
void json_queue_place(struct of_json *j, const struct qos_view_node *node);

/* -------------------------------------------------------------- sending (cmd-qos.c) */

enum status send_qos(struct ctx *c, const struct qos_request *r);

/* The command that sends it: "qos-htb cmd=add,port=2,...". */
void print_qos_command(struct of_wr *w, const struct qos_request *r);

/* Takes every word that is this one ("--dry-run", also without the dashes) off; was there one? */
bool take_flag(char **words, int *n, const char *flag);

/* Something that hardly anybody means (remark: why; "": nothing is): on a terminal the person is asked
 * whether to go on, elsewhere warned.  DPCTL_USAGE: better not. */
enum status doubt(struct ctx *c, const char *remark);

/* ---------------------------------------------------------------- the commands */

enum status qos_kernel(struct ctx *c); /* qos-show --kernel */
enum status qos_apply(struct ctx *c, char **words, int n);
enum status qos_map(struct ctx *c, char **words, int n);

#endif
