/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Can the mask be broadcast to the products of the rows of q and k, which have equal leading dimensions? */
gboolean gtorch_attention_mask_fits (const GTorchImpl *mask, const GTorchImpl *q,
                                     const GTorchImpl *k);

/* Does cuDNN know how to do this? The leading dimensions are equal but for the heads. */
gboolean gtorch_cuda_attention_has (GTorchImpl *q, GTorchImpl *k, GTorchImpl *v, GTorchImpl *mask,
                                    gboolean is_causal, gdouble dropout_p, gboolean with_gradient);
/* What a mask must be made of for that. */
guint gtorch_cuda_attention_mask_dtype (const GTorchImpl *mask, const GTorchImpl *q);

G_END_DECLS
