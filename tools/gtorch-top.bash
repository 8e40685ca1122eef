# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors

_gtorch_top ()
{
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}

  case $before in
    -d|--device)
      mapfile -t COMPREPLY < <(compgen -W 'cpu cuda cuda:0 cuda:1 cuda:2 cuda:3' -- "$word") ;;
    -i|--interval)
      mapfile -t COMPREPLY < <(compgen -W '0.1 0.5 1 2 5 10' -- "$word") ;;
    *)
      mapfile -t COMPREPLY < <(compgen -W '-1 -d -h -i --device --help --interval --json --once --version' -- "$word") ;;
  esac
}

complete -F _gtorch_top gtorch-top
