/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of this machine at ports of a learning switch. */
#ifndef MAIN_ADDRESSES_H
#define MAIN_ADDRESSES_H

struct sw;

/* Logs a notice for each address that only the machines behind one port reach: what the host sends by that
 * interface does not pass the switch, and what others send to it is not given to the host. */
void addresses_say(const struct sw *sw);

#endif
