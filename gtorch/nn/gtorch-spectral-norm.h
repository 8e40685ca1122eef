/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SPECTRAL_NORM (gtorch_spectral_norm_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSpectralNorm, gtorch_spectral_norm, GTORCH, SPECTRAL_NORM, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchSpectralNorm *gtorch_spectral_norm_new (GTorchTensor *weight, gint64 n_power_iterations,
                                              gint64 dim, gdouble eps,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_parametrize_spectral_norm (GTorchModule *self, const gchar *name,
                                                  gint64 n_power_iterations, gdouble eps,
                                                  gint64 dim, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_apply_spectral_norm (GTorchModule *self, const gchar *name,
                                            gint64 n_power_iterations, gdouble eps, gint64 dim,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_spectral_norm (GTorchModule *self, const gchar *name, GError **error);

G_END_DECLS
