/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations for which the fake has no loops: the program's own CPU code computes them, on the memory of
 * the device and in stream order ("borrow=1"). Programs then run as a whole; such an operation is tested
 * up to its first kernel launch. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fake-cuda-private.h"
#include "stream/gtorch-stream-private.h"
#include "kernels/gtorch-kernel-params.h"
#include "dispatch/gtorch-run-private.h"
#include <gtorch/dispatch/gtorch-saved-call-private.h>

typedef struct
{
  gint refs;
  GTorchSavedCall *saved;
  GtReport *report; /* where kernels report an index out of range */
} Borrowed;

/* The arguments of random operations: a graph may pass other numbers. */
typedef struct
{
  Borrowed *borrowed;
  GtRandom random;
} RandomParameter;

/* The program calls this if it finds no kernel. */
FAKE_CUDA_API CUresult gtorch_cuda_stand_in_launch (const GTorchOpCall *call, CUstream stream,
                                                    GTorchDevice *host, gpointer report,
                                                    gconstpointer random);

static __thread gboolean is_borrowing;

gboolean
fake_cuda_is_borrowing (void)
{
  return is_borrowing;
}

static void
keep (GTorchStorage *storage)
{
}

static void
free_copy (GTorchStorage *storage)
{
  g_free (storage->data);
}

/* Keeps no reference to the program's objects: memory of a device is reused in stream order only, and
 * host data is copied. */
static GTorchImpl *
stand_for (GTorchImpl *impl, gpointer host)
{
  GTorchStorage *theirs = impl->storage, *storage;
  GTorchImpl *result;

  if (theirs->device == host)
    storage = gtorch_storage_new_foreign (host, g_memdup2 (theirs->data, theirs->n_bytes),
                                          theirs->n_bytes, free_copy, NULL);
  else
    storage = gtorch_storage_new_foreign (host, NULL, theirs->n_bytes, keep, theirs->data);
  result = gtorch_impl_new_strided (storage, impl->dtype, impl->offset, impl->shape, impl->strides,
                                    impl->n_dims);
  result->is_number = impl->is_number;
  gtorch_storage_unref (storage);
  return result;
}

static gboolean
find_memory (GTorchImpl *impl, const FakeDevice *device)
{
  GTorchStorage *storage = impl != NULL ? impl->storage : NULL;

  if (storage == NULL || storage->free_func == free_copy || storage->n_bytes == 0)
    return TRUE;
  storage->data = fake_memory_at ((guintptr) storage->free_data, storage->n_bytes, device);
  return storage->data != NULL;
}

/* Returns the number that follows a word in a message, or -1. */
static gint64
find_number (const gchar *message, const gchar *word)
{
  const gchar *found = strstr (message, word);

  return found != NULL ? g_ascii_strtoll (found + strlen (word), NULL, 10) : -1;
}

/* Kernels skip invalid elements and report them: the host reads the report when it next waits. */
static void
write_report (GtReport *report, const GTorchOpCall *call, const GError *error)
{
  gint64 size = find_number (error->message, " of size ");

  if (report->state != 0)
    return;
  report->op = gtorch_call_named_op (call)->id;
  if (error->code == GTORCH_ERROR_INDEX)
    {
      report->value =
          find_number (error->message, strstr (error->message, "target ") != NULL   ? "target "
                                       : strstr (error->message, "offset ") != NULL ? "offset "
                                                                                    : "index ");
      report->size = size >= 0 ? size : find_number (error->message, " out of range for ");
      report->op |= (guint) (find_number (error->message, " dimension ") + 1) << 16;
    }
  else
    report->size =
        strcmp (call->op->name, "multinomial") == 0 ? GT_REPORT_WEIGHTS : GT_REPORT_PROBABILITY;
  __atomic_store_n (&report->state, 2, __ATOMIC_RELEASE);
}

static CUresult
run_borrowed (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
              const FakeDevice *device)
{
  const Borrowed *borrowed = *(Borrowed *const *) parameter;
  GTorchOpCall call = borrowed->saved->call;
  g_autoptr (GError) error = NULL;
  gboolean ok;
  guint i;

  for (i = 0; i < call.n_inputs; i++)
    if (!find_memory (call.inputs[i], device))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < call.n_outputs; i++)
    if (!find_memory (call.outputs[i], device))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (kernel->n_bytes == sizeof (RandomParameter))
    fake_kernel_find_numbers (&((const RandomParameter *) parameter)->random, &call);
  is_borrowing = TRUE;
  ok = gtorch_call_run (&call, NULL, &error);
  is_borrowing = FALSE;
  if (ok)
    return CUDA_SUCCESS;
  if (borrowed->report != NULL
      && (error->code == GTORCH_ERROR_INDEX || (call.op->flags & GTORCH_OP_FLAG_RANDOM)))
    {
      write_report (borrowed->report, &call, error);
      return CUDA_SUCCESS;
    }
  fprintf (stderr, "fake-cuda: %s\n", error->message);
  return CUDA_ERROR_LAUNCH_FAILED;
}

static void
ref_borrowed (gpointer parameter)
{
  (*(Borrowed **) parameter)->refs++;
}

static void
unref_borrowed (gpointer parameter)
{
  Borrowed *borrowed = *(Borrowed **) parameter;

  if (--borrowed->refs > 0)
    return;
  gtorch_saved_call_free (borrowed->saved);
  g_free (borrowed);
}

CUresult
gtorch_cuda_stand_in_launch (const GTorchOpCall *call, CUstream stream, GTorchDevice *host,
                             gpointer report, gconstpointer random)
{
  static const FakeKernel kernels[] = {
    { .name = (gchar *) "borrowed",
      .n_bytes = sizeof (Borrowed *),
      .run = run_borrowed,
      .ref = ref_borrowed,
      .unref = unref_borrowed },
    { .name = (gchar *) "borrowed random",
      .n_bytes = sizeof (RandomParameter),
      .run = run_borrowed,
      .ref = ref_borrowed,
      .unref = unref_borrowed },
  };
  const FakeKernel *kernel = &kernels[random != NULL];
  FakeOp op = { .kind = FAKE_KERNEL, .launch = { kernel } };
  RandomParameter parameter = { 0 };
  Borrowed *borrowed;

  if (!fake_borrows || gtorch_device_get_run (host, call->op) == NULL)
    return CUDA_ERROR_NOT_SUPPORTED;
  borrowed = g_new0 (Borrowed, 1);
  borrowed->refs = 1;
  borrowed->report = report;
  borrowed->saved = gtorch_saved_call_new (call, stand_for, host);
  borrowed->saved->call.device = host;
  parameter.borrowed = borrowed;
  if (random != NULL)
    parameter.random = *(const GtRandom *) random;
  op.launch.parameter = g_memdup2 (&parameter, kernel->n_bytes);
  g_mutex_lock (&fake_lock);
  stream = fake_stream_find (stream);
  return fake_leave (stream != NULL ? fake_stream_push (stream, &op) : CUDA_ERROR_INVALID_HANDLE);
}
