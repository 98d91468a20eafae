/* SPDX-License-Identifier: Apache-2.0 */
/* What a flow table can do (7.3.5.5): as sets of bits, as ofp_table_features, and as what a
 * flow-mod must keep to.  Pure.
 *
 * Every table begins with all that the switch can do (table_features_all); a controller may ask
 * for less.  What it asked for is then what the table does, no more.
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
    uint64_t match, masks, wildcards; /* OXM_: may be asked for, with a mask, may be left out */
    uint64_t metadata_match, metadata_write;
    uint32_t max_entries;
    bool present;                      /* the table is part of the pipeline */
    char name[OFP_MAX_TABLE_NAME_LEN]; /* not a capability: last */
};

/* All that table `id` of `n_tables` can do. */
void table_features_all(struct table_features *f, uint8_t id, unsigned n_tables,
                        uint32_t max_entries);

/* One element of a request, checked against what the table could do (`all`, of the same table).
 * OFPET_TABLE_FEATURES_FAILED:
 *   BAD_METADATA  metadata bits that the table can't match or write
 *   BAD_TYPE      a property that is missing, there twice, or an experimenter's
 *   BAD_ARGUMENT  a property's value that the table can't have; too many entries
 * (BAD_LEN and unknown types of properties are found when the message is decoded.) */
int table_features_read(const struct of_table_features *wire, const struct table_features *all,
                        struct table_features *out);

/* Do the tables that each names as its next ones exist in this pipeline, and table 0?  `v` has one
 * element a table.  BAD_ARGUMENT, BAD_TABLE. */
int table_features_check_pipeline(const struct table_features *v, unsigned n_tables);

/* The same capabilities (whatever the names are)? */
bool table_features_same(const struct table_features *a, const struct table_features *b);

#define TABLE_FEATURES_PROPS 14
#define TABLE_FEATURES_IDS   (2 * OXM_N + 4 * OXM_N + 2 * 8 + 4 * 32)

/* An element of the reply, with the memory behind its properties. */
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

/* May this flow-mod (add, modify) put its flow into the table?
 *   OFPBMC_BAD_FIELD, BAD_MASK   the match asks for what the table can't match
 *   OFPBMC_BAD_WILDCARDS         (add) it leaves out what the table must know
 *   OFPBIC_UNSUP_INST, BAD_TABLE_ID, UNSUP_METADATA, UNSUP_METADATA_MASK
 *   OFPBAC_BAD_TYPE, BAD_SET_TYPE
 * Instructions and actions of experimenters are left to others to refuse. */
int table_features_check(const struct table_features *f, const struct of_flow_mod *fm);

#endif
