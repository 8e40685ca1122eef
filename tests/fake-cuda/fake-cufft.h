/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <stddef.h>

typedef struct
{
  int rank;
  long long n[3];
  long long in_stride, in_distance, out_stride, out_distance, batch;
  int in_type, out_type; /* cudaDataType */
  int is_automatic;      /* allocates its own work area */
  void *stream, *work_area;
} FakeCufftPlan;

/* The settings of the test, and the calls of cuFFT. */
typedef struct
{
  int works;        /* set by the test: cufftXtExec succeeds without computing */
  int plan_status;  /* set by the test: the result of cufftXtMakePlanMany */
  size_t work_size; /* set by the test: the work size of plans */
  unsigned n_plans; /* created so far */
  unsigned n_present;
  unsigned n_executions;
  unsigned n_misuses;
  FakeCufftPlan last; /* the last executed plan */
  void *in, *out;
  int direction;
} FakeCufft;

extern FakeCufft fake_cufft;
