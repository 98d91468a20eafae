/* SPDX-License-Identifier: Apache-2.0 */
/* Which VLANs a port has, for OFPP_NORMAL: an access port has one, whose frames have no tag there; a
 * trunk has some, whose frames are tagged; a trunk may have a native VLAN beside them, without tags.  A
 * port that nobody told (NULL) has all, and untagged frames are VLAN 0. */
#ifndef NORMAL_VLANS_H
#define NORMAL_VLANS_H

#include <flow/flow.h>

#include <stddef.h>

#define VLAN_MAX 4094

struct vlans {
    uint16_t untagged;   /* the VLAN of untagged frames; 0: they are refused */
    uint64_t tagged[64]; /* bits */
};

/* One word of a port's settings: "vlan=10", "trunk=10:20" (these two), "trunk=10-19:30".  Adds it to *v,
 * which begins as zeros.  False, with a sentence in `why`: it is none, or wrong. */
bool vlans_take(struct vlans *v, const char *word, char *why, size_t why_len);

/* As such words, separated by commas. */
#define VLANS_TEXT 512
void vlans_text(const struct vlans *v, char text[VLANS_TEXT]);

/* The VLAN of a frame that comes in, by its key's vlan_vid; -1: the port refuses it. */
int vlans_in(const struct vlans *v, uint16_t vlan_vid);

/* Whether frames of the VLAN leave by the port. */
bool vlans_has(const struct vlans *v, unsigned vlan);

/* What is done to a frame with this vlan_vid that leaves by the port. */
enum vlan_edit { VLAN_AS_IS, VLAN_PUSH, VLAN_SET, VLAN_POP };
enum vlan_edit vlans_edit(const struct vlans *v, unsigned vlan, uint16_t vlan_vid);

/* The same as actions. */
struct vlan_acts {
    uint64_t word[3];
    struct act_list list; /* of `word` */
};
void vlans_acts(enum vlan_edit edit, unsigned vlan, struct vlan_acts *out);

#endif
