/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What belongs to the state of a module beside its parameters and buffers. */

#include "config.h"

#include <string.h>

#include "../test-device.h"

#define TEST_TYPE_COUNTED (test_counted_get_type ())
G_DECLARE_FINAL_TYPE (TestCounted, test_counted, TEST, COUNTED, GTorchModule)

struct _TestCounted
{
  GTorchModule parent_instance;
  gint64 n;
};

G_DEFINE_TYPE (TestCounted, test_counted, GTORCH_TYPE_MODULE)

static GTorchTensor *
test_counted_get_extra_state (GTorchModule *module)
{
  TestCounted *self = TEST_COUNTED (module);

  return self->n != 0
             ? gtorch_tensor_new_from_ints (&self->n, 1, NULL, 0, GTORCH_DTYPE_INT64, NULL, NULL)
             : NULL;
}

static gboolean
test_counted_set_extra_state (GTorchModule *module, GTorchTensor *state, GError **error)
{
  TestCounted *self = TEST_COUNTED (module);

  self->n = (gint64) test_element (state, 0);
  if (self->n > 0)
    return TRUE;
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "not above zero");
  return FALSE;
}

static void
test_counted_class_init (TestCountedClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->get_extra_state = test_counted_get_extra_state;
  GTORCH_MODULE_CLASS (klass)->set_extra_state = test_counted_set_extra_state;
}

static void
test_counted_init (TestCounted *self)
{
  g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 1, NULL);

  self->n = 3;
  gtorch_module_register_module (GTORCH_MODULE (self), "layer", GTORCH_MODULE (layer), NULL);
}

static GTorchModule *
row_of (TestCounted **counted)
{
  GTorchSequential *row = gtorch_sequential_new ();
  g_autoptr (GTorchModule) child = g_object_new (TEST_TYPE_COUNTED, NULL);

  gtorch_sequential_append (row, child, NULL);
  *counted = TEST_COUNTED (child); /* the row has it */
  return GTORCH_MODULE (row);
}

static void
it_is_saved_and_loaded (void)
{
  TestCounted *first, *second;
  g_autoptr (GTorchModule) row = row_of (&first);
  g_autoptr (GTorchModule) other = row_of (&second);
  g_auto (GStrv) names = gtorch_module_get_state_names (row);
  g_autofree gchar *all = g_strjoinv (" ", names);
  g_autoptr (GHashTable) state = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpstr (all, ==, "0._extra_state 0.layer.weight 0.layer.bias");
  first->n = 8;
  state = gtorch_module_state_dict (row);
  g_assert_true (gtorch_module_load_state_dict (other, state, TRUE, &error));
  g_assert_no_error (error);
  g_assert_cmpint (second->n, ==, 8);
  g_hash_table_remove (state, "0._extra_state");
  g_assert_false (gtorch_module_load_state_dict (other, state, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, "missing: 0._extra_state"));
  g_clear_error (&error);
  g_assert_true (gtorch_module_load_state_dict (other, state, FALSE, &error));
}

static void
it_may_be_absent_or_refused (void)
{
  TestCounted *counted;
  g_autoptr (GTorchModule) row = row_of (&counted);
  g_autoptr (GTorchModule) plain = GTORCH_MODULE (gtorch_tanh_new ());
  g_autoptr (GTorchTensor) zero = gtorch_zeros (GTORCH_SHAPE (1), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (row);
  g_autoptr (GHashTable) without = NULL;
  g_autoptr (GError) error = NULL;

  g_hash_table_insert (state, g_strdup ("0._extra_state"), g_object_ref (zero));
  g_assert_false (gtorch_module_load_state_dict (row, state, TRUE, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA);
  g_assert_cmpstr (error->message, ==,
                   "Sequential: load_state_dict: 0._extra_state: not above zero");
  g_clear_error (&error);
  without = gtorch_module_state_dict (row); /* its number is 0 now */
  g_assert_cmpuint (g_hash_table_size (without), ==, 2);
  g_assert_null (gtorch_module_get_extra_state (plain));
  g_assert_false (gtorch_module_set_extra_state (plain, zero, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "Tanh: set_extra_state: the class has no extra state");
}

#define ADD(name) g_test_add_func ("/GTorch/ExtraState/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (it_is_saved_and_loaded);
  ADD (it_may_be_absent_or_refused);
  return g_test_run ();
}
