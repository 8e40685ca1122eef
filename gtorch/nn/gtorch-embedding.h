/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_EMBEDDING (gtorch_embedding_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchEmbedding, gtorch_embedding, GTORCH, EMBEDDING, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchEmbedding *gtorch_embedding_new (gint64 num_embeddings, gint64 embedding_dim,
                                       gint64 padding_idx,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
