/* SPDX-License-Identifier: Apache-2.0 */
/* How numbers are written for people: the formats that the rows of messages.h name. */
#ifndef OFLIB_FMT_H
#define OFLIB_FMT_H

#include <oflib/row.h>

/* N(name, kind, prefix of its constants, rows) */
#define OF_FMT_NAMED(N)                                                                            \
    N(PORT, ENUM, "OFPP_", OFPP_ROWS)                                                              \
    N(GROUP, ENUM, "OFPG_", OFPG_ROWS)                                                             \
    N(METER, ENUM, "OFPM_", OFPM_ROWS)                                                             \
    N(QUEUE, ENUM, "OFPQ_", OFPQ_ROWS)                                                             \
    N(TABLE, ENUM, "OFPTT_", OFPTT_ROWS)                                                           \
    N(BUFFER, ENUM, "OFP_", OFP_BUFFER_ROWS)                                                       \
    N(MAX_LEN, ENUM, "OFPCML_", OFPCML_ROWS)                                                       \
    N(OFPPC, FLAGS, "OFPPC_", OFPPC_ROWS)                                                          \
    N(OFPPS, FLAGS, "OFPPS_", OFPPS_ROWS)                                                          \
    N(OFPPF, FLAGS, "OFPPF_", OFPPF_ROWS)                                                          \
    N(OFPC, FLAGS, "OFPC_", OFPC_CAP_ROWS)                                                         \
    N(OFPC_FRAG, ENUM, "OFPC_FRAG_", OFPC_FRAG_ROWS)                                               \
    N(OFPFC, ENUM, "OFPFC_", OFPFC_ROWS)                                                           \
    N(OFPFF, FLAGS, "OFPFF_", OFPFF_ROWS)                                                          \
    N(OFPGC, ENUM, "OFPGC_", OFPGC_ROWS)                                                           \
    N(OFPGT, ENUM, "OFPGT_", OFPGT_ROWS)                                                           \
    N(OFPMC, ENUM, "OFPMC_", OFPMC_ROWS)                                                           \
    N(OFPMF, FLAGS, "OFPMF_", OFPMF_ROWS)                                                          \
    N(OFPGFC, FLAGS, "OFPGFC_", OFPGFC_ROWS)                                                       \
    N(OFPCR_ROLE, ENUM, "OFPCR_ROLE_", OFPCR_ROLE_ROWS)                                            \
    N(OFPR, ENUM, "OFPR_", OFPR_ROWS)                                                              \
    N(OFPRR, ENUM, "OFPRR_", OFPRR_ROWS)                                                           \
    N(OFPPR, ENUM, "OFPPR_", OFPPR_ROWS)                                                           \
    N(OFPET, ENUM, "OFPET_", OFPET_ROWS)                                                           \
    N(OFPT, ENUM, "OFPT_", OFPT_ROWS)                                                              \
    N(OFPMP, ENUM, "OFPMP_", OFPMP_ROWS)                                                           \
    N(OFPBCT, ENUM, "OFPBCT_", OFPBCT_ROWS)                                                        \
    N(OFPBF, FLAGS, "OFPBF_", OFPBF_ROWS)                                                          \
    N(OFPLL, ENUM, "OFPLL_", OFPLL_ROWS)                                                           \
    N(OFPMON, FLAGS, "OFPMON_", OFPMON_ROWS)                                                       \
    N(OFPCAP, FLAGS, "OFPCAP_", OFPCAP_ROWS)                                                       \
    N(OFPCAP_POINT, ENUM, "OFPCAP_", OFPCAP_POINT_ROWS)                                            \
    N(OFPTP, FLAGS, "OFPTP_", OFPTP_ROWS)                                                          \
    N(OFPTR, ENUM, "OFPTR_", OFPTR_ROWS)                                                           \
    N(OFPTM, ENUM, "OFPTM_", OFPTM_ROWS)                                                           \
    N(OFPTA, ENUM, "OFPTA_", OFPTA_ROWS)                                                           \
    N(OFPTS, ENUM, "OFPTS_", OFPTS_ROWS)                                                           \
    N(OFPTB, ENUM, "OFPTB_", OFPTB_ROWS)                                                           \
    N(OFPQC, ENUM, "OFPQC_", OFPQC_ROWS)                                                           \
    N(OFPQP, ENUM, "OFPQP_", OFPQP_ROWS)                                                           \
    N(OFPQPK, ENUM, "OFPQPK_", OFPQPK_ROWS)                                                        \
    N(PORT10, ENUM, "OFPP10_", OFPP10_ROWS)                                                        \
    N(OFPT10, ENUM, "OFPT10_", OFPT10_ROWS)                                                        \
    N(OFPPC10, FLAGS, "OFPPC10_", OFPPC10_ROWS)                                                    \
    N(OFPPS10, FLAGS, "OFPPS10_", OFPPS10_ROWS)                                                    \
    N(OFPPF10, FLAGS, "OFPPF10_", OFPPF10_ROWS)                                                    \
    N(OFPC10, FLAGS, "OFPC10_", OFPC10_ROWS)                                                       \
    N(OFPFF10, FLAGS, "OFPFF10_", OFPFF10_ROWS)                                                    \
    N(OFPET10, ENUM, "OFPET10_", OFPET10_ROWS)                                                     \
    N(OFPIEH, FLAGS, "OFPIEH_", OFPIEH_ROWS)                                                       \
    N(OFP_FAIL, ENUM, "OFP_FAIL_", OFP_FAIL_ROWS)

#define OFPQ_ROWS(X)       X(OFPQ_ALL, 0xffffffff)
#define OFPTT_ROWS(X)      X(OFPTT_ALL, 0xff)
#define OFP_BUFFER_ROWS(X) X(OFP_NO_BUFFER, 0xffffffff)
#define OFPCML_ROWS(X)     X(OFPCML_NO_BUFFER, 0xffff)

#define OF_FMT_EXTERN(name, ...) extern const struct of_fmt of_fmt_##name;
OF_FMT_NAMED(OF_FMT_EXTERN)
extern const struct of_fmt of_fmt_DEC, of_fmt_HEX, of_fmt_HEX16, of_fmt_LEN;

/* The specification's name of a value ("OFPP_ANY"), or NULL. */
const char *of_fmt_name(const struct of_fmt *fmt, uint64_t value);

/* The name of an error's code ("OFPBRC_BAD_LEN"), or NULL. */
const char *of_error_code_name(uint16_t type, uint16_t code);

/* A sentence for people: what the code means and what to check.  NULL: the code is unknown. */
const char *of_error_text(uint16_t type, uint16_t code);

#endif
