/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists that follow the members of a module, and the paths of parameters. */

#include "config.h"

#include <gtorch/gtorch.h>

typedef struct
{
  guint n, position, removed, added;
  GThread *thread;
} Changes;

static void
on_items_changed (GListModel *list, guint position, guint removed, guint added, gpointer data)
{
  *(Changes *) data =
      (Changes){ ((Changes *) data)->n + 1, position, removed, added, g_thread_self () };
}

static GTorchMemberModel *
watch (gpointer module, GTorchMemberKind kind, gboolean recurse, Changes *changes)
{
  GTorchMemberModel *model = gtorch_member_model_new (module, kind, recurse);

  g_signal_connect (model, "items-changed", G_CALLBACK (on_items_changed), changes);
  return model;
}

static void
iterate (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    continue;
}

static GTorchSequential *
new_net (guint n_layers)
{
  GTorchSequential *net = gtorch_sequential_new ();

  for (guint i = 0; i < n_layers; i++)
    {
      g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 2, NULL);

      g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (layer), NULL));
    }
  return net;
}

static guint
length (gpointer model)
{
  return g_list_model_get_n_items (model);
}

static void
parameters_come_and_go (void)
{
  g_autoptr (GTorchSequential) net = new_net (1);
  g_autoptr (GTorchBatchNorm1d) norm = gtorch_batch_norm1d_new (2, NULL);
  Changes changes = { 0 };
  g_autoptr (GTorchMemberModel) model = watch (net, GTORCH_MEMBER_KIND_PARAMETER, TRUE, &changes);
  g_autoptr (GTorchMemberModel) own =
      gtorch_member_model_new (GTORCH_MODULE (net), GTORCH_MEMBER_KIND_PARAMETER, FALSE);
  g_autoptr (GTorchMemberModel) buffers =
      gtorch_member_model_new (GTORCH_MODULE (net), GTORCH_MEMBER_KIND_BUFFER, TRUE);

  g_assert_cmpuint (length (model), ==, 2);
  g_assert_true (g_list_model_get_item_type (G_LIST_MODEL (model)) == GTORCH_TYPE_PARAMETER);
  g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (norm), NULL));
  g_assert_cmpuint (length (model), ==, 2); /* not before the main context runs */
  iterate ();
  g_assert_cmpuint (changes.n, ==, 1);
  g_assert_cmpuint (changes.position, ==, 2);
  g_assert_cmpuint (changes.removed, ==, 0);
  g_assert_cmpuint (changes.added, ==, 2);
  g_assert_cmpuint (length (model), ==, 4);
  g_assert_cmpuint (length (own), ==, 0);
  g_assert_cmpuint (length (buffers), ==, 3);
  g_assert_true (gtorch_sequential_remove (net, 0, NULL));
  iterate ();
  g_assert_cmpuint (changes.n, ==, 2);
  g_assert_cmpuint (changes.position, ==, 0);
  g_assert_cmpuint (changes.removed, ==, 2);
  g_assert_cmpuint (changes.added, ==, 0);
  g_assert_null (g_list_model_get_item (G_LIST_MODEL (model), 2));
}

static void
a_replaced_one_is_one_change (void)
{
  g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 2, NULL);
  g_autoptr (GTorchTensor) zeros =
      gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchParameter) bias = gtorch_parameter_new (zeros, TRUE, NULL);
  g_autoptr (GTorchParameter) found = NULL;
  Changes changes = { 0 };
  g_autoptr (GTorchMemberModel) model =
      watch (layer, GTORCH_MEMBER_KIND_PARAMETER, FALSE, &changes);

  g_assert_true (gtorch_module_register_parameter (GTORCH_MODULE (layer), "bias", bias, NULL));
  gtorch_member_model_update (model);
  g_assert_cmpuint (changes.n, ==, 1);
  g_assert_cmpuint (changes.position, ==, 1);
  g_assert_cmpuint (changes.removed, ==, 1);
  g_assert_cmpuint (changes.added, ==, 1);
  found = g_list_model_get_item (G_LIST_MODEL (model), 1);
  g_assert_true (found == bias);
  iterate (); /* nothing is left to do */
  g_assert_cmpuint (changes.n, ==, 1);
}

static void
modules_are_listed_without_the_outermost (void)
{
  g_autoptr (GTorchSequential) net = new_net (2), outer = gtorch_sequential_new ();
  g_autoptr (GTorchModule) first = NULL;
  Changes changes = { 0 };
  g_autoptr (GTorchMemberModel) all = watch (outer, GTORCH_MEMBER_KIND_MODULE, TRUE, &changes);
  g_autoptr (GTorchMemberModel) own =
      gtorch_member_model_new (GTORCH_MODULE (outer), GTORCH_MEMBER_KIND_MODULE, FALSE);
  g_autoptr (GTorchMemberModel) none =
      gtorch_member_model_new (GTORCH_MODULE (outer), GTORCH_MEMBER_KIND_NONE, TRUE);

  g_assert_cmpuint (length (all), ==, 0);
  g_assert_true (gtorch_sequential_append (outer, GTORCH_MODULE (net), NULL));
  iterate ();
  g_assert_cmpuint (length (all), ==, 3);
  g_assert_cmpuint (length (own), ==, 1);
  g_assert_cmpuint (length (none), ==, 0);
  first = g_list_model_get_item (G_LIST_MODEL (all), 0);
  g_assert_true (first == GTORCH_MODULE (net));
  g_assert_true (gtorch_member_model_get_module (all) == GTORCH_MODULE (outer));
  g_assert_true (gtorch_member_model_get_recurse (all));
  g_assert_cmpint (gtorch_member_model_get_kind (all), ==, GTORCH_MEMBER_KIND_MODULE);
}

