/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target without a fuzzer: every file of the directories (or files) named is put through
 * it once, so that builds by any compiler replay the corpus.  Also what a file becomes when it is
 * cut off at the end, byte by byte, up to the first 256 lengths: with OFQOS_TESTS=all in the
 * environment, each file; otherwise what once found a defect, and about one of eight others. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In a buffer of exactly this size, so that a read past its end is seen. */
static void
one_input(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static bool
is_cut(const char *path, size_t size)
{
    const char *tests = getenv("OFQOS_TESTS"), *name = strrchr(path, '/');
    return size % 8 == 0 || (tests && !strcmp(tests, "all")) ||
           (name && !strncmp(name, "/found-", 7));
}

static int
replay_file(const char *path)
{
    static uint8_t buf[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    size_t cuts = !is_cut(path, n) ? 0 : n < 256 ? n : 256;
    for (size_t len = 0; len < cuts; len++)
        one_input(buf, len);
    one_input(buf, n);
    return 1;
}

static int
replay(const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path);
    DIR *d = opendir(path);
    if (!d) {
        perror(path);
        return -1;
    }
    int n = 0;
    for (struct dirent *e; n >= 0 && (e = readdir(d));) {
        char file[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        int one = replay(file);
        n = one < 0 ? -1 : n + one;
    }
    closedir(d);
    return n;
}

int
main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = replay(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d inputs replayed\n", total);
    return total ? 0 : 1;
}
