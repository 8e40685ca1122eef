/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints: what is computed again in the backward pass. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "../capture-test.h"
#include "autograd-values.h"

/* What the function of a test does, and how often it was called. */
typedef struct
{
  GTorchTensor *weight;
  guint n_calls, n_destroyed;
  guint n_ops; /* operations at the end that ran */
  gboolean drops, changes_length, changes_shape, fails, fails_later, nests, writes_over, forgets;
  gboolean use_reentrant;
  GThread *thread; /* where the function must run, or NULL */
} Block;

static void
destroyed (gpointer data)
{
  ((Block *) data)->n_destroyed++;
}

static GTorchTensor *
steps (Block *self, GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (x, self->weight, error);
  g_autoptr (GTorchTensor) curve = product != NULL ? gtorch_tensor_tanh (product, error) : NULL;
  g_autoptr (GTorchTensor) some = NULL;
  g_autoptr (GTorchTensor) result = NULL;

  if (curve == NULL)
    return NULL;
  some = self->drops ? gtorch_tensor_dropout (curve, 0.5, TRUE, NULL, error) : g_object_ref (curve);
  if (some == NULL)
    return NULL;
  if (self->writes_over && gtorch_tensor_add_scalar_inplace (curve, 1, 1, error) == NULL)
    return NULL;
  if (self->changes_length && self->n_calls > 1)
    return g_steal_pointer (&some);
  result = gtorch_tensor_mul (some, some, error);
  if (result == NULL)
    return NULL;
  self->n_ops++;
  return gtorch_tensor_sum (result, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
}

static GPtrArray *
run (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  Block *self = data;
  GTorchTensor *output;
  GPtrArray *list;

  g_assert_cmpuint (n_inputs, ==, 1);
  g_assert_true (self->thread == NULL || self->thread == g_thread_self ());
  self->n_calls++;
  if (self->fails || (self->fails_later && self->n_calls > 1))
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
      return NULL;
    }
  if (self->changes_shape && self->n_calls > 1)
    {
      g_autoptr (GTorchTensor) half = gtorch_tensor_narrow (inputs[0], 0, 0, 1, error);

      output = steps (self, half, error);
    }
  else
    output = steps (self, inputs[0], error);
  if (output == NULL)
    return NULL;
  list = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (list, output);
  return list;
}

static GTorchTensor *
checkpoint (Block *self, GTorchTensor *x, GError **error)
{
  g_autoptr (GPtrArray) outputs =
      gtorch_checkpoint (run, self, destroyed, &x, 1, self->use_reentrant, !self->forgets, TRUE,
                         TRUE, error);

  return outputs != NULL ? g_object_ref (outputs->pdata[0]) : NULL;
}

static void
assert_same (GTorchTensor *a, GTorchTensor *b)
{
  gsize n_a, n_b;
  g_autofree gpointer x = test_dup_elements (a, &n_a);
  g_autofree gpointer y = test_dup_elements (b, &n_b);

  g_assert_cmpmem (x, n_a, y, n_b);
}

static void
gradients_are_the_same (void)
{
  guint i;

  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchTensor) x = leaf (0.1, 40, TRUE);
      g_autoptr (GTorchTensor) w = leaf (-1, 40, TRUE);
      g_autoptr (GTorchTensor) plain = NULL;
      g_autoptr (GTorchTensor) again = NULL;
      g_autoptr (GTorchTensor) before = NULL;
      g_autoptr (GTorchTensor) after = NULL;
      g_autoptr (GTorchTensor) grad_x = NULL;
      g_autoptr (GTorchTensor) grad_w = NULL;
      g_autoptr (GTorchTensor) other_x = NULL;
      g_autoptr (GTorchTensor) other_w = NULL;
      g_autoptr (GError) error = NULL;
      Block block = { .weight = w, .drops = i >= 2, .use_reentrant = i % 2 };

      gtorch_manual_seed (7);
      plain = steps (&block, x, &error);
      g_assert_no_error (error);
      before = gtorch_rand (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL, &error);
      backward (plain);
      grad_x = gtorch_tensor_get_grad (x);
      grad_w = gtorch_tensor_get_grad (w);
      gtorch_tensor_set_grad (x, NULL, NULL);
      gtorch_tensor_set_grad (w, NULL, NULL);

      gtorch_manual_seed (7);
      again = checkpoint (&block, x, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (block.n_calls, ==, 1);
      backward (again);
      g_assert_cmpuint (block.n_calls, ==, 2);
      after = gtorch_rand (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL, &error);
      other_x = gtorch_tensor_get_grad (x);
      other_w = gtorch_tensor_get_grad (w);
      assert_same (plain, again);
      assert_same (grad_x, other_x);
      assert_same (grad_w, other_w);
      assert_same (before, after); /* the numbers go on as if nothing had been drawn again */
      g_clear_object (&again);
      g_assert_cmpuint (block.n_destroyed, ==, 1);
    }
}

