/* SPDX-License-Identifier: Apache-2.0 */
/* The codec as a filter, for tests in other languages: a message in hexadecimal on each line of
 * the input, an answer on each line of the output:
 *
 *   ok HEX         it was decoded, and encodes again to this
 *   error T C      refused with this OpenFlow error type and code
 *   fail N         -errno
 *
 * With --constants it writes the constants of oflib/openflow.h instead, NAME VALUE a line.
 */
#include "hex.h"

#include <oflib/codec.h>

#include <stdio.h>
#include <stdlib.h>

#define CONSTANT(name, value, ...) {#name, (uint32_t)(value)},
/* clang-format off */
#define ALL_CONSTANTS                                                                              \
    OFPT_ROWS(CONSTANT) OFPP_ROWS(CONSTANT) OFPPC_ROWS(CONSTANT) OFPPS_ROWS(CONSTANT)              \
    OFPPF_ROWS(CONSTANT) OFPQT_ROWS(CONSTANT) OFPMT_ROWS(CONSTANT) OFPXMC_ROWS(CONSTANT)           \
    OFPIEH_ROWS(CONSTANT) OFPIT_ROWS(CONSTANT) OFPAT_ROWS(CONSTANT) OFPC_CAP_ROWS(CONSTANT)        \
    OFPC_FRAG_ROWS(CONSTANT) OFPFC_ROWS(CONSTANT) OFPFF_ROWS(CONSTANT) OFPGC_ROWS(CONSTANT)        \
    OFPGT_ROWS(CONSTANT) OFPG_ROWS(CONSTANT) OFPMC_ROWS(CONSTANT) OFPM_ROWS(CONSTANT)              \
    OFPMF_ROWS(CONSTANT) OFPMBT_ROWS(CONSTANT) OFPMP_ROWS(CONSTANT) OFPTFPT_ROWS(CONSTANT)         \
    OFPGFC_ROWS(CONSTANT) OFPCR_ROLE_ROWS(CONSTANT) OFPR_ROWS(CONSTANT) OFPRR_ROWS(CONSTANT)       \
    OFPPR_ROWS(CONSTANT) OFPET_ROWS(CONSTANT) OFPHFC_ROWS(CONSTANT) OFPBRC_ROWS(CONSTANT)          \
    OFPBAC_ROWS(CONSTANT) OFPBIC_ROWS(CONSTANT) OFPBMC_ROWS(CONSTANT) OFPFMFC_ROWS(CONSTANT)       \
    OFPGMFC_ROWS(CONSTANT) OFPPMFC_ROWS(CONSTANT) OFPTMFC_ROWS(CONSTANT) OFPQOFC_ROWS(CONSTANT)    \
    OFPSCFC_ROWS(CONSTANT) OFPRRFC_ROWS(CONSTANT) OFPMMFC_ROWS(CONSTANT) OFPTFFC_ROWS(CONSTANT)    \
    OFPHET_ROWS(CONSTANT)
/* clang-format on */

static void
print_constants(void)
{
    static const struct {
        const char *name;
        uint32_t value;
    } all[] = {ALL_CONSTANTS};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        printf("%s %u\n", all[i].name, all[i].value);
}

static void
answer(struct of_bytes raw, struct of_arena *arena)
{
    static uint8_t buf[OF_MSG_MAX];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_msg m;
    of_arena_reset(arena);
    int err = of_decode(raw, arena, &m);
    if (!err)
        err = of_encode(&w, &m);
    if (err > 0)
        printf("error %u %u\n", of_err_type(err), of_err_code(err));
    else if (err < 0)
        printf("fail %d\n", err);
    else {
        printf("ok ");
        for (size_t i = 0; i < w.len; i++)
            printf("%02x", buf[i]);
        printf("\n");
    }
}

int
main(int argc, char **argv)
{
    static uint8_t raw[OF_MSG_MAX];
    struct of_arena arena;
    char *line = NULL;
    size_t cap = 0;
    if (argc > 1 && !strcmp(argv[1], "--constants")) {
        print_constants();
        return 0;
    }
    of_arena_init(&arena, 16 << 20);
    while (getline(&line, &cap, stdin) > 0) {
        long n = hex_bytes(line, raw, sizeof raw);
        if (n < 0)
            printf("fail 22\n");
        else
            answer((struct of_bytes){raw, (size_t)n}, &arena);
    }
    free(line);
    of_arena_free(&arena);
    return 0;
}
