# SPDX-License-Identifier: Apache-2.0
# Completion of penstock's command lines in bash, which the command itself knows.
_penstock()
{
    local line word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :* ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -A "${line#:}" -- "${word#=}")
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${COMP_WORDS[0]/#\~\//$HOME/}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _penstock penstock
