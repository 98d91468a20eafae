/* SPDX-License-Identifier: Apache-2.0 */
/* Which bits of a key show that a subtable has no flow for it.
 *
 * The tree holds the keys of the subtable's flows, as a binary tree of the bits in which they differ: fields in
 * one order for all subtables (key-tree.c), the highest bit of each first.  A key that is not there leaves the others
 * at some bit: the bits up to this one are the proof.  So proofs are prefixes, and however many packets there are,
 * there are only as many proofs as the flows have prefixes.
 *
 * Only the control thread uses it, for megaflows of the kernel; it is made when the first proof is asked for. */
#ifndef CLASSIFIER_KEY_TREE_H
#define CLASSIFIER_KEY_TREE_H

#include "classifier-inside.h"

/* Adds to `bits` what of the key shows that no flow of the subtable matches it; nothing, if the bits that are there
 * already show it.  *room: keys that may be put into trees meanwhile.  False: one matches, or it can't be told (no
 * memory, no room: a tree of many keys takes some calls to grow): it depends on the whole mask. */
bool key_tree_excludes(struct subtable *s, const struct flow_key *key, unsigned *room,
                       struct flow_key *bits);

/* The first flow of a chain comes, goes, or gives its place to another one with the same key.  Nothing happens to a
 * subtable that has no tree. */
void key_tree_add(struct subtable *s, const struct flow *f);
void key_tree_remove(struct subtable *s, const struct flow *f);
void key_tree_replace(struct subtable *s, const struct flow *f, const struct flow *by);

void key_tree_free(struct key_tree *t); /* NULL: nothing */

#endif
