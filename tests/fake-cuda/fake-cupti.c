/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for CUPTI; see fake-cupti.h. Records are written to buffers of the program as they come. */

#include "config.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda/trace/gtorch-cupti-abi-private.h"

#include "fake-cuda.h"
#include "fake-cupti.h"

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT    __attribute__ ((visibility ("default")))
#define N_KINDS   64
#define MAX_STACK 64

/* Records begin with their size here, which stands before what the program gets. */
typedef struct
{
  guint64 size;
} Head;

static GMutex lock; /* taken inside of the driver's */
static gboolean enabled[N_KINDS];
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc timestamp;
static guint8 *buffer;
static size_t size, used;
static guint to_drop, n_dropped, n_kernels, fail_in, to_untime, to_return;
static gint64 skew_;
static const gchar *fail_name;
static gint fail_result;

/* The ids of this thread. */
static __thread guint64 ids[MAX_STACK];
static __thread guint n_ids;

void
fake_cupti_fail (const gchar *name, guint nth, gint result)
{
  fail_name = name;
  fail_in = nth;
  fail_result = result;
}

void
fake_cupti_drop (guint n)
{
  to_drop = n;
}

void
fake_cupti_skew (gint64 skew)
{
  skew_ = skew;
}

void
fake_cupti_untime (guint n)
{
  to_untime = n;
}

void
fake_cupti_return (guint result)
{
  to_return = result;
}

guint
fake_cupti_get_kernels (void)
{
  return n_kernels;
}

guint
fake_cupti_get_enabled (void)
{
  guint i, n = 0;

  for (i = 0; i < N_KINDS; i++)
    n += enabled[i];
  return n;
}

#define MAY_FAIL(name)                                                    \
  if (fail_in > 0 && g_strcmp0 (fail_name, #name) == 0 && --fail_in == 0) \
  return fail_result

/* --- records --- */

static void
write_record (gconstpointer record, gsize n_bytes)
{
  Head head = { (n_bytes + 7) & ~(gsize) 7 };

  g_mutex_lock (&lock);
  if (to_drop > 0)
    {
      to_drop--;
      n_dropped++;
      g_mutex_unlock (&lock);
      return;
    }
  if (buffer != NULL && used + sizeof head + head.size > size)
    {
      complete (NULL, 0, buffer, size, used);
      buffer = NULL;
    }
  if (buffer == NULL)
    {
      size_t most;

      request (&buffer, &size, &most);
      used = 0;
    }
  memcpy (buffer + used, &head, sizeof head);
  memset (buffer + used + sizeof head, 0, head.size);
  memcpy (buffer + used + sizeof head, record, n_bytes);
  used += sizeof head + head.size;
  g_mutex_unlock (&lock);
}

static void
called (guint correlation, guint function, gint64 start, gint64 end)
{
  CUpti_ActivityAPI call = { .kind = CUPTI_ACTIVITY_KIND_DRIVER };
  CUpti_ActivityExternalCorrelation external = { .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION };

  if (enabled[CUPTI_ACTIVITY_KIND_DRIVER])
    {
      call.cbid = function;
      call.start = start;
      call.end = end;
      call.processId = getpid ();
      call.threadId = syscall (SYS_gettid);
      call.correlationId = correlation;
      call.returnValue = to_return;
      to_return = 0;
      write_record (&call, sizeof call);
    }
  if (!enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] || n_ids == 0)
    return;
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
  external.externalId = ids[MIN (n_ids, MAX_STACK) - 1];
  external.correlationId = correlation;
  write_record (&external, sizeof external);
}

static void
ran_kernel (const FakeCudaWork *work)
{
  CUpti_ActivityKernel9 kernel = { .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL };

  kernel.name = work->name;
  kernel.start = to_untime == 0 ? work->start - skew_ : 0;
  kernel.end = to_untime == 0 ? work->end - skew_ : 0;
  to_untime -= to_untime > 0;
  kernel.deviceId = work->device;
  kernel.streamId = 7;
  kernel.correlationId = work->correlation;
  kernel.gridX = work->grid[0];
  kernel.gridY = work->grid[1];
  kernel.gridZ = work->grid[2];
  kernel.blockX = work->block[0];
  kernel.blockY = work->block[1];
  kernel.blockZ = work->block[2];
  kernel.registersPerThread = 32;
  kernel.dynamicSharedMemory = work->shared;
  n_kernels++;
  write_record (&kernel, sizeof kernel);
}

static void
ran_copy (const FakeCudaWork *work)
{
  CUpti_ActivityMemcpy5 copy = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY };

  copy.copyKind = work->from_host ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                  : work->to_host ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                  : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  copy.srcKind =
      work->from_host ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.dstKind =
      work->to_host ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = work->n_bytes;
  copy.start = work->start;
  copy.end = work->end;
  copy.deviceId = work->device;
  copy.streamId = 7;
  copy.correlationId = work->correlation;
  write_record (&copy, sizeof copy);
}

