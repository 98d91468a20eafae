# SPDX-License-Identifier: Apache-2.0
"""What each target's corpus reaches of the sources that the target is for (run --coverage)."""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get('BUILD_COVERAGE') or os.path.join(TOP, 'build-fuzz-coverage')
FLAGS = '-fprofile-instr-generate -fcoverage-mapping'

# What the first two read is the same: words are typed, and the switch answers.  So are requests as bytes, in any order
# on a kernel in memory, and on a kernel that answers anything.  A function counts as entered if one of them enters it.
TOGETHER = [('dpctl', 'answers'), ('qos-request', 'model', 'netlink')]

ROWS = [f'utils/dpctl/{room}/*.c' for room in ('queues', 'openflow', 'watch', 'state', 'qos', 'metrics')]
COMMANDS = ['utils/dpctl/core/*.c', *ROWS]
# A name with ! is left out: no input comes to it.  Of what is left out:
# - the harness stands in its place (dpctl.c, fuzz-netlink.c): core/remote.c, signals.c, file.c, local.c, top/terminal.c
# - help and manual pages are made of what the program knows (tests/unit/manual): lib/daemon/options-help.c
# - it counts, waits or sends, and reads nothing: packet/drop-log.c
SOURCES = {
    'decode': ['oflib/decode.c', 'oflib/messages.c', 'oflib/wire.c', 'oflib/oxm.c', 'oflib/arena.c'],
    'text': ['oflib/text/parse*.c', 'oflib/text/print.c', 'oflib/text/json*.c', 'oflib/fmt.c', 'oflib/text/near.c', 'oflib/text/utf8.c'],
    'complete': ['oflib/text/complete.c'],
    'state': ['oflib/state.c'],
    'qos-request': ['qos/wire/*.c', 'qos/sched/*.c'],
    'model': ['qos/model/*.c', 'qos/tree/*.c', 'qos/sched/*.c'],
    'dns': ['qos/profile/dns.c'],
    'profile': ['qos/profile/*.c', '!qos/profile/dns.c', '!qos/profile/hosts.c', '!qos/profile/names.c',
                '!qos/profile/map-diff.c'],
    'packet': ['datapath/packet/*.c', '!datapath/packet/drop-log.c'],
    'offload': ['datapath/offload/bpf/*', 'datapath/offload/table.c', 'datapath/offload/rule.c',
                'datapath/megaflow/plan-edit.c'],
    'of10': ['datapath/of10/*.c', 'oflib/match10.c', 'oflib/messages10.c'],
    'channel': ['datapath/control/conn*.c', 'datapath/control/bundle.c'],
    'config': ['lib/daemon/config*.c', 'lib/daemon/options*.c', '!lib/daemon/options-help.c'],
    'trace': ['datapath/trace/*.c'],
    'frames': ['utils/dpctl/core/frames.c'],
    'netlink': ['qos/netlink/*.c'],
    'tls': ['lib/stream/tls*.c'],
    'slice': ['datapath/slice/*.c', 'datapath/main/wanted-slices.c', 'datapath/admission/slice.c',
              'datapath/requests/slice-check.c'],
    'dpctl': ['utils/dpctl/*.c', *COMMANDS, '!utils/dpctl/core/remote.c', '!utils/dpctl/core/signals.c',
              '!utils/dpctl/core/file.c', '!utils/dpctl/core/local.c'],
    'answers': ['utils/dpctl/core/ask.c', 'utils/dpctl/core/view.c', 'utils/dpctl/core/order.c',
                'utils/dpctl/core/counters.c', *ROWS, 'utils/dpctl/top/*.c', '!utils/dpctl/top/terminal.c'],
}

# Functions of these files that no input comes to, and why.
WITHOUT_INPUT = [
    ('*', r'\w*_free|\w*_close|free_\w+|\w*(no|out_of)_memory|say_memory|nomem\w*', 'ends a run, or needs memory to end'),
    ('datapath/control/*', r'bundle_(own_\w+|owner|committed|has_qos|messages)|conn_(by|common_name|counters|is_of10|is_tls|lost'
     r'|log_received|peer|phase_name|refuse|target|wants_packet_in|notify)|own_writes|on_timer|wake_at|log_local|log_message',
     'the switch asks for it, or time does'),
    ('lib/daemon/*', r'daemon_settings_(check_memory|same|where)|daemon_options|print_help', 'for other programs, and reloads'),
    ('datapath/offload/table.c', r'offload_(alive|counts|meter\w*|used)|has_left', 'control thread, and another processor'),
    ('datapath/offload/bpf/*', r'passes_(band|meter)|give_up|pass', 'meters, and tc without a program'),
    ('datapath/trace/*', r'trace_(no_more_buckets|no_packet_in|standalone)', 'the switch of the harness is none such'),
    ('datapath/requests/slice-check.c', r'sw_slice_check', 'has a connection: unit/slice'),
    ('datapath/slice/slice.c', r'slice_hold', 'has a connection: unit/slice'),
    ('qos/profile/*', r'(app|name)_at|qos_map_(name|key)_at|qos_map_(answers|cookie)|no_host|take_proto|qos_dns_pattern'
     r'|qos_profile_(fit|is_optional)|bad_(file|word)|read_file', 'dpctl calls it: targets dpctl and answers'),
    ('lib/stream/*', r'stream_tls_load_again', 'a reload'),
    ('oflib/arena.c', r'of_arena_(free|room|text)', 'the program asks for it'),
    ('oflib/state.c', r'of_state_mark_encode', 'writes'),
    ('oflib/oxm.c', r'oxm_set_number', 'text: target text'),
    ('oflib/decode.c', r'decode_match10|of_decode_list', 'targets of10 and trace'),
    ('oflib/messages.c', r'of_exp_row', 'text: target dpctl'),
    ('oflib/*', r'of_json_(struct|tagged|null|real)|of_print_field|parse_str', 'targets dpctl and answers'),
    ('datapath/packet/*', r'packet_describe|bits_of_all|packet_flow_hash_any_bits', 'the control thread asks for it'),
    ('qos/[mt]*', r'qos_(port_(by_ifindex|remove)|stamp|queue_get|default_class|budget|each_above|planned)|port_with|queue_of'
     r'|next_queue|find_waiting|pass_on|count(ed)?_\w+', 'the switch asks for it: unit/qos'),
    ('qos/netlink/*', r'qos_netlink_(set_blocking|portid)|netlink_blocking_silent|qos_link_(get_by_index|monitor_(fd|ignore))'
     r'|stand_in_message', 'the switch asks for it: unit/qos'),
    ('qos/sched/error.c', r'qos_error_data', 'writes'),
]


