/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

struct of10_known
of10_known(const struct of_match *m)
{
    struct of10_known k = {OF10_VLAN_UNKNOWN, UINT32_MAX, UINT32_MAX};
    const struct of_oxm *vlan = m ? of_match_find(m, OXM_vlan_vid) : NULL;
    const struct of_oxm *type = m ? of_match_find(m, OXM_eth_type) : NULL;
    const struct of_oxm *proto = m ? of_match_find(m, OXM_ip_proto) : NULL;
    if (vlan && of_get16(vlan->value) & OFPVID_PRESENT)
        k.vlan = OF10_VLAN_TAGGED;
    else if (vlan && !vlan->has_mask)
        k.vlan = OF10_VLAN_UNTAGGED;
    if (type)
        k.eth_type = of_get16(type->value);
    if (proto)
        k.ip_proto = proto->value[0];
    return k;
}
