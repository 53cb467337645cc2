# Completion of egocnn for fish: egocnn completion fish > ~/.config/fish/completions/egocnn.fish
complete -c egocnn -f
complete -c egocnn -n __fish_use_subcommand -l version
@OPTIONS@
