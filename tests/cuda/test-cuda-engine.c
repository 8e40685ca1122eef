/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The streams of the backward pass as its hooks see them, also in asynchronous passes, on several
 * devices, and at the boundaries of captures. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>

#include <tests/capture-test.h>

#include "cuda-test.h"

#define LENGTH 64
#define SEEDS  100

static GTorchDevice *device; /* the device under test */

static gboolean
is_gpu (void)
{
  return device->type != GTORCH_DEVICE_TYPE_CPU;
}

static GTorchStream *
new_stream (GTorchDevice *where)
{
  g_autoptr (GError) error = NULL;
  GTorchStream *stream = gtorch_stream_new (where, 0, &error);

  g_assert_no_error (error);
  return stream;
}

static void
on (GTorchStream *stream)
{
  gtorch_stream_set_current (stream);
}

static void
wait_for (GTorchStream *stream, GTorchStream *other)
{
  g_assert_true (gtorch_stream_wait_stream (stream, other, NULL));
}

static GTorchTensor *
must (GTorchTensor *tensor)
{
  g_assert_nonnull (tensor);
  return tensor;
}

static GTorchTensor *
filled (GTorchDevice *where, gdouble number, gboolean requires_grad)
{
  GTorchTensor *tensor =
      must (gtorch_full (GTORCH_SHAPE (LENGTH), number, GTORCH_DTYPE_FLOAT32, where, NULL));

  g_assert_true (gtorch_tensor_set_requires_grad (tensor, requires_grad, NULL));
  return tensor;
}

/* Checks the elements after the work of the current stream of the tensor's device. */
static void
assert_all (GTorchTensor *tensor, gdouble expected)
{
  GTorchStream *stream = gtorch_stream_get_current (gtorch_tensor_get_device (tensor));
  g_autofree gdouble *values = NULL;
  gsize n, i;

  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  g_assert_cmpuint (n, ==, LENGTH);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, expected);
}

static void
assert_grad (GTorchTensor *leaf, gdouble expected)
{
  g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (leaf));

  assert_all (grad, expected);
}

/* --- hooks --- */

typedef struct
{
  GThread *thread;
  GTorchStream *expected;
  GTorchStream *left_behind; /* the current stream on return */
  guint n_calls;
} Seen;

static GTorchTensor *
see_gradient (GTorchTensor *grad, gpointer data, GError **error)
{
  Seen *seen = data;

  g_assert_true (g_thread_self () == seen->thread);
  g_assert_true (gtorch_stream_get_current (device) == seen->expected);
  seen->n_calls++;
  if (seen->left_behind != NULL)
    on (seen->left_behind);
  return NULL;
}

static gboolean
see_leaf (GTorchTensor *leaf, gpointer data, GError **error)
{
  return see_gradient (leaf, data, error) == NULL;
}

static void
on_backward (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  gtorch_tensor_backward_finish (GTORCH_TENSOR (source), result, &error);
  g_assert_no_error (error);
  *(gboolean *) data = TRUE;
}

