/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <stdio.h>
#include <string.h>

#define PREFIX  "ofp"
#define NETWORK 4 /* characters of 5 bits */
#define OTHERS  8

/* FNV-1a of 64 bits. */
static uint64_t
hash(uint64_t h, const char *text)
{
    for (const char *p = text;; p++) {
        h = (h ^ (uint8_t)*p) * 0x100000001b3;
        if (!*p) /* the end counts: "a", "bc" is not "ab", "c" */
            return h;
    }
}

static void
write_bits(uint64_t h, unsigned n, char *out)
{
    h ^= h >> 40;
    for (unsigned i = 0; i < n; i++, h >>= 5)
        out[i] = "0123456789abcdefghjkmnpqrstvwxyz"[h & 31];
    out[n] = '\0';
}

void
name_host(const char *network, const char *id, const char *ifname, char out[IFNAMSIZ])
{
    uint64_t h = hash(0xcbf29ce484222325, network);
    memcpy(out, PREFIX, sizeof PREFIX);
    write_bits(h, NETWORK, out + strlen(out));
    write_bits(hash(hash(h, id), ifname), OTHERS, out + strlen(out));
}

bool
name_is_of(const char *host, const char *network)
{
    char example[IFNAMSIZ];
    name_host(network, "", "", example);
    return strlen(host) == strlen(example) && !memcmp(host, example, sizeof PREFIX - 1 + NETWORK);
}

bool
name_alias(const char *network, const char *id, const char *ifname, char out[CNI_ALIAS_MAX + 1])
{
    int n = snprintf(out, CNI_ALIAS_MAX + 1, "ofqos-cni/%s/%s/%s", network, id, ifname);
    return n <= CNI_ALIAS_MAX;
}

bool
name_alias_is_of(const char *alias, const char *network)
{
    char start[CNI_ALIAS_MAX + 1];
    return name_alias(network, "", "", start) && !strncmp(alias, start, strlen(start) - 1);
}
