/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* NVIDIA's management library (NVML), which reports the state of GPUs and their number. Unlike the driver,
 * it can be used before forking without harm to the children. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/driver/gtorch-cuda-private.h"
#include "device/gtorch-device-sample-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-fork-private.h"

#define SONAME        "libnvidia-ml.so.1"
#define MAX_PROCESSES 4096

/* --- the part of the library's binary interface that is used --- */
typedef gpointer NvmlDevice;

enum
{
  NVML_SUCCESS = 0,
  NVML_NOT_SUPPORTED = 3,
  NVML_NO_PERMISSION = 4,
  NVML_INSUFFICIENT_SIZE = 7,
  NVML_GPU_IS_LOST = 15,
};

enum
{
  NVML_TEMPERATURE_GPU = 0,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2,
};

typedef struct
{
  guint gpu, memory;
} NvmlUtilization;

typedef struct
{
  guint64 total, available, used;
} NvmlMemory;

typedef struct
{
  guint pid;
  guint64 memory; /* all ones: unknown */
  guint gpu_instance, compute_instance;
} NvmlProcess;

static struct
{
  gint (*init) (void);
  const gchar *(*error_string) (gint result);
  gint (*driver_version) (gchar *text, guint length);
  gint (*count) (guint *n);
  gint (*by_index) (guint index, NvmlDevice *device);
  gint (*by_pci_id) (const gchar *id, NvmlDevice *device);
  gint (*uuid) (NvmlDevice device, gchar *text, guint length);
  gint (*mig_mode) (NvmlDevice device, guint *current, guint *pending);
  gint (*utilization) (NvmlDevice device, NvmlUtilization *utilization);
  gint (*temperature) (NvmlDevice device, gint sensor, guint *degrees);
  gint (*power) (NvmlDevice device, guint *milliwatts);
  gint (*power_limit) (NvmlDevice device, guint *milliwatts);
  gint (*fan_speed) (NvmlDevice device, guint *percent);
  gint (*clock) (NvmlDevice device, gint clock, guint *mhz);
  gint (*memory) (NvmlDevice device, NvmlMemory *memory);
  gint (*processes) (NvmlDevice device, guint *n, NvmlProcess *processes);
} nvml;

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
  { "nvmlInit_v2", (gpointer *) &nvml.init },
  { "nvmlErrorString", (gpointer *) &nvml.error_string },
  { "nvmlSystemGetDriverVersion", (gpointer *) &nvml.driver_version },
  { "nvmlDeviceGetCount_v2", (gpointer *) &nvml.count },
  { "nvmlDeviceGetHandleByIndex_v2", (gpointer *) &nvml.by_index },
  { "nvmlDeviceGetHandleByPciBusId_v2", (gpointer *) &nvml.by_pci_id },
  { "nvmlDeviceGetUUID", (gpointer *) &nvml.uuid },
  { "nvmlDeviceGetMigMode", (gpointer *) &nvml.mig_mode },
  { "nvmlDeviceGetUtilizationRates", (gpointer *) &nvml.utilization },
  { "nvmlDeviceGetTemperature", (gpointer *) &nvml.temperature },
  { "nvmlDeviceGetPowerUsage", (gpointer *) &nvml.power },
  { "nvmlDeviceGetEnforcedPowerLimit", (gpointer *) &nvml.power_limit },
  { "nvmlDeviceGetFanSpeed", (gpointer *) &nvml.fan_speed },
  { "nvmlDeviceGetClockInfo", (gpointer *) &nvml.clock },
  { "nvmlDeviceGetMemoryInfo", (gpointer *) &nvml.memory },
  { "nvmlDeviceGetComputeRunningProcesses_v3", (gpointer *) &nvml.processes },
};

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static gboolean loaded;

static gboolean
check (gint result, const gchar *what, GError **error)
{
  if (result == NVML_SUCCESS)
    return TRUE;
  g_set_error (error, GTORCH_ERROR,
               result == NVML_GPU_IS_LOST ? GTORCH_ERROR_DEVICE_LOST : GTORCH_ERROR_CUDA,
               "%s: %s (%d)", what, nvml.error_string (result), result);
  return FALSE;
}

/* Loads the library. If it is missing, the next call tries again. */
static gboolean
load (GError **error)
{
  gboolean result = TRUE;
  gpointer library;
  guint i;

  g_mutex_lock (&lock);
  if (!loaded)
    {
      library = gtorch_cuda_library_open (SONAME, error);
      result = library != NULL;
      for (i = 0; result && i < G_N_ELEMENTS (symbols); i++)
        {
          *symbols[i].slot = gtorch_cuda_library_symbol (library, SONAME, symbols[i].name, error);
          result = *symbols[i].slot != NULL;
        }
      loaded = result && check (nvml.init (), "nvmlInit", error);
      result = loaded;
    }
  g_mutex_unlock (&lock);
  return result;
}

gchar *
gtorch_cuda_nvml_dup_version (GError **error)
{
  gchar text[128];

  if (!load (error)
      || !check (nvml.driver_version (text, sizeof text), "nvmlSystemGetDriverVersion", error))
    return NULL;
  return g_strdup (text);
}

/* --- the number of GPUs --- */

/* Counts how many of n GPUs CUDA_VISIBLE_DEVICES selects: it lists indices and prefixes of UUIDs, and the
 * driver ignores everything from the first invalid one on. Returns -1 for more complex values, for which
 * the driver has to be asked. */
