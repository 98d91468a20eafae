/* SPDX-License-Identifier: Apache-2.0 */
/* The capabilities of a flow table (7.3.5.5): sets of bits, to and from ofp_table_features, and the
 * check of a flow-mod against them.  Pure.
 *
 * A table begins with everything that the switch can do (table_features_all).  A controller may ask
 * for less, and the table then does only that.
 */
#ifndef TABLE_FEATURES_H
#define TABLE_FEATURES_H

#include <oflib/codec.h>

/* What flow entries, or the table-miss entry, may do.  Bits: OFPIT_, OFPAT_, OXM_, table ids. */
struct table_can {
    uint64_t instructions;
    uint64_t write_actions, apply_actions;
    uint64_t write_fields, apply_fields; /* of set_field */
    uint64_t next[4];                    /* tables that goto_table may name */
};

struct table_features {
    struct table_can can[2]; /* flow entries, the table-miss entry (the _MISS properties) */
    uint64_t match, masks, wildcards; /* OXM_: may be matched, with a mask, may be left out */
    uint64_t metadata_match, metadata_write;
    uint32_t max_entries;
    bool present;                      /* the table is part of the pipeline */
    char name[OFP_MAX_TABLE_NAME_LEN]; /* last: table_features_same leaves it out */
};

/* All that table `id` of `n_tables` can do. */
void table_features_all(struct table_features *f, uint8_t id, unsigned n_tables,
                        uint32_t max_entries);

/* Reads one element of a request and checks it against `all`, what the table can do at most.
 * OFPET_TABLE_FEATURES_FAILED:
 *   BAD_METADATA  metadata bits that the table can't match or write
 *   BAD_TYPE      a property is missing, there twice, or an experimenter's
 *   BAD_ARGUMENT  a property has a value that the table doesn't support; too many entries
 * (Decoding the message has found BAD_LEN and unknown types of properties.) */
int table_features_read(const struct of_table_features *wire, const struct table_features *all,
                        struct table_features *out);

/* Checks that table 0 is present (else BAD_TABLE), and every table that another names as a next one
 * (else BAD_ARGUMENT).  `v` has one element a table. */
int table_features_check_pipeline(const struct table_features *v, unsigned n_tables);

/* Whether the capabilities are the same, whatever the names are. */
bool table_features_same(const struct table_features *a, const struct table_features *b);

#define TABLE_FEATURES_PROPS 14
#define TABLE_FEATURES_IDS   (2 * OXM_N + 4 * OXM_N + 2 * 8 + 4 * 32)

/* An element of the reply and the memory that its properties point to. */
struct table_features_wire {
    struct of_table_features body;
    union {
        struct of_tfp_typeids types;
        struct of_tfp_oxmids oxms;
        struct of_tfp_next_tables next;
    } props[TABLE_FEATURES_PROPS];
    void *v[TABLE_FEATURES_PROPS];
    struct of_id ids[TABLE_FEATURES_IDS];
    uint32_t n_ids;
    uint8_t next[2][256];
};
void table_features_write(const struct table_features *f, uint8_t id, uint32_t config,
                          struct table_features_wire *out);

/* Checks an add or modify against the table's capabilities.
 *   OFPBMC_BAD_FIELD, BAD_MASK   the table can't match that field, or not with a mask
 *   OFPBMC_BAD_WILDCARDS         (add) the match lacks a field that the table requires
 *   OFPBIC_UNSUP_INST, BAD_TABLE_ID, UNSUP_METADATA, UNSUP_METADATA_MASK
 *   OFPBAC_BAD_TYPE, BAD_SET_TYPE
 * Experimenters' instructions and actions pass: compiling refuses them. */
int table_features_check(const struct table_features *f, const struct of_flow_mod *fm);

#endif
