/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that has every scheduler, accepts everything and keeps nothing: what the model refuses
 * with it makes no sense on any machine. */
#ifndef QOS_KERNEL_ACCEPTING_H
#define QOS_KERNEL_ACCEPTING_H

#include <qos/kernel/kernel.h>

/* There is one, which needs no freeing. */
struct qos_kernel *qos_kernel_accepting(void);

#endif
