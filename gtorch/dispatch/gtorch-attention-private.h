/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Returns whether the mask can be broadcast to the product of q and k, whose leading dimensions are
 * equal. */
gboolean gtorch_attention_mask_fits (const GTorchImpl *mask, const GTorchImpl *q,
                                     const GTorchImpl *k);

/* The answers of a device to the query of attention. The leading dimensions of the operands are equal except
 * for the number of heads. */
enum
{
  GTORCH_ATTENTION_FITS, /* whether the device supports this, with the gradient if that is wanted */
  GTORCH_ATTENTION_BIAS, /* the dtype of the bias that the mask must be converted to, or NONE */
  GTORCH_ATTENTION_N_ANSWERS,
};

G_END_DECLS
