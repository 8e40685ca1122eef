/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Symbols and setup of the fake; counting and failing of calls; devices and contexts. */

#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake-cuda-private.h"

GMutex fake_lock;
FakeDevice fake_devices[FAKE_MAX_DEVICES];
guint fake_n_devices = 1;
gboolean fake_have_peers = TRUE;
gboolean fake_borrows, fake_multiplies;
FakeCudaAccounts fake_accounts;

static gint driver_version = 13000;
static gboolean has_vmm = TRUE;
static gint capability = 90, compute_mode;
static gboolean initialized;
static pid_t process; /* the process that called cuInit () */
static gchar *hidden; /* the name of a function that the driver lacks */
static __thread FakeDevice *current;

static guint calls[FAKE_N_FUNCTIONS];
static GArray *call_log; /* indices of functions */

static gint fail_function = -1; /* FAKE_N_FUNCTIONS stands for any */
static guint fail_in;
static CUresult fail_result, random_result;
static gboolean has_failed;
static gdouble random_probability;
static GRand *random_faults;

static const struct
{
  const gchar *name;
  gint version;
  void *function;
} functions[] = {
#define F(name, version, arguments) { #name, version, (void *) name },
#include <gtorch/cuda/driver/gtorch-cuda-functions.inc>
#undef F
};

/* --- symbols for the loader --- */

/* A program uses this if its build has no kernels: kernels are found by name here, whatever the image. */
FAKE_CUDA_API extern const char gtorch_cuda_stand_in_image[];
const char gtorch_cuda_stand_in_image[] = "fake";

FAKE_CUDA_API CUresult cuGetProcAddress_v2 (const char *symbol, void **function, int version,
                                            uint64_t flags, int *status);

CUresult
cuGetProcAddress_v2 (const char *symbol, void **function, int version, uint64_t flags, int *status)
{
  guint i;

  *function = NULL;
  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    if (strcmp (functions[i].name, symbol) == 0 && g_strcmp0 (hidden, symbol) != 0)
      {
        if (version > driver_version || version < functions[i].version)
          return CUDA_ERROR_NOT_FOUND;
        *function = functions[i].function;
        return CUDA_SUCCESS;
      }
  return CUDA_ERROR_NOT_FOUND;
}

static void
device_uuid (guint physical, CUuuid *uuid)
{
  memset (uuid, 0xfa, sizeof *uuid);
  uuid->bytes[15] = physical;
}

/* Returns the index of a visible device, or -1. The driver accepts numbers and prefixes of UUIDs. */
static gint
find_visible (const gchar *text, guint n_physical)
{
  gchar *end;
  guint64 number = g_ascii_strtoull (text, &end, 10);
  guint i, j;

  if (end > text && *end == '\0' && g_ascii_isdigit (text[0]))
    return number < n_physical ? (gint) number : -1;
  for (i = 0; g_str_has_prefix (text, "GPU-") && i < n_physical; i++)
    {
      GString *name = g_string_new ("GPU-");
      gboolean is_it;
      CUuuid uuid;

      device_uuid (i, &uuid);
      for (j = 0; j < sizeof uuid.bytes; j++)
        g_string_append_printf (name, "%s%02x", j >= 4 && j <= 10 && j % 2 == 0 ? "-" : "",
                                (guint8) uuid.bytes[j]);
      is_it = g_str_has_prefix (name->str, text);
      g_string_free (name, TRUE);
      if (is_it)
        return i;
    }
  return -1;
}

static void
hide_devices (const gchar *text)
{
  gchar **names = g_strsplit (text, ",", -1);
  guint i, j, n = 0;

  for (i = 0; names[i] != NULL && n < FAKE_MAX_DEVICES; i++)
    {
      gint found = find_visible (g_strstrip (names[i]), fake_n_devices);

      if (found < 0)
        break; /* the rest is ignored */
      for (j = 0; j < n; j++)
        if (fake_devices[j].physical == (guint) found)
          break;
      if (j < n)
        { /* a duplicate hides all devices */
          n = 0;
          break;
        }
      fake_devices[n++].physical = found;
    }
  fake_n_devices = n;
  g_strfreev (names);
}

/* --- calls that wait for all devices --- */

static gboolean stalls;
static GMutex stall_lock; /* held by such a call; taken before fake_lock */

void
fake_stall (void)
{
  guint i;

  if (!stalls)
    return;
  g_mutex_unlock (&fake_lock);
  g_mutex_lock (&stall_lock);
  g_mutex_lock (&fake_lock);
  for (i = 0; i < fake_n_devices; i++)
    fake_device_drain (&fake_devices[i]);
  g_mutex_unlock (&stall_lock);
}

