/* SPDX-License-Identifier: Apache-2.0 */
#include <core/local.h>

#include <stream/address.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".sock"

static int
directory_length(void)
{
    const char *slash = strrchr(stream_default_socket, '/');
    return slash ? (int)(slash - stream_default_socket) : 0;
}

bool
local_switch(const char *name, char *path, size_t size)
{
    struct stat st;
    static const char prefix[] = "unix:";
    if (!*name || strchr(name, '/'))
        return false;
    int n = snprintf(path, size, "%s%.*s/%s" SUFFIX, prefix, directory_length(),
                     stream_default_socket, name);
    return n > 0 && (size_t)n < size && !stat(path + sizeof prefix - 1, &st) &&
           S_ISSOCK(st.st_mode);
}

static int
is_socket(const struct dirent *e)
{
    const char *suffix = strrchr(e->d_name, '.');
    return suffix && suffix != e->d_name && !strcmp(suffix, SUFFIX);
}

unsigned
local_switches(char *names, size_t size)
{
    char directory[PATH_MAX], path[PATH_MAX];
    struct dirent **found;
    unsigned count = 0;
    size_t len = 0;
    snprintf(directory, sizeof directory, "%.*s", directory_length(), stream_default_socket);
    int n = scandir(directory, &found, is_socket, alphasort);
    *names = '\0';
    for (int i = 0; i < n; i++) {
        char *name = found[i]->d_name;
        name[strlen(name) - strlen(SUFFIX)] = '\0';
        if (local_switch(name, path, sizeof path)) {
            if (len + strlen(name) + sizeof ", " <= size)
                len += (size_t)snprintf(names + len, size - len, "%s%s", len ? ", " : "", name);
            count++;
        }
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return count;
}
