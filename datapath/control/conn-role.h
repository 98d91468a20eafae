/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller sets for itself: its role, and which asynchronous messages it gets. */
#ifndef CONTROL_CONN_ROLE_H
#define CONTROL_CONN_ROLE_H

#include "conn.h"

void conn_state_init(struct conn_state *s);

#endif
