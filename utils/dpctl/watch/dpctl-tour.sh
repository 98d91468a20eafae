#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dpctl tour: a switch, a queue, a rule and a trace on a lab that nobody else sees.  dpctl runs it:
#     dpctl-tour.sh DIRECTORY-OF-DPCTL [--yes]
# The lab has its own network, processes, /run and /sys (unshare), so it can use any name, and the kernel removes all of
# it when the first process of the lab ends, however it ends.
set -u

HOSTS='one two'
FRAMES=1000
FRAME_BYTES=1442 # of a ping with 1,400 bytes: with ICMP's, IPv4's and Ethernet's headers
BULK="ip netns exec one ping -f -q -c $FRAMES -s 1400 -w 20 -Q 0x20 10.0.0.2"

# Nobody reads any more (dpctl tour --yes | head): the lab's first process gets no SIGPIPE, so it ends itself.
say() { printf '%s\n' "$*" 2>/dev/null || exit 1; }

fail() {
    printf 'dpctl tour: %s\n' "$*" >&2
    exit 1
}

# ------------------------------------------------------------------ outside the lab

check() {
    [ "$(id -u)" = 0 ] || fail 'the lab needs root: type  sudo dpctl tour'
    missing=
    for tool in unshare:util-linux setpriv:util-linux ip:iproute2 ping:iputils-ping mount:mount ofdatapath:ofqos; do
        command -v "${tool%:*}" >/dev/null || missing="$missing ${tool%:*} (package ${tool#*:})"
    done
    [ -z "$missing" ] || fail "the lab needs, and does not find:$missing"
    unshare --net --mount --pid --fork true 2>/dev/null || fail 'this machine allows no new namespaces (in a container: start it with --privileged)'
}

# unshare itself blocks SIGINT and SIGTERM, so this process takes them and kills it, and with it the lab.
# setpriv: the same where this process is killed.
outside() {
    check
    lab=
    stop=
    trap 'stop=1; [ -z "$lab" ] || kill -KILL "$lab" 2>/dev/null' INT TERM HUP
    exec 3<&0
    setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc sh "$0" --inside "$@" <&3 &
    lab=$!
    [ -z "$stop" ] || kill -KILL "$lab"
    wait "$lab" 2>/dev/null
    status=$?
    [ -z "$stop" ] || {
        wait "$lab" 2>/dev/null
        say && say 'Ended. The lab is gone.'
        exit 130
    }
    [ "$status" = 0 ] && say 'The lab is gone. Next: dpctl help, docs/tutorials/first-queue.md, man dpctl.'
    exit "$status"
}

# ------------------------------------------------------------------ inside

prepare() {
    mount -t tmpfs tmpfs /run && mkdir /run/netns && mount -t sysfs sysfs /sys && ip link set lo up || return 1
    n=1
    for host in $HOSTS; do
        ip netns add "$host" && ip link add eth0 netns "$host" type veth peer name "p$n" &&
            ip -n "$host" address add "10.0.0.$n/24" dev eth0 && ip -n "$host" link set eth0 up &&
            ip link set "p$n" up || return 1
        n=$((n + 1))
    done
}

# Enter goes on, q or the end of the input ends the tour.
go_on() {
    [ -z "$yes" ] || return 0
    printf '[Enter: run it, q: end] '
    read -r answer || {
        say
        say 'The input has ended, and so does the tour. dpctl tour --yes waits for no Enter.'
        answer=q
    }
    case $answer in q* | Q*) exit 0 ;; esac
}

# What it is for, the command, and what to look at in what it printed.
step() {
    number=$((number + 1))
    say && say "$number of 8. $1" && say "    $2"
    go_on
    $2 >/run/said 2>&1 || {
        cat /run/said
        fail "step $number failed: $2"
    }
    cat /run/said
    say "--> $3"
}

# "time 2312ms" of ping's summary
rate() {
    ms=$(sed -n 's/.*, time \([0-9]*\)ms$/\1/p' /run/said)
    [ -n "$ms" ] || fail 'ping printed no time'
    [ "$ms" -gt 0 ] || ms=1
    tenths=$((FRAMES * FRAME_BYTES * 8 / ms / 100))
    say "    $FRAMES frames of $FRAME_BYTES bytes in $ms ms: $((tenths / 10)).$((tenths % 10)) Mbit/s"
}

inside() {
    yes=${2:-}
    number=0
    unset DPCTL_SWITCH
    prepare || fail 'the lab could not be made (see the line above)'
    say 'A lab of its own: host one (10.0.0.1) -- port p1, switch, port p2 -- host two (10.0.0.2).'
    say 'Nothing outside it changes, and it disappears at the end.'
    step 'Start a switch that learns where hosts are.' \
        'ofdatapath --detach -i p1,p2 --fail=open punix:' \
        'It runs in the background. dpctl finds it: it is the only switch here.'
    step 'Look at its ports.' 'dpctl show' 'Port 1 is p1, port 2 is p2.'
    step "Send $FRAMES large pings with the mark of bulk traffic (DSCP 8) as fast as they come back." "$BULK" \
        'Without a queue nothing holds them back:'
    rate
    step 'Make queue 10 of port p2: 5 Mbit/s, and no more.' \
        'dpctl qos-htb cmd=add,port=p2,class=10,rate=5mbit,ceil=5mbit' 'No output: it is done. The kernel has the queue now.'
    step 'Make the rule: bulk traffic takes queue 10, all else passes as before.' \
        'dpctl qos-map queue=10,dscp=8 then=normal' 'These are flow entries: dpctl dump-flows shows them.'
    step 'Send the same pings again.' "$BULK" 'Now the queue decides how fast they leave:'
    rate
    step 'Watch what the queue sent.' 'dpctl stats-queue port=2' "Queue 10 has sent the bulk traffic's $FRAMES frames."
    step 'Ask what becomes of a packet, and why.' \
        'dpctl trace in_port=1,eth_type=0x800,ip_proto=1,ip_dscp=8,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2' \
        'The trace names the entry that matched, and ends in queue 10 of port 2.'
    say
}

if [ "$1" = --inside ]; then
    shift
    inside "$@"
else
    PATH=$1:$1/../sbin:$1/../../datapath:$PATH:/usr/sbin:/sbin
    export PATH
    outside "$@"
fi
