# shellcheck shell=ash
# From UCI to ofdatapath's configuration file.  To be sourced after /lib/functions.sh.
#
# ofqos_load reads /etc/config/ofqos; ofqos_conf SWITCH prints the file of one switch.  An option of a
# section becomes a key of the file under its own name, with - for _, so that no list of keys is kept
# here: ofdatapath --check tells what is wrong with one.

ofqos_newline='
'

# What the section that is being read says, until the next one begins: a line for each key, and the
# words of a queue or rule with commas between them.
ofqos_section='' ofqos_lines='' ofqos_words=''

ofqos_refuse() {
    logger -s -t ofqos -p daemon.err "$*"
    ofqos_refused=1
}

ofqos_keep() {
    [ -n "$ofqos_section" ] || return 0
    config_set "$ofqos_section" LINES "$ofqos_lines"
    config_set "$ofqos_section" WORDS "${ofqos_words%,}"
}

# Called for each section, and once without arguments at the end.
config_cb() {
    ofqos_keep
    ofqos_section=${2-} ofqos_lines='' ofqos_words=''
}

option_cb() {
    local name=$1 value=$2
    case $value in
    *"$ofqos_newline"*|*' #'*)
        ofqos_refuse "option $name of $ofqos_section: a line break or ' #' cannot be part of '$value'"
        return ;;
    esac
    ofqos_words="$ofqos_words$name=$value,"
    case $name in
    enabled|switch|interface|network|target|queue) return ;;
    esac
    ofqos_lines="$ofqos_lines$(echo "$name" | tr _ -) = $value$ofqos_newline"
}

list_cb() { option_cb "$@"; }

ofqos_load() {
    ofqos_section='' ofqos_refused=''
    config_load ofqos
    ofqos_keep # where config_load does not end with config_cb
    reset_cb
    [ -z "$ofqos_refused" ]
}

# ofqos_of SECTION SWITCH: the section is switched on and belongs to this switch (each does that names
# none)
ofqos_of() {
    local enabled switch
    config_get_bool enabled "$1" enabled 1
    config_get switch "$1" switch "$2"
    [ "$enabled" = 1 ] && [ "$switch" = "$2" ]
}

# ofqos_device SECTION -> $device: its interface, or the one that its network has; empty: not yet
ofqos_device() {
    local network
    config_get device "$1" interface
    [ -n "$device" ] && return
    config_get network "$1" network
    [ -n "$network" ] && network_get_device device "$network"
    [ -n "$device" ] || logger -t ofqos "port $1: no interface yet for network '$network'"
}

# ofqos_without NAME...: $words without these options
ofqos_without() {
    local name rest
    for name; do
        rest=",$words,"
        case $rest in
        *",$name="*)
            words="${rest%%,"$name="*},$(echo "${rest#*,"$name="}" | cut -d, -s -f2-)"
            words=${words#,} words=${words%,} ;;
        esac
    done
}

ofqos_controller() {
    local target
    ofqos_of "$1" "$2" || return 0
    config_get target "$1" target
    [ -z "$target" ] && ofqos_refuse "controller $1: add option target, such as tcp:192.0.2.1:6653"
    echo "controller = $target"
}

ofqos_rule() {
    local words
    ofqos_of "$1" "$2" || return 0
    config_get words "$1" WORDS
    ofqos_without switch enabled
    echo "map = $words"
}

# A queue belongs to the port section that it names.
ofqos_queue() {
    local words scheduler port enabled
    config_get port "$1" port
    config_get_bool enabled "$1" enabled 1
    [ "$port" = "$2" ] && [ "$enabled" = 1 ] || return 0
    config_get scheduler "$1" scheduler htb
    config_get words "$1" WORDS
    ofqos_without port scheduler enabled
    echo "queue = $scheduler $words"
}

ofqos_port() {
    local device='' lines
    ofqos_of "$1" "$2" || return 0
    ofqos_device "$1"
    [ -n "$device" ] || return 0
    config_get lines "$1" LINES
    printf '\n[port %s]\n%s' "$device" "$lines"
    config_foreach ofqos_queue queue "$1"
}

ofqos_conf() {
    local lines
    echo "# Made from /etc/config/ofqos by /etc/init.d/ofqos: changes here are lost."
    config_get lines "$1" LINES
    printf '%s' "$lines"
    echo "listen = punix:/var/run/ofqos/$1.sock"
    config_foreach ofqos_controller controller "$1"
    config_foreach ofqos_rule rule "$1"
    config_foreach ofqos_port port "$1"
}
