/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-choices.h>
#include <gtorch/base/gtorch-sampling.h>
#include <gtorch/base/gtorch-linalg-choices.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchReduction:
 * @GTORCH_REDUCTION_NONE: one loss for each element
 * @GTORCH_REDUCTION_MEAN: their mean
 * @GTORCH_REDUCTION_SUM: their sum
 * @GTORCH_REDUCTION_BATCHMEAN: their sum over the size of the first dimension, for the Kullback-Leibler
 *   divergence only
 *
 * What a loss function makes of the losses of the elements.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_REDUCTION_NONE,
  GTORCH_REDUCTION_MEAN,
  GTORCH_REDUCTION_SUM,
  GTORCH_REDUCTION_BATCHMEAN,
} GTorchReduction;

/**
 * GTorchIndexReduction:
 * @GTORCH_INDEX_REDUCTION_SUM: their sum
 * @GTORCH_INDEX_REDUCTION_PROD: their product
 * @GTORCH_INDEX_REDUCTION_MEAN: their mean; of integers, rounded down
 * @GTORCH_INDEX_REDUCTION_AMAX: the greatest; NaN if there is one
 * @GTORCH_INDEX_REDUCTION_AMIN: the smallest; NaN if there is one
 *
 * What becomes of the elements for which indices name the same place.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_INDEX_REDUCTION_SUM,
  GTORCH_INDEX_REDUCTION_PROD,
  GTORCH_INDEX_REDUCTION_MEAN,
  GTORCH_INDEX_REDUCTION_AMAX,
  GTORCH_INDEX_REDUCTION_AMIN,
} GTorchIndexReduction;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_index_reduction_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_INDEX_REDUCTION (gtorch_index_reduction_get_type ())

/**
 * GTorchPrecision:
 * @GTORCH_PRECISION_IEEE: as the dtype says: products of float32 have 24 bits
 * @GTORCH_PRECISION_TF32: factors of float32 are rounded to 11 bits, 10 of them stored, where that makes
 *   the device faster; sums stay float32
 * @GTORCH_PRECISION_BF16: factors of float32 may be rounded to 8 bits, 7 of them stored, where that makes the
 *   device faster than TF32; sums stay float32
 *
 * How exactly a device may multiply float32 elements. It may always be more exact.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PRECISION_IEEE,
  GTORCH_PRECISION_TF32,
  GTORCH_PRECISION_BF16,
} GTorchPrecision;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_precision_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_PRECISION (gtorch_precision_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_reduction_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_REDUCTION (gtorch_reduction_get_type ())

/**
 * GTorchFFTNorm:
 * @GTORCH_FFT_NORM_BACKWARD: transforms back are divided by the number of elements
 * @GTORCH_FFT_NORM_ORTHO: all are divided by its square root
 * @GTORCH_FFT_NORM_FORWARD: transforms forth are divided by it
 *
 * What the result of a Fourier transform is divided by.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_FFT_NORM_BACKWARD,
  GTORCH_FFT_NORM_ORTHO,
  GTORCH_FFT_NORM_FORWARD,
} GTorchFFTNorm;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_fft_norm_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_FFT_NORM (gtorch_fft_norm_get_type ())

G_END_DECLS
