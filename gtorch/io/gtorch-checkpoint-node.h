/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchCheckpointKind:
 * @GTORCH_CHECKPOINT_KIND_NONE: None
 * @GTORCH_CHECKPOINT_KIND_BOOL: True or False
 * @GTORCH_CHECKPOINT_KIND_INT: an integer of 64 bits
 * @GTORCH_CHECKPOINT_KIND_LONG: an integer of more bits
 * @GTORCH_CHECKPOINT_KIND_DOUBLE: a decimal number
 * @GTORCH_CHECKPOINT_KIND_COMPLEX: a complex number
 * @GTORCH_CHECKPOINT_KIND_STRING: a text
 * @GTORCH_CHECKPOINT_KIND_BYTES: bytes
 * @GTORCH_CHECKPOINT_KIND_TENSOR: a tensor
 * @GTORCH_CHECKPOINT_KIND_PARAMETER: a parameter
 * @GTORCH_CHECKPOINT_KIND_LIST: a list
 * @GTORCH_CHECKPOINT_KIND_TUPLE: a tuple
 * @GTORCH_CHECKPOINT_KIND_DICT: a dictionary
 * @GTORCH_CHECKPOINT_KIND_ORDERED_DICT: a dictionary of the class `OrderedDict`
 * @GTORCH_CHECKPOINT_KIND_COUNTER: a dictionary of the class `Counter`
 * @GTORCH_CHECKPOINT_KIND_SET: a set
 * @GTORCH_CHECKPOINT_KIND_FROZENSET: a set that cannot be changed
 * @GTORCH_CHECKPOINT_KIND_SIZE: a shape
 * @GTORCH_CHECKPOINT_KIND_DTYPE: a dtype
 * @GTORCH_CHECKPOINT_KIND_DEVICE: the name of a device
 *
 * What a value of a checkpoint is.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_CHECKPOINT_KIND_NONE,
  GTORCH_CHECKPOINT_KIND_BOOL,
  GTORCH_CHECKPOINT_KIND_INT,
  GTORCH_CHECKPOINT_KIND_LONG,
  GTORCH_CHECKPOINT_KIND_DOUBLE,
  GTORCH_CHECKPOINT_KIND_COMPLEX,
  GTORCH_CHECKPOINT_KIND_STRING,
  GTORCH_CHECKPOINT_KIND_BYTES,
  GTORCH_CHECKPOINT_KIND_TENSOR,
  GTORCH_CHECKPOINT_KIND_PARAMETER,
  GTORCH_CHECKPOINT_KIND_LIST,
  GTORCH_CHECKPOINT_KIND_TUPLE,
  GTORCH_CHECKPOINT_KIND_DICT,
  GTORCH_CHECKPOINT_KIND_ORDERED_DICT,
  GTORCH_CHECKPOINT_KIND_COUNTER,
  GTORCH_CHECKPOINT_KIND_SET,
  GTORCH_CHECKPOINT_KIND_FROZENSET,
  GTORCH_CHECKPOINT_KIND_SIZE,
  GTORCH_CHECKPOINT_KIND_DTYPE,
  GTORCH_CHECKPOINT_KIND_DEVICE,
} GTorchCheckpointKind;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_checkpoint_kind_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_CHECKPOINT_KIND (gtorch_checkpoint_kind_get_type ())

#define GTORCH_TYPE_CHECKPOINT_NODE (gtorch_checkpoint_node_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCheckpointNode, gtorch_checkpoint_node, GTORCH, CHECKPOINT_NODE,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointKind gtorch_checkpoint_node_get_kind (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_node_get_index (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_node_get_length (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_node_get_child (GTorchCheckpointNode *self,
                                                        guint place) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_node_get_key (GTorchCheckpointNode *self,
                                                      guint place) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_node_lookup (GTorchCheckpointNode *self, const gchar *key,
                                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *
gtorch_checkpoint_node_get_attributes (GTorchCheckpointNode *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_checkpoint_node_get_tensor (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_node_get_storage_index (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_checkpoint_node_get_int (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_checkpoint_node_get_double (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_checkpoint_node_get_imaginary (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_checkpoint_node_get_text (GTorchCheckpointNode *self);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_checkpoint_node_get_bytes (GTorchCheckpointNode *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_checkpoint_node_get_dtype (GTorchCheckpointNode *self);

G_END_DECLS
