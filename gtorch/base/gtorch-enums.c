/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-enums.h"

GType
gtorch_precision_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PRECISION_IEEE, "GTORCH_PRECISION_IEEE", "ieee" },
        { GTORCH_PRECISION_TF32, "GTORCH_PRECISION_TF32", "tf32" },
        { GTORCH_PRECISION_BF16, "GTORCH_PRECISION_BF16", "bf16" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchPrecision", values));
    }
  return type;
}

GType
gtorch_reduction_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_REDUCTION_NONE, "GTORCH_REDUCTION_NONE", "none" },
        { GTORCH_REDUCTION_MEAN, "GTORCH_REDUCTION_MEAN", "mean" },
        { GTORCH_REDUCTION_SUM, "GTORCH_REDUCTION_SUM", "sum" },
        { GTORCH_REDUCTION_BATCHMEAN, "GTORCH_REDUCTION_BATCHMEAN", "batchmean" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchReduction", values));
    }
  return type;
}

GType
gtorch_index_reduction_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_INDEX_REDUCTION_SUM, "GTORCH_INDEX_REDUCTION_SUM", "sum" },
        { GTORCH_INDEX_REDUCTION_PROD, "GTORCH_INDEX_REDUCTION_PROD", "prod" },
        { GTORCH_INDEX_REDUCTION_MEAN, "GTORCH_INDEX_REDUCTION_MEAN", "mean" },
        { GTORCH_INDEX_REDUCTION_AMAX, "GTORCH_INDEX_REDUCTION_AMAX", "amax" },
        { GTORCH_INDEX_REDUCTION_AMIN, "GTORCH_INDEX_REDUCTION_AMIN", "amin" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchIndexReduction", values));
    }
  return type;
}

GType
gtorch_fft_norm_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_FFT_NORM_BACKWARD, "GTORCH_FFT_NORM_BACKWARD", "backward" },
        { GTORCH_FFT_NORM_ORTHO, "GTORCH_FFT_NORM_ORTHO", "ortho" },
        { GTORCH_FFT_NORM_FORWARD, "GTORCH_FFT_NORM_FORWARD", "forward" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchFFTNorm", values));
    }
  return type;
}

GType
gtorch_pad_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PAD_MODE_CONSTANT, "GTORCH_PAD_MODE_CONSTANT", "constant" },
        { GTORCH_PAD_MODE_REFLECT, "GTORCH_PAD_MODE_REFLECT", "reflect" },
        { GTORCH_PAD_MODE_REPLICATE, "GTORCH_PAD_MODE_REPLICATE", "replicate" },
        { GTORCH_PAD_MODE_CIRCULAR, "GTORCH_PAD_MODE_CIRCULAR", "circular" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchPadMode", values));
    }
  return type;
}

GType
gtorch_interpolation_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_INTERPOLATION_LINEAR, "GTORCH_INTERPOLATION_LINEAR", "linear" },
        { GTORCH_INTERPOLATION_LOWER, "GTORCH_INTERPOLATION_LOWER", "lower" },
        { GTORCH_INTERPOLATION_HIGHER, "GTORCH_INTERPOLATION_HIGHER", "higher" },
        { GTORCH_INTERPOLATION_MIDPOINT, "GTORCH_INTERPOLATION_MIDPOINT", "midpoint" },
        { GTORCH_INTERPOLATION_NEAREST, "GTORCH_INTERPOLATION_NEAREST", "nearest" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchInterpolation", values));
    }
  return type;
}

GType
gtorch_qr_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_QR_MODE_REDUCED, "GTORCH_QR_MODE_REDUCED", "reduced" },
        { GTORCH_QR_MODE_COMPLETE, "GTORCH_QR_MODE_COMPLETE", "complete" },
        { GTORCH_QR_MODE_R, "GTORCH_QR_MODE_R", "r" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchQrMode", values));
    }
  return type;
}

GType
gtorch_cdist_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST_IF_NECESSARY,
          "GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST_IF_NECESSARY",
          "use-mm-for-euclid-dist-if-necessary" },
        { GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST, "GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST",
          "use-mm-for-euclid-dist" },
        { GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST,
          "GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST", "donot-use-mm-for-euclid-dist" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchCdistMode", values));
    }
  return type;
}

