/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels, copies and calls of the driver, as NVIDIA's library of traces (CUPTI) reports them.
 *
 * The library hands out buffers of records when they are full or when it is asked to, in a thread of its
 * own or in any call. They are kept, and read when the recording ends. What an operation launches has the
 * number of the operation as its external correlation, which is a stack of each thread; the record that
 * tells so comes beside the record of the call, and both, and what the call has launched, have one
 * correlation. Calls of the runtime, which NVIDIA's other libraries make, contain calls of the driver with
 * the same correlation: of those the outer one is reported. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <time.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-fork-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/trace/gtorch-cupti-abi-private.h"
#include "profiler/gtorch-profiler-private.h"

#define BUFFER_SIZE ((gsize) 1 << 20)
#define KIND        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 /* other profilers take the first ones */

/* Newer ones first. */
static const gchar *const sonames[] = { "libcupti.so.13", "libcupti.so.12" };

static struct
{
#define F(name, arguments) CUptiResult (*name) arguments;
#include "cuda/trace/gtorch-cupti-functions.inc"
#undef F
} cupti;

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
#define F(name, arguments) { #name, (gpointer *) &cupti.name },
#include "cuda/trace/gtorch-cupti-functions.inc"
#undef F
};

static const CUpti_ActivityKind kinds[] = {
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
  CUPTI_ACTIVITY_KIND_RUNTIME,
  CUPTI_ACTIVITY_KIND_DRIVER,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
  CUPTI_ACTIVITY_KIND_MEMCPY,
  CUPTI_ACTIVITY_KIND_MEMCPY2,
  CUPTI_ACTIVITY_KIND_MEMSET,
};

/* Calls that launch nothing and that the library makes again and again. */
static const gchar *const ignored[] = {
  "cuCtxGetCurrent",
  "cuCtxSetCurrent",
  "cuCtxPushCurrent",
  "cuCtxPopCurrent",
  "cuEventQuery",
  "cuStreamQuery",
  "cuGetProcAddress",
  "cuStreamIsCapturing",
  "cuPointerGetAttribute",
  "cuStreamGetCaptureInfo",
  "cudaGetDevice",
  "cudaSetDevice",
  "cudaGetLastError",
  "cudaPeekAtLastError",
  "cudaStreamIsCapturing",
  "cudaEventQuery",
  "cudaStreamGetCaptureInfo",
};

typedef struct
{
  guint8 *data;
  gsize n_bytes;
} Buffer;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GArray *full;      /* Buffer; under the lock */
static guint64 n_dropped; /* under the lock */
static gboolean is_ready; /* under the lock: the library is open and knows the callbacks */

static void
buffer_clear (gpointer data)
{
  g_free (((Buffer *) data)->data);
}

/* --- the library --- */

static gboolean
check (CUptiResult result, const gchar *what, GError **error)
{
  const gchar *text = NULL;

  if (result == CUPTI_SUCCESS)
    return TRUE;
  cupti.cuptiGetResultString (result, &text);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, "%s: %s (%d)", what,
               text != NULL ? text : "?", (gint) result);
  return FALSE;
}

static gboolean
open_library (GError **error)
{
  g_autoptr (GError) first = NULL;
  const gchar *soname = sonames[0];
  gpointer library = gtorch_cuda_library_open (soname, &first);
  guint i;

  for (i = 1; library == NULL && i < G_N_ELEMENTS (sonames); i++)
    library = gtorch_cuda_library_open (soname = sonames[i], NULL);
  if (library == NULL)
    {
      g_propagate_error (error, g_steal_pointer (&first));
      return FALSE;
    }
  for (i = 0; i < G_N_ELEMENTS (symbols); i++)
    {
      *symbols[i].slot = gtorch_cuda_library_symbol (library, soname, symbols[i].name, error);
      if (*symbols[i].slot == NULL)
        return FALSE;
    }
  return TRUE;
}

static uint64_t
get_time (void)
{
  return gtorch_profile_now ();
}

