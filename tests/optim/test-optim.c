/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "step-samples.h"
#include "test-device.h"

/* clang-format off */
/* Written by reference.py beside this file, with PyTorch 2.11. */
static const struct
{
  const gchar *name;
  gdouble values[3];
} reference[] = {
  { "sgd", { 0.5904900000000001, -0.65536, 0.5042099999999999 } },
  { "sgd_momentum", { -0.029159999999999978, 1.16084, -2.3348400000000002 } },
  { "sgd_nesterov", { 0.3689248584437009, -0.03084957534450185, -0.5488712596115973 } },
  { "sgd_dampening", { 1.4974211106562503, -4.171124342000001, 8.318858154656251 } },
  { "adam", { 0.507963661927221, -1.5029557812950118, 2.5017794559421698 } },
  { "adam_amsgrad", { 0.5079636610395944, -1.5029557811770144, 2.5017794559065303 } },
  { "adamw", { 0.39926380990133636, -1.2518651919068902, 2.1091107865779204 } },
};
/* clang-format on */

static GTorchTensor *
vector (gdouble a, gdouble b, gdouble c, GTorchDType dtype)
{
  const gdouble values[] = { a, b, c };

  return gtorch_tensor_new_from_doubles (values, 3, GTORCH_SHAPE (3), dtype, NULL, NULL);
}

static GListModel *
list_of (GTorchTensor *tensor)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_TENSOR);

  g_list_store_append (list, tensor);
  return G_LIST_MODEL (list);
}

static GTorchOptimizer *
optimizer_new (const gchar *name, GListModel *params)
{
  g_autoptr (GError) error = NULL;
  GTorchOptimizer *optimizer = NULL;
  gdouble decay = 0;

  if (g_str_equal (name, "sgd"))
    optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.1, 0, &error));
  else if (g_str_equal (name, "sgd_momentum"))
    optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.1, 0.9, &error));
  else if (g_str_has_prefix (name, "sgd_"))
    {
      optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.05, 0.8, &error));
      if (g_str_equal (name, "sgd_nesterov"))
        {
          g_object_set (optimizer, "nesterov", TRUE, NULL);
          decay = 0.1;
        }
      else
        g_object_set (optimizer, "dampening", 0.3, "maximize", TRUE, NULL);
    }
  else if (g_str_equal (name, "adamw"))
    optimizer = GTORCH_OPTIMIZER (gtorch_adam_w_new (params, 0.1, 0.3, &error));
  else
    {
      optimizer = GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.1, &error));
      if (g_str_equal (name, "adam_amsgrad"))
        {
          g_object_set (optimizer, "amsgrad", TRUE, NULL);
          decay = 0.2;
        }
    }
  g_assert_no_error (error);
  if (decay > 0)
    {
      g_autoptr (GTorchParamGroup) group =
          g_list_model_get_item (gtorch_optimizer_get_param_groups (optimizer), 0);

      gtorch_param_group_set_weight_decay (group, decay);
    }
  return optimizer;
}

static void
descend (GTorchOptimizer *optimizer, GTorchTensor *p, guint n_steps)
{
  g_autoptr (GTorchTensor) w = vector (0.5, 1, 1.5, gtorch_tensor_get_dtype (p));
  guint i;

  for (i = 0; i < n_steps; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) square = gtorch_tensor_mul (p, p, NULL);
      g_autoptr (GTorchTensor) product = gtorch_tensor_mul (w, square, NULL);
      g_autoptr (GTorchTensor) sum =
          gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);

      g_assert_true (gtorch_optimizer_zero_grad (optimizer, i % 2, NULL));
      g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
      gtorch_optimizer_step (optimizer, &error);
      g_assert_no_error (error);
    }
}

static gdouble
value (GTorchTensor *tensor, guint i)
{
  return test_element (tensor, i);
}

