/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "autograd-values.h"

static void
products_have_gradients (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = leaf (4, 3, TRUE);
  g_autoptr (GTorchTensor) p = gtorch_tensor_mul (x, y, NULL);
  g_autoptr (GTorchTensor) s = sum (p);
  g_autoptr (GTorchTensor) gx = NULL;
  g_autoptr (GTorchTensor) gy = NULL;
  g_autoptr (GTorchTensor) again = NULL;

  g_assert_false (gtorch_tensor_is_leaf (s));
  g_assert_cmpstr (gtorch_tensor_get_grad_fn_name (p), ==, "mul");
  backward (s);
  gx = gtorch_tensor_get_grad (x);
  gy = gtorch_tensor_get_grad (y);
  again = gtorch_tensor_get_grad (x);
  g_assert_true (again == gx);
  g_assert_cmpfloat (value (gx, 2), ==, 6);
  g_assert_cmpfloat (value (gy, 0), ==, 1);
}

static void
gradients_accumulate_and_broadcast (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) big =
      gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) p = gtorch_tensor_mul (big, x, NULL);
      g_autoptr (GTorchTensor) q = gtorch_tensor_add (p, x, 2, NULL);
      g_autoptr (GTorchTensor) s = sum (q);

      backward (s);
    }
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpint (gtorch_tensor_get_n_dims (grad), ==, 1);
  g_assert_cmpfloat (value (grad, 1), ==, 2 * (4 + 8));
}

static void
no_grad_records_nothing (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    y = gtorch_tensor_mul (x, x, NULL);
    {
      g_autoptr (GTorchGradGuard) inner = gtorch_enable_grad ();

      z = gtorch_tensor_mul (x, x, NULL);
    }
    g_assert_false (gtorch_is_grad_enabled ());
  }
  g_assert_true (gtorch_is_grad_enabled ());
  g_assert_false (gtorch_tensor_get_requires_grad (y));
  g_assert_true (gtorch_tensor_get_requires_grad (z));
}

static void
in_place_on_a_leaf_is_an_error (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) view = gtorch_tensor_slice (x, 0, 0, 2, 1, NULL);

  g_assert_null (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_mul_scalar_inplace (view, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_cmpfloat (value (x, 0), ==, 1);
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (x, 2, NULL));
  }
}

static void
changed_values_are_found (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) z = gtorch_tensor_mul (y, y, NULL);
  g_autoptr (GTorchTensor) s = sum (z);

  gtorch_tensor_add_scalar_inplace (y, 1, 1, NULL);
  g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "mul"));
  g_assert_nonnull (strstr (error->message, "version 1"));
}

static void
in_place_takes_part_in_the_graph (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_mul_inplace (y, x, NULL)); /* 2x²; saves the old value of y */
  g_assert_nonnull (gtorch_tensor_exp_inplace (y, NULL));
  s = sum (y);
  backward (s);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat_with_epsilon (value (grad, 1), exp (8.0) * 8, 1e-9);
}

/* x = arange; y = 2x; y[1] = y[1] * x[0]; sum (y²) */
static void
writing_to_a_view_changes_the_base (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) part = gtorch_tensor_select (y, 0, 1, NULL);
  g_autoptr (GTorchTensor) first = gtorch_tensor_select (x, 0, 0, NULL);
  g_autoptr (GTorchTensor) squares = NULL;
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_mul_inplace (part, first, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (gtorch_tensor_get_grad_fn_name (y), ==, "copy_slices");
  squares = gtorch_tensor_mul (y, y, NULL);
  s = sum (squares);
  backward (s);
  grad = gtorch_tensor_get_grad (x);
  /* s = 4 x0² + (2 x1 x0)² + 4 x2² at 1, 2, 3 */
  g_assert_cmpfloat (value (grad, 0), ==, 8 + 8 * 4);
  g_assert_cmpfloat (value (grad, 1), ==, 8 * 2);
  g_assert_cmpfloat (value (grad, 2), ==, 24);
}