static void
give_buffer (uint8_t **buffer, size_t *size, size_t *max_records)
{
  *buffer = g_try_malloc (BUFFER_SIZE);
  *size = *buffer != NULL ? BUFFER_SIZE : 0;
  *max_records = 0;
}

static void
take_buffer (struct CUctx_st *context, uint32_t stream, uint8_t *data, size_t size,
             size_t valid_size)
{
  Buffer buffer = { data, valid_size };
  size_t dropped = 0;

  cupti.cuptiActivityGetNumDroppedRecords (context, stream, &dropped);
  g_mutex_lock (&lock);
  n_dropped += dropped;
  if (full == NULL)
    {
      full = g_array_new (FALSE, FALSE, sizeof (Buffer));
      g_array_set_clear_func (full, buffer_clear);
    }
  g_array_append_val (full, buffer);
  g_mutex_unlock (&lock);
}

static gboolean
make_ready (GError **error)
{
  gboolean success;

  g_mutex_lock (&lock);
  success = is_ready;
  g_mutex_unlock (&lock);
  if (success)
    return TRUE;
  success = open_library (error)
            && check (cupti.cuptiSetThreadIdType (CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
                      "cuptiSetThreadIdType", error)
            && check (cupti.cuptiActivityRegisterTimestampCallback (get_time),
                      "cuptiActivityRegisterTimestampCallback", error)
            && check (cupti.cuptiActivityRegisterCallbacks (give_buffer, take_buffer),
                      "cuptiActivityRegisterCallbacks", error);
  g_mutex_lock (&lock);
  is_ready = success;
  g_mutex_unlock (&lock);
  return success;
}

/* --- recording --- */

static void
disable (guint n)
{
  while (n-- > 0)
    cupti.cuptiActivityDisable (kinds[n]);
}

static GArray *
take_full (guint64 *dropped)
{
  GArray *buffers;

  cupti.cuptiActivityFlushAll (CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  g_mutex_lock (&lock);
  buffers = g_steal_pointer (&full);
  *dropped = n_dropped;
  n_dropped = 0;
  g_mutex_unlock (&lock);
  return buffers;
}

static gboolean
begin (GError **error)
{
  guint64 dropped;
  GArray *former;
  guint i;

  if (!make_ready (error))
    return FALSE;
  former = take_full (&dropped);
  if (former != NULL)
    g_array_unref (former);
  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (!check (cupti.cuptiActivityEnable (kinds[i]), "cuptiActivityEnable", error))
      {
        disable (i);
        return FALSE;
      }
  return TRUE;
}

static void
push (guint64 id)
{
  cupti.cuptiActivityPushExternalCorrelationId (KIND, id);
}

static void
pop (void)
{
  uint64_t last;

  cupti.cuptiActivityPopExternalCorrelationId (KIND, &last);
}

/* --- reading --- */

/* What is known of all buffers before their records are reported. */
typedef struct
{
  GHashTable *externals; /* correlation -> guint64 * */
  GHashTable *runtime;   /* correlations of calls of the runtime */
  GHashTable *names;     /* of kernels: mangled -> readable */
  gchar *(*demangle) (const gchar *name, gchar *buffer, gsize *length, gint *status);
  GTorchGpuActivityFunc func;
  gpointer data;
} Reading;

typedef void (*RecordFunc) (Reading *reading, CUpti_Activity *record);

static void
for_each (GArray *buffers, Reading *reading, RecordFunc func)
{
  guint i;

  for (i = 0; i < buffers->len; i++)
    {
      const Buffer *buffer = &g_array_index (buffers, Buffer, i);
      CUpti_Activity *record = NULL;

      while (cupti.cuptiActivityGetNextRecord (buffer->data, buffer->n_bytes, &record)
             == CUPTI_SUCCESS)
        func (reading, record);
    }
}

static void
note (Reading *reading, CUpti_Activity *record)
{
  if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
    {
      const CUpti_ActivityExternalCorrelation *external = (gpointer) record;

      if (external->externalKind == KIND)
        g_hash_table_insert (reading->externals, GUINT_TO_POINTER (external->correlationId),
                             (gpointer) external);
    }
  else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME)
    g_hash_table_add (reading->runtime,
                      GUINT_TO_POINTER (((CUpti_ActivityAPI *) (gpointer) record)->correlationId));
}

static const gchar *
readable (Reading *reading, const gchar *name)
{
  gchar *known, *made = NULL;
  gint status = 0;

  if (name == NULL)
    return "?";
  known = g_hash_table_lookup (reading->names, name);
  if (known != NULL)
    return known;
  if (reading->demangle != NULL && g_str_has_prefix (name, "_Z"))
    made = reading->demangle (name, NULL, NULL, &status);
  known = g_strdup (made != NULL && status == 0 ? made : name);
  free (made);
  g_hash_table_insert (reading->names, g_strdup (name), known);
  return known;
}

static gboolean
is_ignored (const gchar *name)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ignored); i++)
    if (g_str_has_prefix (name, ignored[i]))
      return TRUE;
  return FALSE;
}

