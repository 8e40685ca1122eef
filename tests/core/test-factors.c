/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include <gtorch/gtorch.h>

static void
numbers_are_kept_in_their_order (void)
{
  g_autoptr (GTorchFactors) factors = gtorch_factors_new ((const gdouble[]){ 2, 1.5, 0.25 }, 3);
  g_autoptr (GTorchFactors) none = gtorch_factors_new (NULL, 0);
  const gdouble *values;
  gsize n;

  values = gtorch_factors_get_values (factors, &n);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpfloat (values[0], ==, 2);
  g_assert_cmpfloat (values[1], ==, 1.5);
  g_assert_cmpfloat (values[2], ==, 0.25);
  g_assert_cmpuint (gtorch_factors_get_length (factors), ==, 3);
  g_assert_cmpuint (gtorch_factors_get_length (none), ==, 0);
}

static void
lists_are_compared_by_their_numbers (void)
{
  g_autoptr (GTorchFactors) one = gtorch_factors_new ((const gdouble[]){ 2, 1.5 }, 2);
  g_autoptr (GTorchFactors) same = gtorch_factors_new ((const gdouble[]){ 2, 1.5 }, 2);
  g_autoptr (GTorchFactors) other = gtorch_factors_new ((const gdouble[]){ 2, 2.5 }, 2);
  g_autoptr (GTorchFactors) shorter = gtorch_factors_new ((const gdouble[]){ 2 }, 1);
  g_autoptr (GTorchFactors) copy = g_boxed_copy (GTORCH_TYPE_FACTORS, one);

  g_assert_true (copy == one);
  g_assert_true (gtorch_factors_equal (one, same));
  g_assert_false (gtorch_factors_equal (one, other));
  g_assert_false (gtorch_factors_equal (one, shorter));
}

#define ADD(name) g_test_add_func ("/GTorch/Factors/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (numbers_are_kept_in_their_order);
  ADD (lists_are_compared_by_their_numbers);
  return g_test_run ();
}
