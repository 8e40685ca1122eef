/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchCyclicMode:
 * @GTORCH_CYCLIC_MODE_TRIANGULAR: all cycles have the same height
 * @GTORCH_CYCLIC_MODE_TRIANGULAR2: each is half as high as the one before
 * @GTORCH_CYCLIC_MODE_EXP_RANGE: the height decays with every epoch
 *
 * How the height of the cycles of a #GTorchCyclicLR changes.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_CYCLIC_MODE_TRIANGULAR,
  GTORCH_CYCLIC_MODE_TRIANGULAR2,
  GTORCH_CYCLIC_MODE_EXP_RANGE,
} GTorchCyclicMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_cyclic_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_CYCLIC_MODE (gtorch_cyclic_mode_get_type ())

/**
 * GTorchScaleMode:
 * @GTORCH_SCALE_MODE_CYCLE: the number of the cycle, from 1
 * @GTORCH_SCALE_MODE_ITERATIONS: the number of the epoch, from 0
 *
 * What the scale function of a #GTorchCyclicLR is called with.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_SCALE_MODE_CYCLE,
  GTORCH_SCALE_MODE_ITERATIONS,
} GTorchScaleMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_scale_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_SCALE_MODE (gtorch_scale_mode_get_type ())

/**
 * GTorchAnnealStrategy:
 * @GTORCH_ANNEAL_STRATEGY_COS: half a cosine
 * @GTORCH_ANNEAL_STRATEGY_LINEAR: a line
 *
 * Along what a schedule goes from one learning rate to another.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_ANNEAL_STRATEGY_COS,
  GTORCH_ANNEAL_STRATEGY_LINEAR,
} GTorchAnnealStrategy;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_anneal_strategy_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_ANNEAL_STRATEGY (gtorch_anneal_strategy_get_type ())

/**
 * GTorchPlateauMode:
 * @GTORCH_PLATEAU_MODE_MIN: a smaller metric
 * @GTORCH_PLATEAU_MODE_MAX: a greater metric
 *
 * What is better for a #GTorchReduceLROnPlateau.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PLATEAU_MODE_MIN,
  GTORCH_PLATEAU_MODE_MAX,
} GTorchPlateauMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plateau_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_PLATEAU_MODE (gtorch_plateau_mode_get_type ())

/**
 * GTorchThresholdMode:
 * @GTORCH_THRESHOLD_MODE_REL: the ratio to the best metric
 * @GTORCH_THRESHOLD_MODE_ABS: the difference from the best metric
 *
 * What the threshold of a #GTorchReduceLROnPlateau is compared with.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_THRESHOLD_MODE_REL,
  GTORCH_THRESHOLD_MODE_ABS,
} GTorchThresholdMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_threshold_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_THRESHOLD_MODE (gtorch_threshold_mode_get_type ())

G_END_DECLS
