/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A real GPU that is lost, in a separate process: the error message, and that nothing hangs. */

#include "config.h"

#include <unistd.h>

#include <gtorch/tensor/gtorch-impl-private.h>

#include "gpu-test.h"
#include "gtorch-ops-private.h"

#define ROUNDS 20

static guint n_signals;

static void
on_error (GTorchDevice *device, GError *error, gpointer data)
{
  n_signals++;
}

static void
no_free (GTorchStorage *storage)
{
}

static GTorchImpl *
nowhere (void)
{
  const gint64 shape[] = { 1000 };
  GTorchStorage *storage =
      gtorch_storage_new_foreign (gpu, (gpointer) (guintptr) 0x1000, 4000, no_free, NULL);
  GTorchImpl *x = gtorch_impl_new_strided (storage, GTORCH_DTYPE_FLOAT32, 0, shape, NULL, 1);

  gtorch_storage_unref (storage);
  return x;
}

static void
lose_the_gpu (void)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_FLOAT32, gpu, &error));
  g_autoptr (GTorchImpl) bad = nowhere ();
  g_autoptr (GError) error = NULL;
  guint i;

  g_signal_connect (gpu, "error", G_CALLBACK (on_error), NULL);
  for (i = 0; i < ROUNDS; i++)
    g_assert_nonnull (gtorch_tensor_relu (x, NULL));
  gtorch_op_mul_inplace (bad, bad, NULL); /* this is the failing operation */
  for (i = 0; i < ROUNDS; i++)
    gtorch_tensor_exp (x, NULL);
  g_assert_false (gtorch_device_synchronize (gpu, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
  g_printerr ("%s\n", error->message);
  g_assert_nonnull (strstr (error->message, "cuda:0 has failed"));
  if (g_strcmp0 (g_getenv ("GTORCH_CHECK"), "errors") == 0)
    g_assert_nonnull (strstr (error->message, ", in mul (work "));
  else
    g_assert_nonnull (strstr (error->message, "GTORCH_CHECK=errors"));

  for (i = 0; i < 1000; i++)
    {
      g_autoptr (GError) again = NULL;

      g_assert_null (gtorch_tensor_relu (x, &again));
      g_assert_error (again, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
      g_assert_true (g_str_has_suffix (again->message, error->message));
    }
  g_assert_cmpuint (n_signals, ==, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (n_signals, ==, 1);
  _exit (0);
}

static void
check_in_process (const gchar *check)
{
  if (g_test_subprocess ())
    lose_the_gpu ();
  g_setenv ("GTORCH_CHECK", check, TRUE);
  g_test_trap_subprocess (NULL, 60 * G_USEC_PER_SEC, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_test_trap_assert_passed ();
}

static void
a_lost_gpu_is_reported_once_and_for_all (void)
{
  check_in_process ("");
}

static void
error_checks_name_the_operation (void)
{
  check_in_process ("errors");
}

#define TEST(name) g_test_add_func ("/GTorchGpuFailure/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  if (is_under_sanitizer ())
    {
      g_print ("1..0 # SKIP its faults are on purpose\n");
      return 0;
    }
  TEST (a_lost_gpu_is_reported_once_and_for_all);
  TEST (error_checks_name_the_operation);
  return g_test_run ();
}
