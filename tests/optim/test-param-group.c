/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Groups of parameters have all settings of their optimizer. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "test-device.h"

static GTorchTensor *
param_new (gdouble value)
{
  GTorchTensor *param = gtorch_full (GTORCH_SHAPE (3), value, GTORCH_DTYPE_FLOAT64, NULL, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (param, TRUE, NULL));
  return param;
}

static GListModel *
list_of (GTorchTensor *param)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_TENSOR);

  g_list_store_append (list, param);
  return G_LIST_MODEL (list);
}

static GTorchParamGroup *
group_new (gdouble learning_rate)
{
  g_autoptr (GTorchTensor) param = param_new (1);
  g_autoptr (GListModel) params = list_of (param);
  GTorchParamGroup *group = gtorch_param_group_new (params, learning_rate, 0, NULL);

  g_assert_nonnull (group);
  return group;
}

static GTorchOptimizer *
adam_new (void)
{
  g_autoptr (GTorchTensor) param = param_new (2);
  g_autoptr (GListModel) params = list_of (param);

  return GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.5, NULL));
}

static GTorchParamGroup *
get_group (GTorchOptimizer *self, guint i)
{
  return g_list_model_get_item (gtorch_optimizer_get_param_groups (self), i);
}

static void
set (gpointer group, const gchar *name, gdouble value)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_param_group_set_setting (group, name, &value, 1, &error));
  g_assert_no_error (error);
}

static void
assert_setting (gpointer group, const gchar *name, gdouble first, gdouble last)
{
  g_autoptr (GError) error = NULL;
  gsize n = 0;
  g_autofree gdouble *values = gtorch_param_group_get_setting (group, name, &n, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat (values[0], ==, first);
  g_assert_cmpfloat (values[n - 1], ==, last);
}

static void
a_group_has_what_it_was_given_and_the_rest_from_the_optimizer (void)
{
  g_autoptr (GTorchOptimizer) adam = adam_new ();
  g_autoptr (GTorchParamGroup) group = group_new (0.25);
  g_autoptr (GTorchParamGroup) first = get_group (adam, 0);
  g_auto (GStrv) names = NULL;
  g_autoptr (GError) error = NULL;
  gdouble beta1;

  g_object_set (adam, "eps", 0.5, NULL);
  set (group, "beta2", 0.75);
  set (group, "amsgrad", 1);
  names = gtorch_param_group_get_setting_names (group);
  g_assert_cmpuint (g_strv_length (names), ==, 4); /* lr, weight_decay and these */
  g_assert_true (gtorch_optimizer_add_param_group (adam, group, &error));
  g_assert_no_error (error);
  assert_setting (group, "betas", 0.9, 0.75);
  assert_setting (group, "beta2", 0.75, 0.75);
  assert_setting (group, "amsgrad", 1, 1);
  assert_setting (group, "eps", 0.5, 0.5);
  assert_setting (group, "lr", 0.25, 0.25);
  assert_setting (first, "betas", 0.9, 0.999);
  g_assert_true (gtorch_param_group_get_setting_type (group, "amsgrad") == G_TYPE_BOOLEAN);
  g_assert_true (gtorch_param_group_get_setting_type (group, "betas") == G_TYPE_DOUBLE);
  g_assert_true (gtorch_param_group_get_setting_type (group, "alpha") == G_TYPE_NONE);
  /* a property is that of the first group, and sets all */
  g_object_set (adam, "beta1", 0.25, NULL);
  assert_setting (group, "betas", 0.25, 0.75);
  assert_setting (first, "betas", 0.25, 0.999);
  set (first, "beta1", 0.125);
  g_object_get (adam, "beta1", &beta1, NULL);
  g_assert_cmpfloat (beta1, ==, 0.125);
  assert_setting (group, "betas", 0.25, 0.75);
}

static void
defaults_are_those_of_later_groups (void)
{
  g_autoptr (GTorchOptimizer) sgd =
      g_object_new (GTORCH_TYPE_SGD, "learning-rate", 0.25, "momentum", 0.5, NULL);
  g_autoptr (GTorchOptimizer) adadelta = g_object_new (GTORCH_TYPE_ADADELTA, NULL);
  g_autoptr (GTorchParamGroup) group = NULL;
  g_autoptr (GError) error = NULL;
  gsize n;
  g_autofree gdouble *rate = gtorch_optimizer_get_default (sgd, "lr", &n, &error);
  g_autofree gdouble *none = NULL;

  g_assert_no_error (error);
  g_assert_cmpfloat (*rate, ==, 0.25);
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (sgd), ==, 0.25);
  g_assert_cmpfloat (gtorch_optimizer_get_learning_rate (adadelta), ==, 1);
  group = group_new (*rate);
  g_assert_true (gtorch_optimizer_add_param_group (sgd, group, &error));
  assert_setting (group, "momentum", 0.5, 0.5);
  none = gtorch_optimizer_get_default (sgd, "betas", &n, &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "optimizer: GTorchSGD has no setting “betas”");
}

