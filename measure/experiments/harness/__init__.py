# SPDX-License-Identifier: Apache-2.0
"""What all experiments share: how one is written, run, kept, judged, drawn and shown.

`experiment` has the classes that an experiment is made of, `context` what a part of it gets while
it runs, `network` and `traffic` the hosts, switches and flows.
"""
