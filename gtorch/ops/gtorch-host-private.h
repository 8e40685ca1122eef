/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-cast-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Must be called before the host reads elements: waits for the writers, on any stream. */
gboolean gtorch_impl_wait (const gchar *op, GTorchImpl *impl, GError **error);
/* Returns the tensor itself if the host can read it, otherwise a copy; new reference. Waits for the
 * writers. */
GTorchImpl *gtorch_impl_to_host (const gchar *op, GTorchImpl *impl, GError **error);
/* Reads on the host whether an element is negative or, unless allow_nan, NaN. The host waits for the result,
 * as in all checks of values; the check is not recorded. Returns FALSE with an error that says so of the
 * tensor that `what` names, an argument or words that are marked by N_ (). */
gboolean gtorch_impl_check_not_negative (const gchar *op, const gchar *what, GTorchImpl *impl,
                                         gboolean allow_nan, GError **error);
/* Copies elements on the CPU, and converts them to the dtype of dst, which has the shape of src. */
void gtorch_host_copy (GTorchImpl *dst, GTorchImpl *src);
/* Converts all elements, in C order, to a buffer of numel elements of dtype. */
void gtorch_impl_read (GTorchImpl *host, guint dtype, gpointer buffer);

G_END_DECLS