static void
numbers_differ_without_their_state (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 400, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 400, TRUE);
  g_autoptr (GTorchTensor) first = NULL;
  g_autoptr (GTorchTensor) second = NULL;
  g_autoptr (GTorchTensor) difference = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  guint i;

  for (i = 0; i < 2; i++)
    {
      Block block = { .weight = w, .drops = TRUE, .forgets = i };
      g_autoptr (GTorchTensor) y = NULL;

      gtorch_manual_seed (7);
      y = checkpoint (&block, x, NULL);
      backward (y);
      *(i == 0 ? &first : &second) = gtorch_tensor_get_grad (x);
      gtorch_tensor_set_grad (x, NULL, NULL);
    }
  difference = gtorch_tensor_sub (first, second, 1, NULL);
  total = gtorch_tensor_abs (difference, NULL);
  g_clear_object (&difference);
  difference = sum (total);
  g_assert_cmpfloat (test_element (difference, 0), >, 0);
}

static void
the_function_ends_early (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  gboolean early_stop;

  for (early_stop = FALSE; early_stop <= TRUE; early_stop++)
    {
      Block block = { .weight = w };
      g_autoptr (GError) error = NULL;
      g_autoptr (GPtrArray) outputs =
          gtorch_checkpoint (run, &block, NULL, &x, 1, FALSE, TRUE, TRUE, early_stop, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (block.n_ops, ==, 1);
      backward (outputs->pdata[0]);
      g_assert_cmpuint (block.n_ops, ==, early_stop ? 1 : 2);
    }
}

static void
a_graph_can_be_used_again (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GPtrArray) first = NULL;
  g_autoptr (GPtrArray) second = NULL;
  g_autoptr (GError) error = NULL;
  Block block = { .weight = w };

  y = checkpoint (&block, x, &error);
  first = gtorch_autograd_grad (&y, 1, &x, 1, NULL, 0, TRUE, FALSE, FALSE, &error);
  g_assert_no_error (error);
  second = gtorch_autograd_grad (&y, 1, &x, 1, NULL, 0, FALSE, FALSE, FALSE, &error);
  g_assert_no_error (error);
  assert_same (first->pdata[0], second->pdata[0]);
  g_assert_cmpuint (block.n_calls, ==, 3);
  g_assert_false (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_cmpuint (block.n_destroyed, ==, 1);
}

/* One derivative of the other, with and without checkpoint. */
static void
derivatives_of_derivatives_are_the_same (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  GTorchTensor *results[2] = { NULL, NULL };
  guint i;

  for (i = 0; i < 2; i++)
    {
      Block block = { .weight = w };
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y =
          i == 0 ? steps (&block, x, &error) : checkpoint (&block, x, &error);
      g_autoptr (GPtrArray) first =
          gtorch_autograd_grad (&y, 1, &x, 1, NULL, 0, TRUE, TRUE, FALSE, &error);
      g_autoptr (GTorchTensor) total = NULL;
      g_autoptr (GPtrArray) second = NULL;

      g_assert_no_error (error);
      total = sum (first->pdata[0]);
      second = gtorch_autograd_grad (&total, 1, &w, 1, NULL, 0, FALSE, FALSE, FALSE, &error);
      g_assert_no_error (error);
      results[i] = g_object_ref (second->pdata[0]);
    }
  assert_same (results[0], results[1]);
  g_object_unref (results[0]);
  g_object_unref (results[1]);
}

/* --- within one another --- */

static GPtrArray *
run_outer (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  Block *inner = data;
  g_autoptr (GTorchTensor) curve = gtorch_tensor_sin (inputs[0], error);
  GTorchTensor *output = curve != NULL ? checkpoint (inner, curve, error) : NULL;
  GPtrArray *list;

  if (output == NULL)
    return NULL;
  list = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (list, output);
  return list;
}

static void
checkpoints_are_within_one_another (void)
{
  guint kind;

  for (kind = 0; kind < 4; kind++)
    {
      g_autoptr (GTorchTensor) x = leaf (0.1, 40, TRUE);
      g_autoptr (GTorchTensor) w = leaf (-1, 40, TRUE);
      g_autoptr (GTorchTensor) curve = NULL;
      g_autoptr (GTorchTensor) plain = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) other = NULL;
      g_autoptr (GPtrArray) outputs = NULL;
      g_autoptr (GError) error = NULL;
      Block inner = { .weight = w, .drops = TRUE, .use_reentrant = kind & 1 };

      gtorch_manual_seed (3);
      curve = gtorch_tensor_sin (x, NULL);
      plain = steps (&inner, curve, NULL);
      backward (plain);
      grad = gtorch_tensor_get_grad (x);
      gtorch_tensor_set_grad (x, NULL, NULL);

      gtorch_manual_seed (3);
      outputs = gtorch_checkpoint (run_outer, &inner, NULL, &x, 1, (kind & 2) != 0, TRUE, TRUE,
                                   TRUE, &error);
      g_assert_no_error (error);
      backward (outputs->pdata[0]);
      other = gtorch_tensor_get_grad (x);
      assert_same (grad, other);
      /* of two that are not reentrant, the outer one ends when it has the inputs of the inner one */
      g_assert_cmpuint (inner.n_calls, ==, kind == 0 ? 2 : 3);
    }
}

