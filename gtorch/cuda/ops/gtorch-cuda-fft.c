/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms by cuFFT. A call of cuFFT transforms up to three dimensions of lines with one stride.
 * In a contiguous tensor these are its last dimensions, or its first one; other dimensions are moved to the
 * end in a copy. Plans are kept in the device's plan cache; work areas are allocated by GTorch for the
 * duration of a call. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "device/gtorch-fft-plan-cache-private.h"
#include "base/gtorch-fork-private.h"
#include "gtorch-ops-private.h"

#define SONAME   "libcufft.so.12"
#define MAX_RANK 3

/* --- the part of cuFFT's binary interface that is used --- */

enum
{
  CUFFT_FORWARD = -1,
  CUFFT_INVERSE = 1,
  CUFFT_ALLOC_FAILED = 2,
  CUFFT_NOT_SUPPORTED = 16,
  CUFFT_R_32F = 0,
  CUFFT_R_64F = 1,
  CUFFT_C_32F = 4,
  CUFFT_C_64F = 5,
};

static struct
{
  gint (*create) (gint *handle);
  gint (*destroy) (gint handle);
  gint (*set_auto_allocation) (gint handle, gint automatic);
  gint (*make_plan_many) (gint handle, gint rank, long long *n, long long *in_embed,
                          long long in_stride, long long in_distance, gint in_type,
                          long long *out_embed, long long out_stride, long long out_distance,
                          gint out_type, long long batch, gsize *work_size, gint execution_type);
  gint (*set_stream) (gint handle, CUstream stream);
  gint (*set_work_area) (gint handle, gpointer area);
  gint (*exec) (gint handle, gpointer in, gpointer out, gint direction);
} fft;

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
  { "cufftCreate", (gpointer *) &fft.create },
  { "cufftDestroy", (gpointer *) &fft.destroy },
  { "cufftSetAutoAllocation", (gpointer *) &fft.set_auto_allocation },
  { "cufftXtMakePlanMany", (gpointer *) &fft.make_plan_many },
  { "cufftSetStream", (gpointer *) &fft.set_stream },
  { "cufftSetWorkArea", (gpointer *) &fft.set_work_area },
  { "cufftXtExec", (gpointer *) &fft.exec },
};

static GMutex lock; /* protects opening the library */
GTORCH_FORK_LOCK (lock);
static gpointer library;

static gboolean
open_library (GError **error)
{
  gpointer opened = NULL;
  guint i;

  if (g_atomic_pointer_get (&library) != NULL)
    return TRUE;
  g_mutex_lock (&lock);
  opened = library != NULL ? library : gtorch_cuda_library_open (SONAME, error);
  for (i = 0; opened != NULL && i < G_N_ELEMENTS (symbols); i++)
    if ((*symbols[i].slot = gtorch_cuda_library_symbol (opened, SONAME, symbols[i].name, error))
        == NULL)
      opened = NULL;
  g_atomic_pointer_set (&library, opened);
  g_mutex_unlock (&lock);
  return opened != NULL;
}

static gboolean
fft_check (gint status, const gchar *what, GError **error)
{
  if (G_LIKELY (status == 0))
    return TRUE;
  g_set_error (error, GTORCH_ERROR,
               status == CUFFT_NOT_SUPPORTED  ? GTORCH_ERROR_NOT_SUPPORTED
               : status == CUFFT_ALLOC_FAILED ? GTORCH_ERROR_OUT_OF_MEMORY
                                              : GTORCH_ERROR_CUDA,
               _ ("%s failed with status %d"), what, status);
  return FALSE;
}

/* --- plans --- */

typedef struct
{
  gint64 rank, n[MAX_RANK]; /* the sizes, which are those of the real tensor if one is real */
  gint64 in_stride, in_distance, out_stride, out_distance, batch;
  gint64 in_dtype, out_dtype;
  gint64 device;
} Layout;