void
fake_cuda_stall (void)
{
  g_mutex_lock (&fake_lock);
  fake_stall ();
  g_mutex_unlock (&fake_lock);
}

static void __attribute__ ((constructor)) set_up (void)
{
  const gchar *text = g_getenv ("GTORCH_FAKE_CUDA"), *more = g_getenv ("GTORCH_FAKE_CUDA_MORE");
  gchar *both = g_strconcat (more != NULL ? more : "", ",", text, NULL);
  gchar **settings = g_strsplit (both, ",", -1);
  guint i, shift = 0, jitter = 0, seed = 0;
  gsize memory = (gsize) 1 << 30;

  for (i = 0; settings[i] != NULL; i++)
    {
      const gchar *value = strchr (settings[i], '=');
      guint64 number = value != NULL ? g_ascii_strtoull (++value, NULL, 10) : 0;

      if (g_str_has_prefix (settings[i], "devices="))
        fake_n_devices = MIN (number, FAKE_MAX_DEVICES);
      else if (g_str_has_prefix (settings[i], "memory="))
        memory = number << 20;
      else if (g_str_has_prefix (settings[i], "version="))
        driver_version = number;
      else if (g_str_has_prefix (settings[i], "seed="))
        seed = number;
      else if (g_str_has_prefix (settings[i], "vmm="))
        has_vmm = number != 0;
      else if (g_str_has_prefix (settings[i], "capability="))
        capability = number;
      else if (g_str_has_prefix (settings[i], "peers="))
        fake_have_peers = number != 0;
      else if (g_str_has_prefix (settings[i], "borrow="))
        fake_borrows = number != 0;
      else if (g_str_has_prefix (settings[i], "stall="))
        stalls = number != 0;
      else if (g_str_has_prefix (settings[i], "multiply="))
        fake_multiplies = number != 0;
      else if (g_str_has_prefix (settings[i], "mode="))
        compute_mode = number;
      else if (g_str_has_prefix (settings[i], "hide="))
        hidden = g_strdup (value);
      else if (g_str_has_prefix (settings[i], "shift="))
        shift = number;
      else if (g_str_has_prefix (settings[i], "jitter="))
        jitter = number;
    }
  g_strfreev (settings);
  g_free (both);
  fake_set_variation (shift, jitter);
  fake_cuda_set_seed (seed);
  for (i = 0; i < FAKE_MAX_DEVICES; i++)
    {
      fake_devices[i].index = i;
      fake_devices[i].physical = i;
      fake_devices[i].memory = memory;
    }
  if (g_getenv ("CUDA_VISIBLE_DEVICES") != NULL)
    hide_devices (g_getenv ("CUDA_VISIBLE_DEVICES"));
  call_log = g_array_new (FALSE, FALSE, 1);
}

/* --- calls --- */

/* --- traces --- */

const FakeCudaTracer *fake_tracer;
static guint last_correlation;
/* Of the call of this thread. */
static __thread struct
{
  guint correlation, function;
  gint64 start;
} traced;

gint64
fake_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}

guint
fake_correlation (void)
{
  return traced.correlation;
}

void
fake_cuda_set_tracer (const FakeCudaTracer *tracer)
{
  g_mutex_lock (&fake_lock);
  fake_tracer = tracer;
  g_mutex_unlock (&fake_lock);
}

CUresult
fake_enter (guint function)
{
  guint8 index = function;
  CUresult result = CUDA_SUCCESS;

  G_STATIC_ASSERT (FAKE_N_FUNCTIONS < 256);
  if (fake_in_host_function ())
    {
      fake_misuse (CUDA_SUCCESS, "%s was called from a host function", functions[function].name);
      return CUDA_ERROR_NOT_PERMITTED;
    }
  fake_dawdle ();
  /* what is of the calling thread alone takes no lock of the driver */
  if (stalls && function != FAKE_cuCtxSetCurrent && function != FAKE_cuCtxGetCurrent
      && function != FAKE_cuThreadExchangeStreamCaptureMode)
    {
      g_mutex_lock (&stall_lock);
      g_mutex_unlock (&stall_lock);
    }
  g_mutex_lock (&fake_lock);
  calls[function]++;
  if (call_log->len < 1 << 20)
    g_array_append_val (call_log, index);
  if ((function == FAKE_cuGetErrorName || function == FAKE_cuGetErrorString)
      && fail_function != (gint) function) /* these work even if all others fail */
    return CUDA_SUCCESS;
  if (fail_in > 0 && (fail_function == FAKE_N_FUNCTIONS || fail_function == (gint) function)
      && --fail_in == 0)
    {
      has_failed = TRUE;
      result = fail_result;
    }
  else if (random_faults != NULL && g_rand_double (random_faults) < random_probability)
    result = random_result;
  else if (initialized && process != getpid ()) /* a forked child cannot use the driver */
    result = CUDA_ERROR_NOT_INITIALIZED;
  else if (!initialized && function != FAKE_cuInit && function != FAKE_cuDriverGetVersion)
    result = CUDA_ERROR_NOT_INITIALIZED;
  if (result != CUDA_SUCCESS)
    g_mutex_unlock (&fake_lock);
  else if (fake_tracer != NULL)
    {
      traced.correlation = ++last_correlation;
      traced.function = function;
      traced.start = fake_now ();
    }
  return result;
}

