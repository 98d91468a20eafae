/* SPDX-License-Identifier: Apache-2.0 */
#include "ethtool.h"

#include "blocking.h"

#include <oflib/openflow.h>

#include <linux/ethtool.h>
#include <string.h>

#define WORDS 127 /* of a link mode mask at most: link_mode_masks_nwords is a signed char */

/* OpenFlow's features for each of ethtool's link modes. */
static const struct {
    uint8_t bit;
    uint32_t features;
} modes[] = {
    {ETHTOOL_LINK_MODE_10baseT_Half_BIT, OFPPF_10MB_HD},
    {ETHTOOL_LINK_MODE_10baseT_Full_BIT, OFPPF_10MB_FD},
    {ETHTOOL_LINK_MODE_100baseT_Half_BIT, OFPPF_100MB_HD},
    {ETHTOOL_LINK_MODE_100baseT_Full_BIT, OFPPF_100MB_FD},
    {ETHTOOL_LINK_MODE_1000baseT_Half_BIT, OFPPF_1GB_HD},
    {ETHTOOL_LINK_MODE_1000baseT_Full_BIT, OFPPF_1GB_FD},
    {ETHTOOL_LINK_MODE_1000baseKX_Full_BIT, OFPPF_1GB_FD},
    {ETHTOOL_LINK_MODE_1000baseX_Full_BIT, OFPPF_1GB_FD},
    {ETHTOOL_LINK_MODE_2500baseX_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_2500baseT_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_5000baseT_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_10000baseT_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseKX4_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseKR_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseCR_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseSR_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseLR_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseLRM_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_10000baseER_Full_BIT, OFPPF_10GB_FD},
    {ETHTOOL_LINK_MODE_25000baseCR_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_25000baseKR_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_25000baseSR_Full_BIT, OFPPF_OTHER},
    {ETHTOOL_LINK_MODE_40000baseKR4_Full_BIT, OFPPF_40GB_FD},
    {ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT, OFPPF_40GB_FD},
    {ETHTOOL_LINK_MODE_40000baseSR4_Full_BIT, OFPPF_40GB_FD},
    {ETHTOOL_LINK_MODE_40000baseLR4_Full_BIT, OFPPF_40GB_FD},
    {ETHTOOL_LINK_MODE_100000baseKR4_Full_BIT, OFPPF_100GB_FD},
    {ETHTOOL_LINK_MODE_100000baseSR4_Full_BIT, OFPPF_100GB_FD},
    {ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT, OFPPF_100GB_FD},
    {ETHTOOL_LINK_MODE_100000baseLR4_ER4_Full_BIT, OFPPF_100GB_FD},
    {ETHTOOL_LINK_MODE_TP_BIT, OFPPF_COPPER},
    {ETHTOOL_LINK_MODE_FIBRE_BIT, OFPPF_FIBER},
    {ETHTOOL_LINK_MODE_Autoneg_BIT, OFPPF_AUTONEG},
    {ETHTOOL_LINK_MODE_Pause_BIT, OFPPF_PAUSE},
    {ETHTOOL_LINK_MODE_Asym_Pause_BIT, OFPPF_PAUSE_ASYM},
};

static const struct {
    uint32_t mbit;
    uint32_t half, full;
} speeds[] = {
    {10, OFPPF_10MB_HD, OFPPF_10MB_FD},   {100, OFPPF_100MB_HD, OFPPF_100MB_FD},
    {1000, OFPPF_1GB_HD, OFPPF_1GB_FD},   {10000, OFPPF_OTHER, OFPPF_10GB_FD},
    {40000, OFPPF_OTHER, OFPPF_40GB_FD},  {100000, OFPPF_OTHER, OFPPF_100GB_FD},
    {1000000, OFPPF_OTHER, OFPPF_1TB_FD},
};

static uint32_t
features_of(const uint32_t *mask, unsigned words)
{
    uint32_t features = 0;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        unsigned word = modes[i].bit / 32;
        if (word < words && mask[word] >> modes[i].bit % 32 & 1)
            features |= modes[i].features;
    }
    return features;
}

static uint32_t
current_of(const struct ethtool_link_settings *s)
{
    uint32_t curr = OFPPF_OTHER;
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
        if (speeds[i].mbit == s->speed)
            curr = s->duplex == DUPLEX_HALF ? speeds[i].half : speeds[i].full;
    }
    if (s->port == PORT_TP)
        curr |= OFPPF_COPPER;
    if (s->port == PORT_FIBRE)
        curr |= OFPPF_FIBER;
    return s->autoneg == AUTONEG_ENABLE ? curr | OFPPF_AUTONEG : curr;
}

/* An interface may have more than it uses (veth), so the number in use counts if it is known. */
static void
get_tx_queues(int fd, struct qos_link_info *out)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq ifr = {.ifr_data = (void *)&channels};
    memcpy(ifr.ifr_name, out->name, IFNAMSIZ);
    if (!netlink_blocking_ethtool(fd, &ifr) && channels.tx_count + channels.combined_count)
        out->tx_queues = channels.tx_count + channels.combined_count;
}

static void
get_segmentation(int fd, struct qos_link_info *out)
{
    struct ethtool_value tso = {.cmd = ETHTOOL_GTSO};
    struct ifreq ifr = {.ifr_data = (void *)&tso};
    memcpy(ifr.ifr_name, out->name, IFNAMSIZ);
    out->cuts_tcp = !netlink_blocking_ethtool(fd, &ifr) && tso.data;
}

static void
get_settings(int fd, struct qos_link_info *out)
{
    union {
        struct ethtool_link_settings s;
        uint8_t room[sizeof(struct ethtool_link_settings) + 3 * WORDS * 4];
    } cmd;
    struct ifreq ifr = {0};
    memset(&cmd, 0, sizeof cmd);
    memcpy(ifr.ifr_name, out->name, IFNAMSIZ);
    ifr.ifr_data = (void *)&cmd;
    cmd.s.cmd = ETHTOOL_GLINKSETTINGS;
    /* The first call answers how many words the kernel's masks have, as a negative number. */
    if (netlink_blocking_ethtool(fd, &ifr) || cmd.s.link_mode_masks_nwords >= 0)
        return;
    cmd.s.cmd = ETHTOOL_GLINKSETTINGS;
    cmd.s.link_mode_masks_nwords = (int8_t)-cmd.s.link_mode_masks_nwords;
    if (netlink_blocking_ethtool(fd, &ifr) || cmd.s.link_mode_masks_nwords <= 0)
        return; /* LCOV_EXCL_LINE: luck: the interface goes between both */
    unsigned words = (unsigned)cmd.s.link_mode_masks_nwords;
    const uint32_t *masks = (const uint32_t *)(const void *)(cmd.room + sizeof cmd.s);
    out->supported = features_of(masks, words);
    out->advertised = features_of(masks + words, words);
    out->peer = features_of(masks + 2 * words, words);
    if (cmd.s.speed == 0 || cmd.s.speed == (uint32_t)SPEED_UNKNOWN)
        return;
    out->speed = (uint64_t)cmd.s.speed * 1000000;
    out->full_duplex = cmd.s.duplex != DUPLEX_HALF;
    out->curr = current_of(&cmd.s);
}

void
netlink_ethtool_get(int fd, struct qos_link_info *out)
{
    get_tx_queues(fd, out);
    get_segmentation(fd, out);
    get_settings(fd, out);
}
