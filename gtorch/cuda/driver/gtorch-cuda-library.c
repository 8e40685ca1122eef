/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* NVIDIA's libraries other than the driver, each opened when it is first needed. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/driver/gtorch-cuda-facts-private.h"
#include "base/gtorch-environment-private.h"
#include "tensor/gtorch-impl-private.h"

static gchar *
number_version (gpointer function, GError **error)
{
  gsize number = ((gsize (*) (void)) function) ();

  return g_strdup_printf ("%" G_GSIZE_FORMAT ".%" G_GSIZE_FORMAT ".%" G_GSIZE_FORMAT,
                          number / 10000, number / 100 % 100, number % 100);
}

static gchar *
cufft_version (gpointer function, GError **error)
{
  gint number = 0;

  ((gint (*) (gint *)) function) (&number);
  return g_strdup_printf ("%d.%d.%d", number / 1000, number / 100 % 10, number % 100);
}

/* The numbers of a version are properties 0 to 2. */
static gchar *
cublas_version (gpointer function, GError **error)
{
  gint (*get) (gint property, gint * value) = function;
  gint number[3] = { 0 }, i;

  for (i = 0; i < 3; i++)
    get (i, &number[i]);
  return g_strdup_printf ("%d.%d.%d", number[0], number[1], number[2]);
}

static gchar *
cusolver_version (gpointer function, GError **error)
{
  gint number = 0;

  ((gint (*) (gint *)) function) (&number);
  return g_strdup_printf ("%d.%d.%d", number / 1000, number / 100 % 10, number % 100);
}

/* The version of its interface, such as 130001. */
static gchar *
cupti_version (gpointer function, GError **error)
{
  guint number = 0;

  ((gint (*) (guint *)) function) (&number);
  return g_strdup_printf ("%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
}

/* Returns NCCL's version. The minor number has two digits since 2.9. */
static gchar *
nccl_version (gpointer function, GError **error)
{
  gint number = 0, result = ((gint (*) (gint *)) function) (&number);
  gint major;

  if (result != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
                   _ ("cuda: ncclGetVersion failed with result %d"), result);
      return NULL;
    }
  major = number < 10000 ? 1000 : 10000;
  return g_strdup_printf ("%d.%d.%d", number / major, number % major / 100, number % 100);
}

static gchar *
nvml_version (gpointer function, GError **error)
{
  return gtorch_cuda_nvml_dup_version (error);
}

static const struct
{
  const gchar *name, *soname;
  const gchar *purpose;  /* marked for translation */
  const gchar *packages; /* marked for translation */
  const gchar *symbol;   /* name of a function that returns the version */
  gchar *(*version) (gpointer function, GError **error);
} libraries[] = {
  { "cublas", "libcublas.so.13", N_ ("systems of triangular equations"),
    N_ ("libcublas-13-0 (Debian, Ubuntu) or nvidia-cublas (Python)"), "cublasGetProperty",
    cublas_version },
  { "cublasLt", "libcublasLt.so.13", N_ ("matrix products"),
    N_ ("libcublas-13-0 (Debian, Ubuntu) or nvidia-cublas (Python)"), "cublasLtGetVersion",
    number_version },
  { "cudnn", "libcudnn.so.9", N_ ("fast convolutions"),
    N_ ("libcudnn9-cuda-13 (Debian, Ubuntu) or nvidia-cudnn-cu13 (Python)"), "cudnnGetVersion",
    number_version },
  { "cufft", "libcufft.so.12", N_ ("Fourier transforms"),
    N_ ("libcufft-13-0 (Debian, Ubuntu) or nvidia-cufft (Python)"), "cufftGetVersion",
    cufft_version },
  { "cupti", "libcupti.so.13", N_ ("traces of GPUs"),
    N_ ("cuda-cupti-13-0 (Debian, Ubuntu) or nvidia-cuda-cupti (Python)"), "cuptiGetVersion",
    cupti_version },
  { "cusolver", "libcusolver.so.12", N_ ("factorizations of matrices"),
    N_ ("libcusolver-13-0 (Debian, Ubuntu) or nvidia-cusolver (Python)"), "cusolverGetVersion",
    cusolver_version },
  { "nccl", "libnccl.so.2", N_ ("communication between GPUs"),
    N_ ("libnccl2 (Debian, Ubuntu) or nvidia-nccl-cu13 (Python)"), "ncclGetVersion", nccl_version },
  { "nvml", "libnvidia-ml.so.1", N_ ("monitoring of GPUs"),
    N_ ("libnvidia-ml1 (Debian) or libnvidia-compute-580 (Ubuntu), with the driver"),
    "nvmlSystemGetDriverVersion", nvml_version },
};

