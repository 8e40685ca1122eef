/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checks that cost time and are done only for who asks for them. */

#include "config.h"

#include "base/gtorch-check-private.h"

#include <string.h>

#include "base/gtorch-environment-private.h"

_Atomic guint gtorch_checks;
static void (*subscribe_checks) (guint flags);

void
gtorch_checks_register (void (*subscribe) (guint flags))
{
  subscribe_checks = subscribe;
  subscribe (gtorch_checks); /* a device may have been used before */
}

void
gtorch_checks_set (guint flags)
{
  gtorch_checks = flags;
  if (subscribe_checks != NULL)
    subscribe_checks (flags);
}

void
gtorch_checks_init (void)
{
  static const guint checks[] = {
    GTORCH_CHECK_BLOCKING, GTORCH_CHECK_ERRORS,  GTORCH_CHECK_GRAPH,
    GTORCH_CHECK_REPLAY,   GTORCH_CHECK_STREAMS, GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL
  };
  const guint words = gtorch_env_words ("GTORCH_CHECK");
  guint flags = gtorch_checks, i;

  for (i = 0; i < G_N_ELEMENTS (checks); i++)
    if (words & 1u << i)
      flags |= checks[i];
  gtorch_checks_set (flags);
}
