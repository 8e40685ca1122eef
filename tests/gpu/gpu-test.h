/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared helpers of the tests on a real GPU. */

#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>

#include <tests/sanitizer.h>

static GTorchDevice *gpu;

/* Returns FALSE and skips the whole program if there is no GPU or no kernels. */
static inline gboolean
find_gpu (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL;

  gpu = gtorch_device_cuda (0, &error);
  if (gpu != NULL)
    x = gtorch_full (GTORCH_SHAPE (5), 2, GTORCH_DTYPE_FLOAT32, gpu, &error);
  if (x != NULL)
    return TRUE;
  g_print ("1..0 # SKIP %s\n", error->message);
  return FALSE;
}

/* Under memcheck each tensor is returned to the driver at once. */
static inline gboolean
memory_is_cached (void)
{
  return g_getenv ("GTORCH_NO_MEMORY_CACHING") == NULL;
}

static inline GTorchTensor *
must (GTorchTensor *tensor, GError *error)
{
  g_assert_no_error (error);
  g_assert_nonnull (tensor);
  return tensor;
}

/* Evaluates the call, which uses `error`, and checks for success. */
#define TRY(call)                   \
  ({                                \
    GError *error = NULL;           \
    GTorchTensor *result_ = (call); \
                                    \
    must (result_, error);          \
  })

static inline GTorchTensor *
on (GTorchTensor *x, GTorchDevice *device)
{
  return TRY (gtorch_tensor_to_device (x, device, FALSE, &error));
}

static inline GTorchTensor *
as (GTorchTensor *x, GTorchDType dtype)
{
  return TRY (gtorch_tensor_to_dtype (x, dtype, &error));
}

/* Compares every element of x, on the GPU, with `expected`, float64 on the CPU. */
static inline void
agree (const gchar *what, GTorchTensor *x, GTorchTensor *expected, gdouble tolerance)
{
  g_autoptr (GTorchTensor) wide = as (x, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) host = on (wide, gtorch_device_cpu ());
  gsize n, m, i;
  g_autofree gdouble *a = gtorch_tensor_to_doubles (host, &n, NULL);
  g_autofree gdouble *b = gtorch_tensor_to_doubles (expected, &m, NULL);

  g_assert_cmpuint (n, ==, m);
  for (i = 0; i < n; i++)
    if (a[i] != b[i] && !(fabs (a[i] - b[i]) <= tolerance * (1 + fabs (b[i])))
        && !(isnan (a[i]) && isnan (b[i])))
      g_error ("%s: element %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " is %.9g, expected %.9g",
               what, i, n, a[i], b[i]);
}

/* Compares their gradients in the same way. */
static inline void
agree_in_gradients (const gchar *what, GTorchTensor *x, GTorchTensor *expected, gdouble tolerance)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (x);
  g_autoptr (GTorchTensor) expected_grad = gtorch_tensor_get_grad (expected);

  agree (what, grad, expected_grad, tolerance);
}

/* Under compute-sanitizer each size is tested with only one of the dtypes. */
static inline gboolean
is_one_too_many (guint dtype, guint n_dtypes, guint size)
{
  return is_under_sanitizer () && size % n_dtypes != dtype;
}

static inline gdouble
tolerance_of (GTorchDType dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return 1e-12;
    case GTORCH_DTYPE_FLOAT32:
      return 2e-5;
    case GTORCH_DTYPE_FLOAT16:
      return 4e-3;
    default:
      return 2e-2;
    }
}
