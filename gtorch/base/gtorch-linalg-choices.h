/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchQrMode:
 * @GTORCH_QR_MODE_REDUCED: Q has as many columns as the matrix has rows or columns, whichever are fewer
 * @GTORCH_QR_MODE_COMPLETE: Q is square
 * @GTORCH_QR_MODE_R: Q is empty, only R is computed
 *
 * How much of a QR factorization is computed.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_QR_MODE_REDUCED,
  GTORCH_QR_MODE_COMPLETE,
  GTORCH_QR_MODE_R,
} GTorchQrMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_qr_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_QR_MODE (gtorch_qr_mode_get_type ())

/**
 * GTorchCdistMode:
 * @GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST_IF_NECESSARY: by a product of matrices for more than 25 rows
 * @GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST: always by a product of matrices
 * @GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST: always by the differences
 *
 * How Euclidean distances of rows are computed. A product of matrices is faster and less exact.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST_IF_NECESSARY,
  GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST,
  GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST,
} GTorchCdistMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_cdist_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_CDIST_MODE (gtorch_cdist_mode_get_type ())

/**
 * GTorchUplo:
 * @GTORCH_UPLO_L: the lower one
 * @GTORCH_UPLO_U: the upper one
 *
 * Which triangle of a Hermitian matrix is read.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_UPLO_L,
  GTORCH_UPLO_U,
} GTorchUplo;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_uplo_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_UPLO (gtorch_uplo_get_type ())

/**
 * GTorchSvdDriver:
 * @GTORCH_SVD_DRIVER_AUTOMATIC: the one that the library chooses
 * @GTORCH_SVD_DRIVER_GESVD: QR iterations; only on GPUs
 * @GTORCH_SVD_DRIVER_GESVDJ: Jacobi rotations; not supported
 * @GTORCH_SVD_DRIVER_GESVDA: an approximation for tall matrices; not supported
 *
 * The algorithm for singular values.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_SVD_DRIVER_AUTOMATIC,
  GTORCH_SVD_DRIVER_GESVD,
  GTORCH_SVD_DRIVER_GESVDJ,
  GTORCH_SVD_DRIVER_GESVDA,
} GTorchSvdDriver;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_svd_driver_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_SVD_DRIVER (gtorch_svd_driver_get_type ())

/**
 * GTorchLstsqDriver:
 * @GTORCH_LSTSQ_DRIVER_AUTOMATIC: gelsy on the CPU, gels on GPUs
 * @GTORCH_LSTSQ_DRIVER_GELS: a QR factorization, for matrices of full rank
 * @GTORCH_LSTSQ_DRIVER_GELSY: for any rank, without singular values in the result
 * @GTORCH_LSTSQ_DRIVER_GELSD: for any rank, with singular values
 * @GTORCH_LSTSQ_DRIVER_GELSS: as gelsd
 *
 * The algorithm for least squares.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_LSTSQ_DRIVER_AUTOMATIC,
  GTORCH_LSTSQ_DRIVER_GELS,
  GTORCH_LSTSQ_DRIVER_GELSY,
  GTORCH_LSTSQ_DRIVER_GELSD,
  GTORCH_LSTSQ_DRIVER_GELSS,
} GTorchLstsqDriver;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_lstsq_driver_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_LSTSQ_DRIVER (gtorch_lstsq_driver_get_type ())

G_END_DECLS