static void
steps_are_pytorchs (gconstpointer data)
{
  const guint k = GPOINTER_TO_UINT (data);
  static const struct
  {
    GTorchDType dtype;
    gdouble tolerance;
  } dtypes[] = {
    { GTORCH_DTYPE_FLOAT64, 1e-13 },
    { GTORCH_DTYPE_FLOAT32, 1e-5 },
    { GTORCH_DTYPE_FLOAT16, 2e-2 },
    { GTORCH_DTYPE_BFLOAT16, 2e-1 },
  };
  guint i, j;

  for (j = 0; j < G_N_ELEMENTS (dtypes); j++)
    {
      g_autoptr (GTorchTensor) p = vector (1, -2, 3, dtypes[j].dtype);
      g_autoptr (GListModel) params = list_of (p);
      g_autoptr (GTorchOptimizer) optimizer = optimizer_new (reference[k].name, params);

      g_assert_true (gtorch_tensor_set_requires_grad (p, TRUE, NULL));
      descend (optimizer, p, 5);
      for (i = 0; i < 3; i++)
        g_assert_cmpfloat_with_epsilon (value (p, i), reference[k].values[i],
                                        dtypes[j].tolerance * (1 + fabs (reference[k].values[i])));
    }
}

/* Runs all samples of all rows, and compares with the algorithm that the row gives beside its formula. */
static void
steps_are_as_published (gconstpointer data)
{
  const guint k = GPOINTER_TO_UINT (data);
  static const struct
  {
    GTorchDType dtype;
    gdouble tolerance;
  } dtypes[] = {
    { GTORCH_DTYPE_FLOAT64, 1e-13 },
    { GTORCH_DTYPE_FLOAT32, 1e-5 },
  };
  guint i, j, step;

  for (j = 0; j < G_N_ELEMENTS (dtypes); j++)
    {
      g_autoptr (GTorchTensor) p = vector (1, -2, 3, dtypes[j].dtype);
      g_autoptr (GListModel) params = list_of (p);
      g_autoptr (GTorchOptimizer) optimizer = step_sample_new (k, params, 0.05);
      g_autoptr (GError) error = NULL;

      g_assert_true (gtorch_tensor_set_requires_grad (p, TRUE, NULL));
      for (step = 0; step < GTORCH_STEP_SAMPLE_STEPS; step++)
        {
          g_autoptr (GTorchTensor) grad =
              vector (gtorch_step_sample_grad (step, 0), gtorch_step_sample_grad (step, 1),
                      gtorch_step_sample_grad (step, 2), dtypes[j].dtype);

          g_assert_true (gtorch_tensor_set_grad (p, grad, NULL));
          gtorch_optimizer_step (optimizer, &error);
          g_assert_no_error (error);
        }
      for (i = 0; i < 3; i++)
        g_assert_cmpfloat_with_epsilon (value (p, i), gtorch_step_samples[k].expected[i],
                                        dtypes[j].tolerance
                                            * (1 + fabs (gtorch_step_samples[k].expected[i])));
    }
}

static void
counted (GObject *object, GParamSpec *pspec, gpointer user_data)
{
  (*(guint *) user_data)++;
}

static void
learning_rate_can_be_bound (void)
{
  guint n_notified = 0;
  g_autoptr (GTorchTensor) p = vector (1, 2, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new ("adam", params);
  g_autoptr (GTorchOptimizer) other = optimizer_new ("sgd", params);

  g_signal_connect (optimizer, "notify::learning-rate", G_CALLBACK (counted), &n_notified);
  g_object_bind_property (other, "learning-rate", optimizer, "learning-rate",
                          G_BINDING_SYNC_CREATE);
  gtorch_optimizer_set_learning_rate (other, 0.25);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 0.25);
  g_assert_cmpuint (n_notified, >=, 1);
}

