/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lifetimes of tangents, their errors, and threads. tests/ops/test-forward.c compares their values
 * with differences, tests/bindings/test_forward.py with known ones. */

#include <gtorch/gtorch.h>
#include <string.h>

#include "autograd-values.h"

static void
enter (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_forward_ad_enter_dual_level (&error), ==, 0);
  g_assert_no_error (error);
}

static void
leave (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_forward_ad_exit_dual_level (&error));
  g_assert_no_error (error);
}

static GTorchTensor *
dual_new (GTorchTensor *primal, GTorchTensor *tangent)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *dual = gtorch_forward_ad_make_dual (primal, tangent, &error);

  g_assert_no_error (error);
  return dual;
}

static GTorchTensor *
tangent_of (GTorchTensor *dual)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tangent = NULL;
  g_autoptr (GTorchTensor) primal = gtorch_forward_ad_unpack_dual (dual, &tangent, &error);

  g_assert_no_error (error);
  g_assert_nonnull (primal);
  return tangent;
}

static void
test_a_product_has_its_tangent (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) v = leaf (3, 2, FALSE);
  g_autoptr (GTorchTensor) kept = NULL;

  enter ();
  {
    g_autoptr (GTorchTensor) dual = dual_new (x, v);
    g_autoptr (GTorchTensor) square = gtorch_tensor_mul (dual, dual, NULL);

    kept = tangent_of (square);
  }
  leave ();
  g_assert_cmpfloat (value (kept, 0), ==, 6);
  g_assert_cmpfloat (value (kept, 1), ==, 16);
}

static GTorchTensor *
pass (GTorchTensor *grad, gpointer user_data, GError **error)
{
  return NULL;
}

static void
set_freed (gpointer data)
{
  *(gboolean *) data = TRUE;
}

/* The result of exp is saved with its tangent, whose history leads back to the node that saved it, and to the
 * leaf that owns the hook. */
static void
test_the_end_of_a_level_opens_circles (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  gboolean freed = FALSE;

  enter ();
  {
    g_autoptr (GTorchTensor) v = leaf (3, 2, TRUE);
    g_autoptr (GTorchTensor) dual = dual_new (x, v);
    g_autoptr (GTorchTensor) result = gtorch_tensor_exp (dual, NULL);
    g_autoptr (GTorchTensor) tangent = tangent_of (result);

    g_assert_true (gtorch_tensor_get_requires_grad (tangent));
    g_assert_cmpuint (gtorch_tensor_register_hook (v, pass, &freed, set_freed, NULL), !=, 0);
  }
  leave ();
  g_assert_true (freed);
}

static void
test_the_end_of_a_level_takes_tangents (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) v = leaf (3, 2, FALSE);
  g_autoptr (GTorchTensor) dual = NULL;

  enter ();
  g_assert_true (gtorch_forward_ad_has_dual_level ());
  dual = dual_new (x, v);
  leave ();
  g_assert_false (gtorch_forward_ad_has_dual_level ());
  g_assert_null (tangent_of (dual));
  enter ();
  g_assert_null (tangent_of (dual));
  {
    g_autoptr (GTorchTensor) again = dual_new (dual, v);
    g_autoptr (GTorchTensor) tangent = tangent_of (again);

    g_assert_cmpfloat (value (tangent, 1), ==, 4);
  }
  leave ();
}

