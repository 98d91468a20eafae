/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's types tell of BPF programs' qdiscs. */
#include "struct-ops.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NAME "bpf_struct_ops_Qdisc_ops"

static char path[] = "/tmp/ofqos-btf-XXXXXX";

/* A file with these bytes behind the header, of which `said` are strings. */
static int
asked(uint16_t magic, const char *strings, size_t n, size_t said)
{
    struct btf_header h = {.magic = magic,
                           .version = 1,
                           .hdr_len = sizeof h + 8, /* as a later version's */
                           .type_len = 4,
                           .str_off = 4,
                           .str_len = (uint32_t)said};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(&h, sizeof h, 1, f), 1);
    assert_int_equal(fwrite("rest of.type", 12, 1, f), 1);
    assert_true(!n || fwrite(strings, n, 1, f) == 1);
    assert_int_equal(fclose(f), 0);
    return netlink_struct_ops(path);
}

static int
with(const char *strings, size_t n)
{
    return asked(BTF_MAGIC, strings, n, n);
}

static void
names(void **state)
{
    static const char first[] = "\0" NAME "\0other", last[] = "\0other\0" NAME;
    static const char begins[] = "\0" NAME "_of_others", ends[] = "\0not_" NAME;
    assert_int_equal(with(first, sizeof first), 1);
    assert_int_equal(with(last, sizeof last), 1);
    assert_int_equal(with(begins, sizeof begins), 0);
    assert_int_equal(with(ends, sizeof ends), 0);
    assert_int_equal(with("", 0), 0);
    assert_int_equal(asked(BTF_MAGIC, last, sizeof last, sizeof last - 3),
                     0); /* beyond the section */
}

/* Wherever it is in a section that takes several reads. */
static void
places(void **state)
{
    static char all[100000];
    for (size_t at = 16300; at < 16500; at++) {
        memset(all, 'x', sizeof all);
        memcpy(all + at, "\0" NAME, sizeof NAME + 1);
        assert_int_equal(with(all, sizeof all), 1);
    }
    memcpy(all + sizeof all - sizeof NAME - 1, "\0" NAME, sizeof NAME + 1);
    memset(all, 'x', 20000);
    assert_int_equal(with(all, sizeof all), 1);
}

static void
no_answer(void **state)
{
    static const char text[] = "\0" NAME;
    assert_int_equal(asked(0x9feb, text, sizeof text, sizeof text), -EBADMSG);
    assert_int_equal(asked(BTF_MAGIC, text, 4, sizeof text), -EBADMSG); /* it ends before */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(netlink_struct_ops(path), -EBADMSG);
    assert_int_equal(netlink_struct_ops("/"), -EISDIR);
    /* a kernel without such types; where sysfs isn't, as in a root that builds a package, nobody knows */
    assert_int_equal(netlink_struct_ops("/proc/self/none"),
                     access("/sys/kernel", F_OK) ? -ENOENT : 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(places),
        cmocka_unit_test(no_answer),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
