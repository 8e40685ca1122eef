/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Releasing a tensor while a call uses it: in a handler inside the call, or in another thread. */

#include "config.h"

#include <string.h>

#include "tensor/gtorch-hold-private.h"
#include "test-device.h"

#define N 20000

static GTorchTensor *
ones (gint64 n)
{
  return gtorch_ones (GTORCH_SHAPE (n), GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static void
a_held_tensor_keeps_its_storage (void)
{
  g_autoptr (GTorchTensor) x = ones (N);
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) error = NULL;
  GTorchImpl *impl = gtorch_tensor_unwrap (x);
  GTorchStorage *storage = impl->storage;
  guint outer = gtorch_hold (&impl, 1), inner;

  inner = gtorch_hold (&impl, 1);
  gtorch_tensor_release (x);
  g_assert_true (gtorch_tensor_is_released (x));
  g_assert_true (impl->storage == storage);
  gtorch_tensor_release (x); /* the second call does nothing */
  gtorch_unhold (inner);
  g_assert_true (impl->storage == storage);
  sum = gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_null (sum);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  gtorch_unhold (outer);
  g_assert_null (impl->storage);
  g_assert_true (gtorch_tensor_get_device (x) == gtorch_device_get_default ());
}

static void
too_many_holds_hold_everything (void)
{
  GTorchImpl *impls[GTORCH_HOLDS_MAX + 3];
  g_autoptr (GTorchTensor) x = ones (N);
  g_autoptr (GTorchTensor) other = ones (N);
  guint hold, i;

  for (i = 0; i < G_N_ELEMENTS (impls); i++)
    impls[i] = gtorch_tensor_unwrap (x);
  hold = gtorch_hold (impls, G_N_ELEMENTS (impls));
  gtorch_tensor_release (x);
  gtorch_tensor_release (other);
  g_assert_nonnull (gtorch_tensor_unwrap (x)->storage);
  g_assert_nonnull (gtorch_tensor_unwrap (other)->storage);
  gtorch_unhold (hold);
  g_assert_null (gtorch_tensor_unwrap (x)->storage);
  g_assert_null (gtorch_tensor_unwrap (other)->storage);
}

static void
another_tensor_is_released_at_once (void)
{
  g_autoptr (GTorchTensor) x = ones (N);
  g_autoptr (GTorchTensor) other = ones (N);
  GTorchImpl *impl = gtorch_tensor_unwrap (x);
  guint hold = gtorch_hold (&impl, 1);

  gtorch_tensor_release (other);
  g_assert_null (gtorch_tensor_unwrap (other)->storage);
  gtorch_unhold (hold);
  g_assert_nonnull (impl->storage);
}

/* --- two threads --- */

typedef GTorchTensor *(*Call) (GTorchTensor *x, GError **error);

static GTorchTensor *
call_add (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_add (x, x, 1, error);
}

static GTorchTensor *
call_add_inplace (GTorchTensor *x, GError **error)
{
  GTorchTensor *result = gtorch_tensor_mul_scalar_inplace (x, 1, error);

  return result != NULL ? g_object_ref (result) : NULL;
}

static GTorchTensor *
call_sum (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
}

static GTorchTensor *
call_view (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) part = gtorch_tensor_slice (x, 0, 1, N - 1, 2, error);

  return part != NULL ? gtorch_tensor_clone (part, error) : NULL;
}

static GTorchTensor *
call_product (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) row = gtorch_tensor_reshape (x, GTORCH_SHAPE (1, N), error);
  g_autoptr (GTorchTensor) column =
      row != NULL ? gtorch_tensor_reshape (x, GTORCH_SHAPE (N, 1), error) : NULL;

  return column != NULL ? gtorch_tensor_matmul (row, column, error) : NULL;
}

static GTorchTensor *
call_cat (GTorchTensor *x, GError **error)
{
  GTorchTensor *many[GTORCH_HOLDS_MAX + 1];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = x;
  return gtorch_cat (many, i, 0, error);
}

static GTorchTensor *
call_unique (GTorchTensor *x, GError **error)
{
  GTorchTensor *result = NULL;

  gtorch_tensor_unique (x, &result, NULL, NULL, error);
  return result;
}

static GTorchTensor *
call_bytes (GTorchTensor *x, GError **error)
{
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (x, error);
  const gfloat *values = bytes != NULL ? g_bytes_get_data (bytes, NULL) : NULL;

  if (bytes == NULL)
    return NULL;
  g_assert_cmpfloat (values[0], ==, 1);
  g_assert_cmpfloat (values[N - 1], ==, 1);
  return g_object_ref (x);
}

static GTorchTensor *
call_text (GTorchTensor *x, GError **error)
{
  g_autofree gchar *text = gtorch_tensor_to_string (x);

  if (strstr (text, "released") == NULL)
    return g_object_ref (x);
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED, "");
  return NULL;
}

static GTorchTensor *
call_dlpack (GTorchTensor *x, GError **error)
{
  gpointer managed;

  if (test_device () != gtorch_device_cpu ()) /* memory of a device cannot be freed early */
    return gtorch_tensor_clone (x, error);
  managed = gtorch_tensor_to_dlpack (x, TRUE, FALSE, NULL, error);
  return managed != NULL ? gtorch_tensor_new_from_dlpack (managed, TRUE, error) : NULL;
}

