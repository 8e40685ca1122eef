/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Notifications of the property grad. */

#include "config.h"

#include <gtorch/gtorch.h>

typedef struct
{
  guint n;
  GThread *thread;
} Seen;

static void
on_grad (GObject *tensor, GParamSpec *pspec, gpointer data)
{
  Seen *seen = data;
  g_autoptr (GTorchTensor) grad =
      gtorch_tensor_get_grad (GTORCH_TENSOR (tensor)); /* is there, or not */

  seen->n++;
  seen->thread = g_thread_self ();
  g_assert_cmpstr (pspec->name, ==, "grad");
  g_assert_true (grad == NULL || GTORCH_IS_TENSOR (grad));
}

static GTorchTensor *
new_leaf (Seen *seen)
{
  GTorchTensor *leaf = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (leaf, TRUE, NULL));
  if (seen != NULL)
    g_signal_connect (leaf, "notify::grad", G_CALLBACK (on_grad), seen);
  return leaf;
}

static GTorchTensor *
loss_of (GTorchTensor *leaf)
{
  g_autoptr (GTorchTensor) square = gtorch_tensor_square (leaf, NULL);

  return gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
}

static void
backward (GTorchTensor *leaf)
{
  g_autoptr (GTorchTensor) loss = loss_of (leaf);

  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL));
}

static void
each_pass_notifies (void)
{
  Seen seen = { 0 };
  g_autoptr (GTorchTensor) leaf = new_leaf (&seen), other = new_leaf (NULL);

  backward (leaf);
  g_assert_cmpuint (seen.n, ==, 1);
  backward (leaf); /* adds to the same gradient */
  g_assert_cmpuint (seen.n, ==, 2);
  g_assert_true (seen.thread == g_thread_self ());
  backward (other);
  g_assert_cmpuint (seen.n, ==, 2);
  g_assert_true (gtorch_tensor_set_grad (leaf, NULL, NULL));
  g_assert_cmpuint (seen.n, ==, 3);
}

static void
retained_gradients_notify (void)
{
  Seen seen = { 0 };
  g_autoptr (GTorchTensor) leaf = new_leaf (NULL);
  g_autoptr (GTorchTensor) square = gtorch_tensor_square (leaf, NULL);
  g_autoptr (GTorchTensor) loss =
      gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);

  g_assert_true (gtorch_tensor_retain_grad (square, NULL));
  g_signal_connect (square, "notify::grad", G_CALLBACK (on_grad), &seen);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL));
  g_assert_cmpuint (seen.n, ==, 1);
}

static void
zeroing_notifies (void)
{
  Seen seen = { 0 };
  g_autoptr (GTorchLinear) layer = gtorch_linear_new (2, 1, NULL);
  g_autoptr (GTorchTensor) weight =
      (GTorchTensor *) gtorch_module_get_parameter (GTORCH_MODULE (layer), "weight", NULL);

  backward (weight);
  g_signal_connect (weight, "notify::grad", G_CALLBACK (on_grad), &seen);
  g_assert_true (gtorch_module_zero_grad (GTORCH_MODULE (layer), FALSE, NULL));
  g_assert_cmpuint (seen.n, ==, 1);
  g_assert_true (gtorch_module_zero_grad (GTORCH_MODULE (layer), TRUE, NULL));
  g_assert_cmpuint (seen.n, ==, 2);
  g_assert_true (gtorch_module_zero_grad (GTORCH_MODULE (layer), TRUE, NULL)); /* there is none */
  g_assert_cmpuint (seen.n, ==, 2);
}

static void
on_end (GObject *source, GAsyncResult *result, gpointer data)
{
  g_assert_true (gtorch_tensor_backward_finish (GTORCH_TENSOR (source), result, NULL));
  *(gboolean *) data = TRUE;
}

static void
asynchronous_passes_notify_in_the_main_context (void)
{
  Seen seen = { 0 };
  g_autoptr (GTorchTensor) leaf = new_leaf (&seen);
  g_autoptr (GTorchTensor) loss = loss_of (leaf);
  gboolean done = FALSE;

  gtorch_tensor_backward_async (loss, NULL, FALSE, FALSE, NULL, on_end, &done);
  while (!done)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (seen.n, ==, 1);
  g_assert_true (seen.thread == g_thread_self ());
}

static void
drop_grad (GObject *tensor, GParamSpec *pspec, gpointer data)
{
  g_signal_handlers_disconnect_by_func (tensor, drop_grad, data);
  g_assert_true (gtorch_tensor_set_grad (GTORCH_TENSOR (tensor), NULL, NULL));
}

static void
a_handler_may_drop_the_gradient (void)
{
  g_autoptr (GTorchTensor) leaf = new_leaf (NULL), grad = NULL;

  g_signal_connect (leaf, "notify::grad", G_CALLBACK (drop_grad), NULL);
  backward (leaf);
  g_assert_null (gtorch_tensor_get_grad (leaf));
  backward (leaf);
  grad = gtorch_tensor_get_grad (leaf);
  g_assert_nonnull (grad);
}

#define TEST(name) g_test_add_func ("/GTorch/grad-notify/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (each_pass_notifies);
  TEST (retained_gradients_notify);
  TEST (zeroing_notifies);
  TEST (asynchronous_passes_notify_in_the_main_context);
  TEST (a_handler_may_drop_the_gradient);
  return g_test_run ();
}
