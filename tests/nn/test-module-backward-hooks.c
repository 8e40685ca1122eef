/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Hooks of modules around their backward pass, and the places of hooks. */

#include "config.h"

#include <string.h>

#include "../test-device.h"

/* What hooks have seen, and what they do. */
typedef struct
{
  GString *order;
  guint n_none; /* inputs without gradient */
  gdouble factor;
  gboolean fails, shortens;
  gchar letter;
} Seen;

static GPtrArray *
scale (GTorchTensor **grads, gsize n, gdouble factor)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);
  gsize i;

  for (i = 0; i < n; i++)
    g_ptr_array_add (list, gtorch_tensor_mul_scalar (grads[i], factor, NULL));
  return list;
}

static GPtrArray *
before (GTorchModule *module, GTorchTensor **grads, gsize n, gpointer data, GError **error)
{
  Seen *seen = data;

  g_string_append_c (seen->order, 'o');
  return seen->factor != 0 ? scale (grads, n, seen->factor) : NULL;
}

static GPtrArray *
after (GTorchModule *module, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
       gsize n_outputs, gpointer data, GError **error)
{
  Seen *seen = data;
  gsize i;

  g_string_append_c (seen->order, 'i');
  g_assert_cmpuint (n_outputs, ==, 1);
  for (i = 0; i < n; i++)
    seen->n_none += grads[i] == NULL;
  if (seen->fails)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
      return NULL;
    }
  if (seen->shortens)
    return g_ptr_array_new_with_free_func (g_object_unref);
  return seen->factor != 0 ? scale (grads, n, seen->factor) : NULL;
}

static GTorchTensor *
ones (gboolean requires_grad)
{
  GTorchTensor *x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64, NULL, NULL);

  gtorch_tensor_set_requires_grad (x, requires_grad, NULL);
  return x;
}

static gboolean
run (GTorchModule *module, GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) y = gtorch_module_forward (module, x, error);
  g_autoptr (GTorchTensor) total = NULL;

  if (y == NULL)
    return FALSE;
  total = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  return gtorch_tensor_backward (total, NULL, FALSE, FALSE, error);
}

static void
gradients_go_through_the_hooks (void)
{
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_tanh_new ());
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (GTorchTensor) x = ones (TRUE);
  g_autoptr (GTorchTensor) plain = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { .order = order };
  guint64 id;

  g_assert_true (run (module, x, &error));
  plain = gtorch_tensor_get_grad (x);
  gtorch_tensor_set_grad (x, NULL, NULL);
  gtorch_module_register_full_backward_pre_hook (module, FALSE, before, &seen, NULL);
  id = gtorch_module_register_full_backward_hook (module, FALSE, after, &seen, NULL);
  g_assert_true (run (module, x, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (order->str, ==, "oi");
  gtorch_tensor_set_grad (x, NULL, NULL);
  seen.factor = 3;
  g_assert_true (run (module, x, &error));
  scaled = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat_with_epsilon (test_element (scaled, 0), 9 * test_element (plain, 0), 1e-12);
  g_assert_true (gtorch_module_remove_hook (module, id));
  g_assert_true (run (module, x, &error));
  g_assert_cmpstr (order->str, ==, "oioio");
}

static void
inputs_without_gradients_have_none (void)
{
  g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 1, NULL);
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GError) error = NULL;
  Seen seen = { .order = order };

  gtorch_module_register_full_backward_hook (GTORCH_MODULE (layer), FALSE, after, &seen, NULL);
  g_assert_true (run (GTORCH_MODULE (layer), x, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (order->str, ==, "i");
  g_assert_cmpuint (seen.n_none, ==, 1);
}

static void
errors_are_those_of_the_pass (void)
{
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_tanh_new ());
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (GTorchTensor) x = ones (TRUE);
  g_autoptr (GError) error = NULL;
  Seen seen = { .order = order, .fails = TRUE };

  gtorch_module_register_full_backward_hook (module, FALSE, after, &seen, NULL);
  g_assert_false (run (module, x, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  seen.fails = FALSE;
  seen.shortens = TRUE;
  g_assert_false (run (module, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "Tanh: a hook gave 0 gradients of 1 inputs"));
}

static GTorchTensor *
note (GTorchModule *module, GTorchTensor **inputs, gsize n, GTorchTensor *output, gpointer data,
      GError **error)
{
  Seen *seen = data;

  g_string_append_c (seen->order, output != NULL ? seen->letter : '-');
  return NULL;
}

static void
hooks_have_places (void)
{
  g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 1, NULL);
  GTorchModule *module = GTORCH_MODULE (layer);
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (1, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) wrong = gtorch_ones (GTORCH_SHAPE (1, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  Seen a = { .order = order, .letter = 'a' }, b = { .order = order, .letter = 'b' };

  gtorch_module_register_forward_hook_full (module, FALSE, TRUE, note, &b, NULL);
  gtorch_module_register_forward_hook_full (module, TRUE, FALSE, note, &a, NULL);
  y = gtorch_module_forward (module, x, NULL);
  g_assert_cmpstr (order->str, ==, "ab");
  g_assert_null (gtorch_module_forward (module, wrong, NULL));
  g_assert_cmpstr (order->str, ==, "ab-"); /* only the one that is always called */
}

static GTorchTensor *
refuse (GTorchModule *module, GTorchTensor **inputs, gsize n, GTorchTensor *output, gpointer data,
        GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return NULL;
}

static void
hooks_of_all_modules_come_first (void)
{
  g_autoptr (GTorchModule) inner = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchSequential) outer = gtorch_sequential_new ();
  g_autoptr (GString) order = g_string_new (NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL, z = NULL;
  g_autoptr (GError) error = NULL;
  Seen a = { .order = order, .letter = 'a' }, own = { .order = order, .letter = 'o' };
  guint64 id;

  g_assert_true (gtorch_sequential_append (outer, inner, NULL));
  gtorch_module_register_forward_hook (inner, note, &own, NULL);
  id = gtorch_module_register_global_forward_hook (FALSE, note, &a, NULL);
  g_assert_true (gtorch_module_has_hooks (GTORCH_MODULE (outer)));
  y = gtorch_module_forward (GTORCH_MODULE (outer), x, NULL);
  g_assert_cmpstr (order->str, ==, "aoa"); /* the inner module, its own, the outer one */
  g_assert_true (gtorch_module_remove_global_hook (id));
  g_assert_false (gtorch_module_remove_global_hook (id));
  g_assert_false (gtorch_module_has_hooks (GTORCH_MODULE (outer)));
  z = gtorch_module_forward (GTORCH_MODULE (outer), x, NULL);
  g_assert_cmpstr (order->str, ==, "aoao");
  id = gtorch_module_register_global_forward_hook (FALSE, refuse, NULL, NULL);
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (outer), x, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_assert_true (gtorch_module_remove_global_hook (id));
}

#define ADD(name) g_test_add_func ("/GTorch/ModuleBackwardHooks/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (gradients_go_through_the_hooks);
  ADD (inputs_without_gradients_have_none);
  ADD (errors_are_those_of_the_pass);
  ADD (hooks_have_places);
  ADD (hooks_of_all_modules_come_first);
  return g_test_run ();
}
