# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors

_gtorch_run ()
{
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local options='-h --help --device --duplicate-stderr-filters --duplicate-stdout-filters --event-log-handler
    --local-addr --local-ranks-filter --log-dir --log-line-prefix-template --logs-specs --master-addr --master-port
    --max-restarts -m --module --monitor-interval --nnodes --no-python --node-rank -n --nproc-per-node --numa-binding
    --rdzv-backend --rdzv-conf --rdzv-endpoint --rdzv-id -r --redirects --role --run-path --shutdown-timeout
    --signals-to-handle --standalone --start-method -t --tee --version'

  case $before in
    -n | --nproc-per-node) mapfile -t COMPREPLY < <(compgen -W 'auto cpu gpu' -- "$word") ;;
    --device) mapfile -t COMPREPLY < <(compgen -W 'cpu cuda' -- "$word") ;;
    --rdzv-backend) mapfile -t COMPREPLY < <(compgen -W 'c10d static' -- "$word") ;;
    -r | --redirects | -t | --tee) mapfile -t COMPREPLY < <(compgen -W '0 1 2 3' -- "$word") ;;
    --event-log-handler) mapfile -t COMPREPLY < <(compgen -W 'null' -- "$word") ;;
    --log-dir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    *)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
  esac
}

complete -o filenames -F _gtorch_run gtorch-run
