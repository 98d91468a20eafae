/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration on stdin. */
#ifndef CNI_CONF_H
#define CNI_CONF_H

#include "cni.h"

/* Letters, digits, _ . and -, the first a letter or digit: networks, containers, plugins. */
bool conf_is_word(const char *text);

/* What an interface may be called. */
bool conf_is_interface(const char *text);

/* Reads a file to its end, at most CNI_TEXT_MAX bytes, and terminates them.  -EFBIG: it has more. */
int conf_read_all(int fd, char **text, size_t *len);

/* Reads and checks stdin.  c->error may be filled in before c->conf.version is known, which is then the
 * newest.  conf_free() in any case. */
int conf_read(struct cni *c);
void conf_free(struct cni_conf *conf);

#endif
