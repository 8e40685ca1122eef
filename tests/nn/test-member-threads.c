/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One thread changes what a module or an optimizer consists of while others use it. Each use must find
 * the members of some moment. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "sanitizer.h"

#define N_USERS 2

typedef struct
{
  gpointer object, other;
  GTorchTensor *input, *target;
  void (*change) (gpointer object, guint round);
  void (*use) (gpointer fixture);
  guint n_rounds;
  gint n_changing; /* accessed atomically */
  gint n_ready;    /* accessed atomically */
} Fixture;

static GTorchTensor *
numbers (gint64 rows, gint64 columns)
{
  return gtorch_ones (GTORCH_SHAPE (rows, columns), GTORCH_DTYPE_NONE, NULL, NULL);
}

static void
meet (Fixture *fixture)
{
  g_atomic_int_inc (&fixture->n_ready);
  while (g_atomic_int_get (&fixture->n_ready) < N_USERS + 1)
    g_thread_yield ();
}

static gpointer
change_often (gpointer data)
{
  Fixture *fixture = data;

  meet (fixture);
  for (guint i = 0; i < fixture->n_rounds; i++)
    fixture->change (fixture->object, i);
  g_atomic_int_set (&fixture->n_changing, 0);
  return NULL;
}

static gpointer
use_often (gpointer data)
{
  Fixture *fixture = data;

  meet (fixture);
  do
    fixture->use (fixture);
  while (g_atomic_int_get (&fixture->n_changing) != 0);
  return NULL;
}

/* Takes the object. */
static void
run (gpointer object, GTorchTensor *input, GTorchTensor *target, void (*change) (gpointer, guint),
     void (*use) (gpointer))
{
  g_autoptr (GObject) owned = object;
  g_autoptr (GTorchTensor) x = input;
  g_autoptr (GTorchTensor) y = target;
  Fixture fixture = { object, NULL, x, y, change, use, test_often (400), 1, 0 };
  GThread *threads[N_USERS + 1];

  for (guint i = 0; i < N_USERS; i++)
    threads[i] = g_thread_new ("use", use_often, &fixture);
  threads[N_USERS] = g_thread_new ("change", change_often, &fixture);
  for (guint i = 0; i <= N_USERS; i++)
    g_thread_join (threads[i]);
}

static void
call (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) y = NULL;

  if (fixture->target != NULL)
    y = gtorch_loss_forward (fixture->object, fixture->input, fixture->target, &error);
  else
    y = gtorch_module_forward (fixture->object, fixture->input, &error);
  g_assert_no_error (error);
}

/* Everything that walks over the members. */
static void
look (GTorchModule *module)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (module, TRUE);
  g_autoptr (GListModel) modules = gtorch_module_get_modules (module);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (module);
  g_auto (GStrv) parameter_names = gtorch_module_get_parameter_names (module, TRUE);
  g_auto (GStrv) names = gtorch_module_get_module_names (module);
  g_auto (GStrv) child_names = gtorch_module_get_child_names (module);
  g_autofree gchar *text = gtorch_module_to_string (module);

  g_assert_cmpstr (names[0], ==, "");
  g_assert_nonnull (text);
  for (guint i = 0; child_names[i] != NULL; i++)
    {
      g_autoptr (GTorchModule) child = gtorch_module_get_module (module, child_names[i], NULL);

      g_assert_true (child == NULL || GTORCH_IS_MODULE (child));
    }
}

/* --- parameters --- */

static void
change_weight (gpointer module, guint round)
{
  g_autoptr (GTorchTensor) elements = numbers (8, 4);
  g_autoptr (GTorchParameter) weight = gtorch_parameter_new (elements, TRUE, NULL);

  g_assert_true (gtorch_module_register_parameter (module, "weight", weight, NULL));
}

static void
use_weight (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GTorchParameter) weight =
      gtorch_module_get_parameter (fixture->object, "weight", NULL);
  g_autoptr (GTorchTensor) property = NULL;
  g_autoptr (GTorchDevice) device = NULL;

  call (fixture);
  look (fixture->object);
  g_object_get (fixture->object, "weight", &property, "device", &device, NULL);
  g_assert_cmpint (gtorch_tensor_get_numel (GTORCH_TENSOR (weight)), ==, 32);
  g_assert_cmpint (gtorch_tensor_get_numel (property), ==, 32);
  g_assert_true (gtorch_module_set_requires_grad (fixture->object, TRUE, NULL));
}

