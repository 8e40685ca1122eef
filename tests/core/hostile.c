/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A module as an attacker would have a privileged program load it: it prints a message as soon as it is
 * loaded. */

#include <stdio.h>

__attribute__ ((constructor)) static void
hostile (void)
{
  puts ("foreign code runs");
  fflush (stdout);
}
