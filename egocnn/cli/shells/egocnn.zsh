#compdef egocnn
# Completion of egocnn for zsh. In ~/.zshrc, after compinit: eval "$(egocnn completion zsh)"
_egocnn() {
    local -a commands
    commands=(
@COMMANDS@
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
@OPTIONS@
    esac
}
compdef _egocnn egocnn