/* --- memory --- */

#define N_BLOCKS 8
#define N        65536

static GPtrArray *
run_large (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  g_autoptr (GTorchTensor) x = g_object_ref (inputs[0]);
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < 6; i++)
    {
      GTorchTensor *next = gtorch_tensor_sin (x, error);

      g_object_unref (x);
      x = next;
      if (x == NULL)
        {
          g_ptr_array_unref (list);
          return NULL;
        }
    }
  g_ptr_array_add (list, g_steal_pointer (&x));
  return list;
}

static guint64
peak_of (gboolean checkpoints, gboolean use_reentrant)
{
  GTorchAllocator *allocator = gtorch_device_get_allocator (test_device ());
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) value = NULL;
  guint64 before;
  guint i;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  value = g_object_ref (x);
  gtorch_allocator_reset_peak (allocator);
  before = gtorch_allocator_get_allocated (allocator);
  for (i = 0; i < N_BLOCKS; i++)
    {
      g_autoptr (GPtrArray) outputs =
          checkpoints ? gtorch_checkpoint (run_large, NULL, NULL, &value, 1, use_reentrant, TRUE,
                                           TRUE, TRUE, NULL)
                      : run_large (&value, 1, NULL, NULL);

      g_object_unref (value);
      value = g_object_ref (outputs->pdata[0]);
    }
  backward_sum (value);
  return gtorch_allocator_get_peak_allocated (allocator) - before;
}

static void
less_memory_is_needed (void)
{
  const guint64 all = peak_of (FALSE, FALSE), some = peak_of (TRUE, FALSE),
                other = peak_of (TRUE, TRUE);

  g_test_message ("%" G_GUINT64_FORMAT " bytes without checkpoints, %" G_GUINT64_FORMAT
                  " and %" G_GUINT64_FORMAT " with them",
                  all, some, other);
  g_assert_cmpuint (all, >=, 6 * N_BLOCKS * N * sizeof (gfloat));
  g_assert_cmpuint (some, <=, (N_BLOCKS + 12) * N * sizeof (gfloat));
  g_assert_cmpuint (other, <=, (N_BLOCKS + 12) * N * sizeof (gfloat));
}

