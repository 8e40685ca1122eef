/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include <gtorch/gtorch.h>

static GTorchTensor *
make (gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_full (GTORCH_SHAPE (2), value, GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static void
test_scope_releases_created_tensors (void)
{
  g_autoptr (GTorchTensor) before = make (1);
  g_autoptr (GTorchScope) scope = gtorch_scope_new ();
  g_autoptr (GTorchTensor) inside = make (2);
  g_autoptr (GTorchTensor) kept = make (3);
  g_autoptr (GTorchTensor) after = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (gtorch_scope_get_n_tensors (scope), ==, 2);
  gtorch_scope_keep (scope, kept);
  gtorch_scope_end (scope);
  gtorch_scope_end (scope);
  after = make (4);

  g_assert_true (gtorch_tensor_is_released (inside));
  g_assert_false (gtorch_tensor_is_released (before));
  g_assert_false (gtorch_tensor_is_released (kept));
  g_assert_false (gtorch_tensor_is_released (after));
  g_assert_cmpint (gtorch_tensor_get_numel (inside), ==, 2);
  sum = gtorch_tensor_add (before, inside, 1.0, &error);
  g_assert_null (sum);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

static void
test_scope_keeps_views_and_graphs_intact (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = make (3);
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, &error);
  {
    g_autoptr (GTorchScope) scope = gtorch_scope_new ();
    g_autoptr (GTorchTensor) view = gtorch_tensor_reshape (x, GTORCH_SHAPE (2, 1), &error);
    g_autoptr (GTorchTensor) squares = gtorch_tensor_mul (view, view, &error);

    loss = gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
    gtorch_scope_keep (scope, loss);
  }
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpint (gtorch_tensor_get_numel (grad), ==, 2);
  g_assert_false (gtorch_tensor_is_released (x));
}

static void
test_scope_hands_kept_tensors_to_the_outer_one (void)
{
  g_autoptr (GTorchScope) outer = gtorch_scope_new ();
  g_autoptr (GTorchTensor) kept = NULL;
  g_autoptr (GTorchTensor) dropped = NULL;

  {
    g_autoptr (GTorchScope) inner = gtorch_scope_new ();

    dropped = make (1);
    kept = make (2);
    gtorch_scope_keep (inner, kept);
  }
  g_assert_true (gtorch_tensor_is_released (dropped));
  g_assert_false (gtorch_tensor_is_released (kept));
  g_assert_cmpuint (gtorch_scope_get_n_tensors (outer), ==, 1);
  gtorch_scope_end (outer);
  g_assert_true (gtorch_tensor_is_released (kept));
}

/* A model and the state of its optimizer survive, wherever they were created. */
static void
test_scope_spares_references_of_the_library (void)
{
  g_autoptr (GTorchModule) model = NULL;
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchScope) scope = gtorch_scope_new ();
      g_autoptr (GTorchTensor) x = make (2);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) loss = NULL;

      if (model == NULL)
        {
          g_autoptr (GListModel) parameters = NULL;

          model = GTORCH_MODULE (gtorch_linear_new (2, 3, &error));
          parameters = gtorch_module_get_parameters (model, TRUE);
          optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (parameters, 0.1, 0.9, &error));
        }
      y = gtorch_module_forward (model, x, &error);
      g_assert_no_error (error);
      loss = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
      g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
      g_assert_true (gtorch_optimizer_step (optimizer, &error));
      g_assert_no_error (error);
    }
}

static void
test_scope_ends_nested_scopes (void)
{
  g_autoptr (GTorchScope) outer = gtorch_scope_new ();
  g_autoptr (GTorchScope) inner = gtorch_scope_new ();
  g_autoptr (GTorchTensor) made = make (1);

  gtorch_scope_end (outer);
  g_assert_true (gtorch_tensor_is_released (made));
  g_assert_cmpuint (gtorch_scope_get_n_tensors (inner), ==, 0);
}

static gpointer
make_in_thread (gpointer data)
{
  return make (1);
}

static void
test_scope_belongs_to_its_thread (void)
{
  g_autoptr (GTorchScope) scope = gtorch_scope_new ();
  GThread *thread = g_thread_new ("maker", make_in_thread, NULL);
  g_autoptr (GTorchTensor) made = g_thread_join (thread);

  g_assert_cmpuint (gtorch_scope_get_n_tensors (scope), ==, 0);
  gtorch_scope_end (scope);
  g_assert_false (gtorch_tensor_is_released (made));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Scope/releases_created_tensors", test_scope_releases_created_tensors);
  g_test_add_func ("/GTorch/Scope/keeps_views_and_graphs_intact",
                   test_scope_keeps_views_and_graphs_intact);
  g_test_add_func ("/GTorch/Scope/hands_kept_tensors_to_the_outer_one",
                   test_scope_hands_kept_tensors_to_the_outer_one);
  g_test_add_func ("/GTorch/Scope/spares_references_of_the_library",
                   test_scope_spares_references_of_the_library);
  g_test_add_func ("/GTorch/Scope/ends_nested_scopes", test_scope_ends_nested_scopes);
  g_test_add_func ("/GTorch/Scope/belongs_to_its_thread", test_scope_belongs_to_its_thread);
  return g_test_run ();
}