static void
base_requires_grad_after_a_write_to_its_view (void)
{
  g_autoptr (GTorchTensor) x = leaf (5, 2, TRUE);
  g_autoptr (GTorchTensor) base = gtorch_zeros (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) view = gtorch_tensor_slice (base, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) squares = NULL;
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_copy_inplace (view, x, FALSE, NULL));
  g_assert_true (gtorch_tensor_get_requires_grad (base));
  squares = gtorch_tensor_mul (base, base, NULL);
  s = sum (squares);
  backward (s);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 1), ==, 12);
}

static void
second_backward_needs_retain_graph (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) p = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) s = sum (p);

  g_assert_true (gtorch_tensor_backward (s, NULL, TRUE, FALSE, NULL));
  g_assert_true (gtorch_tensor_backward (s, NULL, FALSE, FALSE, NULL));
  g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "retain_graph"));
}

static void
invalid_roots_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) plain = leaf (1, 3, FALSE);
  g_autoptr (GTorchTensor) ints = gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) p = gtorch_tensor_mul (x, x, NULL);

  g_assert_false (gtorch_tensor_backward (plain, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_backward (p, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_backward (p, ints, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_set_requires_grad (ints, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_set_requires_grad (p, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
}

static void
autograd_grad_returns_gradients (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) other = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) p = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) s = sum (p);
  GTorchTensor *inputs[] = { x, p, other };
  g_autoptr (GPtrArray) grads =
      gtorch_autograd_grad (&s, 1, inputs, 2, NULL, 0, TRUE, FALSE, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (grads->len, ==, 2);
  g_assert_cmpfloat (value (grads->pdata[0], 2), ==, 6);
  g_assert_cmpfloat (value (grads->pdata[1], 2), ==, 1);
  g_assert_null (gtorch_tensor_get_grad (x));
  g_clear_pointer (&grads, g_ptr_array_unref);
  grads = gtorch_autograd_grad (&s, 1, inputs, 3, NULL, 0, TRUE, FALSE, FALSE, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  grads = gtorch_autograd_grad (&s, 1, inputs, 3, NULL, 0, TRUE, FALSE, TRUE, NULL);
  g_assert_cmpuint (grads->len, ==, 3);
  g_assert_cmpfloat (value (grads->pdata[0], 2), ==, 6);
  g_assert_null (grads->pdata[2]);
}

static void
gradients_of_gradients (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) p = gtorch_tensor_sin (x, NULL);
  g_autoptr (GTorchTensor) q = gtorch_tensor_exp (p, NULL);
  g_autoptr (GTorchTensor) s = sum (q);
  g_autoptr (GPtrArray) first =
      gtorch_autograd_grad (&s, 1, &x, 1, NULL, 0, FALSE, TRUE, FALSE, NULL);
  g_autoptr (GTorchTensor) t = sum (first->pdata[0]);
  g_autoptr (GPtrArray) second =
      gtorch_autograd_grad (&t, 1, &x, 1, NULL, 0, FALSE, FALSE, FALSE, NULL);
  gdouble c = cos (2.0), e = exp (sin (2.0));

  g_assert_cmpfloat_with_epsilon (value (first->pdata[0], 1), e * c, 1e-12);
  g_assert_cmpfloat_with_epsilon (value (second->pdata[0], 1), e * (c * c - sin (2.0)), 1e-12);
}

static GTorchTensor *
double_it (GTorchTensor *grad, gpointer user_data, GError **error)
{
  (*(guint *) user_data)++;
  return gtorch_tensor_mul_scalar (grad, 2, NULL);
}

static void
hooks_see_and_change_gradients (void)
{
  guint n_calls = 0;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) p = gtorch_tensor_mul_scalar (x, 3, NULL);
  g_autoptr (GTorchTensor) s = sum (p);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) kept = NULL;
  guint64 id = gtorch_tensor_register_hook (x, double_it, &n_calls, NULL, NULL);

  g_assert_cmpuint (id, !=, 0);
  g_assert_cmpuint (gtorch_tensor_register_hook (p, double_it, &n_calls, NULL, NULL), !=, 0);
  g_assert_true (gtorch_tensor_retain_grad (p, NULL));
  g_assert_true (gtorch_tensor_backward (s, NULL, TRUE, FALSE, NULL));
  g_assert_cmpuint (n_calls, ==, 2);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 0), ==, 12);
  kept = gtorch_tensor_get_grad (p);
  g_assert_cmpfloat (value (kept, 0), ==, 2);
  g_assert_true (gtorch_tensor_remove_hook (x, id));
  g_assert_false (gtorch_tensor_remove_hook (x, id));
}

