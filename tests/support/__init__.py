# SPDX-License-Identifier: Apache-2.0
"""What the black-box tests share.  Written from the specifications, not from the C code."""
