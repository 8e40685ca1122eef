/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-dtype.h>
#include <gtorch/base/gtorch-error.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TENSOR (gtorch_tensor_get_type ())

/* Same as G_DECLARE_FINAL_TYPE(), except for the function that g_autoptr() calls. */
GTORCH_AVAILABLE_IN_0_1
GType gtorch_tensor_get_type (void);

typedef struct
{
  GObjectClass parent_class;
} GTorchTensorClass;

static inline GTorchTensor *G_GNUC_UNUSED
GTORCH_TENSOR (gpointer instance)
{
  return G_TYPE_CHECK_INSTANCE_CAST (instance, GTORCH_TYPE_TENSOR, GTorchTensor);
}

static inline gboolean G_GNUC_UNUSED
GTORCH_IS_TENSOR (gpointer instance)
{
  return G_TYPE_CHECK_INSTANCE_TYPE (instance, GTORCH_TYPE_TENSOR);
}

GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_unref (GTorchTensor *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchTensor, gtorch_tensor_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchTensorClass, g_type_class_unref)

GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_tensor_get_dtype (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_tensor_get_device (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_tensor_get_device_index (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_record_stream (GTorchTensor *self, GTorchStream *stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_tensor_get_n_dims (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
const gint64 *gtorch_tensor_get_shape (GTorchTensor *self, gsize *n_dims);
GTORCH_AVAILABLE_IN_0_1
const gint64 *gtorch_tensor_get_strides (GTorchTensor *self, gsize *n_dims);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tensor_get_size (GTorchTensor *self, gint dim, GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tensor_get_numel (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tensor_get_storage_offset (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_tensor_get_version (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_inference (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_contiguous (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_released (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_shares_storage (GTorchTensor *self, GTorchTensor *other);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_pinned (GTorchTensor *self);

G_END_DECLS