static GTorchTensor *
fail_at_gradient (GTorchTensor *grad, gpointer user_data, GError **error)
{
  (*(guint *) user_data)++;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return NULL;
}

static gboolean
fail_at_leaf (GTorchTensor *leaf, gpointer user_data, GError **error)
{
  (*(guint *) user_data)++;
  if (error != NULL && *(guint *) user_data == 1)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return FALSE;
}

/* The hook is on a leaf, on a computed tensor, and runs in autograd_grad. */
static void
a_hook_that_fails_ends_the_pass_with_its_error (void)
{
  guint i;

  for (i = 0; i < 3; i++)
    {
      guint n_calls = 0;
      g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
      g_autoptr (GTorchTensor) p = gtorch_tensor_mul (x, x, NULL);
      g_autoptr (GTorchTensor) s = sum (p);
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GPtrArray) grads = NULL;
      g_autoptr (GError) error = NULL;
      GTorchTensor *hooked = i == 1 ? p : x;
      guint64 id = gtorch_tensor_register_hook (hooked, fail_at_gradient, &n_calls, NULL, NULL);

      if (i == 2)
        grads = gtorch_autograd_grad (&s, 1, &x, 1, NULL, 0, TRUE, FALSE, FALSE, &error);
      else
        g_assert_false (gtorch_tensor_backward (s, NULL, TRUE, FALSE, &error));
      g_assert_null (grads);
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
      g_assert_cmpstr (error->message, ==, "not now");
      g_assert_cmpuint (n_calls, ==, 1);
      g_assert_null (gtorch_tensor_get_grad (x));
      g_assert_true (gtorch_tensor_remove_hook (hooked, id));
      g_assert_true (gtorch_tensor_backward (s, NULL, FALSE, FALSE, NULL));
      grad = gtorch_tensor_get_grad (x);
      g_assert_nonnull (grad);
    }
}

static void
a_hook_after_accumulating_that_fails_leaves_the_grad (void)
{
  guint n_calls = 0;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) grad = NULL;
  guint i;

  g_assert_cmpuint (gtorch_tensor_register_post_accumulate_grad_hook (x, fail_at_leaf, &n_calls,
                                                                      NULL, NULL),
                    !=, 0);
  for (i = 1; i <= 2; i++)
    {
      g_autoptr (GTorchTensor) s = sum (x);
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
      if (i == 1)
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
      else
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
      g_assert_cmpuint (n_calls, ==, i);
    }
  grad = gtorch_tensor_get_grad (x);
  g_assert_nonnull (grad);
}

static GTorchTensor *
note_address (GTorchTensor *grad, gpointer user_data, GError **error)
{
  *(gsize *) user_data = gtorch_tensor_get_data_ptr (grad);
  return NULL;
}

/* A leaf with consecutive columns, like a channels-last tensor, gets a grad of the same layout: the
 * incoming gradient has that layout already, and is not copied. */
