/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Profiles to pass to functions. */

#include "config.h"

#include <gio/gio.h>

#include "refuse.h"
#include "test-device.h"

gpointer
refuse_make_profile_range (void)
{
  return gtorch_profile_range_new ("a range");
}

gpointer
refuse_make_profile_list (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();

  if (!gtorch_profiler_start (profiler, NULL))
    return NULL;
  gtorch_profile_range_unref (refuse_make_profile_range ());
  if (!gtorch_profiler_stop (profiler, NULL))
    return NULL;
  return gtorch_profiler_events (profiler, NULL);
}

gpointer
refuse_make_profile_row (void)
{
  g_autoptr (GTorchProfileList) list = refuse_make_profile_list ();

  return list != NULL ? gtorch_profile_list_total_average (list) : NULL;
}
