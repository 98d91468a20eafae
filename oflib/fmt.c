/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/fmt.h>
#include <oflib/openflow10.h>

#define NAME_ROW(c, v, ...) {(uint32_t)(v), #c},
#define FMT_NAMES(name, kind, prefix, rows)                                                        \
    static const struct of_name names_##name[] = {rows(NAME_ROW)};                                 \
    const struct of_fmt of_fmt_##name = {OF_FMT_##kind, sizeof(prefix) - 1, names_##name,          \
                                         sizeof names_##name / sizeof names_##name[0]};
OF_FMT_NAMED(FMT_NAMES)

const struct of_fmt of_fmt_DEC = {OF_FMT_DEC, 0, NULL, 0};
const struct of_fmt of_fmt_HEX = {OF_FMT_HEX, 0, NULL, 0};
const struct of_fmt of_fmt_HEX16 = {OF_FMT_HEX, 16, NULL, 0};
const struct of_fmt of_fmt_LEN = {OF_FMT_DEC, 0, NULL, 0};

const char *
of_fmt_name(const struct of_fmt *fmt, uint64_t value)
{
    for (size_t i = 0; i < fmt->n; i++)
        if (fmt->names[i].value == value)
            return fmt->names[i].name;
    return NULL;
}

/* E(error type, rows of its codes) */
#define ERROR_CODES(E)                                                                             \
    E(HELLO_FAILED, OFPHFC_ROWS)                                                                   \
    E(BAD_REQUEST, OFPBRC_ROWS)                                                                    \
    E(BAD_ACTION, OFPBAC_ROWS)                                                                     \
    E(BAD_INSTRUCTION, OFPBIC_ROWS)                                                                \
    E(BAD_MATCH, OFPBMC_ROWS)                                                                      \
    E(FLOW_MOD_FAILED, OFPFMFC_ROWS)                                                               \
    E(GROUP_MOD_FAILED, OFPGMFC_ROWS)                                                              \
    E(PORT_MOD_FAILED, OFPPMFC_ROWS)                                                               \
    E(TABLE_MOD_FAILED, OFPTMFC_ROWS)                                                              \
    E(QUEUE_OP_FAILED, OFPQOFC_ROWS)                                                               \
    E(SWITCH_CONFIG_FAILED, OFPSCFC_ROWS)                                                          \
    E(ROLE_REQUEST_FAILED, OFPRRFC_ROWS)                                                           \
    E(METER_MOD_FAILED, OFPMMFC_ROWS)                                                              \
    E(TABLE_FEATURES_FAILED, OFPTFFC_ROWS)                                                         \
    E(SCHED_FAILED, OFPSFC_ROWS)                                                                   \
    E(BUNDLE_FAILED, OFPBFC_ROWS)

#define CODE_NAMES(type, rows) static const struct of_name codes_##type[] = {rows(NAME_ROW)};
ERROR_CODES(CODE_NAMES)

#define CODE_FMT(type, rows)                                                                       \
    [OFPET_##type] = {OF_FMT_ENUM, 0, codes_##type, sizeof codes_##type / sizeof codes_##type[0]},
static const struct of_fmt error_codes[] = {ERROR_CODES(CODE_FMT)};

#define TEXT_ROW(c, v, text)   [v] = text,
#define CODE_TEXTS(type, rows) static const char *const texts_##type[] = {rows(TEXT_ROW)};
ERROR_CODES(CODE_TEXTS)

#define CODE_TEXTS_OF(type, rows) [OFPET_##type] = texts_##type,
static const char *const *const error_texts[] = {ERROR_CODES(CODE_TEXTS_OF)};

const char *
of_error_text(uint16_t type, uint16_t code)
{
    return of_error_code_name(type, code) ? error_texts[type][code] : NULL;
}

const char *
of_error_code_name(uint16_t type, uint16_t code)
{
    if (type >= sizeof error_codes / sizeof error_codes[0])
        return NULL;
    return of_fmt_name(&error_codes[type], code);
}