G_STATIC_ASSERT (sizeof (Layout) <= sizeof (GTorchFFTKey));

typedef struct
{
  GTorchFFTCached cached;
  GMutex lock; /* held during a call, as a plan has one stream and one work area at a time */
  GTorchCudaDevice *device;
  gint handle;
  gsize work_size;
} Plan;

static void
plan_free (gpointer data)
{
  Plan *plan = data;
  GTORCH_CUDA_APART;

  /* The plan's work is done before its memory is freed, as cuFFT frees it with functions of the driver that
   * synchronise. */
  if (gtorch_cuda_device_activate (plan->device, NULL))
    fft.destroy (plan->handle);
  g_mutex_clear (&plan->lock);
  g_free (plan);
}

static gint
cuda_type (gint64 dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      return CUFFT_R_32F;
    case GTORCH_DTYPE_FLOAT64:
      return CUFFT_R_64F;
    case GTORCH_DTYPE_COMPLEX64:
      return CUFFT_C_32F;
    default:
      return CUFFT_C_64F;
    }
}

static Plan *
plan_new (const Layout *layout, GTorchCudaDevice *device, GError **error)
{
  const gboolean is_double = gtorch_dtype_infos[layout->in_dtype].real == GTORCH_DTYPE_FLOAT64;
  long long n[MAX_RANK], in_embed[MAX_RANK], out_embed[MAX_RANK];
  gsize work_size = 0;
  gint handle, i;
  Plan *plan;

  if (!fft_check (fft.create (&handle), "cufftCreate", error))
    return NULL;
  for (i = 0; i < layout->rank; i++)
    n[i] = in_embed[i] = out_embed[i] = layout->n[i];
  /* The embedding sizes equal n: several dimensions are always complex and contiguous, and for a single one
   * they are ignored. */
  if (!fft_check (fft.set_auto_allocation (handle, 0), "cufftSetAutoAllocation", error)
      || !fft_check (fft.make_plan_many (handle, layout->rank, n, in_embed, layout->in_stride,
                                         layout->in_distance, cuda_type (layout->in_dtype),
                                         out_embed, layout->out_stride, layout->out_distance,
                                         cuda_type (layout->out_dtype), layout->batch, &work_size,
                                         is_double ? CUFFT_C_64F : CUFFT_C_32F),
                     "cufftXtMakePlanMany", error))
    {
      fft.destroy (handle);
      return NULL;
    }
  plan = g_new0 (Plan, 1);
  plan->cached.ref_count = 1;
  plan->cached.free = plan_free;
  plan->device = device;
  plan->handle = handle;
  plan->work_size = work_size;
  g_mutex_init (&plan->lock);
  return plan;
}

static Plan *
plan_get (const Layout *layout, GTorchCudaDevice *device, GError **error)
{
  GTorchFFTPlanCache *cache = gtorch_device_get_fft_plan_cache ((GTorchDevice *) device);
  GTorchFFTKey key = { { 0 } };
  Plan *plan;

  memcpy (&key, layout, sizeof *layout);
  plan = gtorch_fft_plan_cache_find (cache, &key);
  if (plan == NULL && (plan = plan_new (layout, device, error)) != NULL)
    plan = gtorch_fft_plan_cache_add (cache, &key, plan);
  return plan;
}

