/* SPDX-License-Identifier: Apache-2.0 */
#include "qos-cmd.h"

#include <stdio.h>
#include <unistd.h>

/* Commands from a file can't be asked about: nobody may be there, and the answer could be the next of
 * them. */
static bool
somebody_is_there(const struct ctx *c)
{
    return !strcmp(c->where, "dpctl") && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

enum status
doubt(struct ctx *c, const char *remark)
{
    char answer[16] = "";
    if (!*remark)
        return DPCTL_OK;
    fprintf(stderr, "%s: %s: %s\n", c->where, c->command->name, remark);
    if (!somebody_is_there(c))
        return DPCTL_OK;
    fprintf(stderr, "Go on? [y/N] ");
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return DPCTL_OK;
    fprintf(stderr, "nothing was done\n");
    return DPCTL_USAGE;
}
