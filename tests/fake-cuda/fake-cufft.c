/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for cuFFT, which needs a GPU: it keeps plans and records calls, but reports transforms as
 * unsupported, or (if set) pretends to compute them. */

#include "fake-cufft.h"

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define INVALID_PLAN  1
#define ALLOC_FAILED  2
#define NOT_SUPPORTED 16
#define MAX_PLANS     1024

EXPORT FakeCufft fake_cufft = { .work_size = 1000 };

static struct
{
  enum
  {
    FREE,
    MADE,
    PLANNED
  } state;
  FakeCufftPlan plan;
} plans[MAX_PLANS];

static int
is_valid (int handle)
{
  if (handle >= 0 && handle < MAX_PLANS && plans[handle].state != FREE)
    return 1;
  fake_cufft.n_misuses++;
  return 0;
}

EXPORT int
cufftGetVersion (int *version)
{
  *version = 12000;
  return 0;
}

EXPORT int
cufftCreate (int *handle)
{
  int i;

  for (i = 0; i < MAX_PLANS; i++)
    if (plans[i].state == FREE)
      {
        plans[i].plan = (FakeCufftPlan){ .is_automatic = 1 };
        plans[i].state = MADE;
        fake_cufft.n_present++;
        *handle = i;
        return 0;
      }
  return ALLOC_FAILED;
}

EXPORT int
cufftDestroy (int handle)
{
  if (!is_valid (handle))
    return INVALID_PLAN;
  plans[handle].state = FREE;
  fake_cufft.n_present--;
  return 0;
}

EXPORT int
cufftSetAutoAllocation (int handle, int automatic)
{
  if (!is_valid (handle))
    return INVALID_PLAN;
  plans[handle].plan.is_automatic = automatic;
  return 0;
}

EXPORT int
cufftXtMakePlanMany (int handle, int rank, long long *n, long long *in_embed, long long in_stride,
                     long long in_distance, int in_type, long long *out_embed, long long out_stride,
                     long long out_distance, int out_type, long long batch, size_t *work_size,
                     int execution_type)
{
  FakeCufftPlan *plan;
  int i;

  if (!is_valid (handle))
    return INVALID_PLAN;
  if (fake_cufft.plan_status != 0)
    return fake_cufft.plan_status;
  /* cuFFT would ignore the strides without embed sizes; the compute type must be complex */
  if (rank < 1 || rank > 3 || in_embed == NULL || out_embed == NULL || execution_type < 4
      || plans[handle].state != MADE)
    fake_cufft.n_misuses++;
  plan = &plans[handle].plan;
  plan->rank = rank;
  for (i = 0; i < rank && i < 3; i++)
    plan->n[i] = n[i];
  plan->in_stride = in_stride;
  plan->in_distance = in_distance;
  plan->in_type = in_type;
  plan->out_stride = out_stride;
  plan->out_distance = out_distance;
  plan->out_type = out_type;
  plan->batch = batch;
  plans[handle].state = PLANNED;
  fake_cufft.n_plans++;
  *work_size = fake_cufft.work_size;
  return 0;
}

EXPORT int
cufftSetStream (int handle, void *stream)
{
  if (!is_valid (handle))
    return INVALID_PLAN;
  plans[handle].plan.stream = stream;
  return 0;
}

EXPORT int
cufftSetWorkArea (int handle, void *area)
{
  if (!is_valid (handle))
    return INVALID_PLAN;
  plans[handle].plan.work_area = area;
  return 0;
}

EXPORT int
cufftXtExec (int handle, void *in, void *out, int direction)
{
  if (!is_valid (handle))
    return INVALID_PLAN;
  if (plans[handle].state != PLANNED || in == NULL || out == NULL)
    fake_cufft.n_misuses++;
  fake_cufft.n_executions++;
  fake_cufft.last = plans[handle].plan;
  fake_cufft.in = in;
  fake_cufft.out = out;
  fake_cufft.direction = direction;
  return fake_cufft.works ? 0 : NOT_SUPPORTED;
}
