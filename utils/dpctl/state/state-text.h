/* SPDX-License-Identifier: Apache-2.0 */
/* A saved state as text: the commands that make it. */
#ifndef DPCTL_STATE_TEXT_H
#define DPCTL_STATE_TEXT_H

#include <core/context.h>

/* A state is messages, or such a text? */
bool state_is_text(struct of_bytes file);

/* Appends the commands that make the state; it was checked. */
enum status state_to_text(struct ctx *c, struct of_bytes state, struct of_wr *out);

/* The reverse.  What is in c's arena is lost. */
enum status state_of_text(struct ctx *c, struct of_bytes text, const char *file, struct of_wr *out);

#endif