static gboolean
run (const Layout *layout, GTorchCudaLane *lane, gpointer in, gpointer out, gboolean inverse,
     GError **error)
{
  g_autoptr (GTorchImpl) area = NULL;
  gboolean done;
  Plan *plan;

  if (!open_library (error) || !gtorch_cuda_device_activate (lane->device, error)
      || (plan = plan_get (layout, lane->device, error)) == NULL)
    return FALSE;
  if (plan->work_size > 0)
    area = gtorch_cuda_scratch (lane, plan->work_size, error);
  done = area != NULL || plan->work_size == 0;
  if (done)
    {
      g_mutex_lock (&plan->lock);
      done =
          fft_check (fft.set_stream (plan->handle, lane->handle), "cufftSetStream", error)
          && fft_check (fft.set_work_area (plan->handle,
                                           area != NULL ? gtorch_impl_data (area) : NULL),
                        "cufftSetWorkArea", error)
          && fft_check (fft.exec (plan->handle, in, out, inverse ? CUFFT_INVERSE : CUFFT_FORWARD),
                        "cufftXtExec", error);
      g_mutex_unlock (&plan->lock);
    }
  gtorch_cuda_lane_keep (lane, plan, gtorch_fft_cached_unref);
  return done;
}

/* --- tensors --- */

/* Transforms the last `rank` dimensions of contiguous tensors. If either is real, `rank` must be 1. */
static gboolean
run_last (GTorchImpl *in, GTorchImpl *out, guint rank, gboolean inverse, GTorchCudaLane *lane,
          GError **error)
{
  const guint first = in->n_dims - rank;
  Layout layout = { .rank = rank,
                    .in_stride = 1,
                    .out_stride = 1,
                    .in_distance = 1,
                    .out_distance = 1,
                    .batch = 1,
                    .in_dtype = in->dtype,
                    .out_dtype = out->dtype };
  guint i;

  layout.device = gtorch_impl_device (in)->index;
  for (i = 0; i < in->n_dims; i++)
    if (i < first)
      layout.batch *= in->shape[i];
    else
      {
        layout.n[i - first] = MAX (in->shape[i], out->shape[i]);
        layout.in_distance *= in->shape[i];
        layout.out_distance *= out->shape[i];
      }
  /* Between real and complex tensors, cuFFT needs the size of the real one. */
  if (gtorch_dtype_kind (in->dtype) != GTORCH_KIND_COMPLEX)
    layout.n[0] = in->shape[first];
  else if (gtorch_dtype_kind (out->dtype) != GTORCH_KIND_COMPLEX)
    layout.n[0] = out->shape[first];
  return run (&layout, lane, gtorch_impl_data (in), gtorch_impl_data (out), inverse, error);
}

/* Transforms the first dimension of contiguous complex tensors. */
static gboolean
run_first (GTorchImpl *in, GTorchImpl *out, gboolean inverse, GTorchCudaLane *lane, GError **error)
{
  const gint64 step = in->numel / in->shape[0];
  Layout layout = { .rank = 1,
                    .n = { in->shape[0] },
                    .in_stride = step,
                    .out_stride = step,
                    .in_distance = 1,
                    .out_distance = 1,
                    .batch = step,
                    .in_dtype = in->dtype,
                    .out_dtype = out->dtype };

  layout.device = gtorch_impl_device (in)->index;
  return run (&layout, lane, gtorch_impl_data (in), gtorch_impl_data (out), inverse, error);
}

/* Returns whether the tensor is contiguous and aligned to a complex number, as cuFFT requires for real
 * tensors too. */
static gboolean
is_usable (GTorchImpl *impl)
{
  const gsize size = gtorch_dtype_infos[impl->dtype].real == GTORCH_DTYPE_FLOAT64 ? 16 : 8;

  return impl->is_contiguous && (gsize) gtorch_impl_data (impl) % size == 0;
}

