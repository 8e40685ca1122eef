/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-conv-transpose.h"

#include "elements/gtorch-tensor-create.h"
#include "nn/gtorch-layer-private.h"

/**
 * GTorchConvTranspose:
 *
 * A transposed convolution, of which several sizes of the output are possible.
 *
 * A convolution with a stride makes outputs of one size of inputs of several sizes. Its transpose therefore
 * makes the least of these, or the one that the output padding or
 * [method@ConvTranspose.forward_size] chooses. Such a size goes through hooks as a second input, a tensor of
 * integers.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchConvTranspose, gtorch_conv_transpose, GTORCH_TYPE_MODULE)

static GTorchTensor *
transpose (GTorchModule *module, GTorchTensor *input, GTorchTensor *output_size, GError **error)
{
  GTorchTransposeFunc func;

  if (!gtorch_layer_is (module, GTORCH_TYPE_CONV_TRANSPOSE, error))
    return NULL;
  func = (GTorchTransposeFunc) GTORCH_CONV_TRANSPOSE_GET_CLASS (module)->transpose;
  return func != NULL ? func (GTORCH_CONV_TRANSPOSE (module), input, output_size, error) : NULL;
}

static GTorchTensor *
gtorch_conv_transpose_real_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return transpose (module, input, NULL, error);
}

static GTorchTensor *
gtorch_conv_transpose_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                    GError **error)
{
  if (n_inputs == 2)
    return transpose (module, inputs[0], inputs[1], error);
  return GTORCH_MODULE_CLASS (gtorch_conv_transpose_parent_class)
      ->forward_many (module, inputs, n_inputs, error);
}

static void
gtorch_conv_transpose_class_init (GTorchConvTransposeClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_conv_transpose_real_forward;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_conv_transpose_forward_many;
}

static void
gtorch_conv_transpose_init (GTorchConvTranspose *self)
{
}

/**
 * gtorch_conv_transpose_forward_size:
 * @self: a transposed convolution
 * @input: the input
 * @output_size: (array length=n_output_size) (nullable): the size of the output: its length, or height and
 *   width, or depth, height and width; possibly after those of the batch and the channels, which do not count
 * @n_output_size: the length of @output_size; 0 does the same as [method@Module.forward]
 * @error: return location for an error
 *
 * Computes the output of that size, instead of that which the output padding would make.
 *
 * In each dimension, as many sizes are possible as the stride is long.
 *
 * ```c
 * const gint64 size[] = { 8, 8 };
 * g_autoptr (GTorchTensor) y = gtorch_conv_transpose_forward_size (layer, x, size, 2, &error);
 * ```
 *
 * Returns: (transfer full): the output, or %NULL with @error set: %GTORCH_ERROR_INVALID if the size is
 *   impossible, or the error of the operation
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_conv_transpose_forward_size (GTorchConvTranspose *self, GTorchTensor *input,
                                    const gint64 *output_size, gsize n_output_size, GError **error)
{
  g_autoptr (GTorchTensor) size = NULL;
  GTorchTensor *inputs[] = { input, NULL };
  const gint64 length = (gint64) n_output_size;

  g_return_val_if_fail (GTORCH_IS_CONV_TRANSPOSE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (output_size != NULL || n_output_size == 0, NULL);

  if (n_output_size == 0)
    return gtorch_module_call (GTORCH_MODULE (self), inputs, 1, error);
  inputs[1] = size = gtorch_tensor_new_from_ints (output_size, n_output_size, &length, 1,
                                                  GTORCH_DTYPE_INT64, NULL, error);
  if (size == NULL)
    return NULL;
  return gtorch_module_call (GTORCH_MODULE (self), inputs, 2, error);
}
