/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/**
 * GTorchOrthogonalMap:
 * @GTORCH_ORTHOGONAL_MAP_AUTOMATIC: the exponential of square and of complex matrices, reflectors for others
 * @GTORCH_ORTHOGONAL_MAP_MATRIX_EXP: the exponential of a skew-symmetric matrix
 * @GTORCH_ORTHOGONAL_MAP_CAYLEY: the Cayley map of a skew-symmetric matrix, which needs no exponential
 * @GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER: a product of Householder reflectors
 *
 * How [class@Orthogonal] makes an orthogonal matrix of any matrix.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_ORTHOGONAL_MAP_AUTOMATIC,
  GTORCH_ORTHOGONAL_MAP_MATRIX_EXP,
  GTORCH_ORTHOGONAL_MAP_CAYLEY,
  GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER,
} GTorchOrthogonalMap;

#define GTORCH_TYPE_ORTHOGONAL_MAP (gtorch_orthogonal_map_get_type ())
#define GTORCH_TYPE_ORTHOGONAL     (gtorch_orthogonal_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_orthogonal_map_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchOrthogonal, gtorch_orthogonal, GTORCH, ORTHOGONAL, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchOrthogonal *gtorch_orthogonal_new (GTorchOrthogonalMap orthogonal_map,
                                         gboolean use_trivialization,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_parametrize_orthogonal (GTorchModule *self, const gchar *name,
                                               GTorchOrthogonalMap orthogonal_map,
                                               gboolean use_trivialization, GError **error);

G_END_DECLS
