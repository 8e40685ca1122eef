/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the processes of a test of groups have: a group, numbers that follow from ranks, and checks. */

#include <math.h>

#include "cuda-test.h"

#define N 100

static GTorchStore *store;
static GTorchProcessGroup *group;
static gint rank, size;

static void
make_group (gdouble timeout)
{
  g_autoptr (GError) error = NULL;

  group = gtorch_process_group_new ("nccl", store, rank, size, timeout, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (gtorch_process_group_get_backend (group), ==, "nccl");
  g_assert_cmpint (gtorch_process_group_get_rank (group), ==, rank);
}

/* first, first + 1, … modulo 7, on the GPU */
static GTorchTensor *
numbers (gint64 n, GTorchDType dtype, gint64 first)
{
  g_autofree gint64 *values = g_new (gint64, MAX (n, 1));
  g_autoptr (GTorchTensor) tensor = NULL, cast = NULL;
  g_autoptr (GError) error = NULL;
  GTorchTensor *result;
  gint64 i;

  for (i = 0; i < n; i++)
    values[i] = (first + i) % 7;
  tensor = gtorch_tensor_new_from_ints (values, n, &n, 1, GTORCH_DTYPE_INT64, NULL, &error);
  g_assert_no_error (error);
  cast = gtorch_tensor_to_dtype (tensor, dtype, &error);
  g_assert_no_error (error);
  result = gtorch_tensor_to_device (cast, gpu (0), FALSE, &error);
  g_assert_no_error (error);
  return result;
}

static gdouble
number (gint64 i, gint64 first)
{
  return (first + i) % 7;
}

static gdouble *
values_of (GTorchTensor *tensor)
{
  g_autoptr (GTorchTensor) wide = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) host =
      gtorch_tensor_to_device (tensor, gtorch_device_cpu (), FALSE, &error);
  gdouble *values;
  gsize n;

  g_assert_no_error (error);
  wide = gtorch_tensor_to_dtype (host, GTORCH_DTYPE_FLOAT64, &error);
  g_assert_no_error (error);
  values = gtorch_tensor_to_doubles (wide, &n, &error);
  g_assert_no_error (error);
  return values;
}

static void
assert_done (GTorchWork *work, GError **error)
{
  g_autoptr (GTorchWork) owned = work;
  g_autoptr (GError) local = NULL;

  g_assert_no_error (error != NULL ? *error : NULL);
  g_assert_nonnull (work);
  g_assert_true (gtorch_work_wait (work, -1, NULL, &local));
  g_assert_no_error (local);
}

static void
assert_same (GTorchTensor *tensor, gint64 n, gint64 first)
{
  g_autofree gdouble *values = values_of (tensor);
  gint64 i;

  g_assert_cmpint (gtorch_tensor_get_numel (tensor), ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, number (i, first));
}
