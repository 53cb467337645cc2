# Completion of egocnn for bash. In ~/.bashrc: eval "$(egocnn completion bash)"
_egocnn() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    local words="" files=""
    COMPREPLY=()
    # bash splits --option=value at the sign
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if (( COMP_CWORD == 1 )); then
        words="@COMMANDS@ -h --help --version"
    else
        case "$command $before" in
@VALUES@
            *)
                case "$command" in
@OPTIONS@
                esac
                ;;
        esac
    fi
    [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ -z $files ]] || compopt -o default 2> /dev/null || true
}
complete -F _egocnn egocnn
