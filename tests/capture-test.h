/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Begin and end of a capture that must succeed. */

#include <gtorch/gtorch.h>

static inline GTorchGraphCapture *
begin_in_mode (GTorchCUDAGraph *graph, GTorchStream *stream, GTorchMemoryPool *pool,
               GTorchCaptureMode mode)
{
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = gtorch_graph_capture_new (graph, stream, pool, mode, &error);

  g_assert_no_error (error);
  return capture;
}

static inline GTorchGraphCapture *
begin (GTorchCUDAGraph *graph, GTorchStream *stream, GTorchMemoryPool *pool)
{
  return begin_in_mode (graph, stream, pool, GTORCH_CAPTURE_MODE_THREAD_LOCAL);
}

static inline void
end (GTorchGraphCapture *capture)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_graph_capture_end (capture, &error));
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
}
