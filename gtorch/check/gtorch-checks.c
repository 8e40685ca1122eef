/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which checks are told of events. */

#include "config.h"

#include "base/gtorch-check-private.h"
#include "check/gtorch-checks-private.h"

static void
subscribe (const GTorchObserver *observer, gboolean is_on)
{
  if (is_on)
    gtorch_observer_add (observer);
  else
    gtorch_observer_remove (observer);
}

static void
subscribe_checks (guint flags)
{
  if (flags & GTORCH_CHECK_STREAMS)
    gtorch_observer_add (&gtorch_race_records_observer);
  subscribe (&gtorch_race_observer, (flags & GTORCH_CHECK_STREAMS) != 0);
  subscribe (&gtorch_blocking_observer, (flags & GTORCH_CHECK_BLOCKING) != 0);
  subscribe (&gtorch_compare_observer, (flags & GTORCH_CHECK_REPLAY) != 0);
}

static void __attribute__ ((constructor)) add_checks (void)
{
  gtorch_observer_add (&gtorch_audit_observer);
  gtorch_checks_register (subscribe_checks);
}
