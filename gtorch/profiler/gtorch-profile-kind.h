/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchProfileKind:
 * @GTORCH_PROFILE_KIND_NONE: no single event: a sum of all
 * @GTORCH_PROFILE_KIND_OPERATION: an operation, a function of the program's, or a collective
 * @GTORCH_PROFILE_KIND_RANGE: a range that the program has named
 * @GTORCH_PROFILE_KIND_STEP: a step of the profiler's schedule
 * @GTORCH_PROFILE_KIND_BACKWARD: a node of a backward pass
 * @GTORCH_PROFILE_KIND_MODULE: a call of a module
 * @GTORCH_PROFILE_KIND_TRANSFER: what a library such as MPI does for a collective
 * @GTORCH_PROFILE_KIND_REPLAY: the replay of a graph
 * @GTORCH_PROFILE_KIND_MEMORY: memory that was taken or given back outside of all events
 * @GTORCH_PROFILE_KIND_DRIVER: a call of the driver
 * @GTORCH_PROFILE_KIND_KERNEL: a kernel
 * @GTORCH_PROFILE_KIND_COPY: a copy by a device
 * @GTORCH_PROFILE_KIND_FILL: memory that a device fills
 *
 * What an event of a profile is.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PROFILE_KIND_NONE,
  GTORCH_PROFILE_KIND_OPERATION,
  GTORCH_PROFILE_KIND_RANGE,
  GTORCH_PROFILE_KIND_STEP,
  GTORCH_PROFILE_KIND_BACKWARD,
  GTORCH_PROFILE_KIND_MODULE,
  GTORCH_PROFILE_KIND_TRANSFER,
  GTORCH_PROFILE_KIND_REPLAY,
  GTORCH_PROFILE_KIND_MEMORY,
  GTORCH_PROFILE_KIND_DRIVER,
  GTORCH_PROFILE_KIND_KERNEL,
  GTORCH_PROFILE_KIND_COPY,
  GTORCH_PROFILE_KIND_FILL,
} GTorchProfileKind;

#define GTORCH_TYPE_PROFILE_KIND (gtorch_profile_kind_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_profile_kind_get_type (void) G_GNUC_CONST;

G_END_DECLS
