/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that the switch needs (daemon/confine.h), by its settings. */
#ifndef MAIN_RIGHTS_H
#define MAIN_RIGHTS_H

#include "wanted.h"

#include <daemon/daemon.h>

/* Gives up all other rights.  To be called before threads are made, and before anything comes from
 * outside. */
void rights_give_up(struct daemon_settings *s, const struct wanted *w, const struct daemon *d);

#endif