static gint
count_visible (const gchar *text, guint n)
{
  g_auto (GStrv) names = g_strsplit (text, ",", -1);
  g_autofree gboolean *seen = g_new0 (gboolean, MAX (n, 1));
  gint count = 0;
  guint i, j;

  for (i = 0; names[i] != NULL; i++)
    {
      gchar *name = g_strstrip (names[i]);
      guint64 number = G_MAXUINT64;

      if (g_str_has_prefix (name, "GPU-"))
        {
          for (j = 0; j < n; j++)
            {
              NvmlDevice device;
              gchar uuid[96];

              if (nvml.by_index (j, &device) != NVML_SUCCESS
                  || nvml.uuid (device, uuid, sizeof uuid) != NVML_SUCCESS)
                return -1;
              if (g_str_has_prefix (uuid, name) && number != G_MAXUINT64)
                return -1;
              if (g_str_has_prefix (uuid, name))
                number = j;
            }
        }
      else if (name[0] != '\0' && strcmp (name, "-1") != 0
               && !g_ascii_string_to_unsigned (name, 10, 0, G_MAXINT, &number, NULL))
        return -1;
      if (number >= n)
        break;
      if (seen[number])
        return -1;
      seen[number] = TRUE;
      count++;
    }
  return count;
}

gint
gtorch_cuda_nvml_count (void)
{
  const gchar *visible = gtorch_getenv ("CUDA_VISIBLE_DEVICES");
  guint n = 0, i;

  /* The driver may honour the variable even if it is ignored here. */
  if (gtorch_env_is_ignored ("CUDA_VISIBLE_DEVICES") || !load (NULL)
      || nvml.count (&n) != NVML_SUCCESS)
    return -1;
  for (i = 0; i < n; i++)
    {
      NvmlDevice device;
      guint current = 0, pending;

      if (nvml.by_index (i, &device) != NVML_SUCCESS
          || (nvml.mig_mode (device, &current, &pending) == NVML_SUCCESS && current != 0))
        return -1; /* parts of GPUs (MIG) are counted by other rules */
    }
  return visible != NULL ? count_visible (visible, n) : (gint) n;
}

/* --- the state of a GPU --- */

static gint
by_pid (gconstpointer a, gconstpointer b)
{
  guint x = ((const GTorchProcessSample *) a)->pid, y = ((const GTorchProcessSample *) b)->pid;

  return x < y ? -1 : x > y;
}

static gint
get_processes (NvmlDevice device, GTorchDeviceSample *sample)
{
  g_autofree NvmlProcess *found = NULL;
  guint n = 64, i;
  gint result;

  do
    {
      g_free (found);
      found = g_new (NvmlProcess, n);
      i = n;
      result = nvml.processes (device, &i, found);
      n *= 2;
    }
  while (result == NVML_INSUFFICIENT_SIZE && n <= MAX_PROCESSES);
  if (result != NVML_SUCCESS)
    return result;
  sample->processes = g_array_sized_new (FALSE, FALSE, sizeof (GTorchProcessSample), i);
  for (n = 0; n < i; n++)
    {
      GTorchProcessSample process = { .pid = found[n].pid,
                                      .memory_used =
                                          found[n].memory == G_MAXUINT64 ? 0 : found[n].memory };

      gtorch_process_sample_find_name (&process);
      g_array_append_val (sample->processes, process);
    }
  g_array_sort (sample->processes, by_pid);
  return result;
}

/* Returns whether a query succeeded. Not every GPU reports all values, nor to every user; any other error
 * means that the GPU is lost, and is stored in *failure. */
static gboolean
knows (gint result, gint *failure)
{
  if (result != NVML_SUCCESS && result != NVML_NOT_SUPPORTED && result != NVML_NO_PERMISSION)
    *failure = result;
  return result == NVML_SUCCESS;
}

gboolean
gtorch_cuda_take_sample (GTorchDevice *device, GTorchDeviceSample *sample, GError **error)
{
  gint failure = NVML_SUCCESS;
  NvmlUtilization utilization;
  NvmlMemory memory;
  NvmlDevice handle;
  guint value;

  if (!gtorch_cuda_driver_load (error) || !load (error)
      || !check (nvml.by_pci_id (GTORCH_CUDA_DEVICE (device)->pci_id, &handle),
                 gtorch_device_name (device), error))
    return FALSE;
  if (knows (nvml.memory (handle, &memory), &failure))
    sample->memory_used = memory.used;
  if (knows (nvml.utilization (handle, &utilization), &failure))
    {
      sample->utilization = utilization.gpu;
      sample->memory_utilization = utilization.memory;
    }
  if (knows (nvml.temperature (handle, NVML_TEMPERATURE_GPU, &value), &failure))
    sample->temperature = value;
  if (knows (nvml.power (handle, &value), &failure))
    sample->power = value / 1000.0;
  if (knows (nvml.power_limit (handle, &value), &failure))
    sample->power_limit = value / 1000.0;
  if (knows (nvml.fan_speed (handle, &value), &failure))
    sample->fan_speed = value;
  if (knows (nvml.clock (handle, NVML_CLOCK_SM, &value), &failure))
    sample->sm_clock = value;
  if (knows (nvml.clock (handle, NVML_CLOCK_MEM, &value), &failure))
    sample->memory_clock = value;
  knows (get_processes (handle, sample), &failure);
  if (check (failure, gtorch_device_name (device), error))
    return TRUE;
  gtorch_device_sample_clear (sample);
  return FALSE;
}
