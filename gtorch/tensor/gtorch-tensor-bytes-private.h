/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Before the host reads elements: waits for what writes them, on whatever stream. */
gboolean gtorch_impl_wait (const gchar *op, GTorchImpl *impl, GError **error);
/* The tensor itself if the host can read it, else a copy; new reference. Waits for what writes to it. */
GTorchImpl *gtorch_impl_to_host (const gchar *op, GTorchImpl *impl, GError **error);
/* Converts all elements, in C order, into a buffer of numel elements of dtype. */
void gtorch_impl_read (GTorchImpl *host, guint dtype, gpointer buffer);
/* Takes impl, which lies on the CPU, and gives it on the device; NULL for NULL. */
GTorchImpl *gtorch_impl_move (GTorchImpl *impl, GTorchDevice *device, GError **error);
/* The part [start, start + length) of bytes, which the shape must fill exactly; copied if not aligned. */
GTorchImpl *gtorch_impl_new_from_bytes (const gchar *op, GBytes *bytes, gsize start, gsize length,
                                        gboolean is_read_only, guint dtype, const gint64 *shape,
                                        guint n_dims, GError **error);

G_END_DECLS
