/* SPDX-License-Identifier: Apache-2.0 */
/* How functions of this project say what went wrong, in one int:
 *
 *    0    done
 *   <0    -errno: something of ours failed (memory, socket, ...)
 *   >0    an OpenFlow error for the peer: OF_ERR(type, code), made of the OFPET_ type and the
 *         code of that type (OpenFlow 1.3.5, 7.4.4).  A marker bit is set because type 0, code 0
 *         (OFPHFC_INCOMPATIBLE) is an error too.
 *
 * OFPET_SCHED_FAILED (the QoS extension) is carried the same way; whether it goes out as error
 * type 14 or as an experimenter error is the envelope's business (docs/qos-extension.md).
 * OFPET_BUNDLE_FAILED goes out as ONF's experimenter error, always.
 */
#ifndef OFLIB_ERR_H
#define OFLIB_ERR_H

#include <stdint.h>

#define OF_ERR_MARK        0x40000000
#define OF_ERR(type, code) (OF_ERR_MARK | ((int)((type)&0x3fff) << 16) | (int)((code)&0xffff))

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