CUresult
fake_leave (CUresult result)
{
  if (fake_tracer != NULL && traced.correlation != 0)
    fake_tracer->called (traced.correlation, traced.function, traced.start, fake_now ());
  traced.correlation = 0;
  g_mutex_unlock (&fake_lock);
  return result;
}

FakeDevice *
fake_current (void)
{
  return current;
}

CUresult
fake_misuse (CUresult result, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  fputs ("fake-cuda: ", stderr);
  vfprintf (stderr, format, args);
  fputc ('\n', stderr);
  va_end (args);
  __atomic_add_fetch (&fake_accounts.misuses, 1, __ATOMIC_RELAXED);
  return result;
}

guint
fake_cuda_get_calls (const gchar *name)
{
  guint i, n = 0;

  g_mutex_lock (&fake_lock);
  for (i = 0; i < FAKE_N_FUNCTIONS; i++)
    if (name == NULL || strcmp (functions[i].name, name) == 0)
      n += calls[i];
  g_mutex_unlock (&fake_lock);
  return n;
}

void
fake_cuda_reset_calls (void)
{
  g_mutex_lock (&fake_lock);
  memset (calls, 0, sizeof calls);
  g_array_set_size (call_log, 0);
  g_mutex_unlock (&fake_lock);
}

gchar *
fake_cuda_dup_log (void)
{
  GString *text = g_string_new (NULL);
  guint i;

  g_mutex_lock (&fake_lock);
  for (i = 0; i < call_log->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            functions[g_array_index (call_log, guint8, i)].name);
  g_mutex_unlock (&fake_lock);
  return g_string_free (text, FALSE);
}

const gchar *const *
fake_cuda_get_functions (void)
{
  static const gchar *names[FAKE_N_FUNCTIONS + 1];
  guint i;

  for (i = 0; i < FAKE_N_FUNCTIONS; i++)
    names[i] = functions[i].name;
  return names;
}

/* --- faults --- */

void
fake_cuda_fail (const gchar *name, guint nth, gint result)
{
  guint i;

  g_mutex_lock (&fake_lock);
  fail_function = FAKE_N_FUNCTIONS;
  for (i = 0; name != NULL && i < FAKE_N_FUNCTIONS; i++)
    if (strcmp (functions[i].name, name) == 0)
      fail_function = i;
  fail_in = nth;
  fail_result = result;
  has_failed = FALSE;
  g_mutex_unlock (&fake_lock);
}

void
fake_cuda_fail_randomly (gdouble probability, guint32 seed, gint result)
{
  g_mutex_lock (&fake_lock);
  g_clear_pointer (&random_faults, g_rand_free);
  random_faults = g_rand_new_with_seed (seed);
  random_probability = probability;
  random_result = result;
  g_mutex_unlock (&fake_lock);
}

void
fake_cuda_break (guint device, guint nth, gint result)
{
  g_mutex_lock (&fake_lock);
  fake_devices[device].break_in = nth;
  fake_devices[device].break_result = result;
  g_mutex_unlock (&fake_lock);
}

gboolean
fake_cuda_clear_faults (void)
{
  gboolean result;
  guint i;

  g_mutex_lock (&fake_lock);
  result = has_failed;
  has_failed = FALSE;
  fail_in = 0;
  g_clear_pointer (&random_faults, g_rand_free);
  for (i = 0; i < FAKE_MAX_DEVICES; i++)
    {
      fake_devices[i].failure = CUDA_SUCCESS;
      fake_devices[i].break_in = 0;
    }
  g_mutex_unlock (&fake_lock);
  return result;
}

void
fake_cuda_set_memory (guint device, gsize n_bytes)
{
  g_mutex_lock (&fake_lock);
  fake_devices[device].memory = n_bytes;
  g_mutex_unlock (&fake_lock);
}