/* y is computed on p, z on q; the caller's stream is s. */
static void
hooks_run_on_the_streams_of_forward (void)
{
  g_autoptr (GTorchStream) s = new_stream (device);
  g_autoptr (GTorchStream) p = new_stream (device);
  g_autoptr (GTorchStream) q = new_stream (device);
  guint pass;

  for (pass = 0; pass < 4; pass++)
    {
      gboolean is_async = pass % 2, leaves_streams = pass >= 2, is_done = FALSE;
      GTorchStream *left_behind = leaves_streams ? s : NULL;
      Seen seen[] = { { g_thread_self (), q, left_behind, 0 },
                      { g_thread_self (), p, left_behind, 0 },
                      { g_thread_self (), p, left_behind, 0 },
                      { g_thread_self (), p, left_behind, 0 } };
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      g_autoptr (GTorchTensor) ones = NULL;
      g_autoptr (GTorchTensor) used = NULL;
      guint i;

      on (p);
      x = filled (device, 2, TRUE);
      y = must (gtorch_tensor_mul (x, x, NULL));
      wait_for (q, p);
      on (q);
      z = must (gtorch_tensor_mul_scalar (y, 5, NULL));
      gtorch_tensor_register_hook (z, see_gradient, &seen[0], NULL, NULL);
      gtorch_tensor_register_hook (y, see_gradient, &seen[1], NULL, NULL);
      gtorch_tensor_register_hook (x, see_gradient, &seen[2], NULL, NULL);
      gtorch_tensor_register_post_accumulate_grad_hook (x, see_leaf, &seen[3], NULL, NULL);
      on (s);
      ones = filled (device, 1, FALSE);
      if (is_async)
        {
          gtorch_tensor_backward_async (z, ones, FALSE, FALSE, NULL, on_backward, &is_done);
          /* the pass uses the stream that was current */
          on (gtorch_device_get_default_stream (device));
          while (!is_done)
            g_main_context_iteration (NULL, TRUE);
          g_assert_true (gtorch_stream_get_current (device)
                         == gtorch_device_get_default_stream (device));
          on (s);
        }
      else
        g_assert_true (gtorch_tensor_backward (z, ones, FALSE, FALSE, NULL));
      g_assert_true (gtorch_stream_get_current (device) == s);
      for (i = 0; i < G_N_ELEMENTS (seen); i++)
        g_assert_cmpuint (seen[i].n_calls, ==, 1);
      {
        g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (x));

        used = must (gtorch_tensor_add_scalar (grad, 1, 1, NULL));
      }
      assert_all (used, 21);
      on (gtorch_device_get_default_stream (device));
    }
}

/* --- main loops --- */

typedef struct
{
  GMutex lock;
  GCond cond;
  gboolean is_open;
} Gate;

static gboolean
pass_gate (gpointer data, GError **error)
{
  Gate *gate = data;

  g_mutex_lock (&gate->lock);
  while (!gate->is_open)
    g_cond_wait (&gate->cond, &gate->lock);
  g_mutex_unlock (&gate->lock);
  return TRUE;
}

static gboolean
open_gate (gpointer data)
{
  Gate *gate = data;

  if (is_gpu ())
    fake_cuda_hold (FALSE);
  g_mutex_lock (&gate->lock);
  gate->is_open = TRUE;
  g_cond_broadcast (&gate->cond);
  g_mutex_unlock (&gate->lock);
  return G_SOURCE_REMOVE;
}

/* The streams do nothing until the main loop runs, and yet the call returns. */
static void
an_asynchronous_pass_does_not_block (void)
{
  guint outer;

  for (outer = 0; outer < 2; outer++)
    {
      g_autoptr (GTorchStream) p = new_stream (device);
      g_autoptr (GTorchStream) s = new_stream (device);
      GTorchStream *caller = outer ? s : gtorch_device_get_default_stream (device);
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) ones = NULL;
      g_autoptr (GTorchTensor) used = NULL;
      gboolean is_done = FALSE;
      Gate gate = { .is_open = FALSE };
      guint timeout;

      on (p);
      x = filled (device, 2, TRUE);
      y = must (gtorch_tensor_mul (x, x, NULL));
      if (is_gpu ())
        fake_cuda_hold (TRUE);
      else
        GTORCH_STREAM_GET_CLASS (p)->enqueue (p, pass_gate, &gate, NULL);
      on (caller);
      ones = filled (device, 1, FALSE);
      gtorch_tensor_backward_async (y, ones, FALSE, FALSE, NULL, on_backward, &is_done);
      g_assert_false (is_done);
      timeout = g_timeout_add (10, open_gate, &gate);
      while (!is_done)
        g_main_context_iteration (NULL, TRUE);
      {
        g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (x));

        used = must (gtorch_tensor_add_scalar (grad, 1, 1, NULL));
      }
      if (!gate.is_open) /* the pass only had to enqueue its work */
        {
          g_source_remove (timeout);
          open_gate (&gate);
        }
      assert_all (used, 5);
      on (gtorch_device_get_default_stream (device));
    }
}

/* --- several devices --- */

typedef struct
{
  GTorchDevice *devices[2];
  GTorchStream *callers[2], *forwards[2];
} Pair;

