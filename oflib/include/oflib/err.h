/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of this project reports errors as one int:
 *
 *    0    done
 *   <0    -errno: something of ours failed (memory, socket, ...)
 *   >0    an OpenFlow error for the peer: OF_ERR(type, code), made of the OFPET_ type and the
 *         code of that type (OpenFlow 1.3.5, 7.4.4).  A marker bit is set because type 0, code 0
 *         (OFPHFC_INCOMPATIBLE) is an error too.
 *
 * OFPET_SCHED_FAILED (the QoS extension) is encoded the same way; the request's envelope decides whether it goes out
 * as error type 14 or as an experimenter error (docs/reference/qos-extension.md).
 * OFPET_BUNDLE_FAILED goes out as ONF's experimenter error, always.
 */
#ifndef OFLIB_ERR_H
#define OFLIB_ERR_H

#include <stdint.h>

#define OF_ERR_MARK        0x40000000
#define OF_ERR(type, code) (OF_ERR_MARK | ((int)((type)&0x3fff) << 16) | (int)((code)&0xffff))

/* One a type: OF_BAD_REQUEST(BAD_LEN).  The constants are in openflow.h. */
#define OF_BAD_REQUEST(code)           OF_ERR(OFPET_BAD_REQUEST, OFPBRC_##code)
#define OF_BAD_ACTION(code)            OF_ERR(OFPET_BAD_ACTION, OFPBAC_##code)
#define OF_BAD_INSTRUCTION(code)       OF_ERR(OFPET_BAD_INSTRUCTION, OFPBIC_##code)
#define OF_BAD_MATCH(code)             OF_ERR(OFPET_BAD_MATCH, OFPBMC_##code)
#define OF_HELLO_FAILED(code)          OF_ERR(OFPET_HELLO_FAILED, OFPHFC_##code)
#define OF_FLOW_MOD_FAILED(code)       OF_ERR(OFPET_FLOW_MOD_FAILED, OFPFMFC_##code)
#define OF_GROUP_MOD_FAILED(code)      OF_ERR(OFPET_GROUP_MOD_FAILED, OFPGMFC_##code)
#define OF_PORT_MOD_FAILED(code)       OF_ERR(OFPET_PORT_MOD_FAILED, OFPPMFC_##code)
#define OF_TABLE_MOD_FAILED(code)      OF_ERR(OFPET_TABLE_MOD_FAILED, OFPTMFC_##code)
#define OF_QUEUE_OP_FAILED(code)       OF_ERR(OFPET_QUEUE_OP_FAILED, OFPQOFC_##code)
#define OF_SWITCH_CONFIG_FAILED(code)  OF_ERR(OFPET_SWITCH_CONFIG_FAILED, OFPSCFC_##code)
#define OF_ROLE_REQUEST_FAILED(code)   OF_ERR(OFPET_ROLE_REQUEST_FAILED, OFPRRFC_##code)
#define OF_METER_MOD_FAILED(code)      OF_ERR(OFPET_METER_MOD_FAILED, OFPMMFC_##code)
#define OF_TABLE_FEATURES_FAILED(code) OF_ERR(OFPET_TABLE_FEATURES_FAILED, OFPTFFC_##code)
#define OF_BUNDLE_FAILED(code)         OF_ERR(OFPET_BUNDLE_FAILED, OFPBFC_##code)

static inline uint16_t
of_err_type(int err)
{
    return (uint16_t)((err >> 16) & 0x3fff);
}

static inline uint16_t
of_err_code(int err)
{
    return (uint16_t)(err & 0xffff);
}

#endif
