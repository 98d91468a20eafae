/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libpcap. */
#include "classify.h"

int
classify_set(struct cni *c, struct links *here, const struct link_there *host)
{
    return c->conf.n_groups ? cni_fail(c, CNI_UNSUPPORTED,
                                       "groups of a chained network need a build with libpcap")
                            : 0;
}

int
classify_check(struct cni *c, struct links *here, const struct link_there *host)
{
    return classify_set(c, here, host);
}
