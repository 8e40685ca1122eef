/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Shared helpers of the tests of the CUDA device on the fake driver. */

#include <gtorch/gtorch.h>
#include <string.h>

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/elements/gtorch-tensor-bytes-private.h>
#include <tests/fake-cuda/fake-cuda.h>

#include "gtorch-ops-private.h"

/* Calls the driver and checks the result. */
#define CALL(call, expected) g_assert_cmpint (gtorch_cuda.call, ==, expected)
#define OK(call)             CALL (call, CUDA_SUCCESS)

static inline GTorchDevice *
gpu (guint index)
{
  GError *error = NULL;
  GTorchDevice *device = gtorch_device_cuda (index, &error);

  g_assert_no_error (error);
  return device;
}

static inline GTorchAllocator *
gpu_allocator (void)
{
  return gtorch_device_get_allocator (gpu (0));
}

static inline gint64
gpu_stat (guint index, const gchar *key)
{
  GError *error = NULL;
  guint64 value =
      gtorch_allocator_get_stat (gtorch_device_get_allocator (gpu (index)), key, &error);

  g_assert_no_error (error);
  return value;
}

#define MIB ((gint64) 1 << 20)

/* Returns a tensor in memory of the first GPU. */
static inline GTorchImpl *
bytes (gint64 n_bytes)
{
  GError *error = NULL;
  GTorchImpl *result = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error);

  g_assert_no_error (error);
  return result;
}

/* Returns the numbers 0, 1, 2, … on the device. */
static inline GTorchImpl *
ramp (GTorchDevice *device, guint dtype, const gint64 *shape, guint n_dims)
{
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, shape, n_dims, NULL);
  g_autoptr (GTorchImpl) cast = NULL;
  GError *error = NULL;
  GTorchImpl *result;
  gint64 i;

  for (i = 0; i < host->numel; i++)
    ((gint64 *) gtorch_impl_data (host))[i] = i;
  cast = gtorch_op_to_dtype (host, dtype, &error);
  g_assert_no_error (error);
  result = gtorch_op_to_device (cast, device, FALSE, &error);
  g_assert_no_error (error);
  return result;
}

static inline GTorchImpl *
ramp_1d (GTorchDevice *device, guint dtype, gint64 n)
{
  return ramp (device, dtype, &n, 1);
}

/* Returns the elements in C order; free them. */
static inline gdouble *
read_doubles (GTorchImpl *impl)
{
  GError *error = NULL;
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host ("read", impl, &error);
  gdouble *values = g_new (gdouble, MAX (impl->numel, 1));

  g_assert_no_error (error);
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, values);
  return values;
}

static inline void
assert_no_misuse (void)
{
  FakeCudaAccounts accounts;

  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.misuses, ==, 0);
}
