/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The binary interface of DLPack 1.x, with which libraries in one process exchange tensors. The old form
 * has no version and no flags, and another order of members. */

#define GTORCH_DLPACK_MAJOR 1
#define GTORCH_DLPACK_MINOR 1

enum
{
  GTORCH_DL_CPU = 1,
  GTORCH_DL_CUDA = 2,
  GTORCH_DL_CUDA_HOST = 3,
  GTORCH_DL_CUDA_MANAGED = 13,
  GTORCH_DL_LAST_DEVICE = 18, /* the last type of device in use */
};

enum
{
  GTORCH_DL_READ_ONLY = 1 << 0,
  GTORCH_DL_IS_COPIED = 1 << 1,
};

typedef struct
{
  gint32 device_type;
  gint32 device_id;
} GTorchDLDevice;

typedef struct
{
  guint8 code;
  guint8 bits;
  guint16 lanes;
} GTorchDLDataType;

typedef struct
{
  gpointer data;
  GTorchDLDevice device;
  gint32 n_dims;
  GTorchDLDataType dtype;
  gint64 *shape;
  gint64 *strides; /* in elements; NULL for contiguous */
  guint64 byte_offset;
} GTorchDLTensor;

typedef struct _GTorchDLManaged GTorchDLManaged;
struct _GTorchDLManaged
{
  GTorchDLTensor tensor;
  gpointer context;
  void (*deleter) (GTorchDLManaged *self);
};

typedef struct _GTorchDLManagedVersioned GTorchDLManagedVersioned;
struct _GTorchDLManagedVersioned
{
  guint32 major;
  guint32 minor;
  gpointer context;
  void (*deleter) (GTorchDLManagedVersioned *self);
  guint64 flags;
  GTorchDLTensor tensor;
};

G_STATIC_ASSERT (sizeof (GTorchDLTensor) == 48);
G_STATIC_ASSERT (G_STRUCT_OFFSET (GTorchDLManagedVersioned, tensor) == 32);

G_END_DECLS