GType
gtorch_uplo_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_UPLO_L, "GTORCH_UPLO_L", "l" },
        { GTORCH_UPLO_U, "GTORCH_UPLO_U", "u" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchUplo", values));
    }
  return type;
}

GType
gtorch_svd_driver_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_SVD_DRIVER_AUTOMATIC, "GTORCH_SVD_DRIVER_AUTOMATIC", "automatic" },
        { GTORCH_SVD_DRIVER_GESVD, "GTORCH_SVD_DRIVER_GESVD", "gesvd" },
        { GTORCH_SVD_DRIVER_GESVDJ, "GTORCH_SVD_DRIVER_GESVDJ", "gesvdj" },
        { GTORCH_SVD_DRIVER_GESVDA, "GTORCH_SVD_DRIVER_GESVDA", "gesvda" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchSvdDriver", values));
    }
  return type;
}

GType
gtorch_lstsq_driver_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_LSTSQ_DRIVER_AUTOMATIC, "GTORCH_LSTSQ_DRIVER_AUTOMATIC", "automatic" },
        { GTORCH_LSTSQ_DRIVER_GELS, "GTORCH_LSTSQ_DRIVER_GELS", "gels" },
        { GTORCH_LSTSQ_DRIVER_GELSY, "GTORCH_LSTSQ_DRIVER_GELSY", "gelsy" },
        { GTORCH_LSTSQ_DRIVER_GELSD, "GTORCH_LSTSQ_DRIVER_GELSD", "gelsd" },
        { GTORCH_LSTSQ_DRIVER_GELSS, "GTORCH_LSTSQ_DRIVER_GELSS", "gelss" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchLstsqDriver", values));
    }
  return type;
}

GType
gtorch_resampling_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_RESAMPLING_NEAREST, "GTORCH_RESAMPLING_NEAREST", "nearest" },
        { GTORCH_RESAMPLING_NEAREST_EXACT, "GTORCH_RESAMPLING_NEAREST_EXACT", "nearest-exact" },
        { GTORCH_RESAMPLING_LINEAR, "GTORCH_RESAMPLING_LINEAR", "linear" },
        { GTORCH_RESAMPLING_BILINEAR, "GTORCH_RESAMPLING_BILINEAR", "bilinear" },
        { GTORCH_RESAMPLING_BICUBIC, "GTORCH_RESAMPLING_BICUBIC", "bicubic" },
        { GTORCH_RESAMPLING_TRILINEAR, "GTORCH_RESAMPLING_TRILINEAR", "trilinear" },
        { GTORCH_RESAMPLING_AREA, "GTORCH_RESAMPLING_AREA", "area" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchResampling", values));
    }
  return type;
}

GType
gtorch_grid_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_GRID_MODE_BILINEAR, "GTORCH_GRID_MODE_BILINEAR", "bilinear" },
        { GTORCH_GRID_MODE_NEAREST, "GTORCH_GRID_MODE_NEAREST", "nearest" },
        { GTORCH_GRID_MODE_BICUBIC, "GTORCH_GRID_MODE_BICUBIC", "bicubic" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchGridMode", values));
    }
  return type;
}

GType
gtorch_grid_padding_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_GRID_PADDING_ZEROS, "GTORCH_GRID_PADDING_ZEROS", "zeros" },
        { GTORCH_GRID_PADDING_BORDER, "GTORCH_GRID_PADDING_BORDER", "border" },
        { GTORCH_GRID_PADDING_REFLECTION, "GTORCH_GRID_PADDING_REFLECTION", "reflection" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchGridPadding", values));
    }
  return type;
}

GType
gtorch_bag_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_BAG_MODE_SUM, "GTORCH_BAG_MODE_SUM", "sum" },
        { GTORCH_BAG_MODE_MEAN, "GTORCH_BAG_MODE_MEAN", "mean" },
        { GTORCH_BAG_MODE_MAX, "GTORCH_BAG_MODE_MAX", "max" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchBagMode", values));
    }
  return type;
}
