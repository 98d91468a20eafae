/* SPDX-License-Identifier: Apache-2.0 */
/* A network namespace of one's own with a pair of interfaces: "sw" is opened as a port, "host" is
 * the other end, from which a test sends and at which it looks. */
#ifndef TEST_PORT_FIXTURE_H
#define TEST_PORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <port/port.h>

#define FRAME_ROOM 70000

/* False, having said why: not root, or no namespaces here. */
bool fixture_enter(void);

void fixture_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The first number after `word` in the output of a command; -1: none. */
long fixture_ask(const char *word, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void fixture_pair(unsigned mtu); /* makes sw and host */
void fixture_drop(void);         /* and removes them */
/* Sets sw up again, and waits until the kernel lets both ends send: it activates their qdiscs later,
 * by a work queue that runs once a second. */
void fixture_up(void);

struct port *fixture_port(const char *name, const char *backend, size_t ring_bytes);

int fixture_raw(const char *name, bool vnet); /* a packet socket that does not hear itself */
void fixture_send(int fd, const void *frame, size_t len);
/* The next frame with our test's destination, its tag put back; 0 after timeout_ms of none. */
size_t fixture_receive(int fd, uint8_t *frame, int timeout_ms);

/* The next batch, waited for. */
unsigned fixture_rx(struct port *p, struct port_io *w, struct packet *out, int timeout_ms);

/* An Ethernet header with the test's destination, and a pattern that depends on len. */
void fixture_frame(uint8_t *frame, size_t len);

#endif
