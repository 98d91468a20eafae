/* SPDX-License-Identifier: Apache-2.0 */
/* A pcapng file (draft-ietf-opsawg-pcapng), written block by block, so that it can be read while it
 * grows.  Errors of the stream show in ferror(). */
#ifndef DPCTL_WATCH_PCAPNG_H
#define DPCTL_WATCH_PCAPNG_H

#include <oflib/wire.h>

#include <stdint.h>
#include <stdio.h>

struct pcapng_packet {
    uint32_t interface; /* in the order of pcapng_interface */
    uint64_t time;      /* ns since 1970 */
    struct of_bytes data;
    uint32_t len;  /* on the wire */
    int direction; /* 1: in, 2: out, 0: unknown */
    struct of_bytes comment;
};

void pcapng_begin(FILE *out, const char *program);
void pcapng_interface(FILE *out, const char *name, uint32_t snaplen);
void pcapng_write(FILE *out, const struct pcapng_packet *p);

#endif