static gboolean
read_call (Reading *reading, const CUpti_ActivityAPI *call, GTorchGpuActivity *activity)
{
  const gboolean is_driver = call->kind == CUPTI_ACTIVITY_KIND_DRIVER;
  const gchar *name = NULL;

  if (is_driver && g_hash_table_contains (reading->runtime, GUINT_TO_POINTER (call->correlationId)))
    return FALSE;
  cupti.cuptiGetCallbackName (is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API,
                              call->cbid, &name);
  if (name != NULL && is_ignored (name))
    return FALSE;
  *activity = (GTorchGpuActivity){
    .kind = GTORCH_RECORD_DRIVER,
    .name = name,
    .start = call->start,
    .end = call->end,
    .correlation = call->correlationId,
    .thread = call->threadId,
    .result = call->returnValue,
    .device = -1,
  };
  return TRUE;
}

static void
read_kernel (Reading *reading, const CUpti_ActivityKernel9 *kernel, GTorchGpuActivity *activity)
{
  *activity = (GTorchGpuActivity){
    .kind = GTORCH_RECORD_KERNEL,
    .name = readable (reading, kernel->name),
    .start = kernel->start,
    .end = kernel->end,
    .correlation = kernel->correlationId,
    .device = kernel->deviceId,
    .stream = kernel->streamId,
    .grid = { kernel->gridX, kernel->gridY, kernel->gridZ },
    .block = { kernel->blockX, kernel->blockY, kernel->blockZ },
    .n_registers = kernel->registersPerThread,
    .static_shared = kernel->staticSharedMemory,
    .dynamic_shared = kernel->dynamicSharedMemory,
    .graph = kernel->graphId,
    .graph_node = kernel->graphNodeId,
  };
}

static const gchar *
direction_of (guint kind)
{
  static const gchar *const names[] = {
    [CUPTI_ACTIVITY_MEMCPY_KIND_HTOD] = "HtoD", [CUPTI_ACTIVITY_MEMCPY_KIND_DTOH] = "DtoH",
    [CUPTI_ACTIVITY_MEMCPY_KIND_DTOD] = "DtoD", [CUPTI_ACTIVITY_MEMCPY_KIND_HTOH] = "HtoH",
    [CUPTI_ACTIVITY_MEMCPY_KIND_PTOP] = "PtoP",
  };

  return kind < G_N_ELEMENTS (names) && names[kind] != NULL ? names[kind] : "unknown";
}

static const gchar *
memory_of (guint kind)
{
  static const gchar *const names[] = {
    [CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE] = "Pageable",
    [CUPTI_ACTIVITY_MEMORY_KIND_PINNED] = "Pinned",
    [CUPTI_ACTIVITY_MEMORY_KIND_DEVICE] = "Device",
    [CUPTI_ACTIVITY_MEMORY_KIND_MANAGED] = "Managed",
  };

  return kind < G_N_ELEMENTS (names) && names[kind] != NULL ? names[kind] : "Unknown";
}

