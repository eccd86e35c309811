# SPDX-License-Identifier: Apache-2.0
# Completion of penstock's command lines in fish, which the command itself knows.
function __penstock_complete
    set -l words (string replace -r -- '^~/' "$HOME/" (commandline -opc))
    set -l word (commandline -ct)
    set -l option (string match -r -- '^-.*?=' "$word")
    set -l path (string replace -r -- '^-.*?=' '' "$word")
    for line in ($words[1] --complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :directory
                __fish_complete_directories "$path" '' | string replace -r -- '^' "$option"
            case :file
                __fish_complete_path "$path" '' | string replace -r -- '^' "$option"
            case '*'
                echo $line
        end
    end
end
complete -c penstock -f -a '(__penstock_complete)'
