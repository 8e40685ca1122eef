/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loads NVIDIA's driver at run time: the library is not linked to it. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>

#include "cuda/driver/gtorch-cuda-driver-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/driver/gtorch-cuda-facts-private.h"
#include "device/gtorch-device-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-fork-private.h"

typedef CUresult (*GetProcAddress) (const char *symbol, void **function, int version,
                                    uint64_t flags, int *status);

GTorchCudaDriver gtorch_cuda;

static gboolean loaded;
static gint tried;    /* atomic */
static gchar *reason; /* why there is no driver */
static gint version;
static gint forked; /* atomic */
static void *library;
static const void *stand_in_image;
static CUresult (*stand_in_launch) (const GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                    gpointer report, gconstpointer random);

static const struct
{
  const gchar *name;
  gint version;
  gsize offset;
} functions[] = {
#define F(name, version, arguments) { #name, version, G_STRUCT_OFFSET (GTorchCudaDriver, name) },
#include "cuda/driver/gtorch-cuda-functions.inc"
#undef F
};

static CUresult
missing_function (void)
{
  return CUDA_ERROR_NOT_SUPPORTED;
}

static GError *
new_fork_error (void)
{
  return g_error_new_literal (GTORCH_ERROR, GTORCH_ERROR_FORKED,
                              _ ("cuda: CUDA was used before this process was forked and cannot be "
                                 "used in the child: fork earlier, or start a new program"));
}

/* Marks all devices as unusable in a forked child. Drivers accept work there without an error, so the
 * devices must refuse it. */
static void
note_fork (void)
{
  guint i;

  g_atomic_int_set (&forked, TRUE);
  for (i = 0; i < GTORCH_CUDA_MAX_DEVICES; i++)
    {
      GTorchCudaDevice *device = gtorch_cuda_device_peek (i);

      if (device != NULL)
        __atomic_store_n (&((GTorchDevice *) device)->failure, new_fork_error (), __ATOMIC_RELEASE);
    }
}

/* Opens the driver without initialising it, which would affect forked children. */
static gboolean
find_driver (void)
{
  const gchar *path = gtorch_getenv ("GTORCH_CUDA_DRIVER");
  GetProcAddress get;
  gsize i;

  if (path == NULL || path[0] == '\0')
    path = "libcuda.so.1";
  library = gtorch_library_open (path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    {
      reason =
          g_strdup_printf (_ ("NVIDIA's CUDA driver was not found (%s)%s"), gtorch_library_error (),
                           gtorch_env_is_ignored ("GTORCH_CUDA_DRIVER") ? _ (
                               "; GTORCH_CUDA_DRIVER is ignored, since this process is privileged "
                               "(setuid, for example)")
                                                                        : "");
      return FALSE;
    }
  get = (GetProcAddress) dlsym (library, "cuGetProcAddress_v2");
  if (get == NULL)
    {
      reason = g_strdup_printf (_ ("the driver library %s is older than CUDA 12"), path);
      return FALSE;
    }
  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      void *function = NULL;

      if (get (functions[i].name, &function, functions[i].version, CU_GET_PROC_ADDRESS_DEFAULT,
               NULL)
              != CUDA_SUCCESS
          || function == NULL)
        function = (void *) missing_function;
      G_STRUCT_MEMBER (void *, &gtorch_cuda, functions[i].offset) = function;
    }
  gtorch_cuda.cuDriverGetVersion (&version);
  if (version < 12000)
    {
      reason = g_strdup_printf (_ ("the driver is for CUDA %d.%d, at least 12.0 is needed"),
                                version / 1000, version % 1000 / 10);
      return FALSE;
    }
  if (gtorch_cuda.cuInit == (void *) missing_function)
    {
      reason = g_strdup_printf (_ ("the driver library %s has no %s"), path, "cuInit");
      return FALSE;
    }
  stand_in_image = dlsym (library, "gtorch_cuda_stand_in_image");
  stand_in_launch = dlsym (library, "gtorch_cuda_stand_in_launch");
  return TRUE;
}

static gboolean
initialize_driver (void)
{
  CUresult result;

  if (!gtorch_cuda_driver_find ())
    return FALSE;
  result = gtorch_cuda.cuInit (0);
  if (result != CUDA_SUCCESS)
    {
      g_autoptr (GError) error = NULL;

      gtorch_cuda_check (result, "cuInit", &error);
      reason = g_strdup (error->message);
      return FALSE;
    }
  gtorch_fork_add_child (note_fork);
  return TRUE;
}

gboolean
gtorch_cuda_driver_find (void)
{
  static gsize once;
  static gboolean found;

  if (g_once_init_enter (&once))
    {
      found = find_driver ();
      g_once_init_leave (&once, 1);
    }
  return found;
}

const void *
gtorch_cuda_driver_get_image (const void *built)
{
  return built != NULL ? built : stand_in_image;
}

gboolean
gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                             gpointer report, gconstpointer random)
{
  return stand_in_launch != NULL
         && stand_in_launch (call, queue, host, report, random) == CUDA_SUCCESS;
}

gboolean
gtorch_cuda_driver_load (GError **error)
{
  static gsize once;

  if (g_once_init_enter (&once))
    {
      loaded = initialize_driver ();
      g_atomic_int_set (&tried, TRUE);
      g_once_init_leave (&once, 1);
      gtorch_device_manager_recount ();
    }
  if (G_LIKELY (loaded && !gtorch_cuda_is_forked ()))
    return TRUE;
  if (!loaded)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE, "cuda: %s", reason);
  else
    g_propagate_error (error, new_fork_error ());
  return FALSE;
}

gboolean
gtorch_cuda_driver_is_tried (void)
{
  return g_atomic_int_get (&tried);
}

gchar *
gtorch_cuda_driver_dup_version (void)
{
  gtorch_cuda_driver_find ();
  return version > 0 ? g_strdup_printf ("%d.%d", version / 1000, version % 1000 / 10) : NULL;
}

gboolean
gtorch_cuda_driver_takes_many (void)
{
  return version >= 12010;
}

gboolean
gtorch_cuda_is_forked (void)
{
  return g_atomic_int_get (&forked);
}

gboolean
gtorch_cuda_fail (CUresult result, const gchar *what, GError **error)
{
  const gchar *name = NULL, *text = NULL;
  gint code = GTORCH_ERROR_CUDA;

  if (!gtorch_cuda_check_devices (result, error) || error == NULL)
    return FALSE;
  if (gtorch_cuda_is_forked ())
    return gtorch_cuda_driver_load (error);
  if (gtorch_cuda.cuGetErrorName != NULL)
    {
      gtorch_cuda.cuGetErrorName (result, &name);
      gtorch_cuda.cuGetErrorString (result, &text);
    }
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    code = GTORCH_ERROR_OUT_OF_MEMORY;
  else if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
           && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    code = GTORCH_ERROR_CAPTURE;
  else if (result == CUDA_ERROR_NOT_SUPPORTED)
    code = GTORCH_ERROR_NOT_SUPPORTED;
  g_set_error (error, GTORCH_ERROR, code, "%s: %s (%s, %d)", what,
               text != NULL ? text : _ ("unknown error"), name != NULL ? name : "?", result);
  return FALSE;
}
