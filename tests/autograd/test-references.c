/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the collector of another language sees through GTorchReferences, for a language that has only
 * hooks and proxies. */

#include "config.h"

#include "autograd-values.h"
#include "members.h"
#include "sanitizer.h"

/* Maps each object to its proxy; the values are strings. */
static GHashTable *proxies; /* GObject -> text */

static gpointer
find_proxy (GObject *object)
{
  return proxies != NULL ? g_hash_table_lookup (proxies, object) : NULL;
}

static void
add_extra (GTorchReferences *references, GObject *object)
{
  gtorch_references_add_value (references, g_object_get_data (object, "extra"));
}

/* Identifies the hooks of this language. The texts are constants. */
static void
text_free (gpointer text)
{
}

static GTorchReferences *
language (void)
{
  return gtorch_references_new (find_proxy, add_extra, text_free);
}

static void
note (gpointer value, gpointer user_data)
{
  g_string_append (user_data, value);
}

static void
assert_counted (GTorchReferences *references, gpointer object, const gchar *expected)
{
  g_autoptr (GString) told = g_string_new (NULL);

  gtorch_references_count (references, object, note, told);
  g_assert_cmpstr (told->str, ==, expected);
}

static void
assert_followed (GTorchReferences *references, gpointer object, const gchar *expected)
{
  g_autoptr (GString) told = g_string_new (NULL);

  gtorch_references_follow (references, object, note, told);
  g_assert_cmpstr (told->str, ==, expected);
}

static GTorchTensor *
leave (GTorchTensor *grad, gpointer user_data, GError **error)
{
  return NULL;
}

static GTorchTensor *
leave_output (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
              gpointer user_data, GError **error)
{
  return NULL;
}

static void
hook (GTorchTensor *tensor, const gchar *text)
{
  g_assert_cmpuint (gtorch_tensor_register_hook (tensor, leave, (gpointer) text, text_free, NULL),
                    !=, 0);
}

static void
the_hook_of_a_leaf_without_other_references_is_reported (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchReferences) references = language ();

  hook (x, "a");
  g_object_ref (x);
  assert_counted (references, x, "");
  assert_followed (references, x, "");
  g_object_unref (x);
  gtorch_references_begin (references);
  assert_counted (references, x, "a");
  assert_followed (references, x, "a");
  assert_followed (references, x, "");
}

static void
each_pass_starts_empty (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchReferences) references = language ();
  guint i;

  hook (x, "a");
  gtorch_references_begin (references);
  for (i = 0; i < 3; i++)
    {
      assert_counted (references, x, "a");
      gtorch_references_begin (references);
      assert_followed (references, x, "");
    }
}

/* The graph of `y` contains the leaf, and the node of `y` has its own hook. */
static void
a_graph_is_complete_with_all_references_to_it (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) z = gtorch_tensor_mul_scalar (y, 2, NULL);
  g_autoptr (GTorchReferences) references = language ();

  hook (x, "x");
  hook (y, "y");
  gtorch_references_begin (references);
  assert_counted (references, x, "");
  assert_counted (references, y, "");
  assert_counted (references, z, "yx");
  assert_followed (references, y, "yx");
  gtorch_references_begin (references);
  assert_counted (references, z, "");
  assert_counted (references, y, "y");
  assert_counted (references, x, "x");
  assert_followed (references, z, "yx");
}

static void
external_references_keep_the_graph (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) unseen = gtorch_tensor_mul_scalar (y, 2, NULL);
  g_autoptr (GTorchReferences) references = language ();

  hook (x, "x");
  hook (y, "y");
  gtorch_references_begin (references);
  assert_counted (references, x, "");
  assert_counted (references, y, "");
}

static void
a_shared_parameter_is_complete_with_both_modules (void)
{
  g_autoptr (GTorchModule) one =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 1,
                                        "out-features", (gint64) 1, "has-bias", FALSE, NULL));
  g_autoptr (GTorchModule) two =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 1,
                                        "out-features", (gint64) 1, "has-bias", FALSE, NULL));
  GTorchTensor *weight = test_parameter (one, "weight");
  g_autoptr (GTorchReferences) references = language ();

  hook (weight, "w");
  g_assert_true (gtorch_module_register_parameter (two, "weight", GTORCH_PARAMETER (weight), NULL));
  gtorch_references_begin (references);
  assert_counted (references, one, "");
  assert_counted (references, two, "w");
  assert_followed (references, one, "w");
}

static void
an_optimizer_and_a_module_share_parameters (void)
{
  g_autoptr (GTorchModule) module =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 1,
                                        "out-features", (gint64) 1, "has-bias", FALSE, NULL));
  GTorchTensor *weight = test_parameter (module, "weight");
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GTorchOptimizer) optimizer =
      GTORCH_OPTIMIZER (gtorch_sgd_new (parameters, 0.1, 0.9, NULL));
  g_autoptr (GTorchTensor) grad =
      gtorch_ones (GTORCH_SHAPE (1, 1), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchReferences) references = language ();

  g_clear_object (&parameters);
  hook (weight, "w");
  g_assert_true (gtorch_tensor_set_grad (weight, grad, NULL));
  g_assert_true (gtorch_optimizer_step (optimizer, NULL));
  gtorch_references_begin (references);
  assert_counted (references, module, "");
  assert_counted (references, optimizer, "w");
}

