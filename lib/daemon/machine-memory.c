/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/machine-memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number in a file; "max", or no such file: no limit. */
static uint64_t
read_limit(const char *path)
{
    uint64_t v;
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT64_MAX;
    if (fscanf(f, "%" SCNu64, &v) != 1)
        v = UINT64_MAX;
    fclose(f);
    return v;
}

/* The lowest limit of a group and its parents: dir/a/b, dir/a, dir. */
static uint64_t
limit_of(const char *dir, const char *group, const char *file)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s", dir, group);
    size_t top = strlen(dir), end = (size_t)n;
    uint64_t limit = UINT64_MAX;
    if (n < 0 || end + strlen(file) + 2 > sizeof path)
        return limit;
    for (;;) {
        snprintf(path + end, sizeof path - end, "/%s", file);
        limit = least(limit, read_limit(path));
        if (end <= top)
            return limit;
        while (end > top && path[--end] != '/')
            continue;
    }
}

/* A line of it: "0::/a/b" of version 2, "9:memory:/a/b" or "3:cpu,memory:/a/b" of version 1. */
static uint64_t
limit_of_line(const char *root, char *line)
{
    char dir[1024], *controllers = strchr(line, ':'), *group;
    line[strcspn(line, "\n")] = 0;
    if (!controllers || !(group = strchr(controllers + 1, ':')))
        return UINT64_MAX;
    *group++ = 0;
    if (controllers[1] && !strstr(controllers, "memory"))
        return UINT64_MAX;
    snprintf(dir, sizeof dir, "%s/sys/fs/cgroup%s", root, controllers[1] ? "/memory" : "");
    return limit_of(dir, group, controllers[1] ? "memory.limit_in_bytes" : "memory.max");
}

uint64_t
machine_memory_of_cgroups(const char *root)
{
    char line[4096];
    uint64_t limit = UINT64_MAX;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f))
        limit = least(limit, limit_of_line(root, line));
    if (f)
        fclose(f);
    return limit;
}

uint64_t
machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = machine_memory_of_cgroups("");
    struct rlimit space;
    if (pages > 0 && page > 0)
        bytes = least(bytes, (uint64_t)pages * (uint64_t)page);
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
        bytes = least(bytes, space.rlim_cur);
    return least(bytes, UINTPTR_MAX / 2);
}

/* "0-3", "0", "0-3,8-11" */
unsigned
machine_processors_of(const char *root)
{
    char path[4096];
    unsigned n = 0, first, last;
    int end;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/possible", root);
    FILE *f = fopen(path, "re");
    if (f && fgets(path, sizeof path, f))
        for (const char *at = path; sscanf(at, "%u%n", &first, &end) == 1; at += *at == ',') {
            at += end;
            last = first;
            if (sscanf(at, "-%u%n", &last, &end) == 1)
                at += end;
            n += last >= first ? last - first + 1 : 0;
        }
    if (f)
        fclose(f);
    return n;
}

unsigned
machine_processors(void)
{
    unsigned n = machine_processors_of("");
    long there = sysconf(_SC_NPROCESSORS_CONF);
    return n ? n : there > 0 ? (unsigned)there : 1;
}