static void
parameters (void)
{
  run (gtorch_linear_new (4, 8, NULL), numbers (2, 4), NULL, change_weight, use_weight);
}

/* --- buffers --- */

static void
change_mean (gpointer module, guint round)
{
  g_autoptr (GTorchTensor) mean = gtorch_zeros (GTORCH_SHAPE (4), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) other = numbers (1, 1);

  g_assert_true (gtorch_module_set_buffer (module, "running_mean", mean, NULL));
  g_assert_true (gtorch_module_register_buffer (module, "other", other, TRUE, NULL));
  g_assert_true (gtorch_module_unregister (module, "other", NULL));
}

static void
use_mean (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GTorchTensor) mean = gtorch_module_get_buffer (fixture->object, "running_mean", NULL);
  g_autoptr (GTorchTensor) other = gtorch_module_get_buffer (fixture->object, "other", NULL);

  call (fixture);
  look (fixture->object);
  g_assert_cmpint (gtorch_tensor_get_numel (mean), ==, 4);
}

static void
buffers (void)
{
  GTorchModule *norm = GTORCH_MODULE (gtorch_batch_norm1d_new (4, NULL));

  gtorch_module_eval (norm); /* otherwise both users write the same numbers */
  run (norm, numbers (2, 4), NULL, change_mean, use_mean);
}

static void
change_loss (gpointer loss, guint round)
{
  g_autoptr (GTorchTensor) weight = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);

  g_object_set (loss, "weight", round % 3 == 0 ? NULL : weight, NULL);
}

static void
use_loss (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GTorchTensor) weight = NULL;

  call (fixture);
  g_object_get (fixture->object, "weight", &weight, NULL);
  g_assert_true (weight == NULL || gtorch_tensor_get_numel (weight) == 3);
}

static void
weights_of_losses (void)
{
  run (gtorch_cross_entropy_loss_new (), numbers (2, 3),
       gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL), change_loss, use_loss);
}

/* --- children --- */

/* Returns whether each step found what it needs. */
static gboolean
change_all_ways (gpointer module)
{
  g_autoptr (GTorchModule) relu = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchModule) tanh = GTORCH_MODULE (gtorch_tanh_new ());
  gboolean found = TRUE;

  g_assert_true (gtorch_sequential_append (module, relu, NULL));
  g_assert_true (gtorch_sequential_insert (module, 0, tanh, NULL));
  g_assert_true (gtorch_module_register_module (module, "named", relu, NULL));
  g_assert_true (gtorch_module_register_module (module, "named", tanh, NULL));
  found &= gtorch_module_unregister (module, "named", NULL);
  found &= gtorch_sequential_remove (module, 0, NULL);
  found &= gtorch_sequential_remove (module, -1, NULL);
  return found;
}

static void
change_children (gpointer module, guint round)
{
  g_assert_true (change_all_ways (module));
}

/* change_ends () may have removed what a step looks for, the named child too. */
static void
change_beside_others (gpointer module, guint round)
{
  change_all_ways (module);
}

static gboolean
visit (GTorchModule *module, gpointer data, GError **error)
{
  return GTORCH_IS_MODULE (module);
}

static void
use_children (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GObject) first = g_list_model_get_item (G_LIST_MODEL (fixture->object), 0);

  call (fixture);
  look (fixture->object);
  gtorch_module_train (fixture->object, TRUE);
  gtorch_module_eval (fixture->object);
  g_assert_true (gtorch_module_apply (fixture->object, visit, NULL, NULL));
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (fixture->object)), <=, 4);
}

static void
children (void)
{
  GTorchModule *first = GTORCH_MODULE (gtorch_linear_new (4, 8, NULL));
  GTorchSequential *row = gtorch_sequential_new_from_modules (&first, 1, NULL);

  g_object_unref (first);
  run (row, numbers (2, 4), NULL, change_children, use_children);
}

/* Both threads change the list by position at once. */
static void
change_ends (gpointer data)
{
  Fixture *fixture = data;
  g_autoptr (GTorchModule) relu = GTORCH_MODULE (gtorch_relu_new ());

  g_assert_true (gtorch_sequential_append (fixture->object, relu, NULL));
  gtorch_sequential_remove (fixture->object, 1, NULL);
  gtorch_sequential_remove (fixture->object, 3, NULL);
}

