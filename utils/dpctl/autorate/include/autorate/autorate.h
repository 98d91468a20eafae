/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl qos-autorate: a class's rate follows what its link carries, by the delay to reflectors. */
#ifndef DPCTL_AUTORATE_H
#define DPCTL_AUTORATE_H

#include <core/context.h>

enum status autorate_run(struct ctx *c, char **words, int n);

#endif
