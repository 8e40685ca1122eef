/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* compute-sanitizer looks at each access of a kernel and waits for its end before the next begins: a launch
 * takes milliseconds. There tests do once what they otherwise repeat, and leave out what needs kernels side
 * by side. tests/gpu/sanitize.py says so with GTORCH_TEST_SERIAL. */

#include <glib.h>

static inline gboolean
is_under_sanitizer (void)
{
  return g_getenv ("GTORCH_TEST_SERIAL") != NULL;
}

/* Of elements in a row every so many-th. */
static inline guint
test_step (void)
{
  return is_under_sanitizer () ? 50 : 1;
}

/* n, or fewer under compute-sanitizer, but one. */
static inline guint
test_often (guint n)
{
  return MAX (n / test_step (), 1);
}
