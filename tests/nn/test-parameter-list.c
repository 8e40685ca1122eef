/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists and dictionaries of parameters. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "members.h"

static GTorchParameter *
parameter_new (gint64 rows, gint64 columns, GTorchDType dtype)
{
  g_autoptr (GTorchTensor) data = gtorch_ones (GTORCH_SHAPE (rows, columns), dtype, NULL, NULL);

  return gtorch_parameter_new (data, TRUE, NULL);
}

static void
parameters_are_named_by_their_positions (void)
{
  g_autoptr (GTorchParameter) first = parameter_new (2, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchParameter) second = parameter_new (4, 1, GTORCH_DTYPE_FLOAT64);
  GTorchParameter *both[] = { first, second };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchParameterList) list =
      gtorch_parameter_list_new_from_parameters (both, 2, &error);
  g_auto (GStrv) names = NULL;
  g_autofree gchar *joined = NULL;
  g_autofree gchar *text = NULL;
  g_autofree gchar *place = NULL;
  g_autofree gchar *expected = NULL;
  g_autofree gchar *where = NULL;

  g_assert_no_error (error);
  gtorch_parameter_list_append (list, first);
  names = gtorch_module_get_member_names (GTORCH_MODULE (list), GTORCH_MEMBER_KIND_PARAMETER);
  joined = g_strjoinv (" ", names);
  g_assert_cmpstr (joined, ==, "0 1 2");
  g_assert_cmpstr (gtorch_parameter_get_name (second), ==, "1");
  g_assert_true (test_parameter (GTORCH_MODULE (list), "2") == GTORCH_TENSOR (first));
  g_assert_cmpint (gtorch_module_count_parameters (GTORCH_MODULE (list), FALSE), ==, 10);
  text = gtorch_module_to_string (GTORCH_MODULE (list));
  where = gtorch_device_to_string (gtorch_tensor_get_device (GTORCH_TENSOR (first)));
  place = g_str_equal (where, "cpu") ? g_strdup ("") : g_strdup_printf (" (%s)", where);
  expected = g_strdup_printf ("ParameterList(\n"
                              "    (0): Parameter containing: [float32 of size 2x3%s]\n"
                              "    (1): Parameter containing: [float64 of size 4x1%s]\n"
                              "    (2): Parameter containing: [float32 of size 2x3%s]\n"
                              ")",
                              place, place, place);
  g_assert_cmpstr (text, ==, expected);
}

static void
what_is_no_parameter_is_refused (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_NONE, NULL, NULL);
  GTorchParameter *wrong[] = { (GTorchParameter *) x };
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_parameter_list_new_from_parameters (wrong, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "ParameterList: 0 is not a parameter");
}

static void
parameters_of_a_dictionary_keep_their_names (void)
{
  g_autoptr (GTorchModule) dict = GTORCH_MODULE (gtorch_parameter_dict_new ());
  g_autoptr (GTorchParameter) value = parameter_new (2, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = NULL;
  g_auto (GStrv) none = NULL;
  g_autofree gchar *joined = NULL;

  g_assert_true (gtorch_module_register_parameter (dict, "b", value, &error));
  g_assert_true (gtorch_module_register_parameter (dict, "a", value, &error));
  g_assert_true (gtorch_module_register_parameter (dict, "none", NULL, &error));
  g_assert_no_error (error);
  names = gtorch_module_get_member_names (dict, GTORCH_MEMBER_KIND_PARAMETER);
  joined = g_strjoinv (" ", names);
  g_assert_cmpstr (joined, ==, "b a");
  none = gtorch_module_get_member_names (dict, GTORCH_MEMBER_KIND_BUFFER);
  g_assert_cmpuint (g_strv_length (none), ==, 0);
}

#define ADD(name) g_test_add_func ("/GTorch/ParameterList/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (parameters_are_named_by_their_positions);
  ADD (what_is_no_parameter_is_refused);
  ADD (parameters_of_a_dictionary_keep_their_names);
  return g_test_run ();
}