/* Transforms up to MAX_RANK dimensions from in to out, which may be the same tensor. */
static gboolean
transform (GTorchImpl *in, GTorchImpl *out, guint64 mask, gboolean inverse, GTorchCudaLane *lane,
           GError **error)
{
  const guint rank = __builtin_popcountll (mask), n = in->n_dims;
  const gboolean is_last = mask >> (n - rank) == (G_GUINT64_CONSTANT (1) << rank) - 1;
  const gboolean to_real = gtorch_dtype_kind (out->dtype) != GTORCH_KIND_COMPLEX;
  g_autoptr (GTorchImpl) in_view = gtorch_cpu_move_last (in, mask);
  g_autoptr (GTorchImpl) out_view = gtorch_cpu_move_last (out, mask);
  g_autoptr (GTorchImpl) from = NULL;
  g_autoptr (GTorchImpl) to = NULL;
  guint i;

  if (!to_real && mask == 1 && in->dtype == out->dtype && is_usable (in) && is_usable (out))
    return run_first (in, out, inverse, lane, error);
  if (is_last && is_usable (in) && !to_real)
    from = gtorch_impl_ref (in);
  else
    {
      from = gtorch_impl_new (gtorch_impl_device (in), in->dtype, in_view->shape, n, error);
      if (from == NULL || !gtorch_cuda_copy_here (from, in_view, lane, error))
        return FALSE;
    }
  /* A transform to real numbers overwrites its input, so `from` is a copy here. Its imaginary parts that
   * are 0 in the transform of a real line are set to 0, so that they are ignored. */
  for (i = 0; to_real && i < 2 - (guint) (out_view->shape[n - 1] & 1); i++)
    {
      const gint64 at = i == 0 ? 0 : in_view->shape[n - 1] - 1;
      gint64 strides[GTORCH_MAX_DIMS];
      g_autoptr (GTorchImpl) parts = NULL;
      const gdouble zero = 0;
      guint k;

      for (k = 0; k < n; k++)
        strides[k] = 2 * from->strides[k];
      parts = gtorch_impl_new_strided (from->storage, out->dtype, 2 * (from->offset + at) + 1,
                                       from->shape, strides, n - 1);
      if (!gtorch_cuda_fill_with (parts, GTORCH_DTYPE_FLOAT64, &zero, lane, error))
        return FALSE;
    }
  if (is_last && is_usable (out))
    to = gtorch_impl_ref (out);
  else if (in->dtype == out->dtype && from != in)
    to = gtorch_impl_ref (from);
  else
    to = gtorch_impl_new (gtorch_impl_device (out), out->dtype, out_view->shape, n, error);
  return to != NULL && run_last (from, to, rank, inverse, lane, error)
         && (to == out || gtorch_cuda_copy_here (out_view, to, lane, error));
}

gboolean
gtorch_cuda_fft_c2c (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *in = call->inputs[0], *out = call->outputs[0];
  guint64 rest;

  if (out->numel == 0)
    return TRUE;
  gtorch_normalize_dims (call->op->name, call->attrs[0].list.data, call->attrs[0].list.n,
                         in->n_dims, &rest, NULL);
  while (rest != 0)
    {
      guint64 mask = 0;
      guint i;

      for (i = 0; i < MAX_RANK && rest != 0; i++)
        {
          const guint64 bit = G_GUINT64_CONSTANT (1) << (63 - __builtin_clzll (rest));

          mask |= bit;
          rest ^= bit;
        }
      if (!transform (in, out, mask, call->attrs[2].i != 0, lane, error))
        return FALSE;
      in = out;
    }
  return gtorch_cuda_scale (out, call->attrs[1].d, lane, error);
}

static gboolean
transform_one (GTorchOpCall *call, gdouble scale, gboolean inverse, GTorchCudaLane *lane,
               GError **error)
{
  GTorchImpl *in = call->inputs[0], *out = call->outputs[0];
  guint dim;

  if (out->numel == 0)
    return TRUE;
  gtorch_normalize_dim (call->op->name, call->attrs[0].i, in->n_dims, &dim, NULL);
  return transform (in, out, G_GUINT64_CONSTANT (1) << dim, inverse, lane, error)
         && gtorch_cuda_scale (out, scale, lane, error);
}

gboolean
gtorch_cuda_fft_r2c (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return transform_one (call, call->attrs[1].d, FALSE, lane, error);
}

gboolean
gtorch_cuda_fft_c2r (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return transform_one (call, call->attrs[2].d, TRUE, lane, error);
}
