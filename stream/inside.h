/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef STREAM_INSIDE_H
#define STREAM_INSIDE_H

#include <stddef.h>

/* Where a sentence about what went wrong is put. */
struct why {
    char *text;
    size_t len;
};

/* -> err */
int __attribute__((format(printf, 3, 4)))
stream_refuse(struct why why, int err, const char *fmt, ...);

void stream_no_delay(int fd); /* nothing waits for more to be sent with it */

#endif
