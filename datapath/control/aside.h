/* SPDX-License-Identifier: Apache-2.0 */
/* Echo requests are answered while the control thread is in the kernel: channel_leave, channel_back
 * (control/channel.h). */
#ifndef CONTROL_ASIDE_H
#define CONTROL_ASIDE_H

#include "channel-inside.h"

void channel_aside_stop(struct channel *ch);

#endif
