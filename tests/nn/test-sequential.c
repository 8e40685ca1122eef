/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#include "members.h"
#include "sanitizer.h"

static GTorchSequential *
row_new (void)
{
  GTorchModule *modules[] = {
    GTORCH_MODULE (gtorch_linear_new (3, 5, NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 5,
                                      "out-features", (gint64) 2, "has-bias", FALSE, NULL)),
  };
  GTorchSequential *row = gtorch_sequential_new_from_modules (modules, 3, NULL);

  for (guint i = 0; i < 3; i++)
    g_object_unref (modules[i]);
  return row;
}

static void
forward_is_a_chain (void)
{
  g_autoptr (GTorchSequential) row = row_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_module_forward (GTORCH_MODULE (row), x, NULL);
  g_autoptr (GTorchTensor) value = g_object_ref (x);
  g_autofree gdouble *a = NULL;
  g_autofree gdouble *b = NULL;
  gsize n;

  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GTorchModule) module = g_list_model_get_item (G_LIST_MODEL (row), i);
      GTorchTensor *next = gtorch_module_forward (module, value, NULL);

      g_object_unref (value);
      value = next;
    }
  a = gtorch_tensor_to_doubles (y, &n, NULL);
  b = gtorch_tensor_to_doubles (value, &n, NULL);
  g_assert_cmpmem (a, n * sizeof (gdouble), b, n * sizeof (gdouble));
}

static void
an_empty_row_is_the_identity (void)
{
  g_autoptr (GTorchSequential) row = gtorch_sequential_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_module_forward (GTORCH_MODULE (row), x, NULL);

  g_assert_true (x == y);
}

static void
errors_tell_which_module (void)
{
  g_autoptr (GTorchSequential) row = row_new ();
  g_autoptr (GTorchModule) last = g_list_model_get_item (G_LIST_MODEL (row), 2);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_sequential_append (row, last, NULL));
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (row), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "Sequential: 3: linear: "));
}

static void
count_changes (GListModel *model, guint position, guint removed, guint added, gpointer user_data)
{
  guint *changes = user_data;

  changes[0]++;
  changes[1] = position;
  changes[2] = removed;
  changes[3] = added;
}

