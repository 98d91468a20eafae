# shellcheck shell=ash
# In place of OpenWrt's /lib/functions.sh, written from its documentation: what config_load, its callbacks
# and config_get do.  UCI's quotes are the shell's, so that the shell reads the file.

reset_cb() {
    config_cb() { :; }
    option_cb() { :; }
    list_cb() { :; }
}
reset_cb

config() {
    CONFIG_N=$((CONFIG_N + 1))
    CONFIG_SECTION=${2:-cfg$CONFIG_N}
    CONFIG_SECTIONS="$CONFIG_SECTIONS $CONFIG_SECTION"
    config_set "$CONFIG_SECTION" TYPE "$1"
    config_cb "$1" "$CONFIG_SECTION"
}

option() {
    config_set "$CONFIG_SECTION" "$1" "$2"
    option_cb "$1" "$2"
}

list() {
    local before
    config_get before "$CONFIG_SECTION" "$1"
    config_set "$CONFIG_SECTION" "$1" "${before:+$before }$2"
    list_cb "$1" "$2"
}

config_load() {
    CONFIG_N=0 CONFIG_SECTIONS='' CONFIG_SECTION=''
    . "$UCI_CONFIG_DIR/$1"
    [ -z "$CONFIG_SECTION" ] || config_cb
}

config_set() { eval "CONFIG_${1}_$2=\$3"; }
config_get() { eval "$1=\${CONFIG_${2}_$3:-\${4-}}"; }

config_get_bool() {
    local value
    config_get value "$2" "$3" "$4"
    case $value in
    1|on|true|yes|enabled) eval "$1=1" ;;
    0|off|false|no|disabled) eval "$1=0" ;;
    *) eval "$1=\$4" ;;
    esac
}

config_foreach() { # FUNCTION TYPE [ARGUMENT]...
    local function=$1 type=$2 section is
    shift 2
    for section in $CONFIG_SECTIONS; do
        config_get is "$section" TYPE
        [ "$is" != "$type" ] || "$function" "$section" "$@"
    done
}

# lib/functions/network.sh: only the network "wan" is up.
network_get_device() {
    [ "$2" = wan ] || return 1
    eval "$1=pppoe-wan"
}

logger() {
    while [ $# -gt 1 ]; do shift; done
    echo "log: $1" >&2
}
