/* SPDX-License-Identifier: Apache-2.0 */
#include <normal/vlans.h>

#include <packet/headers.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VID 0xfff

static bool
has_bit(const struct vlans *v, unsigned vlan)
{
    return v->tagged[vlan / 64] >> vlan % 64 & 1;
}

/* ------------------------------------------------------------------ as text */

/* A VLAN, and what follows it. */
static bool
take_number(const char **text, unsigned *vlan)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    unsigned long n = strtoul(*text, &end, 10);
    *text = end;
    *vlan = n > VLAN_MAX ? 0 : (unsigned)n;
    return *vlan != 0;
}

/* "10:20-29" */
static bool
take_list(struct vlans *v, const char *text)
{
    for (;;) {
        unsigned from, to;
        if (!take_number(&text, &from))
            return false;
        to = from;
        if (*text == '-' && (text++, !take_number(&text, &to)))
            return false;
        if (to < from)
            return false;
        for (unsigned i = from; i <= to; i++)
            v->tagged[i / 64] |= UINT64_C(1) << i % 64;
        if (!*text)
            return true;
        if (*text++ != ':')
            return false;
    }
}

bool
vlans_take(struct vlans *v, const char *word, char *why, size_t why_len)
{
    const char *value = strchr(word, '=');
    unsigned vlan;
    value = value ? value + 1 : word + strlen(word);
    if (!strncmp(word, "trunk=", 6)) {
        if (take_list(v, value))
            return true;
        snprintf(why, why_len,
                 "trunk is a list of VLANs (1 to %d), such as trunk=10:20-29, not '%.60s'",
                 VLAN_MAX, value);
    } else if (!strncmp(word, "vlan=", 5)) {
        if (take_number(&value, &vlan) && !*value) {
            v->untagged = (uint16_t)vlan;
            return true;
        }
        snprintf(
            why, why_len,
            "vlan is one VLAN (1 to %d), such as vlan=10, not '%.60s'; several are trunk=10:20",
            VLAN_MAX, word + 5);
    } else {
        snprintf(why, why_len, "a port may have vlan=VLAN and trunk=VLAN[:VLAN]..., not '%.60s'",
                 word);
    }
    return false;
}

void
vlans_text(const struct vlans *v, char text[VLANS_TEXT])
{
    size_t n = 0;
    const char *before = "trunk=";
    *text = '\0';
    if (v->untagged)
        n += (size_t)snprintf(text, VLANS_TEXT, "vlan=%u", v->untagged);
    for (unsigned i = 1, to; i <= VLAN_MAX; i = to + 1) {
        for (to = i; to <= VLAN_MAX && has_bit(v, to); to++)
            ;
        if (to == i)
            continue;
        if (n + 24 > VLANS_TEXT) {
            snprintf(text + n, VLANS_TEXT - n, ":...");
            return;
        }
        n += (size_t)snprintf(text + n, VLANS_TEXT - n, "%s%s%u", n && *before == 't' ? "," : "",
                              before, i);
        if (to - 1 > i)
            n += (size_t)snprintf(text + n, VLANS_TEXT - n, "-%u", to - 1);
        before = ":";
    }
}

/* ------------------------------------------------------------------ frames */

int
vlans_in(const struct vlans *v, uint16_t vlan_vid)
{
    unsigned vid = vlan_vid & VID; /* 0: a priority tag, or none */
    if (!v)
        return (int)vid;
    if (!vid)
        return v->untagged ? v->untagged : -1;
    return has_bit(v, vid) ? (int)vid : -1;
}

bool
vlans_has(const struct vlans *v, unsigned vlan)
{
    return !v || (vlan && (v->untagged == vlan || has_bit(v, vlan)));
}

enum vlan_edit
vlans_edit(const struct vlans *v, unsigned vlan, uint16_t vlan_vid)
{
    bool tag = vlan_vid & OFPVID_PRESENT;
    if (!vlan)
        return VLAN_AS_IS;
    if (v && v->untagged == vlan)
        return tag ? VLAN_POP : VLAN_AS_IS;
    return !tag ? VLAN_PUSH : vlan_vid & VID ? VLAN_AS_IS : VLAN_SET;
}

void
vlans_acts(enum vlan_edit edit, unsigned vlan, struct vlan_acts *out)
{
    struct act *a = (struct act *)(void *)out->word;
    out->list.first = a;
    if (edit == VLAN_POP || edit == VLAN_PUSH) {
        *a = (struct act){.op = edit == VLAN_POP ? OFPAT_POP_VLAN : OFPAT_PUSH_VLAN,
                          .units = 1,
                          .arg = edit == VLAN_POP ? 0 : TYPE_VLAN};
        a = (struct act *)(void *)(out->word + 1);
    }
    if (edit == VLAN_PUSH || edit == VLAN_SET) {
        *a = (struct act){.op = OFPAT_SET_FIELD, .units = 2, .extra = OXM_vlan_vid};
        of_set16(a->data, (uint16_t)(OFPVID_PRESENT | vlan));
        a = (struct act *)(void *)((uint64_t *)(void *)a + 2);
    }
    out->list.end = a;
}