static void
children_by_several (void)
{
  GTorchModule *first = GTORCH_MODULE (gtorch_linear_new (4, 8, NULL));
  GTorchSequential *row = gtorch_sequential_new_from_modules (&first, 1, NULL);

  g_object_unref (first);
  run (row, NULL, NULL, change_beside_others, change_ends);
}

static gpointer
add_other (gpointer data)
{
  Fixture *fixture = data;

  g_atomic_int_inc (&fixture->n_ready);
  while (g_atomic_int_get (&fixture->n_ready) < 2)
    g_thread_yield ();
  return GINT_TO_POINTER (gtorch_sequential_append (fixture->object, fixture->other, NULL));
}

static void
two_threads_make_no_cycle (void)
{
  for (guint i = test_often (200); i > 0; i--)
    {
      g_autoptr (GTorchSequential) a = gtorch_sequential_new ();
      g_autoptr (GTorchSequential) b = gtorch_sequential_new ();
      Fixture one = { a, b };
      GThread *thread;
      gint n_added;

      /* the threads meet at the counter of `one` */
      thread = g_thread_new ("add", add_other, &one);
      while (g_atomic_int_get (&one.n_ready) == 0)
        g_thread_yield ();
      g_atomic_int_inc (&one.n_ready);
      n_added = gtorch_sequential_append (b, GTORCH_MODULE (a), NULL);
      n_added += GPOINTER_TO_INT (g_thread_join (thread));
      g_assert_cmpint (n_added, ==, 1);
    }
}

/* --- hooks --- */

static GTorchTensor *
keep_output (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
             gpointer data, GError **error)
{
  g_assert_cmpint (g_atomic_int_get ((gint *) data), ==, 1);
  return NULL;
}

static void
free_data (gpointer data)
{
  g_atomic_int_set ((gint *) data, 0);
  g_free (data);
}

static void
change_hooks (gpointer module, guint round)
{
  gint *data = g_new (gint, 1);
  guint64 id;

  *data = 1;
  id = gtorch_module_register_forward_hook (module, keep_output, data, free_data);
  if (round % 2 == 0)
    g_thread_yield ();
  g_assert_true (gtorch_module_remove_hook (module, id));
}

static void
use_hooks (gpointer data)
{
  Fixture *fixture = data;

  call (fixture);
  gtorch_module_has_hooks (fixture->object);
}

static void
hooks (void)
{
  run (gtorch_linear_new (4, 8, NULL), numbers (2, 4), NULL, change_hooks, use_hooks);
}

/* --- the groups of optimizers --- */

static GListModel *
new_parameters (void)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchTensor) elements = numbers (2, 2);
  g_autoptr (GTorchParameter) parameter = gtorch_parameter_new (elements, TRUE, NULL);

  g_list_store_append (list, parameter);
  return G_LIST_MODEL (list);
}

static void
change_groups (gpointer optimizer, guint round)
{
  g_autoptr (GListModel) params = new_parameters ();
  g_autoptr (GTorchParamGroup) group = gtorch_param_group_new (params, 0.1, 0, NULL);

  if (round % 10 == 0)
    g_assert_true (gtorch_optimizer_add_param_group (optimizer, group, NULL));
}

static void
use_groups (gpointer data)
{
  Fixture *fixture = data;
  GListModel *groups = gtorch_optimizer_get_param_groups (fixture->object);
  const guint n = g_list_model_get_n_items (groups);
  g_autoptr (GObject) last = g_list_model_get_item (groups, n - 1);
  g_autoptr (GHashTable) state = NULL;

  g_assert_nonnull (last);
  g_assert_true (gtorch_optimizer_step (fixture->object, NULL));
  g_assert_true (gtorch_optimizer_zero_grad (fixture->object, TRUE, NULL));
  state = gtorch_optimizer_state_dict (fixture->object);
  g_assert_cmpuint (g_hash_table_size (state), >=, 2 * n);
}

static void
groups_of_optimizers (void)
{
  g_autoptr (GListModel) params = new_parameters ();

  run (gtorch_sgd_new (params, 0.1, 0, NULL), NULL, NULL, change_groups, use_groups);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

#define ADD(name) g_test_add_func ("/GTorch/MemberThreads/" #name, name)
  ADD (parameters);
  ADD (buffers);
  ADD (weights_of_losses);
  ADD (children);
  ADD (children_by_several);
  ADD (two_threads_make_no_cycle);
  ADD (hooks);
  ADD (groups_of_optimizers);
  return g_test_run ();
}
