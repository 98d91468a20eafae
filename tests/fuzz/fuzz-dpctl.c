/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl as it is typed: the first line is its words, single quotes hold blanks together; what follows is the
 * content of any file that it reads (-F, profiles, flows, a state).  It ends; a failure says why; whatever it
 * sends is a message of OpenFlow 1.3. */
#include "dpctl.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int
split(char *line, char **words)
{
    int n = 0;
    char *to = line;
    for (char *p = line; *p && n < DPCTL_WORDS_MAX;) {
        bool quoted = false;
        p += strspn(p, " \t");
        if (!*p)
            break;
        words[n++] = to;
        for (; *p && (quoted || !strchr(" \t", *p)); p++) {
            quoted ^= *p == '\'';
            if (*p != '\'')
                *to++ = *p;
        }
        p += *p != '\0';
        *to++ = '\0';
    }
    return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
    size_t len = end ? (size_t)(end - data) : n, rest = end ? len + 1 : n;
    struct fuzz_world world = {.file = {data + rest, n - rest}};
    char *words[DPCTL_WORDS_MAX], *line = malloc(len + 2);
    if (!line)
        abort();
    if (len)
        memcpy(line, data, len);
    line[len] = '\0';
    fuzz_dpctl(words, split(line, words), &world);
    free(line);
    return 0;
}