static void
state_goes_on_elsewhere (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) q = NULL;
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GListModel) others = NULL;
  g_autoptr (GTorchOptimizer) first = optimizer_new ("adam", params);
  g_autoptr (GTorchOptimizer) second = NULL;
  g_autoptr (GHashTable) dict = NULL;
  guint i;

  gtorch_tensor_set_requires_grad (p, TRUE, NULL);
  descend (first, p, 2);
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    q = gtorch_tensor_clone (p, NULL);
  }
  gtorch_tensor_set_requires_grad (q, TRUE, NULL);
  others = list_of (q);
  second = optimizer_new ("adam", others);
  gtorch_optimizer_set_learning_rate (second, 7);
  dict = gtorch_optimizer_state_dict (first);
  g_assert_cmpuint (g_hash_table_size (dict), ==, 3 + 8); /* states and settings */
  gtorch_optimizer_load_state_dict (second, dict, &error);
  g_assert_no_error (error);
  descend (first, p, 3);
  descend (second, q, 3);
  for (i = 0; i < 3; i++)
    g_assert_cmpfloat (value (p, i), ==, value (q, i));
}

static void
lists_of_the_state_load_like_its_table (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GTorchOptimizer) first = optimizer_new ("adam", params);
  g_autoptr (GTorchOptimizer) second = optimizer_new ("adam", params);
  g_auto (GStrv) names = NULL;
  g_autoptr (GPtrArray) tensors = NULL;
  GTorchTensor *average;

  gtorch_tensor_set_requires_grad (p, TRUE, NULL);
  descend (first, p, 2);
  gtorch_optimizer_set_learning_rate (first, 7);
  tensors = gtorch_optimizer_state_lists (first, &names);
  g_assert_cmpuint (tensors->len, ==, 3 + 8);
  g_assert_cmpuint (g_strv_length (names), ==, 3 + 8);
  g_assert_false (gtorch_optimizer_load_state_lists (second, NULL, (GTorchTensor **) tensors->pdata,
                                                     5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_optimizer_load_state_lists (second, (const gchar *const *) names,
                                                    (GTorchTensor **) tensors->pdata, 3 + 8,
                                                    &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (second), ==, 7);
  average = gtorch_optimizer_get_state (second, p, "exp_avg");
  g_assert_nonnull (average);
  g_assert_cmpfloat (value (average, 0), ==,
                     value (gtorch_optimizer_get_state (first, p, "exp_avg"), 0));
}

/* Each entry is put into the optimizer's own state, whose other entries are valid. */
static void
an_invalid_state_changes_nothing (void)
{
  static const struct
  {
    const gchar *name;
    const gchar *message;
  } cases[] = {
    { "state.0.exp_avg", "load_state_dict: missing: state.0.exp_avg_sq, state.0.step" },
    { "state.0.other", "load_state_dict: unexpected: state.0.other" },
    { "state.1.exp_avg", "load_state_dict: unexpected: state.1.exp_avg" },
    { "state.00.exp_avg", "load_state_dict: unexpected: state.00.exp_avg" },
    { "state.0", "load_state_dict: unexpected: state.0" },
    { "state.0.", "load_state_dict: unexpected: state.0." },
    { "state.-1.exp_avg", "load_state_dict: unexpected: state.-1.exp_avg" },
    { "state.18446744073709551616.exp_avg",
      "load_state_dict: unexpected: state.18446744073709551616.exp_avg" },
    { "state.x.y", "load_state_dict: unexpected: state.x.y" },
    { "nonsense", "load_state_dict: unexpected: nonsense" },
    { "group.1.lr", "load_state_dict: unexpected: group.1.lr" },
    { "group.0.momentun", "load_state_dict: unexpected: group.0.momentun" },
    { "group.0.lr", "load_state_dict: “group.0.lr” is not one number" },
  };
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) wrong =
      gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new ("adam", params);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GHashTable) dict = gtorch_optimizer_state_dict (optimizer);
      g_autoptr (GError) error = NULL;

      g_hash_table_insert (dict, g_strdup (cases[i].name), g_object_ref (wrong));
      g_assert_false (gtorch_optimizer_load_state_dict (optimizer, dict, &error));
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_cmpint (error->code, ==,
                       i + 1 < G_N_ELEMENTS (cases) ? GTORCH_ERROR_NOT_FOUND : GTORCH_ERROR_FORMAT);
      g_assert_cmpstr (error->message, ==, cases[i].message);
      g_assert_null (gtorch_optimizer_get_state (optimizer, p, "exp_avg"));
    }
}

