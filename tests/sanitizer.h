/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* compute-sanitizer checks each access of a kernel and runs kernels one at a time: a launch takes
 * milliseconds. Under it tests do once what they otherwise repeat, and skip cases that need concurrent
 * kernels. tests/gpu/sanitize.py sets GTORCH_TEST_SERIAL for it. */

#include <glib.h>

static inline gboolean
is_under_sanitizer (void)
{
  return g_getenv ("GTORCH_TEST_SERIAL") != NULL;
}

/* Returns whether the compiler put checks of memory or of threads into the program. */
static inline gboolean
is_instrumented (void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return TRUE;
#else
  return FALSE;
#endif
}

/* A program with such checks takes up to thirty times as long: many values, which are compared in other
 * builds, are left out there. */
static inline gboolean
is_slowed (void)
{
  return is_instrumented () || is_under_sanitizer ();
}

/* Returns the step for checking elements of a row. */
static inline guint
test_step (void)
{
  return is_under_sanitizer () ? 50 : 1;
}

/* Returns n, or a smaller number under compute-sanitizer, but at least 1. */
static inline guint
test_often (guint n)
{
  return MAX (n / test_step (), 1);
}
