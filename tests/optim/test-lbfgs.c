/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "test-device.h"

typedef struct
{
  GTorchOptimizer *optimizer;
  GTorchTensor *x, *y;
  guint n_calls;
  guint fails_at; /* 0: never */
} Problem;

static GTorchTensor *
number (gdouble value)
{
  g_autoptr (GTorchTensor) tensor =
      gtorch_tensor_new_from_doubles (&value, 1, GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT64, NULL,
                                      NULL);

  gtorch_tensor_set_requires_grad (tensor, TRUE, NULL);
  return g_steal_pointer (&tensor);
}

/* Rosenbrock's function, (1 - x)² + 100 (y - x²)². */
static GTorchTensor *
rosenbrock (gpointer data, GError **error)
{
  Problem *self = data;
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) valley = NULL;
  g_autoptr (GTorchTensor) height = NULL;
  g_autoptr (GTorchTensor) left = NULL;
  g_autoptr (GTorchTensor) slope = NULL;
  g_autoptr (GTorchTensor) both = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  g_assert_true (gtorch_is_grad_enabled ());
  if (++self->n_calls == self->fails_at)
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, "there is no more data");
      return NULL;
    }
  if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
    return NULL;
  square = gtorch_tensor_mul (self->x, self->x, error);
  valley = gtorch_tensor_sub (self->y, square, 1, error);
  height = gtorch_tensor_mul (valley, valley, error);
  left = gtorch_tensor_sub_scalar (self->x, 1, 1, error);
  slope = gtorch_tensor_mul (left, left, error);
  both = gtorch_tensor_add (slope, height, 100, error);
  loss = gtorch_tensor_sum (both, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  g_assert_nonnull (loss);
  return gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error) ? g_steal_pointer (&loss) : NULL;
}

static void
problem_init (Problem *self)
{
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GError) error = NULL;

  *self = (Problem){ .x = number (-1.5), .y = number (2) };
  g_list_store_append (params, self->x);
  g_list_store_append (params, self->y);
  self->optimizer = GTORCH_OPTIMIZER (gtorch_lbfgs_new (G_LIST_MODEL (params), 1, &error));
  g_assert_no_error (error);
}

static void
problem_clear (Problem *self)
{
  g_clear_object (&self->optimizer);
  g_clear_object (&self->x);
  g_clear_object (&self->y);
}

static gdouble
value_of (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  const gdouble value = gtorch_tensor_item_double (tensor, &error);

  g_assert_no_error (error);
  return value;
}

static void
test_finds_the_minimum (void)
{
  g_autoptr (GError) error = NULL;
  Problem problem;
  guint i;

  problem_init (&problem);
  g_object_set (problem.optimizer, "line-search-fn", GTORCH_LINE_SEARCH_STRONG_WOLFE, NULL);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) loss =
          gtorch_optimizer_step_closure (problem.optimizer, rosenbrock, &problem, &error);

      g_assert_no_error (error);
      if (i == 0)
        g_assert_cmpfloat_with_epsilon (value_of (loss), 6.25 + 6.25, 1e-12);
    }
  /* a step ends where the loss, 100 times a square, changes by less than 1e-9 */
  g_assert_cmpfloat_with_epsilon (value_of (problem.x), 1, 1e-4);
  g_assert_cmpfloat_with_epsilon (value_of (problem.y), 1, 2e-4);
  g_assert_cmpuint (problem.n_calls, <=, 76);
  problem_clear (&problem);
}

static void
test_step_without_a_closure_is_refused (void)
{
  g_autoptr (GError) error = NULL;
  Problem problem;

  problem_init (&problem);
  g_assert_false (gtorch_optimizer_step (problem.optimizer, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "step: GTorchLBFGS needs a closure, which computes the loss and its gradients");
  problem_clear (&problem);
}

static void
test_error_of_the_closure_ends_the_step (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) state = NULL;
  Problem problem;

  problem_init (&problem);
  g_object_set (problem.optimizer, "line-search-fn", GTORCH_LINE_SEARCH_STRONG_WOLFE, NULL);
  problem.fails_at = 2;
  g_assert_null (gtorch_optimizer_step_closure (problem.optimizer, rosenbrock, &problem, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "there is no more data");
  g_assert_cmpfloat (value_of (problem.x), ==, -1.5);
  state = gtorch_optimizer_state_dict (problem.optimizer);
  g_assert_false (g_hash_table_contains (state, "state.0.d"));
  problem_clear (&problem);
}

static void
test_wrong_state_is_named (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) wrong = gtorch_ones (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  Problem problem;

  problem_init (&problem);
  gtorch_optimizer_set_state (problem.optimizer, problem.x, "prev_flat_grad", wrong);
  g_assert_null (gtorch_optimizer_step_closure (problem.optimizer, rosenbrock, &problem, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==,
                   "lbfgs: the state “prev_flat_grad” has shape [5], it must be a vector of all "
                   "parameters");
  problem_clear (&problem);
}

static void
test_other_optimizers_call_it_once (void)
{
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  Problem problem;

  problem_init (&problem);
  g_list_store_append (params, problem.x);
  g_clear_object (&problem.optimizer);
  problem.optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (params), 1e-3, 0, &error));
  loss = gtorch_optimizer_step_closure (problem.optimizer, rosenbrock, &problem, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (value_of (loss), 12.5, 1e-12);
  g_assert_cmpuint (problem.n_calls, ==, 1);
  g_assert_cmpfloat (value_of (problem.x), !=, -1.5);
  problem.fails_at = 2;
  g_clear_object (&loss);
  g_assert_null (gtorch_optimizer_step_closure (problem.optimizer, rosenbrock, &problem, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  problem_clear (&problem);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/LBFGS/finds_the_minimum", test_finds_the_minimum);
  g_test_add_func ("/GTorch/LBFGS/step_without_a_closure_is_refused",
                   test_step_without_a_closure_is_refused);
  g_test_add_func ("/GTorch/LBFGS/error_of_the_closure_ends_the_step",
                   test_error_of_the_closure_ends_the_step);
  g_test_add_func ("/GTorch/LBFGS/wrong_state_is_named", test_wrong_state_is_named);
  g_test_add_func ("/GTorch/LBFGS/other_optimizers_call_it_once",
                   test_other_optimizers_call_it_once);
  return g_test_run ();
}