static void
ran (const FakeCudaWork *work)
{
  CUpti_ActivityMemset4 fill = { .kind = CUPTI_ACTIVITY_KIND_MEMSET };

  if (work->kind == FAKE_CUDA_RAN_KERNEL)
    {
      if (enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        ran_kernel (work);
      return;
    }
  if (work->kind == FAKE_CUDA_RAN_COPY)
    {
      if (enabled[CUPTI_ACTIVITY_KIND_MEMCPY])
        ran_copy (work);
      return;
    }
  if (!enabled[CUPTI_ACTIVITY_KIND_MEMSET])
    return;
  fill.bytes = work->n_bytes;
  fill.start = work->start;
  fill.end = work->end;
  fill.deviceId = work->device;
  fill.streamId = 7;
  fill.correlationId = work->correlation;
  fill.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  write_record (&fill, sizeof fill);
}

static const FakeCudaTracer tracer = { called, ran };

/* --- the functions --- */

EXPORT CUptiResult
cuptiGetVersion (uint32_t *version)
{
  *version = 130001;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiGetResultString (CUptiResult result, const char **text)
{
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR_OF_THE_FAKE";
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiGetCallbackName (CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
  *name = fake_cuda_get_functions ()[cbid];
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiSetThreadIdType (CUpti_ActivityThreadIdType type)
{
  MAY_FAIL (cuptiSetThreadIdType);
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                      : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult
cuptiActivityRegisterTimestampCallback (CUpti_TimestampCallbackFunc func)
{
  MAY_FAIL (cuptiActivityRegisterTimestampCallback);
  timestamp = func;
  return timestamp != NULL ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult
cuptiActivityRegisterCallbacks (CUpti_BuffersCallbackRequestFunc requested,
                                CUpti_BuffersCallbackCompleteFunc completed)
{
  MAY_FAIL (cuptiActivityRegisterCallbacks);
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityEnable (CUpti_ActivityKind kind)
{
  MAY_FAIL (cuptiActivityEnable);
  if ((guint) kind >= N_KINDS || request == NULL)
    return CUPTI_ERROR_INVALID_PARAMETER;
  enabled[kind] = TRUE;
  fake_cuda_set_tracer (&tracer);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityDisable (CUpti_ActivityKind kind)
{
  MAY_FAIL (cuptiActivityDisable);
  enabled[kind] = FALSE;
  if (fake_cupti_get_enabled () == 0)
    fake_cuda_set_tracer (NULL);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityFlushAll (uint32_t flag)
{
  MAY_FAIL (cuptiActivityFlushAll);
  g_mutex_lock (&lock);
  if (buffer != NULL)
    complete (NULL, 0, buffer, size, used);
  buffer = NULL;
  g_mutex_unlock (&lock);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityGetNextRecord (uint8_t *data, size_t n_bytes, CUpti_Activity **record)
{
  guint8 *next = data;

  if (*record != NULL)
    {
      const Head *head = (const Head *) (const void *) ((guint8 *) *record - sizeof (Head));

      next = (guint8 *) *record + head->size;
    }
  if ((gsize) (next - data) >= n_bytes)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *) (void *) (next + sizeof (Head));
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityGetNumDroppedRecords (struct CUctx_st *context, uint32_t stream, size_t *dropped)
{
  *dropped = n_dropped;
  n_dropped = 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityPushExternalCorrelationId (CUpti_ExternalCorrelationKind kind, uint64_t id)
{
  if (n_ids < MAX_STACK)
    ids[n_ids] = id;
  n_ids++;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult
cuptiActivityPopExternalCorrelationId (CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
  if (n_ids == 0)
    return CUPTI_ERROR_QUEUE_EMPTY;
  n_ids--;
  *last = n_ids < MAX_STACK ? ids[n_ids] : 0;
  return CUPTI_SUCCESS;
}