static void
a_setting_that_is_no_good_is_refused (void)
{
  static const struct
  {
    const gchar *name;
    gdouble values[2];
    gsize n;
    GTorchError code;
    const gchar *message;
  } wrong[] = {
    { "alpha", { 1 }, 1, GTORCH_ERROR_NOT_FOUND, "adam: there is no setting “alpha”" },
    { "betas", { 0.5 }, 1, GTORCH_ERROR_INVALID, "adam: betas is 2 numbers, not 1" },
    { "eps", { 0.5, 0.5 }, 2, GTORCH_ERROR_INVALID, "adam: eps is 1 number, not 2" },
    { "betas",
      { 0.5, 1 },
      2,
      GTORCH_ERROR_INVALID,
      "adam: beta2 is 1, it must be at least 0 and below 1" },
    { "amsgrad", { 0.5 }, 1, GTORCH_ERROR_INVALID, "adam: amsgrad is 0.5, it must be 0 or 1" },
    { "eps",
      { GTORCH_NONE_DOUBLE },
      1,
      GTORCH_ERROR_INVALID,
      "adam: eps is 6.18034e+301, it must be a number" },
    { "lr",
      { -1 },
      1,
      GTORCH_ERROR_INVALID,
      "param_group: lr is -1, it must be finite and at least 0" },
  };
  g_autoptr (GTorchOptimizer) adam = adam_new ();
  g_autoptr (GTorchParamGroup) first = get_group (adam, 0);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GTorchParamGroup) group = group_new (0.25);
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_param_group_set_setting (first, wrong[i].name, wrong[i].values,
                                                      wrong[i].n, &error));
      g_assert_error (error, GTORCH_ERROR, (gint) wrong[i].code);
      g_assert_cmpstr (error->message, ==, wrong[i].message);
      g_clear_error (&error);
      if (g_str_equal (wrong[i].name, "lr"))
        continue;
      if (wrong[i].values[0] == GTORCH_NONE_DOUBLE)
        {
          g_assert_false (gtorch_param_group_set_setting (group, wrong[i].name, wrong[i].values,
                                                          wrong[i].n, &error));
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
          continue;
        }
      g_assert_true (gtorch_param_group_set_setting (group, wrong[i].name, wrong[i].values,
                                                     wrong[i].n, &error));
      g_assert_false (gtorch_optimizer_add_param_group (adam, group, &error));
      g_assert_error (error, GTORCH_ERROR, (gint) wrong[i].code);
      g_assert_cmpstr (error->message, ==, wrong[i].message);
      g_assert_cmpuint (g_list_model_get_n_items (gtorch_optimizer_get_param_groups (adam)), ==, 1);
    }
  assert_setting (first, "betas", 0.9, 0.999);
  assert_setting (first, "lr", 0.5, 0.5);
}