static void
add_one (guint *count)
{
  ++*count;
}

/* The property notifies whoever changes the rate of the first group: a program, the optimizer, a schedule
 * or a state. */
static void
learning_rate_notifies_with_its_first_group (void)
{
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) q = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GListModel) more = list_of (q);
  g_autoptr (GTorchParamGroup) first = gtorch_param_group_new (params, 0.5, 0, NULL);
  g_autoptr (GTorchParamGroup) second = gtorch_param_group_new (more, 0.25, 0, NULL);
  g_autoptr (GTorchOptimizer) optimizer = g_object_new (GTORCH_TYPE_SGD, NULL);
  g_autoptr (GTorchLRScheduler) schedule = NULL;
  g_autoptr (GHashTable) state = NULL;
  guint n = 0;

  g_signal_connect_swapped (optimizer, "notify::learning-rate", G_CALLBACK (add_one), &n);
  g_assert_true (gtorch_optimizer_add_param_group (optimizer, first, NULL));
  g_assert_cmpuint (n, ==, 1);
  g_assert_true (gtorch_optimizer_add_param_group (optimizer, second, NULL));
  gtorch_param_group_set_learning_rate (second, 0.5);
  g_assert_cmpuint (n, ==, 1);
  gtorch_param_group_set_learning_rate (first, 0.25);
  g_assert_cmpuint (n, ==, 2);
  gtorch_optimizer_set_learning_rate (optimizer, 0.25);
  g_assert_cmpuint (n, ==, 2);
  gtorch_optimizer_set_learning_rate (optimizer, NAN);
  gtorch_optimizer_set_learning_rate (optimizer, NAN);
  g_assert_cmpuint (n, ==, 3);
  gtorch_optimizer_set_learning_rate (optimizer, 1);
  g_assert_cmpuint (n, ==, 4);
  /* this sets the rate to 1 */
  schedule = GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 2, 0.5, NULL));
  g_assert_cmpuint (n, ==, 4);
  g_assert_true (gtorch_lr_scheduler_step (schedule, NULL));
  g_assert_cmpuint (n, ==, 4);
  state = gtorch_optimizer_state_dict (optimizer);
  g_assert_true (gtorch_lr_scheduler_step (schedule, NULL));
  g_assert_cmpuint (n, ==, 5);
  g_assert_true (gtorch_optimizer_load_state_dict (optimizer, state, NULL));
  g_assert_true (gtorch_optimizer_load_state_dict (optimizer, state, NULL));
  g_assert_cmpuint (n, ==, 6);
  g_clear_object (&schedule);
  g_clear_object (&optimizer);
  /* the property does not notify for this group any more */
  gtorch_param_group_set_learning_rate (first, 7);
  g_assert_cmpuint (n, ==, 6);
}

/* Groups of an optimizer of the program's own have what a new group has. */
static void
the_first_group_has_the_default_learning_rate (void)
{
  g_autoptr (GTorchOptimizer) optimizer = g_object_new (GTORCH_TYPE_SGD, NULL);
  g_autoptr (GTorchParamGroup) group = g_object_new (GTORCH_TYPE_PARAM_GROUP, NULL);

  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (optimizer), ==, 1e-3);
  g_assert_cmpfloat (gtorch_param_group_get_learning_rate (group), ==, 1e-3);
}