static void
grads_keep_the_layout_of_the_leaf (void)
{
  guint k;

  for (k = 0; k < 2; k++)
    {
      g_autoptr (GTorchTensor) base =
          gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
      g_autoptr (GTorchTensor) other =
          gtorch_full (GTORCH_SHAPE (4, 3), 2, GTORCH_DTYPE_FLOAT64, NULL, NULL);
      g_autoptr (GTorchTensor) x =
          k == 0 ? gtorch_tensor_t (base, NULL)
                 : gtorch_ones (GTORCH_SHAPE (3, 4), GTORCH_DTYPE_FLOAT64, NULL, NULL);
      g_autoptr (GTorchTensor) turned = NULL;
      g_autoptr (GTorchTensor) p = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) rows = NULL;
      gsize address = 0, n_dims;

      g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
      turned = gtorch_tensor_t (x, NULL);
      g_assert_cmpuint (gtorch_tensor_register_hook (turned, note_address, &address, NULL, NULL),
                        !=, 0);
      p = gtorch_tensor_mul (turned, other, NULL);
      backward_sum (p);
      grad = gtorch_tensor_get_grad (x);
      g_assert_cmpuint (address, !=, 0);
      if (k == 0)
        g_assert_cmpuint (gtorch_tensor_get_data_ptr (grad), ==, address);
      else
        g_assert_cmpuint (gtorch_tensor_get_data_ptr (grad), !=, address);
      g_assert_cmpint (gtorch_tensor_is_contiguous (grad), ==, k == 1);
      g_assert_cmpint (gtorch_tensor_get_strides (grad, &n_dims)[0], ==, k == 0 ? 1 : 4);
      rows = gtorch_tensor_contiguous (grad, NULL);
      g_assert_cmpfloat (value (rows, 11), ==, 2);

      /* the next gradient is added to it */
      g_clear_object (&p);
      p = gtorch_tensor_mul (turned, other, NULL);
      backward_sum (p);
      g_clear_object (&rows);
      rows = gtorch_tensor_contiguous (grad, NULL);
      g_assert_cmpfloat (value (rows, 5), ==, 4);
    }
}

static void
a_long_chain_needs_no_stack (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 1, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  const guint n = test_often (100000);
  guint i;

  for (i = 0; i < n; i++)
    {
      GTorchTensor *next = gtorch_tensor_add_scalar (y, 1, 1, NULL);

      g_object_unref (y);
      y = next;
    }
  backward (y);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 0), ==, 1);

  /* a graph that is dropped without a backward pass */
  for (i = 0; i < n; i++)
    {
      GTorchTensor *next = gtorch_tensor_mul (y, x, NULL);

      g_object_unref (y);
      y = next;
    }
}

static gpointer
train (gpointer data)
{
  guint i;

  for (i = 0; i < 200; i++)
    {
      g_autoptr (GTorchTensor) p = gtorch_tensor_mul_scalar (data, 1, NULL);
      g_autoptr (GTorchTensor) s = sum (p);

      backward (s);
    }
  return NULL;
}

static void
threads_share_a_leaf (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) grad = NULL;
  GThread *threads[4];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("train", train, x);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 0), ==, 800);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/backward/" #name, name)
  ADD (products_have_gradients);
  ADD (gradients_accumulate_and_broadcast);
  ADD (no_grad_records_nothing);
  ADD (in_place_on_a_leaf_is_an_error);
  ADD (changed_values_are_found);
  ADD (in_place_takes_part_in_the_graph);
  ADD (writing_to_a_view_changes_the_base);
  ADD (base_requires_grad_after_a_write_to_its_view);
  ADD (second_backward_needs_retain_graph);
  ADD (invalid_roots_are_errors);
  ADD (autograd_grad_returns_gradients);
  ADD (gradients_of_gradients);
  ADD (hooks_see_and_change_gradients);
  ADD (a_hook_that_fails_ends_the_pass_with_its_error);
  ADD (a_hook_after_accumulating_that_fails_leaves_the_grad);
  ADD (grads_keep_the_layout_of_the_leaf);
  ADD (a_long_chain_needs_no_stack);
  ADD (threads_share_a_leaf);
  return g_test_run ();
}
