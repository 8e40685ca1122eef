/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Must be called before the host reads elements: waits for the writers, on any stream. */
gboolean gtorch_impl_wait (const gchar *op, GTorchImpl *impl, GError **error);
/* Returns the tensor itself if the host can read it, otherwise a copy; new reference. Waits for the
 * writers. */
GTorchImpl *gtorch_impl_to_host (const gchar *op, GTorchImpl *impl, GError **error);
/* Converts all elements, in C order, to a buffer of numel elements of dtype. */
void gtorch_impl_read (GTorchImpl *host, guint dtype, gpointer buffer);
/* Takes impl, which is on the CPU, and returns it on the device; NULL for NULL. */
GTorchImpl *gtorch_impl_move (GTorchImpl *impl, GTorchDevice *device, GError **error);
/* Returns a tensor of the part [start, start + length) of bytes, which the shape must fill exactly;
 * copies it if it is misaligned. */
GTorchImpl *gtorch_impl_new_from_bytes (const gchar *op, GBytes *bytes, gsize start, gsize length,
                                        gboolean is_read_only, guint dtype, const gint64 *shape,
                                        guint n_dims, GError **error);

G_END_DECLS