static void
no_parameters_are_an_error (void)
{
  g_autoptr (GListStore) none = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchParamGroup) group = gtorch_param_group_new (G_LIST_MODEL (none), 1, 0, NULL);
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new ("sgd", params);
  g_autoptr (GTorchOptimizer) bare = g_object_new (GTORCH_TYPE_SGD, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_sgd_new (G_LIST_MODEL (none), 0.1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "sgd: there are no parameters to optimize");
  g_clear_error (&error);
  g_assert_null (gtorch_adam_w_new (G_LIST_MODEL (none), 0.1, 0.3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_optimizer_add_param_group (optimizer, group, &error));
  g_assert_no_error (error);

  /* other languages can make one without a constructor, and a group later */
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchParamGroup) empty = gtorch_param_group_new (G_LIST_MODEL (none), 1, 0, NULL);

      g_assert_false (gtorch_optimizer_step (bare, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, "step: there are no parameters to optimize");
      g_clear_error (&error);
      g_assert_true (gtorch_optimizer_add_param_group (bare, empty, NULL));
    }
}

static void
wrong_settings_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GListStore) objects = g_list_store_new (G_TYPE_OBJECT);
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new ("sgd", params);
  g_autoptr (GTorchParamGroup) group = gtorch_param_group_new (params, 1, 0, NULL);
  g_autoptr (GObject) object = g_object_new (G_TYPE_OBJECT, NULL);

  g_assert_null (gtorch_sgd_new (params, -1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_sgd_new (params, 1, -0.5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_adam_new (params, NAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_list_store_append (objects, object);
  g_assert_null (gtorch_adam_new (G_LIST_MODEL (objects), 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_optimizer_add_param_group (optimizer, group, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
a_parameter_is_in_a_list_once (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListStore) twice = g_list_store_new (GTORCH_TYPE_TENSOR);

  g_list_store_append (twice, p);
  g_list_store_append (twice, p);
  g_assert_null (gtorch_adam_new (G_LIST_MODEL (twice), 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "item 1 is in the list already"));
}

/* A list that is exposed as a GListStore could be changed without the optimizer. */
static void
lists_cannot_be_changed_from_outside (void)
{
  g_autoptr (GTorchTensor) p = vector (1, -2, 3, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GListModel) params = list_of (p);
  g_autoptr (GTorchOptimizer) optimizer = optimizer_new ("sgd", params);
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, 0);

  g_assert_cmpuint (g_list_model_get_n_items (groups), ==, 1);
  g_assert_null (g_list_model_get_item (groups, 1));
  g_assert_true (g_list_model_get_item_type (groups) == GTORCH_TYPE_PARAM_GROUP);
  g_assert_false (G_IS_LIST_STORE (groups));
  g_assert_false (G_IS_LIST_STORE (gtorch_param_group_get_params (group)));
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (reference); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/optim/%s/steps_are_pytorchs", reference[i].name);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), steps_are_pytorchs);
    }
  for (i = 0; i < N_STEP_SAMPLES; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/optim/%s/steps_are_as_published", gtorch_step_samples[i].name);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), steps_are_as_published);
    }
  g_test_add_func ("/GTorch/optim/learning_rate_can_be_bound", learning_rate_can_be_bound);
  g_test_add_func ("/GTorch/optim/state_goes_on_elsewhere", state_goes_on_elsewhere);
  g_test_add_func ("/GTorch/optim/lists_of_the_state_load_like_its_table",
                   lists_of_the_state_load_like_its_table);
  g_test_add_func ("/GTorch/optim/an_invalid_state_changes_nothing",
                   an_invalid_state_changes_nothing);
  g_test_add_func ("/GTorch/optim/learning_rate_notifies_with_its_first_group",
                   learning_rate_notifies_with_its_first_group);
  g_test_add_func ("/GTorch/optim/the_first_group_has_the_default_learning_rate",
                   the_first_group_has_the_default_learning_rate);
  g_test_add_func ("/GTorch/optim/no_parameters_are_an_error", no_parameters_are_an_error);
  g_test_add_func ("/GTorch/optim/wrong_settings_are_errors", wrong_settings_are_errors);
  g_test_add_func ("/GTorch/optim/a_parameter_is_in_a_list_once", a_parameter_is_in_a_list_once);
  g_test_add_func ("/GTorch/optim/lists_cannot_be_changed_from_outside",
                   lists_cannot_be_changed_from_outside);
  return g_test_run ();
}
