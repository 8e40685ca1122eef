/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchDebugLevel:
 * @GTORCH_DEBUG_LEVEL_OFF: nothing is logged; where it is set, nothing is compared
 * @GTORCH_DEBUG_LEVEL_INFO: groups and the numbers of their calls are logged
 * @GTORCH_DEBUG_LEVEL_DETAIL: the same, and the ranks of a group compare their calls before they begin
 *
 * How closely the operations of groups of processes are watched.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_DEBUG_LEVEL_OFF,
  GTORCH_DEBUG_LEVEL_INFO,
  GTORCH_DEBUG_LEVEL_DETAIL,
} GTorchDebugLevel;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_debug_level_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_DEBUG_LEVEL (gtorch_debug_level_get_type ())

GTORCH_AVAILABLE_IN_0_1
GTorchDebugLevel gtorch_distributed_get_debug_level (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_set_debug_level (GTorchDebugLevel level, GError **error);

GTORCH_AVAILABLE_IN_0_1
void gtorch_distributed_begin_operation (const gchar *name);
GTORCH_AVAILABLE_IN_0_1
void gtorch_distributed_end_operation (void);

G_END_DECLS
