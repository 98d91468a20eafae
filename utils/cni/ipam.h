/* SPDX-License-Identifier: Apache-2.0 */
/* The IPAM plugin, to which addresses are delegated: the program ipam.type in a directory of CNI_PATH. */
#ifndef CNI_IPAM_H
#define CNI_IPAM_H

#include "cni.h"

/* Runs it with this program's environment, `command` as CNI_COMMAND and the same bytes on stdin; nothing where the
 * network has none.  *answer: what it printed, NULL unless the command is ADD; the caller's.  Its own error becomes
 * this program's.  It ends with this program, however that ends. */
int ipam_run(struct cni *c, const char *command, json_t **answer);

#endif