static void
test_levels_do_not_nest (void)
{
  g_autoptr (GError) error = NULL;

  enter ();
  g_assert_cmpint (gtorch_forward_ad_enter_dual_level (&error), ==, -1);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  leave ();
  g_clear_error (&error);
  g_assert_false (gtorch_forward_ad_exit_dual_level (&error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
test_an_operation_without_a_tangent_names_itself (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GError) error = NULL;

  enter ();
  {
    g_autoptr (GTorchTensor) dual = dual_new (x, x);

    result = gtorch_tensor_heaviside (dual, x, &error);
  }
  leave ();
  g_assert_null (result);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "heaviside: the tangent cannot be computed: heaviside: its derivative is not "
                   "defined");
}

/* The change is made before its tangent is known to fail. */
static void
test_a_change_without_a_tangent_is_undone (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, FALSE);
  g_autoptr (GTorchTensor) leaf_of_y = leaf (5, 2, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_neg (leaf_of_y, NULL);
  g_autoptr (GTorchTensor) v = leaf (3, 2, FALSE);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (x, 0, 1, 2, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;

  g_clear_pointer (&guard, gtorch_grad_guard_unref);
  enter ();
  {
    g_autoptr (GTorchTensor) dual = dual_new (v, v);

    g_assert_false (gtorch_tensor_add_inplace (part, dual, 1, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
    g_assert_nonnull (strstr (error->message, "add: the tangent cannot be computed: a view"));
    g_clear_error (&error);
    g_assert_cmpfloat (value (x, 1), ==, 2);
    g_assert_cmpfloat (value (x, 2), ==, 3);
    g_assert_null (tangent_of (part));

    g_assert_false (gtorch_tensor_heaviside_inplace (y, dual, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
    g_assert_cmpfloat (value (y, 0), ==, -5);
    g_assert_null (tangent_of (y));
  }
  leave ();
  backward_sum (y);
  grad = gtorch_tensor_get_grad (leaf_of_y);
  g_assert_cmpfloat (value (grad, 1), ==, -1);
}

static void
test_a_result_without_a_derivative_refuses_its_tangent (void)
{
  g_autoptr (GTorchTensor) line = leaf (1, 6, FALSE);
  g_autoptr (GTorchTensor) squares = gtorch_tensor_mul (line, line, NULL);
  g_autoptr (GTorchTensor) a = gtorch_tensor_reshape (squares, GTORCH_SHAPE (3, 2), NULL);
  g_autoptr (GError) error = NULL;

  enter ();
  {
    g_autoptr (GTorchTensor) dual = dual_new (a, a);
    g_autoptr (GTorchTensor) u = NULL;
    g_autoptr (GTorchTensor) s = NULL;
    g_autoptr (GTorchTensor) vh = NULL;
    g_autoptr (GTorchTensor) tangent = NULL;
    g_autoptr (GTorchTensor) column = NULL;
    GTorchTensor *primal;

    g_assert_true (
        gtorch_linalg_svd (dual, TRUE, GTORCH_SVD_DRIVER_AUTOMATIC, &u, &s, &vh, &error));
    g_assert_no_error (error);
    tangent = tangent_of (s); /* a matrix that grows by its own rate */
    g_assert_cmpfloat_with_epsilon (value (tangent, 0), value (s, 0), 1e-9);
    column = gtorch_tensor_select (u, 1, 0, NULL);
    g_assert_null (column != NULL ? gtorch_tensor_neg (column, &error)
                                  : gtorch_tensor_neg (u, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
    g_assert_nonnull (strstr (error->message, "has no tangent"));
    g_clear_error (&error);
    primal = gtorch_forward_ad_unpack_dual (u, NULL, &error);
    g_assert_null (primal);
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
    g_assert_nonnull (strstr (error->message, "linalg_svd: result 0"));
    g_assert_nonnull (strstr (error->message, "full_matrices must be false"));
  }
  leave ();
}

static gpointer
square (gpointer data)
{
  guint i;

  for (i = 0; i < 200; i++)
    {
      g_autoptr (GTorchTensor) product = gtorch_tensor_mul (data, data, NULL);
      g_autoptr (GTorchTensor) tangent = tangent_of (product);

      g_assert_cmpfloat (value (tangent, 1), ==, 16);
    }
  return NULL;
}

static void
test_threads_share_the_level (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) v = leaf (3, 2, FALSE);
  GThread *threads[4];
  guint i;

  enter ();
  {
    g_autoptr (GTorchTensor) dual = dual_new (x, v);

    for (i = 0; i < G_N_ELEMENTS (threads); i++)
      threads[i] = g_thread_new ("square", square, dual);
    for (i = 0; i < G_N_ELEMENTS (threads); i++)
      g_thread_join (threads[i]);
  }
  leave ();
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/ForwardAD/a_product_has_its_tangent", test_a_product_has_its_tangent);
  g_test_add_func ("/GTorch/ForwardAD/the_end_of_a_level_opens_circles",
                   test_the_end_of_a_level_opens_circles);
  g_test_add_func ("/GTorch/ForwardAD/the_end_of_a_level_takes_tangents",
                   test_the_end_of_a_level_takes_tangents);
  g_test_add_func ("/GTorch/ForwardAD/levels_do_not_nest", test_levels_do_not_nest);
  g_test_add_func ("/GTorch/ForwardAD/an_operation_without_a_tangent_names_itself",
                   test_an_operation_without_a_tangent_names_itself);
  g_test_add_func ("/GTorch/ForwardAD/a_change_without_a_tangent_is_undone",
                   test_a_change_without_a_tangent_is_undone);
  g_test_add_func ("/GTorch/ForwardAD/a_result_without_a_derivative_refuses_its_tangent",
                   test_a_result_without_a_derivative_refuses_its_tangent);
  g_test_add_func ("/GTorch/ForwardAD/threads_share_the_level", test_threads_share_the_level);
  return g_test_run ();
}
