/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-sampler.h>

G_BEGIN_DECLS

/* Returns a random order of the numbers below n; op is named in errors. */
gint64 *gtorch_draw_permutation (const gchar *op, gint64 n, GTorchGenerator *generator,
                                 GError **error);
/* Returns a number from the generator, NULL for the CPU's default one. */
guint64 gtorch_draw_seed (GTorchGenerator *generator);
/* Returns seed number n of those that follow from a seed. */
guint64 gtorch_derive_seed (guint64 seed, guint64 n);

G_END_DECLS
