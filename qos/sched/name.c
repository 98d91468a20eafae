/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/sched/name.h>
#include <qos/sched/units.h>

#include <oflib/text.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A slot has eight bytes, the first one in its highest bits. */
char *
qos_name_get(const uint64_t v[QOS_NAME_SLOTS], char buf[QOS_NAME_ROOM])
{
    for (unsigned i = 0; i < QOS_NAME_BYTES; i++)
        buf[i] = (char)(v[i / 8] >> (56 - i % 8 * 8) & 0xff);
    buf[QOS_NAME_BYTES] = '\0';
    return buf;
}

void
qos_name_put(uint64_t v[QOS_NAME_SLOTS], const char *name, size_t n)
{
    memset(v, 0, QOS_NAME_SLOTS * sizeof v[0]);
    for (size_t i = 0; i < n && i < QOS_NAME_BYTES; i++)
        v[i / 8] |= (uint64_t)(uint8_t)name[i] << (56 - i % 8 * 8);
}

int
qos_name_check(const char *name, size_t n, struct qos_error *e)
{
    const uint8_t *p = (const uint8_t *)name;
    if (n > QOS_NAME_BYTES)
        return qos_fail(e, QOS_BAD_PARAM, "the name has %zu bytes; the most is %d", n,
                        QOS_NAME_BYTES);
    for (size_t i = 0, len; i < n; i += len) {
        len = of_utf8_len(p + i, n - i);
        if (!len)
            return qos_fail(e, QOS_BAD_PARAM, "byte %zu of the name (0x%02x) is not UTF-8", i + 1,
                            p[i]);
        if (p[i] < ' ' || p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0))
            return qos_fail(e, QOS_BAD_PARAM, "character %zu of the name is a control character",
                            i + 1);
    }
    return 0;
}

/* ------------------------------------------------------------------- as text */

/* What ends or begins something in a command, a file of commands or a profile. */
static bool
is_special(char c)
{
    return strchr(" ,%#$\"'\\", c) != NULL;
}

char *
qos_name_format(const uint64_t v[QOS_NAME_SLOTS], char *buf, size_t n)
{
    char name[QOS_NAME_ROOM];
    int at = 0;
    qos_name_get(v, name);
    if (n)
        buf[0] = '\0';
    for (const char *p = name; *p; p++)
        qos_append(buf, n, &at, is_special(*p) ? "%%%02X" : "%c", (uint8_t)*p);
    return buf;
}

int
qos_name_parse(const char *text, uint64_t v[QOS_NAME_SLOTS], char *why, size_t n)
{
    char name[128] = "";
    size_t len = 0;
    struct qos_error e;
    for (const char *p = text; *p && len < sizeof name; p++) {
        int high = *p == '%' ? of_hex_digit(p[1]) : 0;
        int low = *p == '%' && high >= 0 ? of_hex_digit(p[2]) : 0;
        if (high < 0 || low < 0) {
            snprintf(why, n, "'%.60s': write a blank as %%20 and %% itself as %%25", text);
            return -EINVAL;
        }
        name[len++] = *p == '%' ? (char)(high << 4 | low) : *p;
        p += *p == '%' ? 2 : 0;
    }
    if (qos_name_check(name, len, &e)) {
        snprintf(why, n, "%s", e.text);
        return -EINVAL;
    }
    qos_name_put(v, name, len);
    return 0;
}
