/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared helpers of the tests of captures on several GPUs. They run on the fake driver and, with
 * ON_A_REAL_GPU, on two real GPUs. */

#include <gtorch/graph/gtorch-capture-private.h>
#include <gtorch/base/gtorch-check-private.h>

#include <tests/capture-test.h>
#include "cuda-test.h"

#ifdef ON_A_REAL_GPU
#define N                        100000
#define fake_cuda_set_seed(seed) ((void) (seed))
#else
#define N 300
#endif

/* Evaluates the call, which uses `error`, and checks for success. */
#define TRY(call)                     \
  ({                                  \
    GError *error = NULL;             \
    __typeof__ (call) made_ = (call); \
                                      \
    g_assert_no_error (error);        \
    made_;                            \
  })

/* A capture that began on a stream of the first GPU, and a stream of the second one. Both are current while
 * it lasts. */
typedef struct
{
  GTorchDevice *first, *second;
  GTorchStream *s, *t;
  GTorchCUDAGraph *graph;
  GTorchGraphCapture *capture;
  GTorchStreamGuard *guard;
} Pair;

static inline void
settle (void)
{
  guint i;

  for (i = 0; i < 2; i++)
    g_assert_true (gtorch_device_synchronize (gpu (i), NULL, NULL));
}

static inline void
pair_init (Pair *self, GTorchDevice *first, GTorchDevice *second)
{
  self->first = first;
  self->second = second;
  self->s = TRY (gtorch_stream_new (first, 0, &error));
  self->t = TRY (gtorch_stream_new (second, 0, &error));
  self->graph = gtorch_cuda_graph_new ();
  self->capture = NULL;
  self->guard = NULL;
}

static inline void
join (Pair *self)
{
  TRY (gtorch_stream_wait_stream (self->t, self->s, &error));
  g_assert_true (gtorch_stream_is_capturing (self->t));
}

static inline void
pair_begin (Pair *self, GTorchMemoryPool *pool)
{
  settle ();
  self->guard = gtorch_stream_guard_new (self->t);
  self->capture = begin (self->graph, self->s, pool);
  join (self);
}

static inline void
pair_end (Pair *self)
{
  TRY (gtorch_stream_wait_stream (self->s, self->t, &error));
  end (g_steal_pointer (&self->capture));
  g_assert_false (gtorch_stream_is_capturing (self->t));
  gtorch_stream_guard_end (self->guard);
  g_clear_pointer (&self->guard, gtorch_stream_guard_unref);
}

/* Gives the capture up. */
static inline void
pair_abandon (Pair *self)
{
  g_clear_pointer (&self->capture, gtorch_graph_capture_unref);
  gtorch_stream_guard_end (self->guard);
  g_clear_pointer (&self->guard, gtorch_stream_guard_unref);
  g_assert_false (gtorch_stream_is_capturing (self->s));
  g_assert_false (gtorch_stream_is_capturing (self->t));
}

static inline void
pair_clear (Pair *self)
{
  g_clear_object (&self->graph);
  g_clear_object (&self->s);
  g_clear_object (&self->t);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pair, pair_clear)

static inline GTorchTensor *
full (GTorchDevice *device, gdouble value)
{
  return TRY (gtorch_full (GTORCH_SHAPE (N), value, GTORCH_DTYPE_FLOAT32, device, &error));
}

static inline GTorchTensor *
to (GTorchTensor *x, GTorchDevice *device)
{
  return TRY (gtorch_tensor_to_device (x, device, FALSE, &error));
}

static inline GTorchTensor *
plus (GTorchTensor *x, GTorchTensor *y)
{
  return TRY (gtorch_tensor_add (x, y, 1, &error));
}

static inline GTorchTensor *
times (GTorchTensor *x, gdouble factor)
{
  return TRY (gtorch_tensor_mul_scalar (x, factor, &error));
}

static inline void
fill (GTorchTensor *x, gdouble value)
{
  TRY (gtorch_tensor_fill_inplace (x, value, &error));
}

static inline void
replay (Pair *self)
{
  TRY (gtorch_cuda_graph_replay (self->graph, &error));
}

static inline void
assert_all (GTorchTensor *x, gdouble expected)
{
  g_autofree gdouble *values = read_doubles (gtorch_tensor_get_impl (x));
  gint64 i;

  for (i = 0; i < gtorch_tensor_get_numel (x); i++)
    g_assert_cmpfloat (values[i], ==, expected);
}

static inline void
assert_same (GTorchTensor *x, GTorchTensor *expected)
{
  g_autoptr (GBytes) a = TRY (gtorch_tensor_get_bytes (x, &error));
  g_autoptr (GBytes) b = TRY (gtorch_tensor_get_bytes (expected, &error));

  g_assert_true (g_bytes_equal (a, b));
}

/* Computes 2 (x + 1) on the second GPU, and 2 (x + 1) + (x + 1) on the first one. */
typedef struct
{
  GTorchTensor *there, *here;
} Results;

static inline Results
compute (Pair *self, GTorchTensor *x)
{
  g_autoptr (GTorchTensor) y = TRY (gtorch_tensor_add_scalar (x, 1, 1, &error));
  g_autoptr (GTorchTensor) moved = to (y, self->second);
  Results results = { times (moved, 2), NULL };
  g_autoptr (GTorchTensor) back = to (results.there, self->first);

  results.here = plus (back, y);
  return results;
}

static inline void
results_clear (Results *self)
{
  g_clear_object (&self->there);
  g_clear_object (&self->here);
}

static inline void
capture_and_replay (GTorchDevice *first, GTorchDevice *second)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (first, 0);
  Results results;
  guint i;

  pair_init (&pair, first, second);
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  g_assert_true (gtorch_tensor_get_device (results.there) == second);
  pair_end (&pair);
  for (i = 1; i < 24; i++)
    {
      fake_cuda_set_seed (i);
      fill (x, i);
      replay (&pair);
      if (i % 4 == 0)
        { /* the current streams of both come after the replay, and the next replay after them */
          assert_all (results.there, 2 * (i + 1));
          assert_all (results.here, 3 * (i + 1));
        }
    }
  results_clear (&results);
}

/* --- memory --- */

static inline guint64
reserved (guint index)
{
  return gtorch_device_get_memory_reserved (gpu (index));
}

static inline void
empty_caches (void)
{
  settle ();
  gtorch_device_empty_cache (gpu (0));
  gtorch_device_empty_cache (gpu (1));
}

/* Skips the program without two GPUs, or without kernels. */
static inline gboolean
skips_without_two_gpus (void)
{
#ifdef ON_A_REAL_GPU
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDevice *second = gtorch_device_cuda (1, &error);

  if (second != NULL)
    x = gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, second, &error);
  if (x == NULL || !gtorch_device_can_access_peer (gpu (0), gpu (1)))
    {
      g_print ("1..0 # SKIP %s\n", error != NULL ? error->message : "no access between the GPUs");
      return TRUE;
    }
#endif
  return FALSE;
}
