/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists and dictionaries of modules. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "members.h"

static gchar *
names_of (gpointer module)
{
  g_auto (GStrv) names = gtorch_module_get_child_names (module);

  return g_strjoinv (" ", names);
}

static GTorchModuleList *
list_of (guint n)
{
  g_autoptr (GPtrArray) modules = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GError) error = NULL;
  GTorchModuleList *list;

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (modules, gtorch_linear_new (i + 1, 2, NULL));
  list = gtorch_module_list_new_from_modules ((GTorchModule **) modules->pdata, n, &error);
  g_assert_no_error (error);
  return list;
}

static gint64
features (GTorchModuleList *list, guint position)
{
  g_autoptr (GTorchModule) module = g_list_model_get_item (G_LIST_MODEL (list), position);
  gint64 n;

  g_object_get (module, "in-features", &n, NULL);
  return n;
}

static void
modules_are_named_by_their_positions (void)
{
  g_autoptr (GTorchModuleList) list = list_of (3);
  g_autoptr (GTorchLinear) other = gtorch_linear_new (9, 2, NULL);
  g_autoptr (GTorchLinear) last = gtorch_linear_new (8, 2, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *names = names_of (list);
  g_autofree gchar *fewer = NULL;

  g_assert_cmpstr (names, ==, "0 1 2");
  g_assert_true (gtorch_module_list_insert (list, 1, GTORCH_MODULE (other), &error));
  g_assert_true (gtorch_module_list_remove (list, 0, &error));
  g_assert_true (gtorch_module_list_append (list, GTORCH_MODULE (last), &error));
  g_assert_true (gtorch_module_list_remove (list, -2, &error));
  g_assert_no_error (error);
  fewer = names_of (list);
  g_assert_cmpstr (fewer, ==, "0 1 2");
  g_assert_cmpint (features (list, 0), ==, 9);
  g_assert_cmpint (features (list, 1), ==, 2);
  g_assert_cmpint (features (list, 2), ==, 8);
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (list)), ==, 3);
  g_assert_true (g_list_model_get_item_type (G_LIST_MODEL (list)) == GTORCH_TYPE_MODULE);
  g_assert_cmpint (gtorch_module_count_parameters (GTORCH_MODULE (list), FALSE), ==,
                   (9 + 2 + 8) * 2 + 6);
}

static void
what_does_not_fit_is_refused (void)
{
  g_autoptr (GTorchModuleList) list = list_of (2);
  g_autoptr (GTorchReLU) relu = gtorch_relu_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;
  GTorchModule *wrong[] = { GTORCH_MODULE (relu), (GTorchModule *) x };

  g_assert_false (gtorch_module_list_insert (list, 3, GTORCH_MODULE (relu), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "ModuleList: position 3 is out of range for 2 modules");
  g_clear_error (&error);
  g_assert_false (gtorch_module_list_remove (list, -3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  g_assert_false (gtorch_module_list_append (list, GTORCH_MODULE (list), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_module_list_new_from_modules (wrong, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "ModuleList: 1 is not a module");
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (list), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
equal_neighbours_have_one_line (void)
{
  g_autoptr (GTorchModuleList) list = gtorch_module_list_new ();
  g_autofree gchar *none = gtorch_module_to_string (GTORCH_MODULE (list));
  g_autofree gchar *text = NULL;

  g_assert_cmpstr (none, ==, "ModuleList()");
  for (guint i = 0; i < 4; i++)
    {
      g_autoptr (GTorchModule) module =
          i == 2 ? GTORCH_MODULE (gtorch_tanh_new ()) : GTORCH_MODULE (gtorch_relu_new ());

      g_assert_true (gtorch_module_list_append (list, module, NULL));
    }
  text = gtorch_module_to_string (GTORCH_MODULE (list));
  g_assert_cmpstr (text, ==, "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n  (3): ReLU()\n)");
}

static void
modules_of_a_dictionary_keep_their_names (void)
{
  g_autoptr (GTorchModule) dict = GTORCH_MODULE (gtorch_module_dict_new ());
  g_autoptr (GTorchModule) relu = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchModule) tanh_ = GTORCH_MODULE (gtorch_tanh_new ());
  g_autoptr (GError) error = NULL;
  g_autofree gchar *names = NULL;
  g_autofree gchar *rest = NULL;
  g_autofree gchar *text = NULL;

  g_assert_true (gtorch_module_register_module (dict, "0", relu, &error));
  g_assert_true (gtorch_module_register_module (dict, "1", tanh_, &error));
  g_assert_true (gtorch_module_register_module (dict, "last", relu, &error));
  names = names_of (dict);
  g_assert_cmpstr (names, ==, "0 1 last");
  g_assert_true (gtorch_module_unregister (dict, "0", &error));
  g_assert_no_error (error);
  rest = names_of (dict);
  g_assert_cmpstr (rest, ==, "1 last");
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (dict)), ==, 2);
  text = gtorch_module_to_string (dict);
  g_assert_cmpstr (text, ==, "ModuleDict(\n  (1): Tanh()\n  (last): ReLU()\n)");
  g_assert_false (gtorch_module_unregister (dict, "0", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

#define ADD(name) g_test_add_func ("/GTorch/ModuleList/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (modules_are_named_by_their_positions);
  ADD (what_does_not_fit_is_refused);
  ADD (equal_neighbours_have_one_line);
  ADD (modules_of_a_dictionary_keep_their_names);
  return g_test_run ();
}
