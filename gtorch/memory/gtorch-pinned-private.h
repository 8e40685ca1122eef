/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* --- pinned memory (cuda/gtorch-host-allocator.c) --- */
gboolean gtorch_storage_is_pinned (const GTorchStorage *storage);
/* Contiguous and uninitialised; fails beyond the limit. */
GTorchImpl *gtorch_impl_new_pinned (guint dtype, const gint64 *shape, guint n_dims, GError **error);

G_END_DECLS