static void
a_proxy_stands_for_its_object (void)
{
  g_autoptr (GTorchModule) inner =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 1,
                                        "out-features", (gint64) 1, "has-bias", FALSE, NULL));
  GTorchModule *modules[] = { inner };
  g_autoptr (GTorchModule) outer =
      GTORCH_MODULE (gtorch_sequential_new_from_modules (modules, 1, NULL));
  GTorchTensor *weight = test_parameter (inner, "weight");
  g_autoptr (GTorchReferences) references = language ();

  hook (weight, "w");
  g_object_set_data (G_OBJECT (inner), "extra", (gpointer) "e");
  proxies = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (proxies, inner, (gpointer) "p");
  gtorch_references_begin (references);
  assert_counted (references, outer, "p");
  assert_counted (references, inner, "ew");
  assert_followed (references, outer, "p");
  assert_followed (references, inner, "ew");

  g_object_ref (inner);
  gtorch_references_begin (references);
  assert_counted (references, outer, "");
  assert_counted (references, inner, "ew");
  assert_followed (references, outer, "");
  g_object_unref (inner);
  g_clear_pointer (&proxies, g_hash_table_unref);
}

typedef struct
{
  GTorchTensor *x;
  GTorchReferences *references;
} Running;

static GTorchTensor *
count_inside (GTorchTensor *grad, gpointer user_data, GError **error)
{
  Running *running = user_data;

  assert_counted (running->references, running->x, "");
  return NULL;
}

static void
running_hooks_are_not_reported (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) s = sum (x);
  g_autoptr (GTorchReferences) references = language ();
  Running running = { x, references };

  gtorch_tensor_register_hook (x, count_inside, &running, text_free, NULL);
  gtorch_references_begin (references);
  g_assert_true (gtorch_tensor_backward (s, NULL, FALSE, FALSE, NULL));
}

typedef struct
{
  GTorchModule *module;
  GTorchTensor *x;
  gint stop;
} Busy;

/* Changes everything that the other thread reads. */
static gpointer
be_busy (gpointer data)
{
  Busy *busy = data;

  while (!g_atomic_int_get (&busy->stop))
    {
      g_autoptr (GTorchTensor) plain =
          gtorch_ones (GTORCH_SHAPE (1, 1), GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchParameter) parameter = gtorch_parameter_new (plain, TRUE, NULL);
      g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (busy->x, 2, NULL);
      guint64 id = gtorch_tensor_register_hook (y, leave, (gpointer) "y", text_free, NULL);
      guint64 second = gtorch_module_register_forward_hook (busy->module, leave_output,
                                                            (gpointer) "f", text_free);

      g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (y, 2, NULL));
      g_assert_true (gtorch_tensor_remove_hook (y, id));
      g_assert_true (gtorch_module_register_parameter (busy->module, "weight", parameter, NULL));
      g_assert_true (gtorch_module_remove_hook (busy->module, second));
    }
  return NULL;
}

static void
threads_may_change_objects_during_a_pass (void)
{
  g_autoptr (GTorchModule) module =
      GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 1,
                                        "out-features", (gint64) 1, "has-bias", FALSE, NULL));
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  Busy busy = { module, x, 0 };
  GThread *thread;
  guint i;

  hook (x, "x");
  thread = g_thread_new ("busy", be_busy, &busy);
  for (i = 0; i < test_often (500); i++)
    {
      g_autoptr (GTorchReferences) references = language ();
      g_autoptr (GString) counted = g_string_new (NULL);
      g_autoptr (GString) followed = g_string_new (NULL);

      gtorch_references_count (references, G_OBJECT (module), note, counted);
      gtorch_references_count (references, G_OBJECT (x), note, counted);
      gtorch_references_follow (references, G_OBJECT (module), note, followed);
      gtorch_references_follow (references, G_OBJECT (x), note, followed);
      g_assert_cmpstr (counted->str, ==, followed->str);
    }
  g_atomic_int_set (&busy.stop, 1);
  g_thread_join (thread);
}

#define ADD(name) g_test_add_func ("/GTorch/References/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (the_hook_of_a_leaf_without_other_references_is_reported);
  ADD (each_pass_starts_empty);
  ADD (a_graph_is_complete_with_all_references_to_it);
  ADD (external_references_keep_the_graph);
  ADD (a_shared_parameter_is_complete_with_both_modules);
  ADD (an_optimizer_and_a_module_share_parameters);
  ADD (a_proxy_stands_for_its_object);
  ADD (running_hooks_are_not_reported);
  ADD (threads_may_change_objects_during_a_pass);
  return g_test_run ();
}