static gpointer
append_many (gpointer net)
{
  for (guint i = 0; i < 50; i++)
    {
      g_autoptr (GTorchReLU) layer = gtorch_relu_new ();

      g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (layer), NULL));
    }
  return NULL;
}

static void
changes_of_threads_arrive_in_the_context (void)
{
  g_autoptr (GTorchSequential) net = new_net (0);
  Changes changes = { 0 };
  g_autoptr (GTorchMemberModel) model = watch (net, GTORCH_MEMBER_KIND_MODULE, TRUE, &changes);
  GThread *threads[3];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new (NULL, append_many, net);
  for (guint i = 0; i < 20; i++)
    {
      g_autoptr (GTorchMemberModel) other = /* of which some wait for the context when they go */
          gtorch_member_model_new (GTORCH_MODULE (net), GTORCH_MEMBER_KIND_MODULE, FALSE);

      g_assert_cmpuint (length (other), <=, 150);
      iterate ();
    }
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  iterate ();
  g_assert_cmpuint (length (model), ==, 150);
  g_assert_cmpuint (changes.n, >=, 1);
  g_assert_true (changes.thread == g_thread_self ());
}

static void
assert_name (GTorchParameter *parameter, const gchar *wanted)
{
  g_autofree gchar *name = gtorch_parameter_dup_full_name (parameter);
  g_autofree gchar *property = NULL;

  g_object_get (parameter, "full-name", &property, NULL);
  g_assert_cmpstr (name, ==, wanted);
  g_assert_cmpstr (property, ==, wanted);
}

static void
parameters_know_their_paths (void)
{
  g_autoptr (GTorchTensor) ones = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchParameter) lone = gtorch_parameter_new (ones, TRUE, NULL);
  g_autoptr (GTorchSequential) net = new_net (2), outer = gtorch_sequential_new ();
  g_autoptr (GTorchParameter) weight = NULL;
  g_autoptr (GTorchModuleDict) root = gtorch_module_dict_new ();

  assert_name (lone, NULL);
  gtorch_parameter_set_name (lone, "lone");
  assert_name (lone, "lone");
  weight = gtorch_module_get_parameter (GTORCH_MODULE (net), "1.weight", NULL);
  assert_name (weight, "1.weight");
  g_assert_true (gtorch_sequential_append (outer, GTORCH_MODULE (net), NULL));
  g_assert_true (
      gtorch_module_register_module (GTORCH_MODULE (root), "encoder", GTORCH_MODULE (outer), NULL));
  assert_name (weight, "encoder.0.1.weight");
  g_assert_true (gtorch_sequential_remove (net, 0, NULL)); /* the other one moves up */
  assert_name (weight, "encoder.0.0.weight");
  g_assert_true (gtorch_module_unregister (GTORCH_MODULE (root), "encoder", NULL));
  assert_name (weight, "0.0.weight");
  g_clear_object (&outer);
  assert_name (weight, "0.weight");
  g_clear_object (&net);
  assert_name (weight, "weight");
}

static void
the_first_of_several_modules_counts (void)
{
  g_autoptr (GTorchTensor) ones = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchParameter) shared = gtorch_parameter_new (ones, TRUE, NULL);
  g_autoptr (GTorchModuleDict) a = gtorch_module_dict_new (), b = gtorch_module_dict_new ();

  g_assert_true (gtorch_module_register_parameter (GTORCH_MODULE (a), "first", shared, NULL));
  g_assert_true (gtorch_module_register_parameter (GTORCH_MODULE (b), "second", shared, NULL));
  assert_name (shared, "first");
  g_assert_true (gtorch_module_unregister (GTORCH_MODULE (a), "first", NULL));
  assert_name (shared, "first"); /* its own name, in no module that it knows of */
  g_assert_true (gtorch_module_register_parameter (GTORCH_MODULE (b), "second", shared, NULL));
  assert_name (shared, "second");
}

#define TEST(name) g_test_add_func ("/GTorch/member-model/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (parameters_come_and_go);
  TEST (a_replaced_one_is_one_change);
  TEST (modules_are_listed_without_the_outermost);
  TEST (changes_of_threads_arrive_in_the_context);
  TEST (parameters_know_their_paths);
  TEST (the_first_of_several_modules_counts);
  return g_test_run ();
}