def is_without_input(path, function):
    return any(fnmatch.fnmatch(path, files) and re.fullmatch(names, function) for files, names, _ in WITHOUT_INPUT)


def tool(name):
    return shutil.which(name) or shutil.which(name + '-14')


def sources(target):
    """-> paths from the top"""
    found = set()
    for pattern in SOURCES.get(target, []):
        paths = {os.path.relpath(p, TOP) for p in glob.glob(os.path.join(TOP, pattern.lstrip('!')))}
        found = found - paths if pattern[0] == '!' else found | paths
    return found


def build(names, quiet):
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        quiet('meson', 'setup', BUILD, '-Dtests=enabled', '-Dbuildtype=debug', f'-Dc_args={FLAGS}',
              f'-Dc_link_args={FLAGS}', env={**os.environ, 'CC': os.environ.get('CC', 'clang')})
    # What the build itself runs is not counted.
    quiet('ninja', '-C', BUILD, *(f'tests/fuzz/replay-{n}' for n in names), *(f'tests/fuzz/corpus-{n}' for n in names),
          env={**os.environ, 'LLVM_PROFILE_FILE': '/dev/null'})


def export(names, quiet):
    """What llvm-cov knows after their corpora were replayed."""
    programs = [os.path.join(BUILD, 'tests/fuzz/replay-' + n) for n in names]
    raw = [os.path.join(BUILD, n + '.profraw') for n in names]
    data = os.path.join(BUILD, '-'.join(names) + '.profdata')
    for name, program, file in zip(names, programs, raw):
        quiet(program, os.path.join(BUILD, 'tests/fuzz/corpus-' + name), env={**os.environ, 'LLVM_PROFILE_FILE': file})
    quiet(tool('llvm-profdata'), 'merge', '-sparse', *raw, '-o', data)
    others = [word for program in programs[1:] for word in ('-object', program)]
    done = subprocess.run([tool('llvm-cov'), 'export', programs[0], *others, '-instr-profile=' + data],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)['data'][0]


def from_top(path):
    return os.path.relpath(os.path.join(BUILD, path), TOP)


def report(names, data):
    """Prints their lines."""
    mine = set().union(*(sources(name) for name in names))
    lines = reached = 0
    for f in data['files']:
        if from_top(f['filename']) in mine:
            lines += f['summary']['lines']['count']
            reached += f['summary']['lines']['covered']
    entered, all_of_them = set(), set()
    for f in data['functions']: # a program that does not use one has it all the same, with 0
        path, name = from_top(f['filenames'][0]), f['name'].split(':')[-1]
        if path in mine:
            all_of_them.add((path, name))
            if f['count']:
                entered.add((path, name))
    unseen, without = {}, 0
    for path, name in sorted(all_of_them - entered):
        if is_without_input(path, name):
            without += 1
        else:
            unseen.setdefault(path, []).append(name)
    n = sum(len(v) for v in unseen.values())
    print(f'{"+".join(names):12} {100 * reached / lines if lines else 0:5.1f} % of {lines:6,} lines in '
          f'{len(mine):3} files; {n} of {len(all_of_them)} functions never entered, {without} more without input', flush=True)
    for path, functions in unseen.items():
        print(f'{"":12} {path}: {" ".join(functions)}', flush=True)


def main(names, quiet):
    for name in ('llvm-profdata', 'llvm-cov'):
        if not tool(name):
            print(f'tests/fuzz/run: --coverage needs {name}, which is not installed')
            return 77
    groups = [g for g in TOGETHER if set(g) & set(names)]
    groups += [(n,) for n in names if not any(n in g for g in groups)]
    build(sorted(n for g in groups for n in g), quiet)
    for group in sorted(groups):
        report(group, export(group, quiet))
    return 0
