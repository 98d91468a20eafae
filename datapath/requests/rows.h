/* SPDX-License-Identifier: Apache-2.0 */
/* Which row a frame is. */
#ifndef REQUESTS_ROWS_H
#define REQUESTS_ROWS_H

#include <admission/request.h>

/* The row of a frame; only its header must be whole.  NULL: no request of a type that is known. */
const struct request *request_find(struct of_bytes frame);

#endif
