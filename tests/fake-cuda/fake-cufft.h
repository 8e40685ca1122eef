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
  int is_automatic;      /* has memory of its own */
  void *stream, *work_area;
} FakeCufftPlan;

/* What cuFFT was asked for. */
typedef struct
{
  int works;        /* set it: cufftXtExec does nothing but succeed */
  int plan_status;  /* set it: what cufftXtMakePlanMany gives */
  size_t work_size; /* set it: that plans ask for */
  unsigned n_plans; /* made so far */
  unsigned n_present;
  unsigned n_executions;
  unsigned n_misuses;
  FakeCufftPlan last; /* that was executed */
  void *in, *out;
  int direction;
} FakeCufft;

extern FakeCufft fake_cufft;
