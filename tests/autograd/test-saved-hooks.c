/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Hooks for tensors that are saved for backward passes. */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "autograd-values.h"

/* What the hooks of a test have seen, and how they fail. */
typedef struct
{
  guint n_packed, n_unpacked, n_destroyed;
  gboolean fails_to_pack, fails_to_unpack, changes, shortens, copies;
  GThread *thread; /* of the last unpack */
} Seen;

static GObject *
pack (GTorchTensor *tensor, gpointer data, GError **error)
{
  Seen *seen = data;

  seen->n_packed++;
  g_assert_false (gtorch_tensor_get_requires_grad (tensor));
  g_assert_false (gtorch_is_grad_enabled ());
  if (seen->fails_to_pack)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "the disk is full");
      return NULL;
    }
  if (seen->changes)
    g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (tensor, 2, error));
  if (seen->copies)
    return (GObject *) gtorch_tensor_clone (tensor, error);
  return g_object_ref (G_OBJECT (tensor));
}

static GTorchTensor *
unpack (GObject *packed, gpointer data, GError **error)
{
  Seen *seen = data;

  seen->n_unpacked++;
  seen->thread = g_thread_self ();
  if (seen->fails_to_unpack)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CLOSED, "the disk is gone");
      return NULL;
    }
  if (seen->shortens)
    return gtorch_tensor_sum (GTORCH_TENSOR (packed), NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return GTORCH_TENSOR (g_object_ref (packed));
}

static void
destroyed (gpointer data)
{
  ((Seen *) data)->n_destroyed++;
}

static GTorchSavedTensorsGuard *
begin (Seen *seen)
{
  g_autoptr (GError) error = NULL;
  GTorchSavedTensorsGuard *guard =
      gtorch_saved_tensors_hooks (pack, seen, destroyed, unpack, seen, destroyed, &error);

  g_assert_no_error (error);
  return guard;
}

/* exp (x * x), which saves x twice and the result once. */
static GTorchTensor *
compute (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, error);

  return square != NULL ? gtorch_tensor_exp (square, error) : NULL;
}

static void
hooks_keep_what_is_saved (void)
{
  g_autoptr (GTorchTensor) x = leaf (0.5, 3, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  Seen seen = { 0 };
  guint i;

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = compute (x, NULL);
  }
  g_assert_cmpuint (seen.n_packed, ==, 3);
  g_assert_cmpuint (seen.n_unpacked, ==, 0);
  g_assert_cmpuint (seen.n_destroyed, ==, 0);
  backward_sum (y);
  g_assert_cmpuint (seen.n_unpacked, ==, 3);
  grad = gtorch_tensor_get_grad (x);
  for (i = 0; i < 3; i++)
    g_assert_cmpfloat_with_epsilon (value (grad, i), 2 * (0.5 + i) * exp ((0.5 + i) * (0.5 + i)),
                                    1e-9);
  g_clear_object (&y);
  g_assert_cmpuint (seen.n_destroyed, ==, 2);
}

static void
the_youngest_hooks_are_called (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  Seen outer = { 0 }, inner = { 0 };
  g_autoptr (GTorchSavedTensorsGuard) first = begin (&outer);
  g_autoptr (GTorchSavedTensorsGuard) second = begin (&inner);
  g_autoptr (GTorchTensor) one = gtorch_tensor_exp (x, NULL);
  g_autoptr (GTorchTensor) two = NULL;
  g_autoptr (GTorchTensor) three = NULL;

  g_assert_cmpuint (outer.n_packed, ==, 0);
  g_assert_cmpuint (inner.n_packed, ==, 1);
  gtorch_saved_tensors_guard_end (first); /* the younger one goes on */
  two = gtorch_tensor_exp (x, NULL);
  g_assert_cmpuint (inner.n_packed, ==, 2);
  gtorch_saved_tensors_guard_end (second);
  three = gtorch_tensor_exp (x, NULL);
  g_assert_cmpuint (inner.n_packed + outer.n_packed, ==, 2);
}

