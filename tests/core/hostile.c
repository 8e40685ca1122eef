/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What somebody might want a program with more rights to load; it says so as soon as it is. */

#include <stdio.h>

__attribute__ ((constructor)) static void
hostile (void)
{
  puts ("foreign code runs");
  fflush (stdout);
}
