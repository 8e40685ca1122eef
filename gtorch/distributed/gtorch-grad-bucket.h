/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_GRAD_BUCKET (gtorch_grad_bucket_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGradBucket, gtorch_grad_bucket, GTORCH, GRAD_BUCKET, GObject)

GTORCH_AVAILABLE_IN_0_1
guint gtorch_grad_bucket_get_index (GTorchGradBucket *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_bucket_is_last (GTorchGradBucket *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_grad_bucket_get_group (GTorchGradBucket *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_grad_bucket_get_buffer (GTorchGradBucket *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_bucket_set_buffer (GTorchGradBucket *self, GTorchTensor *buffer,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_grad_bucket_get_parameters (GTorchGradBucket *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_grad_bucket_get_gradients (GTorchGradBucket *self,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_grad_bucket_average (GTorchGradBucket *self, GTorchDType dtype,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
