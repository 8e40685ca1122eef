/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchSampleKind:
 * @GTORCH_SAMPLE_NONE: nothing
 * @GTORCH_SAMPLE_TENSOR: a tensor
 * @GTORCH_SAMPLE_TUPLE: several samples in order
 * @GTORCH_SAMPLE_DICT: several samples in order, each with a key of its own
 * @GTORCH_SAMPLE_INT: an integer of 64 bits
 * @GTORCH_SAMPLE_DOUBLE: a number of type double
 * @GTORCH_SAMPLE_BOOL: a boolean
 * @GTORCH_SAMPLE_STRING: a text
 * @GTORCH_SAMPLE_BYTES: bytes
 * @GTORCH_SAMPLE_VALUE: a value of another kind, of a language or of a program
 *
 * The kinds of samples.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_SAMPLE_NONE,
  GTORCH_SAMPLE_TENSOR,
  GTORCH_SAMPLE_TUPLE,
  GTORCH_SAMPLE_DICT,
  GTORCH_SAMPLE_INT,
  GTORCH_SAMPLE_DOUBLE,
  GTORCH_SAMPLE_BOOL,
  GTORCH_SAMPLE_STRING,
  GTORCH_SAMPLE_BYTES,
  GTORCH_SAMPLE_VALUE,
} GTorchSampleKind;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_sample_kind_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_SAMPLE_KIND (gtorch_sample_kind_get_type ())

typedef struct _GTorchSample GTorchSample;

#define GTORCH_TYPE_SAMPLE (gtorch_sample_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_sample_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_ref (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_sample_unref (GTorchSample *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchSample, gtorch_sample_unref)

GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_none (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_tensor (GTorchTensor *tensor) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_tuple (GTorchSample **children, gsize n_children,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_dict (const gchar *const *keys, GTorchSample **children,
                                      gsize n_children, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_int (gint64 value) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_double (gdouble value) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_bool (gboolean value) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_string (const gchar *value) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_bytes (GBytes *value) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_new_value (const GValue *value) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchSampleKind gtorch_sample_get_kind (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_sample_get_tensor (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_sample_get_int (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_sample_get_double (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sample_get_bool (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_sample_get_string (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_sample_get_bytes (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
const GValue *gtorch_sample_get_value (GTorchSample *self);

GTORCH_AVAILABLE_IN_0_1
guint gtorch_sample_get_n_children (GTorchSample *self);
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_get_child (GTorchSample *self, gint64 index, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchSample *gtorch_sample_lookup (GTorchSample *self, const gchar *key);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_sample_get_keys (GTorchSample *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_sample_to_string (GTorchSample *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