static GTorchTensor *
assert_pair (GTorchTensor *grad, gpointer data, GError **error)
{
  Pair *pair = data;
  guint i;

  for (i = 0; i < 2; i++)
    g_assert_true (gtorch_stream_get_current (pair->devices[i]) == pair->forwards[i]);
  return NULL;
}

/* Computes 9 x² with a copy to another GPU, and a gradient that the caller changes just before. */
static void
go_there_and_back (Pair *pair)
{
  g_autoptr (GTorchTensor) x = NULL, grad = NULL, triple = NULL, moved = NULL, square = NULL;
  g_autoptr (GTorchTensor) ones = NULL, used = NULL, sum = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  on (pair->callers[0]);
  on (pair->callers[1]);
  x = filled (pair->devices[1], 2, TRUE);
  grad = filled (pair->devices[1], 16, FALSE);
  g_assert_true (gtorch_tensor_set_grad (x, grad, NULL));
  wait_for (pair->forwards[1], pair->callers[1]);
  on (pair->forwards[0]);
  on (pair->forwards[1]);
  triple = must (gtorch_tensor_mul_scalar (x, 3, NULL));
  moved = must (gtorch_tensor_to_device (triple, pair->devices[0], FALSE, NULL));
  square = must (gtorch_tensor_mul (moved, moved, NULL));
  /* The gradient of the copy uses the streams of the copy. */
  gtorch_tensor_register_hook (moved, assert_pair, pair, NULL, NULL);
  on (pair->callers[0]);
  on (pair->callers[1]);
  ones = filled (pair->devices[0], 1, FALSE);
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (grad, 1.0 / 16, NULL));
  gtorch_tensor_backward (square, ones, FALSE, FALSE, &error);
  g_assert_no_error (error);
  sum = must (gtorch_tensor_get_grad (x));
  used = must (gtorch_tensor_mul_scalar (sum, 2, NULL));
  assert_all (used, 2 * (1 + 18 * 2));
  for (i = 0; i < 2; i++)
    {
      on (gtorch_device_get_default_stream (pair->devices[i]));
      g_assert_true (gtorch_device_synchronize (pair->devices[i], NULL, NULL));
    }
}

static void
streams_of_several_devices (void)
{
  Pair pair = { .devices = { gpu (0), gpu (1) } };
  guint seed, checks, i;

  for (i = 0; i < 2; i++)
    {
      pair.callers[i] = new_stream (pair.devices[i]);
      pair.forwards[i] = new_stream (pair.devices[i]);
    }
  for (checks = 0; checks < 2; checks++)
    for (seed = 0; seed < SEEDS; seed++)
      {
        fake_cuda_set_seed (seed);
        gtorch_checks_set (checks ? GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL : 0);
        go_there_and_back (&pair);
      }
  gtorch_checks_set (0);
  for (i = 0; i < 2; i++)
    {
      g_object_unref (pair.callers[i]);
      g_object_unref (pair.forwards[i]);
    }
}

/* --- captures --- */

