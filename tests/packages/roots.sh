# SPDX-License-Identifier: Apache-2.0
# Roots of Debian for .ci/packages, to be sourced in the working copy: $work is a directory for them,
# $keep not empty if they are to stay.

started=$(awk '{print int($1)}' /proc/uptime)
suite=bookworm
base=$work/base-$suite.tar
roots=() machine=''

heading() { printf '\n=== %s\n' "$*"; }

# give_up REASON: this machine can't make roots
give_up() { echo "packages: skipped: $1" >&2; exit 77; }

# logged NAME COMMAND...: what it says goes to a file, and is shown if it fails
logged() {
    local log=$work/log/$1
    shift
    "$@" >"$log" 2>&1 || { tail -n 40 "$log"; echo "packages: failed: $* (all of it: $log)" >&2; return 1; }
}

# The machine's own sources of Debian, so that no archive is named here.
sources() {
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | grep -E " $suite(-[a-z]+)? " | sort -u
}

# make_base: the root that all others begin as, a newcomer's machine with systemd and sudo
make_base() {
    [ -z "$(find "$base" -mtime -7 2>/dev/null)" ] || return 0
    [ -n "$(sources)" ] || give_up "apt knows no source of Debian $suite (apt-get update makes it read them)"
    local packages=systemd,systemd-sysv,dbus,sudo,adduser,iproute2,iputils-ping,ca-certificates,procps
    sources | logged base mmdebstrap --variant=minbase --skip=cleanup/apt --include="$packages" \
        $(proxy) "$suite" "$work/new.tar" - || give_up "mmdebstrap failed"
    mv "$work/new.tar" "$base"
}

proxy() {
    local proxy=''
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "$proxy" ] || printf '%s' "--aptopt=Acquire::http::Proxy \"$proxy\""
}

# make_root NAME -> $root: a fresh one with a user `newcomer`, who may sudo
make_root() {
    root=$work/root-$1
    remove_root "$root"
    make_base
    mkdir -p "$root"
    tar -xf "$base" -C "$root"
    roots+=("$root")
    chroot "$root" useradd --create-home --shell /bin/bash newcomer
    printf '%s\n' 'newcomer ALL=(ALL) NOPASSWD: ALL' 'Defaults env_keep += SYSTEMD_OFFLINE' \
        >"$root/etc/sudoers.d/newcomer"
    printf '127.0.0.1 localhost %s\n' "$(uname -n)" >"$root/etc/hosts"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"      # those that this machine trusts
    # Packages that were fetched before need not be fetched again.
    cp -n "$work"/apt/*.deb "$root/var/cache/apt/archives/" 2>/dev/null || true
    echo 'Binary::apt::APT::Keep-Downloaded-Packages "1";APT::Keep-Downloaded-Packages "1";' \
        >"$root/etc/apt/apt.conf.d/99keep"
    rm -f "$root/etc/apt/apt.conf.d/docker-clean"
    # What the packages depend on must do without what they recommend; and nobody needs the disk's
    # word for each file.
    echo 'APT::Install-Recommends "false"; Acquire::Languages "none";' >"$root/etc/apt/apt.conf.d/99depends"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

remove_root() {
    [ -d "$1" ] || return 0
    ! mountpoint -q "$1/proc" || umount "$1/proc"
    ! mountpoint -q "$1" || umount "$1"
    rm -rf --one-file-system "$1"
}

# keep_packages ROOT: fetched ones, for the next run
keep_packages() { cp -n "$1"/var/cache/apt/archives/*.deb "$work/apt/" 2>/dev/null || true; }

# within ROOT USER -> the array `within`: words that start a program there as this user, with the machine's network and
# processes of its own.  No systemd runs there: systemctl leaves out what only that could do.
within() {
    local home=/home/$2 path=/usr/local/bin:/usr/bin:/bin pip
    [ "$2" != root ] || home=/root path=/usr/local/sbin:/usr/sbin:/sbin:$path
    within=(unshare --mount --pid --fork --kill-child "--root=$1" --mount-proc=/proc
        sh -c 'mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts; exec "$@"' -
        setpriv "--reuid=$2" "--regid=$2" --init-groups
        env -i "HOME=$home" "USER=$2" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1
        "PATH=$path"
        "http_proxy=${http_proxy:-}" "https_proxy=${https_proxy:-}" "DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-}")
    for pip in "${!PIP_@}"; do within+=("$pip=${!pip}"); done        # how this machine reaches PyPI
}

# in_root ROOT DIRECTORY COMMANDS: as the newcomer.  The commands are a page's, so they stop at the first that fails, and
# are shown.
in_root() {
    local within
    within "$1" newcomer
    "${within[@]}" bash -c "cd $2; set -eux; $3" </dev/null
}

# The files that git knows, as they are now: all stages take these, whatever changes meanwhile.
rm -rf "$work/source"
mkdir -p "$work/source"
git ls-files -z | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$work/source"

# copy_source DIRECTORY
copy_source() { mkdir -p "$1" && cp -a "$work/source/." "$1"; }

clean_up() {
    halt_machine
    [ -n "$keep" ] || for root in "${roots[@]}"; do remove_root "$root"; done
}

# --------------------------------------------------------------------- a booted root

# boot_root ROOT: starts it as a machine without network; false: this machine can't.  What a real
# machine gives the unit and systemd-nspawn keeps from it is given.
boot_root() {
    systemd-nspawn --quiet --register=no --keep-unit --private-network --machine=ofqos-packages \
        --capability=CAP_BPF,CAP_PERFMON \
        --system-call-filter='bpf landlock_create_ruleset landlock_add_rule landlock_restrict_self' \
        --directory="$1" --boot </dev/null >"$work/log/boot" 2>&1 &
    machine=$!
    local state
    for _ in $(seq 240); do
        kill -0 "$machine" 2>/dev/null || { machine=''; return 1; }
        leader=$(cat "/proc/$machine/task/$machine/children" 2>/dev/null | awk '{print $1}')
        [ -z "$leader" ] || state=$(in_machine systemctl is-system-running 2>/dev/null) || true
        case ${state:-} in running|degraded) return 0 ;; esac
        sleep 0.5
    done
    halt_machine
    return 1
}

# in_machine COMMAND...: in the booted root, as root
in_machine() { nsenter --target "$leader" --mount --uts --ipc --net --pid --root --wd "$@"; }

# as_newcomer DIRECTORY COMMANDS: as one who has just logged in
as_newcomer() {
    in_machine su - newcomer -c "cd $1; export DEBIAN_FRONTEND=noninteractive; set -eux; $2" </dev/null
}

halt_machine() {
    [ -n "$machine" ] || return 0
    in_machine systemctl poweroff >/dev/null 2>&1 || kill "$machine" 2>/dev/null || true
    for _ in $(seq 60); do
        kill -0 "$machine" 2>/dev/null || break
        sleep 0.5
    done
    kill -9 "$machine" 2>/dev/null || true
    wait "$machine" 2>/dev/null || true
    machine=''
    # What systemd-nspawn leaves where it has no unit of its own; a group in use stays.
    find /sys/fs/cgroup -path '*/payload*' -o -path '*/supervisor' | sort -r | xargs -r rmdir 2>/dev/null || true
}
