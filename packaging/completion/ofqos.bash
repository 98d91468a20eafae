# SPDX-License-Identifier: Apache-2.0
# Completion for bash of dpctl, ofdatapath and ofprotocol: the program itself says how the words may
# go on (PROGRAM complete WORD...).

_ofqos()
{
    local line=${COMP_LINE:0:COMP_POINT} breaks='' keep='' word text help
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    [[ ${#words[@]} -gt 1 ]] || return
    word=${words[${#words[@]} - 1]}
    # Readline replaces only what is behind the last of its word breaks.
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
    [[ -n $breaks ]] && keep=${word%"${word##*[$breaks]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r text help; do
        COMPREPLY+=("${text#"$keep"}")
        # A list may go on: the person types the blank.
        [[ $text == *=* || $text == *[:/] ]] && compopt -o nospace
    done < <("${1/#\~/$HOME}" complete "${words[@]:1}" 2>/dev/null)
}

complete -o bashdefault -o default -F _ofqos dpctl ofdatapath ofprotocol