/* --- in another thread --- */

static void
finished (GObject *source, GAsyncResult *result, gpointer loop)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_backward_finish (GTORCH_TENSOR (source), result, &error));
  g_assert_no_error (error);
  g_main_loop_quit (loop);
}

static void
functions_run_in_the_callers_context (void)
{
  gboolean use_reentrant;

  for (use_reentrant = FALSE; use_reentrant <= TRUE; use_reentrant++)
    {
      g_autoptr (GTorchTensor) x = leaf (0.1, 40, TRUE);
      g_autoptr (GTorchTensor) w = leaf (-1, 40, TRUE);
      g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
      Block block = { .weight = w, .use_reentrant = use_reentrant };
      g_autoptr (GTorchTensor) plain = steps (&block, x, NULL);
      g_autoptr (GTorchTensor) again = checkpoint (&block, x, NULL);
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) other = NULL;

      block.thread = g_thread_self ();
      backward (plain);
      grad = gtorch_tensor_get_grad (x);
      gtorch_tensor_set_grad (x, NULL, NULL);
      gtorch_tensor_backward_async (again, NULL, FALSE, FALSE, NULL, finished, loop);
      g_main_loop_run (loop);
      other = gtorch_tensor_get_grad (x);
      assert_same (grad, other);
      g_assert_cmpuint (block.n_calls, ==, 2);
    }
}

/* --- errors --- */

static void
check_error (Block *block, GQuark domain, gint code, const gchar *text)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;

  if (block->changes_shape)
    {
      g_clear_object (&w);
      w = leaf (1, 1, TRUE);
    }
  block->weight = w;
  y = checkpoint (block, x, &error);
  if (y != NULL)
    g_assert_false (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
  g_assert_error (error, domain, code);
  if (strstr (error->message, text) == NULL)
    g_error ("%s", error->message);
  g_clear_object (&y);
  g_assert_cmpuint (block->n_destroyed, ==, 1);
}

static void
what_differs_is_named (void)
{
  Block shorter = { .changes_length = TRUE }, other = { .changes_shape = TRUE };
  Block busy = { .fails = TRUE }, later = { .fails_later = TRUE }, over = { .writes_over = TRUE };

  check_error (&shorter, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               "a different number of tensors was saved: 5 the first time, 3 when");
  check_error (&other, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "float64 [4] ");
  check_error (&busy, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
  check_error (&later, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
  check_error (&over, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "was changed in place after");
}

static void
a_changed_input_is_found (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  gboolean use_reentrant;

  for (use_reentrant = FALSE; use_reentrant <= TRUE; use_reentrant++)
    {
      Block block = { .weight = w, .use_reentrant = use_reentrant };
      g_autoptr (GTorchTensor) input = gtorch_tensor_mul_scalar (x, 2, NULL);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = checkpoint (&block, input, &error);

      g_assert_nonnull (gtorch_tensor_add_scalar_inplace (input, 1, 1, NULL));
      g_assert_false (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
      g_assert_nonnull (strstr (error->message, "changed in place since"));
    }
}

static void
reentrant_ones_have_limits (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
  g_autoptr (GTorchTensor) plain = leaf (0.1, 4, FALSE);
  g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
  Block block = { .weight = w, .use_reentrant = TRUE };
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) unused = NULL;
  g_autoptr (GError) error = NULL;

  y = checkpoint (&block, x, &error);
  g_assert_null (gtorch_autograd_grad (&y, 1, &x, 1, NULL, 0, TRUE, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "adds to those of all leaves"));
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_backward (y, NULL, TRUE, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "create_graph"));
  g_clear_error (&error);
  unused = checkpoint (&block, plain, &error);
  g_assert_null (unused);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "requires grad"));
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
    g_autoptr (GError) none = NULL;

    unused = checkpoint (&block, plain, &none);
    g_assert_no_error (none);
  }
}

/* --- what is there the second time --- */

