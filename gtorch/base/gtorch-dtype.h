/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchDType:
 * @GTORCH_DTYPE_NONE: unspecified: the default of the function it is given to
 * @GTORCH_DTYPE_FLOAT32: IEEE binary32
 * @GTORCH_DTYPE_FLOAT64: IEEE binary64
 * @GTORCH_DTYPE_FLOAT16: IEEE binary16
 * @GTORCH_DTYPE_BFLOAT16: the upper half of a binary32
 * @GTORCH_DTYPE_INT8: signed, 8 bits
 * @GTORCH_DTYPE_UINT8: unsigned, 8 bits
 * @GTORCH_DTYPE_INT16: signed, 16 bits
 * @GTORCH_DTYPE_INT32: signed, 32 bits
 * @GTORCH_DTYPE_INT64: signed, 64 bits
 * @GTORCH_DTYPE_BOOL: one byte, 0 or 1
 * @GTORCH_DTYPE_COMPLEX64: two binary32: real and imaginary part
 * @GTORCH_DTYPE_COMPLEX128: two binary64: real and imaginary part
 *
 * The type of the elements of a tensor.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_DTYPE_NONE,
  GTORCH_DTYPE_FLOAT32,
  GTORCH_DTYPE_FLOAT64,
  GTORCH_DTYPE_FLOAT16,
  GTORCH_DTYPE_BFLOAT16,
  GTORCH_DTYPE_INT8,
  GTORCH_DTYPE_UINT8,
  GTORCH_DTYPE_INT16,
  GTORCH_DTYPE_INT32,
  GTORCH_DTYPE_INT64,
  GTORCH_DTYPE_BOOL,
  GTORCH_DTYPE_COMPLEX64,
  GTORCH_DTYPE_COMPLEX128,
} GTorchDType;

#define GTORCH_TYPE_DTYPE (gtorch_dtype_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_dtype_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_dtype_get_name (GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_dtype_from_name (const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_dtype_get_size (GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_dtype_is_floating_point (GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_dtype_is_complex (GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_dtype_is_signed (GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_dtype_promote (GTorchDType first, GTorchDType second);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_get_default_dtype (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_set_default_dtype (GTorchDType dtype, GError **error);

G_END_DECLS
