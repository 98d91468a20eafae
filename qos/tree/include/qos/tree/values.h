/* SPDX-License-Identifier: Apache-2.0 */
/* Resolved values: what a configuration means to the kernel on this port, below this class. */
#ifndef QOS_TREE_VALUES_H
#define QOS_TREE_VALUES_H

#include <qos/tree/tree.h>

/* What defaults depend on below this class (NULL: at the port's root). */
struct qos_env qos_port_env(const struct model_port *p, const struct qos_class *parent);

/* Have both the same link layer? */
bool qos_same_link(const struct qos_values *a, const struct qos_values *b);

/* A class with this configuration below this parent (NULL: the root class). */
void qos_class_resolve(const struct model_port *p, const struct qos_class *parent,
                       const struct qos_sched *sched, const struct qos_values *config,
                       struct qos_values *out);

/* A classless scheduler with this configuration below class c (NULL: as the port's root). */
void qos_leaf_resolve(const struct model_port *p, const struct qos_class *c,
                      const struct qos_sched *sched, const struct qos_values *config,
                      struct qos_values *out);

/* The same of the switch's own scheduler below class c, which keeps the delay that the class promises. */
void qos_own_leaf_resolve(const struct model_port *p, const struct qos_class *c,
                          const struct qos_sched *sched, const struct qos_values *config,
                          struct qos_values *out);

/* DELAY_US of the class; 0: none. */
uint64_t qos_class_delay(const struct qos_class *c);

/* The switch's own choice for the root class; for the default class below a root of this rate. */
void qos_root_config(const struct model_port *p, const struct qos_sched *sched,
                     struct qos_values *out);
void qos_default_config(const struct model_port *p, const struct qos_sched *sched,
                        uint64_t root_rate, uint64_t root_ceil, struct qos_values *out);

/* The configuration of a class that is there (if it follows, the switch's own choice); resolved. */
void qos_class_config(const struct model_port *p, const struct qos_class *c,
                      struct qos_values *out);
void qos_class_values(const struct model_port *p, const struct qos_class *c,
                      struct qos_values *out);

/* Both, of the classless scheduler below class c (NULL: of the port's root). */
void qos_leaf_values(const struct model_port *p, const struct qos_class *c,
                     struct qos_values *config, struct qos_values *out);

#endif