static gint
find_library (const gchar *name, const gchar *soname)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (libraries); i++)
    if (g_strcmp0 (name, libraries[i].name) == 0 || g_strcmp0 (soname, libraries[i].soname) == 0)
      return i;
  return -1;
}

/* Takes the path, and drops it if it is there. */
static void
add_path (GPtrArray *paths, gchar *path)
{
  if (g_ptr_array_find_with_equal_func (paths, path, g_str_equal, NULL))
    g_free (path);
  else
    g_ptr_array_add (paths, path);
}

static void
add_folders (GPtrArray *paths, const gchar *folders, const gchar *soname)
{
  g_auto (GStrv) list = g_strsplit (folders, ":", -1);
  guint i;

  for (i = 0; list[i] != NULL; i++)
    if (list[i][0] != '\0')
      add_path (paths, g_build_filename (list[i], soname, NULL));
}

/* Opens a library. Searches, in this order: copies that are loaded already (by another framework), the
 * folders of the environment, the system's search path, the folders set at build time, and the usual
 * folders of toolkits. */
gpointer
gtorch_cuda_library_open (const gchar *soname, GError **error)
{
  const gchar *own = gtorch_getenv ("GTORCH_CUDA_LIBRARY_PATH");
  const gchar *home = gtorch_getenv ("CUDA_HOME");
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GString) tried = g_string_new (NULL);
  gpointer library = gtorch_library_open (soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  gint known = find_library (NULL, soname);
  const gchar *hint;
  guint i;

  if (library != NULL)
    return library;
  if (own != NULL)
    add_folders (paths, own, soname);
  add_path (paths, g_strdup (soname));
  if (home != NULL)
    {
      add_path (paths, g_build_filename (home, "lib64", soname, NULL));
      add_path (paths, g_build_filename (home, "extras/CUPTI/lib64", soname, NULL));
    }
  add_folders (paths, gtorch_build_cuda_library_path (), soname);
  add_path (paths, g_build_filename ("/usr/local/cuda/lib64", soname, NULL));
  add_path (paths, g_build_filename ("/usr/local/cuda/extras/CUPTI/lib64", soname, NULL));
  for (i = 0; i < paths->len; i++)
    {
      library = gtorch_library_open (paths->pdata[i], RTLD_NOW | RTLD_LOCAL);
      if (library != NULL)
        return library;
      g_string_append_printf (tried, "%s%s", i > 0 ? ", " : "", (gchar *) paths->pdata[i]);
    }
  hint = gtorch_is_privileged ()
             ? _ ("what the environment says is ignored, since this process is privileged "
                  "(setuid, for example)")
             : _ ("GTORCH_CUDA_LIBRARY_PATH can name its folder");
  if (known >= 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
                 _ ("cuda: %s, for %s, was not found; tried %s. It is in the package %s; %s"),
                 soname, _ (libraries[known].purpose), tried->str, _ (libraries[known].packages),
                 hint);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
                 _ ("cuda: %s was not found; tried %s. It comes with the CUDA toolkit; %s"), soname,
                 tried->str, hint);
  return NULL;
}

gpointer
gtorch_cuda_library_symbol (gpointer library, const gchar *soname, const gchar *name,
                            GError **error)
{
  gpointer symbol = dlsym (library, name);

  if (symbol == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, _ ("cuda: %s has no %s"), soname, name);
  return symbol;
}

gchar **
gtorch_cuda_library_list (void)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (libraries); i++)
    g_strv_builder_add (builder, libraries[i].name);
  return g_strv_builder_end (builder);
}

gchar *
gtorch_cuda_library_version (const gchar *name, GError **error)
{
  gint known = find_library (name, NULL);
  gpointer library, function;

  if (known < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("cuda: “%s” is not the name of a library that is used"),
                   gtorch_name_str (name));
      return NULL;
    }
  library = gtorch_cuda_library_open (libraries[known].soname, error);
  if (library == NULL)
    return NULL;
  function =
      gtorch_cuda_library_symbol (library, libraries[known].soname, libraries[known].symbol, error);
  return function != NULL ? libraries[known].version (function, error) : NULL;
}
