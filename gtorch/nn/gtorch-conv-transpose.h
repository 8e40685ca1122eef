/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CONV_TRANSPOSE (gtorch_conv_transpose_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchConvTranspose, gtorch_conv_transpose, GTORCH, CONV_TRANSPOSE,
                          GTorchModule)

/**
 * GTorchConvTransposeClass:
 * @parent_class: the parent class
 *
 * The class of transposed convolutions, which are derived from in the library only.
 *
 * Since: 0.1
 */
struct _GTorchConvTransposeClass
{
  GTorchModuleClass parent_class;

  /*< private >*/
  gpointer transpose; /* with the signature of GTorchTransposeFunc */
};

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_conv_transpose_forward_size (GTorchConvTranspose *self, GTorchTensor *input,
                                                  const gint64 *output_size, gsize n_output_size,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
