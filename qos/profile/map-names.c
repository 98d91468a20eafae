/* SPDX-License-Identifier: Apache-2.0 */
#include "map-names.h"

#include <qos/profile/map.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names of traffic classes (RFC 2474, 2597, 3246, 5865, 8622). */
const struct qos_map_name qos_map_dscps[] = {
    {"be", 0},    {"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},
    {"cs5", 40},  {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14},
    {"af21", 18}, {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30},
    {"af41", 34}, {"af42", 36}, {"af43", 38}, {"ef", 46},   {"va", 44},   {"voice-admit", 44},
    {"le", 1},    {NULL, 0},
};

/* Codepoints (RFC 3168, 9331). */
const struct qos_map_name qos_map_ecns[] = {
    {"not-ect", 0}, {"ect1", 1}, {"ect0", 2}, {"ce", 3}, {NULL, 0}};

const struct qos_map_name qos_map_protocols[] = {{"tcp", 6}, {"udp", 17}, {"sctp", 132}, {NULL, 0}};

/* Applications by the ports that IANA assigned to them. */
const struct qos_map_app qos_map_apps[] = {
    {"dhcp", 17, 67, 68},      {"dns", 17, 53, 53},         {"dns", 6, 53, 53},
    {"dot", 6, 853, 853},      {"ftp", 6, 20, 21},          {"http", 6, 80, 80},
    {"https", 6, 443, 443},    {"imap", 6, 143, 143},       {"imap", 6, 993, 993},
    {"iperf3", 6, 5201, 5201}, {"iperf3", 17, 5201, 5201},  {"ldap", 6, 389, 389},
    {"mqtt", 6, 1883, 1883},   {"mqtt", 6, 8883, 8883},     {"nfs", 6, 2049, 2049},
    {"ntp", 17, 123, 123},     {"openvpn", 17, 1194, 1194}, {"pop3", 6, 110, 110},
    {"pop3", 6, 995, 995},     {"quic", 17, 443, 443},      {"rdp", 6, 3389, 3389},
    {"rsync", 6, 873, 873},    {"rtmp", 6, 1935, 1935},     {"rtp", 17, 5004, 5005},
    {"rtsp", 6, 554, 554},     {"sip", 17, 5060, 5061},     {"sip", 6, 5060, 5061},
    {"smb", 6, 445, 445},      {"smtp", 6, 25, 25},         {"smtp", 6, 465, 465},
    {"smtp", 6, 587, 587},     {"snmp", 17, 161, 162},      {"ssh", 6, 22, 22},
    {"stun", 17, 3478, 3478},  {"syslog", 17, 514, 514},    {"telnet", 6, 23, 23},
    {"tftp", 17, 69, 69},      {"vnc", 6, 5900, 5900},      {"wireguard", 17, 51820, 51820},
    {NULL, 0, 0, 0},
};

bool
qos_map_find_name(const struct qos_map_name *names, const char *text, unsigned long *value)
{
    for (; names->name; names++) {
        if (strcasecmp(names->name, text))
            continue;
        *value = names->value;
        return true;
    }
    return false;
}

bool
qos_map_dscp(const char *text, uint8_t *out)
{
    unsigned long value;
    if (!qos_map_find_name(qos_map_dscps, text, &value)) {
        size_t digits = strspn(text, "0123456789");
        value = strtoul(text, NULL, 10);
        if (!digits || digits > 2 || text[digits] || value > 63)
            return false;
    }
    *out = (uint8_t)value;
    return true;
}

static const char *
name_at(const struct qos_map_name *names, size_t i)
{
    while (i && names->name)
        names++, i--;
    return names->name;
}

static const char *
app_at(size_t i)
{
    const struct qos_map_app *a = qos_map_apps;
    while (i && a->name)
        a++, i--;
    return a->name;
}

const char *
qos_map_name_at(const char *key, size_t i)
{
    if (!strcmp(key, "dscp") || !strcmp(key, "remark"))
        return name_at(qos_map_dscps, i);
    if (!strcmp(key, "ecn"))
        return i ? name_at(qos_map_ecns, i - 1) : "yes";
    if (!strcmp(key, "app"))
        return app_at(i);
    if (!strcmp(key, "ip_proto"))
        return name_at(qos_map_protocols, i);
    return NULL;
}
