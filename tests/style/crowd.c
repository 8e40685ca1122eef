/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

/* A library that uses as much of the static thread-local storage as GTorch leaves to others. */

static __thread char taken[CROWD_BYTES] __attribute__ ((tls_model ("initial-exec")));

char *gtorch_test_crowd (void);

char *
gtorch_test_crowd (void)
{
  return taken;
}
