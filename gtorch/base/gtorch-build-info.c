/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What this build of the library is made of, and what it finds at run time. */

#include "config.h"

#include <cblas.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-build-info.h"

#include "gtorch-build-config.h"
#include "base/gtorch-build-info-private.h"

const gchar *
gtorch_build_cuda_library_path (void)
{
  return GTORCH_BUILD_CUDA_LIBRARY_PATH;
}

/**
 * gtorch_get_arch_list:
 *
 * Lists the generations of GPUs whose kernels are compiled into this library: `sm_90` are those of
 * compute capability 9.0, which 9.1 understands too, but 10.0 does not; `compute_120` is a form
 * that every GPU from 12.0 on can compile for itself.
 *
 * Returns: (transfer full): the names; none if the build is without kernels
 *
 * Since: 0.1
 */
gchar **
gtorch_get_arch_list (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) archs = g_strsplit (GTORCH_BUILD_CUDA_ARCHS, ";", -1);
  guint i, pass;

  for (pass = 0; pass < 2; pass++)
    for (i = 0; archs[i] != NULL; i++)
      {
        gchar *plus = strchr (archs[i], '+');
        gsize length = plus != NULL ? plus - archs[i] : strlen (archs[i]);
        g_autofree gchar *name = NULL;

        if (length == 0 || (pass == 1 && plus == NULL))
          continue;
        name = g_strdup_printf ("%s%.*s", pass == 0 ? "sm_" : "compute_", (int) length, archs[i]);
        g_strv_builder_add (builder, name);
      }
  return g_strv_builder_end (builder);
}

gboolean
gtorch_archs_cover (const gchar *const *archs, gint major, gint minor)
{
  guint i;

  for (i = 0; archs[i] != NULL; i++)
    {
      const gchar *at = strchr (archs[i], '_') + 1;
      gchar *end;
      gint number = (gint) g_ascii_strtoull (at, &end, 10);
      gboolean is_code = archs[i][0] == 's';

      if (*end == 'a' ? number == major * 10 + minor
                      : (is_code || *end == 'f' ? number / 10 == major && number % 10 <= minor
                                                : number <= major * 10 + minor))
        return TRUE;
    }
  return FALSE;
}

/* --- keys and values --- */

static gchar *
dup_archs (void)
{
  g_auto (GStrv) archs = gtorch_get_arch_list ();

  return g_strjoinv (" ", archs);
}

static gchar *
dup_levels (void)
{
  return g_strdup ("baseline"
#ifdef GTORCH_HAVE_ISA_V3
                   " v3"
#endif
#ifdef GTORCH_HAVE_ISA_V4
                   " v4"
#endif
  );
}

static gchar *
dup_blas (void)
{
  return g_strstrip (g_strdup (openblas_get_config ()));
}

static gchar *
dup_driver (void)
{
  gchar *version = gtorch_cuda_driver_dup_version ();

  return version != NULL ? version : g_strdup ("");
}

static const struct
{
  const gchar *key, *value;
  gchar *(*dup) (void);
} values[] = {
  { "version", GTORCH_VERSION, NULL },
  { "build-type", GTORCH_BUILD_TYPE, NULL },
  { "compiler", GTORCH_BUILD_COMPILER, NULL },
  { "cpu-levels", NULL, dup_levels },
  { "blas", NULL, dup_blas },
  { "cuda-compiler", GTORCH_BUILD_NVCC, NULL },
  { "cuda-archs", NULL, dup_archs },
  { "cuda-driver-minimum", "12.0", NULL },
  { "cuda-driver", NULL, dup_driver },
};

/**
 * gtorch_get_build_keys:
 *
 * Lists what [func@get_build_info] knows.
 *
 * Returns: (transfer full): the keys
 *
 * Since: 0.1
 */
gchar **
gtorch_get_build_keys (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++)
    g_strv_builder_add (builder, values[i].key);
  return g_strv_builder_end (builder);
}

/**
 * gtorch_get_build_info:
 * @key: one of [func@get_build_keys]
 *
 * Says how the library was built and what it found.
 *
 * | key | value |
 * |---|---|
 * | `version` | of GTorch |
 * | `build-type` | of Meson: `debugoptimized`, `release` |
 * | `compiler` | of C, with its version |
 * | `cpu-levels` | for which levels of x86-64 there are loops: `baseline v3 v4` |
 * | `blas` | the library for products of matrices on the CPU, with its version |
 * | `cuda-compiler` | the compiler of the kernels, empty if there are none |
 * | `cuda-archs` | [func@get_arch_list], separated by blanks |
 * | `cuda-driver-minimum` | the oldest version of CUDA whose driver will do |
 * | `cuda-driver` | the version of CUDA that the installed driver is for; empty if there is none |
 *
 * One library serves every version of CUDA from the oldest on: drivers and NVIDIA's libraries are
 * looked for at run time.
 *
 * Returns: (transfer full) (nullable): the value, %NULL if there is no such key
 *
 * Since: 0.1
 */
gchar *
gtorch_get_build_info (const gchar *key)
{
  guint i;

  g_return_val_if_fail (key != NULL, NULL);
  for (i = 0; i < G_N_ELEMENTS (values); i++)
    if (strcmp (key, values[i].key) == 0)
      return values[i].dup != NULL ? values[i].dup () : g_strdup (values[i].value);
  return NULL;
}

/**
 * gtorch_get_cuda_libraries:
 *
 * Lists the libraries of NVIDIA's that belong to work on GPUs, beside the driver. None is needed to
 * start: each is opened when something first needs it, and only that fails if it is not installed.
 * Of `nccl` nothing but the version is asked for yet.
 *
 * Returns: (transfer full): the names, `cublasLt` for libcublasLt
 *
 * Since: 0.1
 */
gchar **
gtorch_get_cuda_libraries (void)
{
  return gtorch_cuda_library_list ();
}

/**
 * gtorch_get_cuda_library_version:
 * @name: one of [func@get_cuda_libraries]
 * @error: return location for an error
 *
 * Looks for one of NVIDIA's libraries and opens it, which can take a tenth of a second and a hundred
 * megabytes.
 *
 * Returns: (transfer full): its version; %NULL with %GTORCH_ERROR_NOT_FOUND if no library has that
 *   name, with %GTORCH_ERROR_CUDA if it is not installed, which names the package that has it
 *
 * Since: 0.1
 */
gchar *
gtorch_get_cuda_library_version (const gchar *name, GError **error)
{
  g_return_val_if_fail (name != NULL, NULL);
  return gtorch_cuda_library_version (name, error);
}
