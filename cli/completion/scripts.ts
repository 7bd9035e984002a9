/** Scripts with which a shell completes `longshore`: by words of the command, or by files. */

const bash = `# Completion of longshore for bash. Load it with: source <(longshore completion bash)
_longshore() {
  local -a words=()
  local count=0 word line begun
  # Bash splits words at = and :, and replaces what follows the last of them.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $count -gt 0 && ( $word == [=:]* || \${words[count-1]} == *[=:] ) ]]; then
      words[count-1]+=$word
    else
      words[count]=$word
      count=$((count + 1))
    fi
  done
  begun=\${words[count-1]}
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line#"\${begun%"\${begun##*[=:]}"}"}")
  done < <("$1" __complete -- "\${words[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _longshore longshore
`;

const zsh = `#compdef longshore
# Completion of longshore for zsh. Load it with: source <(longshore completion zsh)
_longshore() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if (( \${#found} )); then compadd -- "\${found[@]}"; else _files; fi
}
compdef _longshore longshore
`;

const fish = `# Completion of longshore for fish. Load it with: longshore completion fish | source
function __longshore_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l begun (commandline -ct)
    set -l found (longshore __complete -- $words "$begun" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$begun"
    end
end
complete -c longshore -f -a '(__longshore_complete)'
`;

export const scripts = { bash, zsh, fish } as const;
export type Shell = keyof typeof scripts;
export const shells = Object.keys(scripts) as readonly Shell[];
