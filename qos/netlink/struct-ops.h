/* SPDX-License-Identifier: Apache-2.0 */
/* Can BPF programs register qdiscs with the running kernel (struct_ops, Linux 6.16 and later)? */
#ifndef QOS_NETLINK_STRUCT_OPS_H
#define QOS_NETLINK_STRUCT_OPS_H

#define NETLINK_BTF "/sys/kernel/btf/vmlinux"

/* By the kernel's own types, a BTF file in the host's byte order, which need no privilege.  1, 0,
 * -errno: unknown.  Which kinds are registered is another question. */
int netlink_struct_ops(const char *btf);

#endif