static void
the_list_model_notifies_changes (void)
{
  g_autoptr (GTorchSequential) row = row_new ();
  g_autoptr (GTorchModule) dropout = GTORCH_MODULE (gtorch_dropout_new (0.5, NULL));
  g_autoptr (GTorchModule) at_two = NULL;
  g_autofree gchar *text = NULL;
  guint changes[4] = { 0, 0, 0, 0 };
  g_autoptr (GError) error = NULL;

  g_assert_true (g_list_model_get_item_type (G_LIST_MODEL (row)) == GTORCH_TYPE_MODULE);
  g_signal_connect (row, "items-changed", G_CALLBACK (count_changes), changes);
  g_assert_true (gtorch_sequential_insert (row, -1, dropout, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (changes[0], ==, 1);
  g_assert_cmpuint (changes[1], ==, 2);
  g_assert_cmpuint (changes[2], ==, 0);
  g_assert_cmpuint (changes[3], ==, 1);
  at_two = g_list_model_get_item (G_LIST_MODEL (row), 2);
  g_assert_true (at_two == dropout);
  text = gtorch_module_to_string (GTORCH_MODULE (row));
  g_assert_cmpstr (text, ==,
                   "Sequential(\n"
                   "  (0): Linear(in_features=3, out_features=5, bias=True)\n"
                   "  (1): ReLU()\n"
                   "  (2): Dropout(p=0.5, inplace=False)\n"
                   "  (3): Linear(in_features=5, out_features=2, bias=False)\n"
                   ")");
  g_assert_nonnull (test_parameter (GTORCH_MODULE (row), "3.weight"));
  g_assert_true (gtorch_sequential_remove (row, 1, &error));
  g_assert_nonnull (test_parameter (GTORCH_MODULE (row), "2.weight"));
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (row)), ==, 3);
  g_assert_false (gtorch_sequential_remove (row, 3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "Sequential: position 3 is out of range for 3 modules");
  g_clear_error (&error);
  g_assert_false (gtorch_sequential_insert (row, -4, dropout, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

/* The names of the children with spaces between them. */
static gchar *
names_of (GTorchSequential *row)
{
  g_auto (GStrv) names = gtorch_module_get_child_names (GTORCH_MODULE (row));

  return g_strjoinv (" ", names);
}

#define assert_names(row, expected)           \
  G_STMT_START                                \
  {                                           \
    g_autofree gchar *found = names_of (row); \
                                              \
    g_assert_cmpstr (found, ==, expected);    \
  }                                           \
  G_STMT_END

static void
names_that_the_program_gave_stay (void)
{
  g_autoptr (GTorchSequential) row = gtorch_sequential_new ();
  g_autoptr (GTorchModule) relu = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_sequential_append (row, relu, &error));
  g_assert_true (gtorch_module_register_module (GTORCH_MODULE (row), "head", relu, &error));
  g_assert_true (gtorch_sequential_append (row, relu, &error));
  assert_names (row, "0 head 2");
  g_assert_true (gtorch_sequential_insert (row, 0, relu, &error));
  assert_names (row, "0 1 head 3");
  g_assert_true (gtorch_sequential_remove (row, 0, &error));
  assert_names (row, "0 head 2");
  g_assert_true (gtorch_module_unregister (GTORCH_MODULE (row), "head", &error));
  assert_names (row, "0 1");
  g_assert_true (gtorch_module_unregister (GTORCH_MODULE (row), "0", &error));
  assert_names (row, "0");
  /* A number that is no position is a name, too, which no other child takes. */
  g_assert_true (gtorch_module_register_module (GTORCH_MODULE (row), "2", relu, &error));
  g_assert_true (gtorch_sequential_append (row, relu, &error));
  assert_names (row, "0 2 3");
  g_assert_true (gtorch_sequential_insert (row, 0, relu, &error));
  assert_names (row, "0 1 2 3");
  g_assert_no_error (error);
  g_assert_false (gtorch_module_unregister (GTORCH_MODULE (row), "head", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
a_row_cannot_contain_itself (void)
{
  g_autoptr (GTorchSequential) outer = gtorch_sequential_new ();
  g_autoptr (GTorchSequential) inner = gtorch_sequential_new ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_sequential_append (outer, GTORCH_MODULE (inner), NULL));
  g_assert_false (gtorch_sequential_append (inner, GTORCH_MODULE (outer), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_sequential_append (inner, GTORCH_MODULE (inner), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
non_modules_are_errors (void)
{
  GTorchModule *modules[] = { NULL };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_sequential_new_from_modules (modules, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
a_small_network_learns (void)
{
  g_autoptr (GTorchSequential) row = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchOptimizer) adam = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) wave = NULL;
  g_autoptr (GTorchLoss) mse = GTORCH_LOSS (gtorch_mse_loss_new ());
  gdouble value = 1;
  GTorchModule *modules[3];

  gtorch_manual_seed (0);
  modules[0] = GTORCH_MODULE (gtorch_linear_new (1, 32, NULL));
  modules[1] = GTORCH_MODULE (gtorch_tanh_new ());
  modules[2] = GTORCH_MODULE (gtorch_linear_new (32, 1, NULL));
  row = gtorch_sequential_new_from_modules (modules, 3, NULL);
  for (guint i = 0; i < 3; i++)
    g_object_unref (modules[i]);
  parameters = gtorch_module_get_parameters (GTORCH_MODULE (row), TRUE);
  adam = GTORCH_OPTIMIZER (gtorch_adam_new (parameters, 0.02, NULL));
  {
    g_autoptr (GTorchTensor) line = gtorch_linspace (-3, 3, 64, GTORCH_DTYPE_NONE, NULL, NULL);

    x = gtorch_tensor_unsqueeze (line, 1, NULL);
    wave = gtorch_tensor_sin (x, NULL);
  }
  for (guint i = 0; i < test_often (400); i++)
    {
      g_autoptr (GTorchTensor) y = gtorch_module_forward (GTORCH_MODULE (row), x, NULL);
      g_autoptr (GTorchTensor) loss = gtorch_loss_forward (mse, y, wave, NULL);

      g_assert_true (gtorch_optimizer_zero_grad (adam, TRUE, NULL));
      g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL));
      g_assert_true (gtorch_optimizer_step (adam, NULL));
      value = gtorch_tensor_item_double (loss, NULL);
    }
  g_assert_cmpfloat (value, <, is_under_sanitizer () ? 1 : 1e-3);
}

static gpointer
infer (gpointer data)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1, 4), GTORCH_DTYPE_NONE, NULL, NULL);
  guint i;

  for (i = 0; i < test_often (500); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = gtorch_module_forward (data, x, &error);
      g_autoptr (GListModel) parameters = gtorch_module_get_parameters (data, TRUE);

      g_assert_no_error (error);
      g_assert_cmpuint (g_list_model_get_n_items (parameters), ==, 8);
    }
  return NULL;
}

static void
several_threads_may_infer (void)
{
  g_autoptr (GTorchModule) row = GTORCH_MODULE (gtorch_sequential_new ());
  GThread *threads[3];
  guint i;

  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchModule) layer = GTORCH_MODULE (gtorch_linear_new (4, 4, NULL));

      g_assert_true (gtorch_sequential_append (GTORCH_SEQUENTIAL (row), layer, NULL));
    }
  gtorch_module_eval (row);
  g_assert_true (gtorch_module_set_requires_grad (row, FALSE, NULL));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("infer", infer, row);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

static void
children_cannot_be_changed_from_outside (void)
{
  g_autoptr (GTorchSequential) row = row_new ();
  GListModel *children = gtorch_module_get_children (GTORCH_MODULE (row));

  g_assert_cmpuint (g_list_model_get_n_items (children), >, 0);
  g_assert_false (G_IS_LIST_STORE (children));
  g_assert_true (g_list_model_get_item_type (children) == GTORCH_TYPE_MODULE);
}

#define ADD(name) g_test_add_func ("/GTorch/Sequential/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (forward_is_a_chain);
  ADD (an_empty_row_is_the_identity);
  ADD (errors_tell_which_module);
  ADD (the_list_model_notifies_changes);
  ADD (names_that_the_program_gave_stay);
  ADD (a_row_cannot_contain_itself);
  ADD (non_modules_are_errors);
  ADD (a_small_network_learns);
  ADD (several_threads_may_infer);
  ADD (children_cannot_be_changed_from_outside);
  return g_test_run ();
}
