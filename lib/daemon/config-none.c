/* SPDX-License-Identifier: Apache-2.0 */
/* A build without configuration files. */
#include "config-file.h"

void
config_file_read(const char *path, const struct config_file_reader *r)
{
    r->fault(r->ctx, 0,
             "this build can't read configuration files: give the keys as options, or build with "
             "libinih (meson configure -Dconfig=enabled)");
}