static void
all_groups_are_set_or_none (void)
{
  g_autoptr (GTorchTensor) param = param_new (1);
  g_autoptr (GListModel) params = list_of (param);
  g_autoptr (GTorchOptimizer) sgd = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.5, 0.5, NULL));
  g_autoptr (GTorchParamGroup) first = get_group (sgd, 0);
  g_autoptr (GTorchParamGroup) group = group_new (0.25);
  g_autoptr (GError) error = NULL;
  gdouble value = 0;

  set (group, "nesterov", 1);
  g_assert_true (gtorch_optimizer_add_param_group (sgd, group, &error));
  g_assert_false (gtorch_optimizer_set_setting (sgd, "momentum", &value, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "sgd: momentum = 0.0, dampening = 0.0, but nesterov needs momentum > 0 and "
                   "dampening == 0");
  assert_setting (first, "momentum", 0.5, 0.5);
  assert_setting (group, "momentum", 0.5, 0.5);
  g_clear_error (&error);
  /* a property takes what steps refuse */
  g_object_set (sgd, "momentum", 0.0, NULL);
  g_assert_false (gtorch_optimizer_step (sgd, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  value = 0.75;
  g_assert_true (gtorch_optimizer_set_setting (sgd, "momentum", &value, 1, &error));
  assert_setting (first, "momentum", 0.75, 0.75);
  assert_setting (group, "momentum", 0.75, 0.75);
}

static void
append (GObject *object, const gchar *name, GString *told)
{
  g_string_append_printf (told, "%s ", name);
}

static void
append_property (GObject *object, GParamSpec *spec, GString *told)
{
  g_string_append_printf (told, "%s ", spec->name);
}

static void
changes_are_told_once (void)
{
  g_autoptr (GTorchOptimizer) adam = adam_new ();
  g_autoptr (GTorchParamGroup) first = get_group (adam, 0);
  g_autoptr (GTorchParamGroup) group = group_new (0.25);
  g_autoptr (GString) told = g_string_new (NULL);
  const gdouble betas[] = { 0.5, 0.625 };

  g_assert_true (gtorch_optimizer_add_param_group (adam, group, NULL));
  g_signal_connect (first, "setting-changed", G_CALLBACK (append), told);
  g_signal_connect (adam, "notify", G_CALLBACK (append_property), told);
  set (first, "beta1", 0.5);
  set (first, "beta1", 0.5);
  g_assert_cmpstr (told->str, ==, "beta1 betas ");
  set (group, "beta1", 0.75); /* not of the first group */
  g_assert_cmpstr (told->str, ==, "beta1 betas ");
  g_object_set (adam, "beta1", 0.25, NULL);
  g_assert_cmpstr (told->str, ==, "beta1 betas betas beta1 ");
  g_string_truncate (told, 0);
  g_assert_true (gtorch_optimizer_set_setting (adam, "betas", betas, 2, NULL));
  g_assert_true (g_str_has_prefix (told->str, "betas "));
  g_assert_nonnull (strstr (told->str, "beta1 "));
  g_assert_nonnull (strstr (told->str, "beta2 "));
  g_assert_cmpuint (told->len, ==, strlen ("betas beta1 beta2 "));
  g_string_truncate (told, 0);
  gtorch_optimizer_set_learning_rate (adam, 0.125);
  g_assert_cmpstr (told->str, ==, "learning-rate ");
}

static void
an_optimizer_without_a_setting_has_no_group_with_it (void)
{
  g_autoptr (GTorchTensor) param = param_new (1);
  g_autoptr (GListModel) params = list_of (param);
  g_autoptr (GTorchOptimizer) rprop = GTORCH_OPTIMIZER (gtorch_rprop_new (params, 0.5, NULL));
  g_autoptr (GTorchParamGroup) group = get_group (rprop, 0);
  g_autoptr (GTorchOptimizer) adam = adam_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_optimizer_add_param_group (adam, group, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "add_param_group: the group has the settings of another optimizer, rprop");
  g_clear_error (&error);
  gtorch_param_group_set_weight_decay (group, 0.5);
  g_assert_false (gtorch_optimizer_step (rprop, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "rprop: weight_decay is 0.5, it must be 0: this optimizer has none");
}

#define ADD(fact) g_test_add_func ("/GTorch/ParamGroup/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_group_has_what_it_was_given_and_the_rest_from_the_optimizer);
  ADD (defaults_are_those_of_later_groups);
  ADD (a_setting_that_is_no_good_is_refused);
  ADD (all_groups_are_set_or_none);
  ADD (changes_are_told_once);
  ADD (an_optimizer_without_a_setting_has_no_group_with_it);
  return g_test_run ();
}
