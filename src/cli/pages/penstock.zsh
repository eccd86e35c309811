#compdef penstock
# SPDX-License-Identifier: Apache-2.0
# Completion of penstock's command lines in zsh, which the command itself knows.
local line kind
local -a offers
for line in ${(f)"$(${~${(Q)words[1]}} --complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"}; do
    case $line in
    :*) kind=$line ;;
    *) offers+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
done
if [[ -n $kind ]]; then
    compset -P '-*='
    [[ $kind == :directory ]] && _files -/ || _files
else
    _describe penstock offers
fi
