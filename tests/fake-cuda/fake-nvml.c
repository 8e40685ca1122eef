/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake-nvml.h"

#define MAX_DEVICES       16
#define INVALID_ARGUMENT  2
#define NOT_FOUND         6
#define INSUFFICIENT_SIZE 7

typedef FakeNvml *Device;

typedef struct
{
  guint pid;
  guint64 memory;
  guint gpu_instance, compute_instance;
} Process;

static GMutex lock;
static FakeNvml devices[MAX_DEVICES];
static guint asked[MAX_DEVICES];
static guint n_devices = 1, mig, busy;
static gboolean held;
static GCond let_go;
static GThread *thread;

static void __attribute__ ((constructor)) set_up (void)
{
  const gchar *text = g_getenv ("GTORCH_FAKE_CUDA");
  gchar **settings = g_strsplit (text != NULL ? text : "", ",", -1);
  gboolean own = FALSE;
  guint i, n;

  for (i = 0; settings[i] != NULL; i++)
    if (sscanf (settings[i], "nvml-devices=%u", &n) == 1)
      {
        n_devices = MIN (n, MAX_DEVICES);
        own = TRUE;
      }
    else if (sscanf (settings[i], "devices=%u", &n) == 1 && !own)
      n_devices = MIN (n, MAX_DEVICES);
    else if (sscanf (settings[i], "mig=%u", &n) == 1)
      mig = n;
    else if (sscanf (settings[i], "nvml-busy=%u", &n) == 1)
      busy = n;
  g_strfreev (settings);
}

void
fake_nvml_set (guint device, const FakeNvml *values)
{
  g_mutex_lock (&lock);
  devices[device] = *values;
  g_mutex_unlock (&lock);
}

guint
fake_nvml_get_asked (guint device)
{
  guint n;

  g_mutex_lock (&lock);
  n = asked[device];
  g_mutex_unlock (&lock);
  return n;
}

GThread *
fake_nvml_get_thread (void)
{
  GThread *result;

  g_mutex_lock (&lock);
  result = thread;
  g_mutex_unlock (&lock);
  return result;
}

void
fake_nvml_hold (gboolean hold)
{
  g_mutex_lock (&lock);
  held = hold;
  g_cond_broadcast (&let_go);
  g_mutex_unlock (&lock);
}

/* --- the library --- */

#define FUNCTION(name, arguments)    \
  FAKE_NVML_API gint name arguments; \
  gint name arguments

/* Returns a copy of the settings, so that no test changes them in between. */
static FakeNvml
get (Device device)
{
  FakeNvml copy;

  g_mutex_lock (&lock);
  copy = *device;
  g_mutex_unlock (&lock);
  return copy;
}

FUNCTION (nvmlInit_v2, (void) ) { return 0; }

FAKE_NVML_API const gchar *nvmlErrorString (gint result);

const gchar *
nvmlErrorString (gint result)
{
  return result == 15 ? "GPU is lost" : "Unknown Error";
}

FUNCTION (nvmlSystemGetDriverVersion, (gchar * text, guint length))
{
  g_snprintf (text, length, "580.65.06");
  return 0;
}

FUNCTION (nvmlDeviceGetCount_v2, (guint * n))
{
  *n = n_devices;
  return 0;
}

FUNCTION (nvmlDeviceGetHandleByIndex_v2, (guint index, Device *device))
{
  if (index >= n_devices)
    return INVALID_ARGUMENT;
  *device = &devices[index];
  return 0;
}

FUNCTION (nvmlDeviceGetHandleByPciBusId_v2, (const gchar *id, Device *device))
{
  guint bus;

  if (sscanf (id, "0000:%x:00.0", &bus) != 1 || bus == 0 || bus > n_devices)
    return NOT_FOUND;
  *device = &devices[bus - 1];
  return 0;
}

FUNCTION (nvmlDeviceGetUUID, (Device device, gchar *text, guint length))
{
  g_snprintf (text, length, "GPU-fafafafa-fafa-fafa-fafa-fafafafafa%02x",
              (guint) (device - devices));
  return 0;
}

FUNCTION (nvmlDeviceGetMigMode, (Device device, guint *current, guint *pending))
{
  *current = *pending = mig;
  return 0;
}

FUNCTION (nvmlDeviceGetUtilizationRates, (Device device, guint *rates))
{
  FakeNvml values = get (device);

  rates[0] = values.utilization;
  rates[1] = values.memory_utilization;
  return values.result;
}

FUNCTION (nvmlDeviceGetTemperature, (Device device, gint sensor, guint *degrees))
{
  FakeNvml values = get (device);

  *degrees = values.temperature;
  return sensor == 0 ? values.result : INVALID_ARGUMENT;
}

FUNCTION (nvmlDeviceGetPowerUsage, (Device device, guint *milliwatts))
{
  FakeNvml values = get (device);

  *milliwatts = values.milliwatts;
  return values.result != 0 ? values.result : values.power_result;
}

FUNCTION (nvmlDeviceGetEnforcedPowerLimit, (Device device, guint *milliwatts))
{
  FakeNvml values = get (device);

  *milliwatts = values.milliwatts_limit;
  return values.result != 0 ? values.result : values.power_result;
}

FUNCTION (nvmlDeviceGetFanSpeed, (Device device, guint *percent))
{
  FakeNvml values = get (device);

  *percent = values.fan_speed;
  return values.result;
}

FUNCTION (nvmlDeviceGetClockInfo, (Device device, gint clock, guint *mhz))
{
  FakeNvml values = get (device);

  *mhz = clock == 1 ? values.sm_clock : values.memory_clock;
  return clock == 1 || clock == 2 ? values.result : INVALID_ARGUMENT;
}

/* What a program that trains might look like, a step further. */
static void
work (Device device)
{
  guint n = asked[device - devices] + 7 * (device - devices);

  *device = (FakeNvml){ .utilization = 70 + 29 * (n % 13) / 12,
                        .memory_utilization = 30 + n % 9,
                        .temperature = 55 + n % 11,
                        .milliwatts = 250000 + 9000 * (n % 17),
                        .milliwatts_limit = 450000,
                        .fan_speed = 40 + n % 5,
                        .sm_clock = 1905 + 15 * (n % 4),
                        .memory_clock = 2619,
                        .memory_used = (G_GUINT64_CONSTANT (600) + 10 * (n % 23)) << 20,
                        .n_processes = 1,
                        .processes = { { getpid (), G_GUINT64_CONSTANT (512) << 20 } } };
}

FUNCTION (nvmlDeviceGetMemoryInfo, (Device device, guint64 *memory))
{
  FakeNvml values;

  g_mutex_lock (&lock);
  if (busy != 0)
    work (device);
  asked[device - devices]++;
  thread = g_thread_self ();
  while (held)
    g_cond_wait (&let_go, &lock);
  values = *device;
  g_mutex_unlock (&lock);
  memory[0] = G_GUINT64_CONSTANT (1) << 30;
  memory[1] = memory[0] - values.memory_used;
  memory[2] = values.memory_used;
  return values.result;
}

FUNCTION (nvmlDeviceGetComputeRunningProcesses_v3, (Device device, guint *n, Process *processes))
{
  FakeNvml values = get (device);
  guint room = *n, i;

  *n = values.n_processes;
  if (values.n_processes > room)
    return INSUFFICIENT_SIZE;
  for (i = 0; i < values.n_processes; i++)
    processes[i] = (Process){ values.processes[i].pid, values.processes[i].memory, 0, 0 };
  return values.result;
}