static void
nothing_is_packed_where_nothing_is_saved (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) plain = leaf (1, 2, FALSE);
  Seen seen = { 0 };
  g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);
  g_autoptr (GTorchTensor) a = gtorch_tensor_exp (plain, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_mul_scalar (x, 3, NULL); /* saves a number */
  g_autoptr (GTorchTensor) c = gtorch_tensor_add (x, x, 1, NULL);

  g_assert_cmpuint (seen.n_packed, ==, 0);
}

static void
an_error_of_pack_is_that_of_the_operation (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { .fails_to_pack = TRUE };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = gtorch_tensor_exp (x, &error);
  }
  g_assert_null (y);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_assert_nonnull (strstr (error->message, "the disk is full"));
  g_assert_cmpuint (seen.n_destroyed, ==, 2);
}

static void
an_error_of_unpack_is_that_of_backward (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { .fails_to_unpack = TRUE };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = gtorch_tensor_exp (x, NULL);
  }
  total = sum (y);
  g_assert_false (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED);
  g_assert_cmpstr (error->message, ==, "backward of exp: the disk is gone");
}

static void
check_refused (Seen *seen, const gchar *text)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GError) error = NULL;

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (seen);

    y = compute (x, &error);
  }
  if (y != NULL)
    {
      total = sum (y);
      g_assert_false (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error));
    }
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  if (strstr (error->message, text) == NULL)
    g_error ("%s", error->message);
}

static void
another_tensor_is_refused (void)
{
  Seen shortens = { .shortens = TRUE }, changes = { .changes = TRUE };

  check_refused (&shortens, "its result 0 was saved as float64 of shape [2]");
  check_refused (&changes,
                 "a hook changed the saved tensor of dtype float64 and shape [2] in place");
}

static void
a_change_of_shared_memory_is_found (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  guint i;

  for (i = 0; i < 2; i++)
    {
      Seen seen = { .copies = i == 1 };
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) total = NULL;
      g_autoptr (GError) error = NULL;

      {
        g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

        y = gtorch_tensor_exp (x, NULL);
      }
      g_assert_nonnull (gtorch_tensor_add_scalar_inplace (y, 1, 1, NULL));
      total = sum (y);
      g_assert_true (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error) == (i == 1));
      if (i == 1)
        continue;
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
      g_assert_nonnull (strstr (error->message, "was changed in place since"));
    }
}

static void
a_change_that_is_not_packed_is_undone (void)
{
  g_autoptr (GTorchTensor) x = leaf (2, 2, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_neg (x, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { .fails_to_pack = TRUE };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    g_assert_null (gtorch_tensor_exp_inplace (y, &error));
  }
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  g_assert_cmpuint (seen.n_packed, ==, 1);
  g_assert_cmpfloat (value (y, 1), ==, -3);
  backward_sum (y);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 1), ==, -1);
}

static void
derivatives_of_derivatives_use_the_hooks (void)
{
  g_autoptr (GTorchTensor) x = leaf (2, 1, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GPtrArray) first = NULL;
  g_autoptr (GPtrArray) second = NULL;
  g_autoptr (GTorchTensor) slope = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { .copies = TRUE };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = gtorch_tensor_mul (x, x, NULL);
    total = gtorch_tensor_mul (y, x, NULL);
  }
  slope = sum (total);
  first = gtorch_autograd_grad (&slope, 1, &x, 1, NULL, 0, TRUE, TRUE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (value (first->pdata[0], 0), 12, 1e-12);
  g_clear_object (&slope);
  slope = sum (first->pdata[0]);
  second = gtorch_autograd_grad (&slope, 1, &x, 1, NULL, 0, FALSE, FALSE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (value (second->pdata[0], 0), 12, 1e-12);
}

static void
a_second_pass_fails_as_without_hooks (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GError) error = NULL;
  Seen seen = { 0 };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = gtorch_tensor_exp (x, NULL);
  }
  total = sum (y);
  g_assert_true (gtorch_tensor_backward (total, NULL, TRUE, FALSE, &error));
  g_assert_true (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error));
  g_assert_cmpuint (seen.n_unpacked, ==, 2);
  g_assert_cmpuint (seen.n_destroyed, ==, 2); /* released, although the graph is there */
  g_assert_false (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
}