static GTorchTensor *
call_backward (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) leaf = gtorch_tensor_detach (x, error);
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  if (leaf == NULL || !gtorch_tensor_set_requires_grad (leaf, TRUE, error)
      || !(square = gtorch_tensor_mul (leaf, x, error))
      || !(loss = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error))
      || !gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error))
    return NULL;
  return gtorch_tensor_get_grad (leaf);
}

static const Call calls[] = { call_add,     call_add_inplace, call_sum,     call_view,
                              call_product, call_cat,         call_unique,  call_bytes,
                              call_text,    call_dlpack,      call_backward };

typedef struct
{
  Call call;
  GTorchTensor *x;
  gint is_running; /* accessed atomically */
  guint n_done;
} Shared;

static gpointer
use_until_released (gpointer data)
{
  Shared *shared = data;

  for (;;)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) result = shared->call (shared->x, &error);

      g_atomic_int_set (&shared->is_running, TRUE);
      if (result == NULL)
        {
          /* the fake driver lacks some kernels */
          if (!g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
            g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
          return NULL;
        }
      shared->n_done++;
    }
}

static void
a_tensor_can_be_released_in_another_thread (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  const guint rounds = test_often (40);
  guint round, i, k, n_done = 0;

  for (round = 0; round < rounds; round++)
    for (i = 0; i < G_N_ELEMENTS (calls); i++)
      {
        g_autoptr (GTorchTensor) x = ones (N);
        Shared shared = { calls[i], x, FALSE, 0 };
        GThread *thread = g_thread_new ("user", use_until_released, &shared);
        const guint wait = g_rand_int_range (rand, 0, 2000);

        while (!g_atomic_int_get (&shared.is_running))
          g_thread_yield ();
        for (k = 0; k < wait; k++)
          __asm__ volatile("" ::: "memory");
        gtorch_tensor_release (x);
        g_thread_join (thread);
        g_assert_null (gtorch_tensor_unwrap (x)->storage);
        n_done += shared.n_done;
      }
  g_assert_cmpuint (n_done, >, rounds);
}

/* --- values that change during a call --- */

#if !defined(__SANITIZE_THREAD__)
typedef struct
{
  gint64 *values;
  gint stop; /* accessed atomically */
} Writer;

static gpointer
write_values (gpointer data)
{
  Writer *writer = data;
  guint i, round;

  for (round = 0; !g_atomic_int_get (&writer->stop); round++)
    for (i = 0; i < N; i++)
      __atomic_store_n (&writer->values[i],
                        round % 2        ? (gint64) i
                        : round % 4 == 0 ? 0
                                         : 7,
                        __ATOMIC_RELAXED);
  return NULL;
}

static void
a_writing_thread_corrupts_no_memory (void)
{
  g_autoptr (GTorchTensor) x =
      gtorch_zeros (GTORCH_SHAPE (N), GTORCH_DTYPE_INT64, gtorch_device_cpu (), NULL);
  Writer writer = { gtorch_impl_data (gtorch_tensor_unwrap (x)), FALSE };
  GThread *thread = g_thread_new ("writer", write_values, &writer);
  const guint rounds = test_often (60);
  guint round;

  for (round = 0; round < rounds; round++)
    {
      g_autoptr (GTorchTensor) values = NULL, inverse = NULL, counts = NULL;
      g_autoptr (GTorchTensor) found = gtorch_tensor_nonzero (x, NULL);
      g_autoptr (GTorchTensor) bins = gtorch_tensor_bincount (x, NULL, 0, NULL);
      g_autoptr (GTorchTensor) into =
          gtorch_zeros (GTORCH_SHAPE (N / 2), GTORCH_DTYPE_INT64, gtorch_device_cpu (), NULL);
      g_autoptr (GTorchTensor) written = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_true (gtorch_tensor_unique (x, &values, &inverse, &counts, &error));
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_numel (values), ==, gtorch_tensor_get_numel (counts));
      written = gtorch_tensor_scatter (into, 0, x, x, &error);
      if (written == NULL)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      g_clear_error (&error);
      g_clear_object (&written);
      written = gtorch_tensor_index_select (into, 0, x, &error);
      if (written == NULL)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
    }
  g_atomic_int_set (&writer.stop, TRUE);
  g_thread_join (thread);
}
#endif

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/hold/a_held_tensor_keeps_its_storage", a_held_tensor_keeps_its_storage);
  g_test_add_func ("/GTorch/hold/too_many_holds_hold_everything", too_many_holds_hold_everything);
  g_test_add_func ("/GTorch/hold/another_tensor_is_released_at_once",
                   another_tensor_is_released_at_once);
  g_test_add_func ("/GTorch/hold/a_tensor_can_be_released_in_another_thread",
                   a_tensor_can_be_released_in_another_thread);
#if !defined(__SANITIZE_THREAD__)
  g_test_add_func ("/GTorch/hold/a_writing_thread_corrupts_no_memory",
                   a_writing_thread_corrupts_no_memory);
#endif
  return g_test_run ();
}
