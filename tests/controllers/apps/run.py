# SPDX-License-Identifier: Apache-2.0
"""run.py APPLICATION: an os-ken application on 127.0.0.1:6653, as os-ken's own launcher would."""
import sys

from os_ken.lib import hub

hub.patch(thread=False)

from os_ken import cfg, log  # noqa: E402  (after the patch)
import os_ken.flags  # noqa: E402,F401
from os_ken.base.app_manager import AppManager  # noqa: E402

cfg.CONF(['--ofp-listen-host=127.0.0.1', '--ofp-tcp-listen-port=6653'], project='os_ken')
log.init_log()
AppManager.run_apps(sys.argv[1:])