static GPtrArray *
run_half (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  GArray *dtypes = data;
  GTorchTensor *output = gtorch_tensor_matmul (inputs[0], inputs[0], error);
  GPtrArray *list;
  guint dtype;

  if (output == NULL)
    return NULL;
  dtype = gtorch_tensor_get_dtype (output);
  g_array_append_val (dtypes, dtype);
  list = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (list, gtorch_tensor_exp (output, error));
  g_object_unref (output);
  if (list->pdata[0] == NULL)
    {
      g_ptr_array_remove_index (list, 0);
      g_ptr_array_unref (list);
      return NULL;
    }
  return list;
}

static void
mixed_precision_is_as_before (void)
{
  gboolean use_reentrant;

  for (use_reentrant = FALSE; use_reentrant <= TRUE; use_reentrant++)
    {
      g_autoptr (GTorchTensor) x =
          gtorch_full (GTORCH_SHAPE (4, 4), 0.1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GArray) dtypes = g_array_new (FALSE, FALSE, sizeof (guint));
      g_autoptr (GPtrArray) outputs = NULL;
      g_autoptr (GError) error = NULL;
      guint i;

      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      {
        g_autoptr (GTorchAutocastGuard) guard =
            gtorch_autocast_guard_new (gtorch_device_get_device_type (test_device ()),
                                       GTORCH_DTYPE_BFLOAT16, TRUE, TRUE, &error);

        g_assert_no_error (error);
        outputs = gtorch_checkpoint (run_half, dtypes, NULL, &x, 1, use_reentrant, TRUE, TRUE,
                                     FALSE, &error);
        g_assert_no_error (error);
      }
      backward_sum (outputs->pdata[0]);
      g_assert_cmpuint (dtypes->len, ==, 2);
      for (i = 0; i < 2; i++)
        g_assert_cmpuint (g_array_index (dtypes, guint, i), ==, GTORCH_DTYPE_BFLOAT16);
    }
}

static void
a_graph_captures_both_times (void)
{
  guint kind;

  if (!test_can_capture ())
    return;
  for (kind = 0; kind < 4; kind++)
    {
      g_autoptr (GTorchTensor) x = leaf (0.1, 4, TRUE);
      g_autoptr (GTorchTensor) w = leaf (1, 4, TRUE);
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchStream) stream = gtorch_stream_new (test_device (), 0, NULL);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) expected = NULL;
      g_autoptr (GTorchTensor) plain = NULL;
      g_autoptr (GError) error = NULL;
      Block block = { .weight = w, .drops = kind >= 2, .use_reentrant = kind & 1 };
      GTorchGraphCapture *capture;
      gboolean success;

      if (kind < 2)
        {
          plain = steps (&block, x, NULL);
          backward (plain);
          expected = gtorch_tensor_get_grad (x);
          gtorch_tensor_set_grad (x, NULL, NULL);
          gtorch_tensor_set_grad (w, NULL, NULL);
        }
      gtorch_device_synchronize (test_device (), NULL, NULL);
      capture = begin (graph, stream, NULL);
      y = checkpoint (&block, x, &error);
      g_assert_no_error (error);
      success = gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error);
      if (kind < 2)
        {
          g_assert_no_error (error);
          end (capture);
          g_assert_true (gtorch_cuda_graph_replay (graph, &error));
          g_assert_no_error (error);
          grad = gtorch_tensor_get_grad (x);
          gtorch_device_synchronize (test_device (), NULL, NULL);
          assert_same (expected, grad);
          continue;
        }
      g_assert_false (success);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_assert_nonnull (strstr (error->message, "draws random numbers in a capture"));
      gtorch_graph_capture_unref (capture);
    }
}

#define ADD(name) g_test_add_func ("/GTorch/Checkpoint/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (gradients_are_the_same);
  ADD (numbers_differ_without_their_state);
  ADD (the_function_ends_early);
  ADD (a_graph_can_be_used_again);
  ADD (derivatives_of_derivatives_are_the_same);
  ADD (checkpoints_are_within_one_another);
  ADD (less_memory_is_needed);
  ADD (functions_run_in_the_callers_context);
  ADD (what_differs_is_named);
  ADD (a_changed_input_is_found);
  ADD (reentrant_ones_have_limits);
  ADD (mixed_precision_is_as_before);
  ADD (a_graph_captures_both_times);
  return g_test_run ();
}
