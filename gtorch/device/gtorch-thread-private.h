/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-dtype-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/base/gtorch-internal-private.h>

G_BEGIN_DECLS

typedef struct _GTorchChange GTorchChange;
typedef struct _GTorchHolds GTorchHolds;

/* The dtypes that mixed precision casts to, by device type. */
typedef union
{
  guint8 dtypes[GTORCH_N_DEVICE_TYPES]; /* GTORCH_DTYPE_NONE: off */
  guint32 any;                          /* 0: off everywhere */
} GTorchAutocastDTypes;

G_STATIC_ASSERT (GTORCH_N_DEVICE_TYPES <= sizeof (guint32));

/* Why operations of a thread are not recorded. */
typedef enum
{
  GTORCH_NO_GRAD = 1 << 0,
  GTORCH_INFERENCE = 1 << 1, /* what they make are inference tensors */
} GTorchNoGrad;

/* The settings of a thread; gtorch-choice-private.h has the functions that change them temporarily. */
typedef struct
{
  GTorchStream *streams[GTORCH_MAX_DEVICES]; /* owned; NULL: the default stream of the device */
  struct _GTorchPool
      *pools[GTORCH_MAX_DEVICES]; /* owned; pools for new storages; NULL: the allocator */
  GTorchDevice *current[GTORCH_N_DEVICE_TYPES]; /* by type; NULL: the first device */
  GTorchDevice *device;         /* the device made current last; NULL: the default device */
  GTorchDevice *default_device; /* device of new tensors; NULL: that of the process */
  GTorchAutocastDTypes autocast;
  guint8 autocast_is_lean; /* casts of parameters are not cached */
  /* 0, or GTorchNoGrad: nothing is recorded */
  guint8 no_grad;
  guint8 no_forward;      /* tangents are not looked at, and results get none */
  guint n_regions;        /* number of autocast regions that the program has begun */
  GTorchChange *changes;  /* the youngest change */
  GTorchHolds *holds;     /* tensors in use, NULL before the first one (gtorch-hold-private.h) */
  GTorchTimeline *worker; /* the queue whose work this thread executes, or NULL */
  guint8 must_finish;     /* the result of a call is read as soon as it returns */
  guint8 is_apart;        /* calls are internal to the library: checks of captures ignore them */
  guint8 keeps_errors; /* errors of queues are not consumed but left for a later call to report */
  guint n_captured;    /* number of random calls that this thread has captured */
  struct _GTorchSavedHooks *saved_hooks; /* owned; they pack what is saved for backward passes */
  const GTorchOpClass *calling; /* the composite operation that the program called, or NULL */
} GTorchThread;

extern __thread GTorchThread gtorch_thread GTORCH_INTERNAL;

static inline gboolean
gtorch_is_inference (void)
{
  return (gtorch_thread.no_grad & GTORCH_INFERENCE) != 0;
}

G_END_DECLS
