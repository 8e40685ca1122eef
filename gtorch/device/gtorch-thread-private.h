/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-dtype-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

typedef struct _GTorchChange GTorchChange;
typedef struct _GTorchHolds GTorchHolds;

/* Mixed precision: what to cast to on which type of device. */
typedef union
{
  guint8 dtypes[GTORCH_N_DEVICE_TYPES]; /* GTORCH_DTYPE_NONE: off */
  guint32 any;                          /* 0: off everywhere */
} GTorchAutocastDTypes;

G_STATIC_ASSERT (GTORCH_N_DEVICE_TYPES <= sizeof (guint32));

/* What a thread has chosen; gtorch-choice-private.h has the means to choose for a while. */
typedef struct
{
  GTorchStream *streams[GTORCH_MAX_DEVICES]; /* owned; NULL: the default one of the device */
  struct _GTorchPool
      *pools[GTORCH_MAX_DEVICES]; /* owned; where storages come from; NULL: the allocator */
  GTorchDevice *current[GTORCH_N_DEVICE_TYPES]; /* of each type; NULL: the first */
  GTorchDevice *device;         /* that was made current last; NULL: the default one */
  GTorchDevice *default_device; /* of new tensors; NULL: that of the process */
  GTorchAutocastDTypes autocast;
  guint8 autocast_is_lean; /* casts of parameters are not kept */
  guint8 no_grad;
  guint n_regions;        /* of mixed precision that the program has begun */
  GTorchChange *changes;  /* the last one */
  GTorchHolds *holds;     /* tensors in use, NULL before the first (gtorch-hold-private.h) */
  GTorchTimeline *worker; /* the queue that this thread works for */
  gboolean must_finish;   /* what is called now is read as soon as it returns */
  gboolean is_apart;      /* what is called now is the library's own affair, captured or not */
  gboolean keeps_errors;  /* it only looks: errors that it meets stay for whoever can report them */
  const GTorchOpClass *calling; /* a composite that the program called, NULL if none */
} GTorchThread;

extern __thread GTorchThread gtorch_thread G_GNUC_INTERNAL;

G_END_DECLS
