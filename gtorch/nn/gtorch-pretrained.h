/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-layers.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchEmbedding *gtorch_embedding_new_from_pretrained (GTorchTensor *embeddings, gboolean freeze,
                                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchEmbeddingBag *
gtorch_embedding_bag_new_from_pretrained (GTorchTensor *embeddings, gboolean freeze,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
