/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Can the mask be broadcast to the products of the rows of q and k, which have equal leading dimensions? */
gboolean gtorch_attention_mask_fits (const GTorchImpl *mask, const GTorchImpl *q,
                                     const GTorchImpl *k);

/* Does cuDNN know how to do this, without a mask? The leading dimensions are equal. */
gboolean gtorch_cuda_attention_has (GTorchImpl *q, GTorchImpl *k, GTorchImpl *v, gboolean is_causal,
                                    gboolean with_gradient);

G_END_DECLS
