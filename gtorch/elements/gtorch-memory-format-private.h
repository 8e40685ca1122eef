/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/elements/gtorch-memory-format.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* The number of dimensions that tensors of the format have; 0 for any, -1 for what is no format. */
gint gtorch_memory_format_n_dims (GTorchMemoryFormat format);
/* The tensor in that order, itself if it is in it; the number of dimensions fits. */
GTorchImpl *gtorch_impl_to_memory_format (GTorchImpl *impl, GTorchMemoryFormat format,
                                          GError **error);

G_END_DECLS
