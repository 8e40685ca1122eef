/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared helpers of the tests of graphs. */

#include "capture-test.h"
#include "test-device.h"

#define MODE GTORCH_CAPTURE_MODE_THREAD_LOCAL

static inline void
assert_like (const gchar *message, const gchar *text)
{
  g_autofree gchar *pattern = g_strdup_printf ("*%s*", text);

  if (!g_pattern_match_simple (pattern, message))
    g_error ("“%s” is not like “%s”", message, text);
}

/* Checks that the call, which uses &fault, fails with this code and a message that matches the text. */
#define FAILS(call, code, text)                 \
  G_STMT_START                                  \
  {                                             \
    g_autoptr (GError) fault = NULL;            \
    g_assert_false ((call));                    \
    g_assert_error (fault, GTORCH_ERROR, code); \
    assert_like (fault->message, text);         \
  }                                             \
  G_STMT_END

static inline GTorchTensor *
filled (gint64 n, gdouble value)
{
  return gtorch_full (GTORCH_SHAPE (n), value, GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

static inline void
replay (GTorchCUDAGraph *graph)
{
  g_autoptr (GError) error = NULL;

  gtorch_cuda_graph_replay (graph, &error);
  g_assert_no_error (error);
}
