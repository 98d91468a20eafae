# SPDX-License-Identifier: Apache-2.0
from support import selection

pytest_configure = selection.configure
