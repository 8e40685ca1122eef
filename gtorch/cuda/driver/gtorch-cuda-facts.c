/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What this build of the library has for GPUs, and which libraries of NVIDIA's it finds. */

#include "config.h"

#include <string.h>

#include "cuda/driver/gtorch-cuda-facts-private.h"
#include "device/gtorch-build-info.h"
#include "gtorch-build-config.h"

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

static gchar *
dup_archs (void)
{
  g_auto (GStrv) archs = gtorch_get_arch_list ();

  return g_strjoinv (" ", archs);
}

static gchar *
dup_driver (void)
{
  gchar *version = gtorch_cuda_driver_dup_version ();

  return version != NULL ? version : g_strdup ("");
}

const GTorchFact gtorch_cuda_facts[] = {
  { "cuda-compiler", GTORCH_BUILD_NVCC, NULL },
  { "cuda-archs", NULL, dup_archs },
  { "cuda-driver-minimum", "12.0", NULL },
  { "cuda-driver", NULL, dup_driver },
  { NULL },
};

/**
 * gtorch_get_cuda_libraries:
 *
 * Lists the libraries of NVIDIA's that belong to work on GPUs, beside the driver. None is needed to
 * start: each is opened when something first needs it, and only that fails if it is not installed.
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
