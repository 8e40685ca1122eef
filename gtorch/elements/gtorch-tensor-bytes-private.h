/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/ops/gtorch-host-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Takes impl, which is on the CPU, and returns it on the device; NULL for NULL. */
GTorchImpl *gtorch_impl_move (GTorchImpl *impl, GTorchDevice *device, GError **error);
/* Returns a tensor of the part [start, start + length) of bytes, which the shape must fill exactly;
 * copies it if it is misaligned. */
GTorchImpl *gtorch_impl_new_from_bytes (const gchar *op, GBytes *bytes, gsize start, gsize length,
                                        gboolean is_read_only, guint dtype, const gint64 *shape,
                                        guint n_dims, GError **error);

/* Checks the dtype and the shape of a tensor that is to be made, and gives the number of its elements. */
gboolean gtorch_tensor_check_target (const gchar *op, gint64 dtype, const gint64 *shape,
                                     gsize n_dims, gint64 *numel, GError **error);

G_END_DECLS