static void
assert_refused (GTorchTensor *y, GTorchTensor *ones, const gchar *op, GTorchStream *forward,
                const gchar *captures, GTorchStream *caller, const gchar *does)
{
  g_autofree gchar *expected =
      g_strdup_printf ("backward: %s ran forward on stream %p, which captures %s, and its gradient "
                       "comes from stream %p, which captures %s: ",
                       op, forward, captures, caller, does);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_tensor_backward (y, ones, TRUE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  if (!g_str_has_prefix (error->message, expected))
    g_error ("%s\nis not\n%s", error->message, expected);
}

static void
a_pass_does_not_enter_or_leave_a_capture (void)
{
  g_autoptr (GTorchStream) s = new_stream (device);
  g_autoptr (GTorchStream) c = new_stream (device);
  g_autoptr (GTorchStream) d = new_stream (device);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) other = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) ones = filled (device, 1, FALSE);
  g_autoptr (GTorchTensor) x = filled (device, 2, TRUE);
  g_autoptr (GTorchTensor) outside = NULL;
  g_autoptr (GTorchTensor) inside = NULL;
  g_autoptr (GTorchTensor) mixed = NULL;
  g_autoptr (GPtrArray) grads = NULL;
  GTorchGraphCapture *capture, *second;
  GTorchStream *normal = gtorch_device_get_default_stream (device);

  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
  on (s);
  outside = must (gtorch_tensor_exp (x, NULL));
  on (normal);
  capture = begin (graph, c, NULL);
  inside = must (gtorch_tensor_mul (x, x, NULL));
  mixed = must (gtorch_tensor_mul (outside, inside, NULL));
  assert_refused (outside, ones, "exp", s, "no graph", c, "a graph");
  assert_refused (mixed, ones, "exp", s, "no graph", c, "a graph");
  on (s);
  assert_refused (inside, ones, "mul", c, "a graph", s, "no graph");
  on (normal);
  assert_refused (inside, ones, "mul", c, "a graph", normal, "no graph");
  second = begin (other, d, NULL);
  assert_refused (inside, ones, "mul", c, "a graph", d, "another graph");
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "graph: nothing was captured*");
  end (second);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (other), ==, 0);
  on (c);
  g_assert_null (gtorch_tensor_get_grad (x));
  /* Gradients that are not needed are not computed. */
  grads = gtorch_autograd_grad (&mixed, 1, &inside, 1, &ones, 1, TRUE, FALSE, FALSE, NULL);
  g_assert_nonnull (grads);
  end (capture);
  /* The stream on which it was captured does not matter after the end. */
  on (s);
  g_assert_true (gtorch_tensor_backward (inside, ones, FALSE, FALSE, NULL));
  assert_grad (x, 4);
  on (normal);
}

/* Forward, backward and a second pass that adds to the gradient, on two streams of one capture. */
static void
a_capture_with_two_streams (void)
{
  g_autoptr (GTorchStream) c = new_stream (device);
  g_autoptr (GTorchStream) p = new_stream (device);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) ones = filled (device, 1, FALSE);
  g_autoptr (GTorchTensor) x = filled (device, 2, TRUE);
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) triple = NULL;
  g_autoptr (GTorchTensor) cube = NULL;
  GTorchGraphCapture *capture = begin (graph, c, NULL);
  guint i;

  wait_for (p, c);
  on (p);
  square = must (gtorch_tensor_mul (x, x, NULL));
  on (c);
  triple = must (gtorch_tensor_mul_scalar (x, 3, NULL));
  wait_for (c, p);
  cube = must (gtorch_tensor_mul (square, triple, NULL));
  g_assert_true (gtorch_tensor_backward (cube, ones, TRUE, FALSE, NULL));
  g_assert_true (gtorch_tensor_backward (cube, ones, FALSE, FALSE, NULL));
  end (capture);
  for (i = 1; i < 4; i++)
    {
      g_autoptr (GTorchTensor) number = filled (device, i, FALSE);
      g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

      g_assert_nonnull (gtorch_tensor_copy_inplace (x, number, FALSE, NULL));
      g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
      g_assert_true (gtorch_cuda_graph_replay_on (graph, c, NULL));
      on (c);
      assert_grad (x, 2 * 9.0 * i * i);
      on (gtorch_device_get_default_stream (device));
    }
}

#define BOTH(name)                 \
  static void cpu_##name (void)    \
  {                                \
    device = gtorch_device_cpu (); \
    name ();                       \
  }                                \
  static void gpu_##name (void)    \
  {                                \
    device = gpu (0);              \
    name ();                       \
  }

BOTH (hooks_run_on_the_streams_of_forward)
BOTH (an_asynchronous_pass_does_not_block)
BOTH (a_pass_does_not_enter_or_leave_a_capture)
BOTH (a_capture_with_two_streams)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchEngine/" #name, name)
  ADD (cpu_hooks_run_on_the_streams_of_forward);
  ADD (gpu_hooks_run_on_the_streams_of_forward);
  ADD (cpu_an_asynchronous_pass_does_not_block);
  ADD (gpu_an_asynchronous_pass_does_not_block);
  ADD (streams_of_several_devices);
  ADD (cpu_a_pass_does_not_enter_or_leave_a_capture);
  ADD (gpu_a_pass_does_not_enter_or_leave_a_capture);
  ADD (cpu_a_capture_with_two_streams);
  ADD (gpu_a_capture_with_two_streams);
#undef ADD
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
