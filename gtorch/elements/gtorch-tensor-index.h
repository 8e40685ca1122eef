/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchIndexKind:
 * @GTORCH_INDEX_INT: one index of a dimension, which is removed; the second number is the index
 * @GTORCH_INDEX_SLICE: a range; the numbers are start, stop and step
 * @GTORCH_INDEX_ELLIPSIS: all dimensions without other items
 * @GTORCH_INDEX_NEW_AXIS: a new dimension of size 1
 * @GTORCH_INDEX_TENSOR: an index tensor; the second number is its position in the list of tensors
 * @GTORCH_INDEX_BOOL: a boolean: a new dimension of size 1 (true) or 0; the second number is the value
 *
 * The kinds of items of an index. Each item is four integers: the kind and up to three numbers. See
 * [method@Tensor.index].
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_INDEX_INT,
  GTORCH_INDEX_SLICE,
  GTORCH_INDEX_ELLIPSIS,
  GTORCH_INDEX_NEW_AXIS,
  GTORCH_INDEX_TENSOR,
  GTORCH_INDEX_BOOL,
} GTorchIndexKind;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_index_kind_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_INDEX_KIND (gtorch_index_kind_get_type ())

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_index (GTorchTensor *self, const gint64 *items, gsize n_items,
                                   GTorchTensor **tensors, gsize n_tensors, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_index_put_inplace (GTorchTensor *self, const gint64 *items,
                                               gsize n_items, GTorchTensor **tensors,
                                               gsize n_tensors, GTorchTensor *value,
                                               gboolean accumulate, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_get (GTorchTensor *self, const gchar *spec, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_set (GTorchTensor *self, const gchar *spec, GTorchTensor *value,
                                 GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_set_scalar (GTorchTensor *self, const gchar *spec, gdouble value,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_set_int (GTorchTensor *self, const gchar *spec, gint64 value,
                                     GError **error);

G_END_DECLS
