/* SPDX-License-Identifier: Apache-2.0 */
#include "cni.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const cni_version_names[CNI_VERSIONS] = {"0.4.0", "1.0.0", "1.1.0"};

int
cni_fail(struct cni *c, unsigned code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    c->error = (struct cni_error){.code = code};
    vsnprintf(c->error.msg, sizeof c->error.msg, fmt, ap);
    va_end(ap);
    return -1;
}

int
cni_no_memory(struct cni *c)
{
    return cni_fail(c, CNI_NO_MEMORY, "out of memory");
}

int
cni_print(struct cni *c, const json_t *json)
{
    if (json_dumpf(json, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout))
        return cni_fail(c, CNI_IO, "writing to stdout failed");
    return 0;
}

/* Texts of the system may be no UTF-8, which JSON needs: the bytes that are none become '?'. */
static json_t *
text_json(char *text)
{
    json_t *v = json_string(text);
    for (char *p = text; !v && *p; p++)
        if ((unsigned char)*p > '~')
            *p = '?';
    return v ? v : json_string(text);
}

void
cni_print_error(struct cni *c)
{
    struct cni_error e = c->error;
    json_t *v = json_pack("{s:s, s:I, s:o}", "cniVersion", cni_version_names[c->conf.version],
                          "code", (json_int_t)e.code, "msg", text_json(e.msg));
    if (*e.details)
        json_object_set_new(v, "details", text_json(e.details));
    if (!v || cni_print(c, v))
        fprintf(stderr, "ofqos-cni: %s\n", e.msg);
    json_decref(v);
}
