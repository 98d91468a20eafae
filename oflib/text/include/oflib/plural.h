/* SPDX-License-Identifier: Apache-2.0 */
/* "1 packet", "2 packets": printf("%u packet%s", n, OF_S(n)) */
#ifndef OFLIB_PLURAL_H
#define OFLIB_PLURAL_H

#define OF_S(n) ((n) == 1 ? "" : "s")

#endif