void
fake_cuda_get_accounts (FakeCudaAccounts *accounts)
{
  guint i;

  g_mutex_lock (&fake_lock);
  *accounts = fake_accounts;
  for (i = 0; i < fake_n_devices; i++)
    accounts->n_bytes += fake_devices[i].used;
  g_mutex_unlock (&fake_lock);
}

/* --- the driver and its devices --- */

CUresult
cuInit (unsigned int flags)
{
  ENTER (cuInit);
  if (flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (fake_n_devices == 0)
    LEAVE (CUDA_ERROR_NO_DEVICE);
  initialized = TRUE;
  process = getpid ();
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDriverGetVersion (int *version)
{
  ENTER (cuDriverGetVersion);
  *version = driver_version;
  LEAVE (CUDA_SUCCESS);
}

static const struct
{
  CUresult code;
  const gchar *name, *text;
} errors[] = {
#define E(name, text) { CUDA_##name, "CUDA_" #name, text },
  E (SUCCESS, "no error") E (ERROR_INVALID_VALUE,
                             "invalid argument") E (ERROR_OUT_OF_MEMORY,
                                                    "out of memory") E (ERROR_NOT_INITIALIZED,
                                                                        "initialization error")
      E (ERROR_STUB_LIBRARY,
         "CUDA driver is a stub library") E (ERROR_NO_DEVICE, "no CUDA-capable device is detected")
          E (ERROR_INVALID_DEVICE, "invalid device ordinal") E (ERROR_INVALID_CONTEXT,
                                                                "invalid device context")
              E (ERROR_NO_BINARY_FOR_GPU,
                 "no kernel image is available for execution on the "
                 "device") E (ERROR_PEER_ACCESS_UNSUPPORTED,
                              "peer access is not supported between these "
                              "two devices") E (ERROR_INVALID_HANDLE, "invalid resource handle")
                  E (ERROR_NOT_FOUND, "named symbol not found") E (ERROR_NOT_READY,
                                                                   "device not ready")
                      E (ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
                          E (ERROR_LAUNCH_OUT_OF_RESOURCES,
                             "too many resources requested for launch")
                              E (ERROR_PEER_ACCESS_ALREADY_ENABLED,
                                 "peer access is already enabled") E (ERROR_LAUNCH_FAILED,
                                                                      "unspecified launch failure")
                                  E (ERROR_ILLEGAL_STATE,
                                     "the operation cannot be performed in the present state")
                                      E (ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                         "operation not permitted when stream is capturing")
                                          E (ERROR_STREAM_CAPTURE_INVALIDATED,
                                             "operation failed due to a previous error during "
                                             "capture") E (ERROR_STREAM_CAPTURE_MERGE,
                                                           "operation would result in a merge of "
                                                           "separate capture sequences")
                                              E (ERROR_STREAM_CAPTURE_UNMATCHED,
                                                 "capture was not ended in the same stream as it "
                                                 "began") E (ERROR_STREAM_CAPTURE_UNJOINED,
                                                             "capturing stream has unjoined work")
                                                  E (ERROR_STREAM_CAPTURE_ISOLATION,
                                                     "dependency created on uncaptured work in "
                                                     "another stream")
                                                      E (ERROR_STREAM_CAPTURE_IMPLICIT,
                                                         "operation would make the legacy stream "
                                                         "depend on a capturing blocking stream")
                                                          E (ERROR_CAPTURED_EVENT,
                                                             "operation not permitted on an event "
                                                             "last recorded in a capturing stream")
                                                              E (ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                                                 "attempt to terminate a "
                                                                 "thread-local capture sequence "
                                                                 "from another thread")
                                                                  E (ERROR_NOT_PERMITTED,
                                                                     "operation not permitted")
                                                                      E (ERROR_NOT_SUPPORTED,
                                                                         "operation not supported")
#undef E
};

CUresult
cuGetErrorName (CUresult error, const char **text)
{
  guint i;

  ENTER (cuGetErrorName);
  for (i = 0; i < G_N_ELEMENTS (errors); i++)
    if (errors[i].code == error)
      {
        *text = errors[i].name;
        LEAVE (CUDA_SUCCESS);
      }
  *text = NULL;
  LEAVE (CUDA_ERROR_INVALID_VALUE);
}

CUresult
cuGetErrorString (CUresult error, const char **text)
{
  guint i;

  ENTER (cuGetErrorString);
  for (i = 0; i < G_N_ELEMENTS (errors); i++)
    if (errors[i].code == error)
      {
        *text = errors[i].text;
        LEAVE (CUDA_SUCCESS);
      }
  *text = NULL;
  LEAVE (CUDA_ERROR_INVALID_VALUE);
}

static gboolean
is_device (CUdevice device)
{
  return device >= 0 && (guint) device < fake_n_devices;
}

CUresult
cuDeviceGet (CUdevice *device, int ordinal)
{
  ENTER (cuDeviceGet);
  if (!is_device (ordinal))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceGetCount (int *count)
{
  ENTER (cuDeviceGetCount);
  *count = fake_n_devices;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceGetName (char *name, int length, CUdevice device)
{
  ENTER (cuDeviceGetName);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  g_snprintf (name, length, "Fake %u", fake_devices[device].physical);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceGetUuid (CUuuid *uuid, CUdevice device)
{
  ENTER (cuDeviceGetUuid);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  device_uuid (fake_devices[device].physical, uuid);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceTotalMem (size_t *bytes, CUdevice device)
{
  ENTER (cuDeviceTotalMem);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *bytes = fake_devices[device].memory;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceGetAttribute (int *value, CUdevice_attribute attribute, CUdevice device)
{
  ENTER (cuDeviceGetAttribute);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *value = 0;
  switch (attribute)
    {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = 1000000;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      /* few, so that small tensors are split as well; the choice of product kernels depends on it */
      *value = fake_multiplies ? 132 : 4;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = 256;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 4 << 20;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = compute_mode;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = has_vmm;
      break;
    default:
      break;
    }
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceGetPCIBusId (char *text, int length, CUdevice device)
{
  ENTER (cuDeviceGetPCIBusId);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  g_snprintf (text, length, "0000:%02x:00.0", fake_devices[device].physical + 1);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDeviceCanAccessPeer (int *can, CUdevice device, CUdevice peer)
{
  ENTER (cuDeviceCanAccessPeer);
  if (!is_device (device) || !is_device (peer))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *can = fake_have_peers && device != peer;
  LEAVE (CUDA_SUCCESS);
}

/* --- contexts --- */

CUresult
cuDevicePrimaryCtxRetain (CUcontext *context, CUdevice device)
{
  ENTER (cuDevicePrimaryCtxRetain);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  if (fake_devices[device].failure != CUDA_SUCCESS)
    LEAVE (fake_devices[device].failure);
  if (!fake_devices[device].retained)
    {
      fake_devices[device].null_stream = fake_stream_new (&fake_devices[device], FALSE);
      fake_devices[device].null_stream->is_default = TRUE;
    }
  fake_devices[device].retained = TRUE;
  *context = &fake_devices[device];
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDevicePrimaryCtxGetState (CUdevice device, unsigned int *flags, int *active)
{
  ENTER (cuDevicePrimaryCtxGetState);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  *flags = fake_devices[device].flags;
  *active = fake_devices[device].retained;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuDevicePrimaryCtxSetFlags (CUdevice device, unsigned int flags)
{
  ENTER (cuDevicePrimaryCtxSetFlags);
  if (!is_device (device))
    LEAVE (CUDA_ERROR_INVALID_DEVICE);
  fake_devices[device].flags = flags;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuCtxSetCurrent (CUcontext context)
{
  ENTER (cuCtxSetCurrent);
  if (context != NULL && !context->retained)
    LEAVE (CUDA_ERROR_INVALID_CONTEXT);
  current = context;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuCtxGetCurrent (CUcontext *context)
{
  ENTER (cuCtxGetCurrent);
  *context = current;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuCtxSynchronize (void)
{
  FakeDevice *device;

  ENTER_CURRENT (cuCtxSynchronize, device);
  if (fake_capture_on_device (device))
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  fake_device_drain (device);
  if (fake_capture_on_device (device)) /* a capture began meanwhile */
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  LEAVE (device->failure);
}

CUresult
cuCtxEnablePeerAccess (CUcontext peer, unsigned int flags)
{
  FakeDevice *device;

  ENTER_CURRENT (cuCtxEnablePeerAccess, device);
  if (peer == NULL || peer == device || !peer->retained || flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (!fake_have_peers)
    LEAVE (CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  if (device->peers & (1u << peer->index))
    LEAVE (CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  device->peers |= 1u << peer->index;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuCtxGetStreamPriorityRange (int *least, int *greatest)
{
  FakeDevice *device;

  ENTER_CURRENT (cuCtxGetStreamPriorityRange, device);
  *least = 0;
  *greatest = -5;
  LEAVE (CUDA_SUCCESS);
}
