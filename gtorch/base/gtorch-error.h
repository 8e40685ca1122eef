/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_ERROR (gtorch_error_quark ())

/**
 * GTorchError:
 * @GTORCH_ERROR_FAILED: something failed that has no code of its own
 * @GTORCH_ERROR_SHAPE: shapes do not fit the operation or each other
 * @GTORCH_ERROR_DTYPE: the operation is not defined for this dtype
 * @GTORCH_ERROR_DEVICE: no such device, or the device cannot do it
 * @GTORCH_ERROR_DEVICE_MISMATCH: the tensors live on different devices
 * @GTORCH_ERROR_INDEX: an index or dimension is out of range
 * @GTORCH_ERROR_INVALID: an argument has a value that the operation forbids
 * @GTORCH_ERROR_OUT_OF_MEMORY: the memory could not be had
 * @GTORCH_ERROR_RELEASED: the tensor's memory was given back with release()
 * @GTORCH_ERROR_AUTOGRAD: the gradient cannot be computed
 * @GTORCH_ERROR_CAPTURE: the operation is not possible while a graph captures
 * @GTORCH_ERROR_NOT_SUPPORTED: valid, but this build or device lacks it
 * @GTORCH_ERROR_NOT_FOUND: a name or key does not exist
 * @GTORCH_ERROR_FORMAT: a file, a buffer or a foreign structure is malformed
 * @GTORCH_ERROR_CUDA: the CUDA driver or one of its libraries reported an error
 * @GTORCH_ERROR_FORKED: CUDA was used, or the stream made, before fork(), and cannot be used in the child
 * @GTORCH_ERROR_DEVICE_LOST: work on the device went wrong in a way that only a new process can mend
 *
 * What went wrong, by what the caller can do about it. The message of the error
 * names the operation, the offending values and the rule.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_ERROR_FAILED,
  GTORCH_ERROR_SHAPE,
  GTORCH_ERROR_DTYPE,
  GTORCH_ERROR_DEVICE,
  GTORCH_ERROR_DEVICE_MISMATCH,
  GTORCH_ERROR_INDEX,
  GTORCH_ERROR_INVALID,
  GTORCH_ERROR_OUT_OF_MEMORY,
  GTORCH_ERROR_RELEASED,
  GTORCH_ERROR_AUTOGRAD,
  GTORCH_ERROR_CAPTURE,
  GTORCH_ERROR_NOT_SUPPORTED,
  GTORCH_ERROR_NOT_FOUND,
  GTORCH_ERROR_FORMAT,
  GTORCH_ERROR_CUDA,
  GTORCH_ERROR_FORKED,
  GTORCH_ERROR_DEVICE_LOST,
} GTorchError;

GTORCH_AVAILABLE_IN_0_1
GQuark gtorch_error_quark (void);
GTORCH_AVAILABLE_IN_0_1
GType gtorch_error_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_ERROR (gtorch_error_get_type ())

G_END_DECLS
