/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by the machine's memory, and how much that is under control groups. */
#include <daemon/machine-memory.h>
#include <flow/limits.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MB(n) ((uint64_t)(n) << 20)

/* All that the limits allow takes a part of the memory; a large machine gets the maxima. */
static void
test_defaults(void **state)
{
    struct limits all = limits_default(UINT64_MAX), large = limits_default(MB(64 << 10));
    assert_memory_equal(&all, &large, 5 * sizeof(uint32_t));
    assert_int_equal(all.flows, 16u << 20);
    for (unsigned mb = 32; mb <= 4096; mb *= 2) {
        struct limits l = limits_default(MB(mb));
        uint64_t bytes = l.flow_bytes + l.group_bytes + (uint64_t)l.meters * 1024;
        assert_true(bytes <= MB(mb) * 3 / 4);
        assert_true(l.flows * UINT64_C(512) <= l.flow_bytes);
        assert_true(l.flows >= mb * 512 && l.groups >= mb * 16 && l.meters >= mb * 16);
        assert_true(l.table_flows <= l.flows && l.buckets >= l.groups);
    }
    assert_int_equal(limits_default(MB(128)).flows, 65536);
}

static char root[] = "/tmp/limits-XXXXXX";

static void
put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(full, 0700);
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int
remove_all(void **state)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void
test_control_groups(void **state)
{
    assert_non_null(mkdtemp(root));
    assert_true(machine_memory_of_cgroups(root) == UINT64_MAX);
    put("/proc/self/cgroup", "0::/a/b\n");
    assert_true(machine_memory_of_cgroups(root) == UINT64_MAX);
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_true(machine_memory_of_cgroups(root) == UINT64_MAX);
    put("/sys/fs/cgroup/a/memory.max", "5000000\n");
    assert_true(machine_memory_of_cgroups(root) == 5000000);
    put("/sys/fs/cgroup/a/b/memory.max", "4000000\n");
    assert_true(machine_memory_of_cgroups(root) == 4000000);
    put("/sys/fs/cgroup/memory.max", "3000000\n");
    assert_true(machine_memory_of_cgroups(root) == 3000000);
    put("/proc/self/cgroup", "0::/\n");
    assert_true(machine_memory_of_cgroups(root) == 3000000);
    put("/proc/self/cgroup", "11:cpu,cpuacct:/\n9:memory:/x\n1:name=systemd:/a/b\nnonsense\n");
    assert_true(machine_memory_of_cgroups(root) == UINT64_MAX);
    put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n");
    assert_true(machine_memory_of_cgroups(root) == 2000000);
    assert_true(machine_memory() > 0 && machine_memory() <= UINTPTR_MAX / 2);
}

static void
test_processors(void **state)
{
    assert_int_equal(machine_processors_of(root), 0);
    put("/sys/devices/system/cpu/possible", "0\n");
    assert_int_equal(machine_processors_of(root), 1);
    put("/sys/devices/system/cpu/possible", "0-255\n");
    assert_int_equal(machine_processors_of(root), 256);
    put("/sys/devices/system/cpu/possible", "0,2-3,8-11\n");
    assert_int_equal(machine_processors_of(root), 7);
    put("/sys/devices/system/cpu/possible", "nonsense\n");
    assert_int_equal(machine_processors_of(root), 0);
    assert_true(machine_processors() > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_control_groups),
        cmocka_unit_test_teardown(test_processors, remove_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
