/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONFIG_FILE_H
#define DAEMON_CONFIG_FILE_H

#include <stddef.h>

#define CONFIG_FILE_MAX (1u << 20) /* bytes */

struct config_file_reader {
    /* KEY = VALUE in [SECTION]; section "": before the first. */
    void (*entry)(void *ctx, unsigned line, const char *section, const char *key,
                  const char *value);
    void (*fault)(void *ctx, unsigned line, const char *text); /* line 0: the file as a whole */
    void *ctx;
};

void config_file_read(const char *path, const struct config_file_reader *r);

#endif
