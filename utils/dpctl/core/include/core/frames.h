/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a file of pcap or pcapng, in memory.  No bytes of it are trusted. */
#ifndef DPCTL_CORE_FRAMES_H
#define DPCTL_CORE_FRAMES_H

#include <oflib/wire.h>

struct frames {
    const uint8_t *p, *end;
    bool ng, swapped;  /* pcapng; written by a machine of the other byte order */
    unsigned links;    /* pcapng: interfaces of the section so far */
    uint64_t ethernet; /* which of the first 64 are Ethernet */
};

/* Begins; false: `why` says what is wrong with the file. */
bool frames_begin(struct frames *f, struct of_bytes bytes, const char **why);

/* The next frame: 1; 0: there are no more; -1: `why` says what is wrong.  *cut: the file has only
 * the beginning of the frame. */
int frames_next(struct frames *f, struct of_bytes *frame, bool *cut, const char **why);

#endif