static void
finished (GObject *source, GAsyncResult *result, gpointer loop)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_backward_finish (GTORCH_TENSOR (source), result, &error));
  g_assert_no_error (error);
  g_main_loop_quit (loop);
}

static void
hooks_run_in_the_callers_context (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  Seen seen = { 0 };

  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    y = gtorch_tensor_exp (x, NULL);
  }
  total = sum (y);
  gtorch_tensor_backward_async (total, NULL, FALSE, FALSE, NULL, finished, loop);
  g_main_loop_run (loop);
  g_assert_cmpuint (seen.n_unpacked, ==, 1);
  g_assert_true (seen.thread == g_thread_self ());
}

static void
what_is_on_the_cpu_comes_back (void)
{
  gboolean pin_memory;

  for (pin_memory = FALSE; pin_memory <= TRUE; pin_memory++)
    {
      g_autoptr (GTorchTensor) x = leaf (0.5, 3, TRUE);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GError) error = NULL;
      guint i;

      {
        g_autoptr (GTorchSavedTensorsGuard) guard = gtorch_save_on_cpu (pin_memory, &error);

        g_assert_no_error (error);
        y = compute (x, &error);
        g_assert_no_error (error);
      }
      backward_sum (y);
      grad = gtorch_tensor_get_grad (x);
      for (i = 0; i < 3; i++)
        g_assert_cmpfloat_with_epsilon (value (grad, i),
                                        2 * (0.5 + i) * exp ((0.5 + i) * (0.5 + i)), 1e-9);
    }
}

static void
hooks_can_be_refused (void)
{
  g_autoptr (GError) error = NULL;
  Seen seen = { 0 };

  {
    g_autoptr (GTorchSavedTensorsGuard) none =
        gtorch_disable_saved_tensors_hooks ("no hooks here", &error);

    g_assert_no_error (error);
    g_assert_null (
        gtorch_saved_tensors_hooks (pack, &seen, destroyed, unpack, &seen, destroyed, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
    g_assert_cmpstr (error->message, ==, "saved_tensors_hooks: no hooks here");
    g_assert_cmpuint (seen.n_destroyed, ==, 2);
    g_clear_error (&error);
    g_assert_null (gtorch_save_on_cpu (FALSE, &error));
    g_assert_cmpstr (error->message, ==, "save_on_cpu: no hooks here");
    g_clear_error (&error);
  }
  {
    g_autoptr (GTorchSavedTensorsGuard) guard = begin (&seen);

    g_assert_null (gtorch_disable_saved_tensors_hooks ("none now", &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
    g_assert_nonnull (strstr (error->message, "none now"));
  }
}

#define ADD(name) g_test_add_func ("/GTorch/SavedHooks/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (hooks_keep_what_is_saved);
  ADD (the_youngest_hooks_are_called);
  ADD (nothing_is_packed_where_nothing_is_saved);
  ADD (an_error_of_pack_is_that_of_the_operation);
  ADD (an_error_of_unpack_is_that_of_backward);
  ADD (another_tensor_is_refused);
  ADD (a_change_that_is_not_packed_is_undone);
  ADD (a_change_of_shared_memory_is_found);
  ADD (derivatives_of_derivatives_use_the_hooks);
  ADD (a_second_pass_fails_as_without_hooks);
  ADD (hooks_run_in_the_callers_context);
  ADD (what_is_on_the_cpu_comes_back);
  ADD (hooks_can_be_refused);
  return g_test_run ();
}
