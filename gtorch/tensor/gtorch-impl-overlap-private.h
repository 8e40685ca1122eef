/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* Returns TRUE if no two of them overlap; FALSE also if one has no memory. */
gboolean gtorch_impl_are_apart (GTorchImpl *const *impls, guint n);

G_END_DECLS
