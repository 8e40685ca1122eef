# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors

_gtorch_info ()
{
  local word=${COMP_WORDS[COMP_CWORD]}

  mapfile -t COMPREPLY < <(compgen -W '-h --help --json --need-cuda --version' -- "$word")
}

complete -F _gtorch_info gtorch-info
