/* SPDX-License-Identifier: Apache-2.0 */
/* The hello exchange (6.3.1). */
#ifndef CONTROL_CONN_HELLO_H
#define CONTROL_CONN_HELLO_H

#include "conn.h"

#define HELLO_CAP 1024u /* bytes that are read before the exchange is over */

int conn_send_hello(struct conn *c);
/* The peer's hello.  False: it speaks another version, and has been refused. */
bool conn_hello(struct conn *c, struct of_bytes frame);
void conn_no_hello(struct conn *c, struct of_bytes head); /* something else came, or too much */

#endif