/* Both kinds of copies begin alike. name: is written to. */
static void
read_copy (const CUpti_ActivityMemcpy5 *copy, guint32 correlation, GTorchGpuActivity *activity,
           gchar *name, gsize size)
{
  const gchar *direction = direction_of (copy->copyKind);

  g_snprintf (name, size, "Memcpy %s (%s -> %s)", direction, memory_of (copy->srcKind),
              memory_of (copy->dstKind));
  *activity = (GTorchGpuActivity){
    .kind = GTORCH_RECORD_COPY,
    .name = name,
    .start = copy->start,
    .end = copy->end,
    .correlation = correlation,
    .device = copy->deviceId,
    .stream = copy->streamId,
    .n_bytes = copy->bytes,
    .direction = direction,
  };
}

static void
read_fill (const CUpti_ActivityMemset4 *fill, GTorchGpuActivity *activity, gchar *name, gsize size)
{
  g_snprintf (name, size, "Memset (%s)", memory_of (fill->memoryKind));
  *activity = (GTorchGpuActivity){
    .kind = GTORCH_RECORD_FILL,
    .name = name,
    .start = fill->start,
    .end = fill->end,
    .correlation = fill->correlationId,
    .device = fill->deviceId,
    .stream = fill->streamId,
    .n_bytes = fill->bytes,
  };
}

static void
report (Reading *reading, CUpti_Activity *record)
{
  const CUpti_ActivityExternalCorrelation *external;
  GTorchGpuActivity activity;
  gchar name[64];

  switch (record->kind)
    {
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      if (!read_call (reading, (gpointer) record, &activity))
        return;
      break;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      read_kernel (reading, (gpointer) record, &activity);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      read_copy ((gpointer) record, ((CUpti_ActivityMemcpy5 *) (gpointer) record)->correlationId,
                 &activity, name, sizeof name);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      read_copy ((gpointer) record,
                 ((CUpti_ActivityMemcpyPtoP4 *) (gpointer) record)->correlationId, &activity, name,
                 sizeof name);
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      read_fill ((gpointer) record, &activity, name, sizeof name);
      break;
    default:
      return;
    }
  external =
      g_hash_table_lookup (reading->externals, GUINT_TO_POINTER ((guint) activity.correlation));
  activity.external = external != NULL ? external->externalId : 0;
  reading->func (&activity, reading->data);
}

static guint64
end (GTorchGpuActivityFunc func, gpointer data)
{
  g_autoptr (GArray) buffers = NULL;
  guint64 dropped;
  Reading reading = { .func = func, .data = data };
  gpointer library;

  /* The devices have done what is recorded. Their records are asked for while their kinds are
   * wanted, and what other threads have launched since then once more. */
  cupti.cuptiActivityFlushAll (CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  disable (G_N_ELEMENTS (kinds));
  buffers = take_full (&dropped);
  if (func == NULL || buffers == NULL)
    return dropped;
  reading.externals = g_hash_table_new (NULL, NULL);
  reading.runtime = g_hash_table_new (NULL, NULL);
  reading.names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  library = gtorch_library_open ("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
  if (library != NULL)
    *(gpointer *) &reading.demangle = dlsym (library, "__cxa_demangle");
  for_each (buffers, &reading, note);
  for_each (buffers, &reading, report);
  g_hash_table_unref (reading.externals);
  g_hash_table_unref (reading.runtime);
  g_hash_table_unref (reading.names);
  return dropped;
}

static const GTorchGpuTracer tracer = { begin, end, push, pop, GTORCH_DEVICE_TYPE_CUDA };

/* Earlier than constructors of programs that link the library statically, which may use it. */
static void __attribute__ ((constructor (200))) set_gpu_tracer (void)
{
  gtorch_gpu_tracer = &tracer;
}
