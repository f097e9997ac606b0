# Completes the flags of Soliton's programs, which they list themselves, and file names.
_soliton() {
  local word=${COMP_WORDS[COMP_CWORD]} flags
  COMPREPLY=()
  [[ $word == -* ]] || return 0
  flags=$("$1" --help 2>/dev/null | grep -oE '^  (-[a-z],)?--[a-z][a-z-]*' | grep -oE -- '--?[a-z][a-z-]*')
  mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
}
complete -o default -F _soliton soliton-chat soliton-server soliton-bench soliton-doctor soliton-gen
