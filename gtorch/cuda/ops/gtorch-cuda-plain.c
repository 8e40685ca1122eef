/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Support for operations whose kernels take contiguous operands: packs them, finds kernels by name, and
 * launches them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "base/gtorch-fork-private.h"

#define THREADS    256
#define MAX_BLOCKS (1 << 20)

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GHashTable *kernels; /* GTorchCudaKernel by name, of all families */

/* Finds a kernel by name. There are few kernels, which are never freed; the most frequent ones are found
 * without this function. */
static GTorchCudaKernel *
find (GTorchCudaFamily *family, const gchar *name, GError **error)
{
  GTorchCudaKernel *kernel;

  g_mutex_lock (&lock);
  if (kernels == NULL)
    kernels = g_hash_table_new (g_str_hash, g_str_equal);
  kernel = g_hash_table_lookup (kernels, name);
  if (kernel == NULL)
    {
      kernel = g_new0 (GTorchCudaKernel, 1);
      if (gtorch_cuda_kernel_get (kernel, family, name, error))
        g_hash_table_insert (kernels, g_strdup (name), kernel);
      else
        g_clear_pointer (&kernel, g_free);
    }
  g_mutex_unlock (&lock);
  return kernel;
}

static gboolean
launch (const GTorchCudaKernelSet *set, const gchar *suffix, const gchar *form,
        GTorchCudaLane *lane, const GTorchCudaLaunch *shape, gconstpointer p, GError **error)
{
  gchar full[64];
  GTorchCudaKernel *kernel;

  g_snprintf (full, sizeof full, "gt_%s_%s%s%s", set->name, suffix, form != NULL ? "_" : "",
              form != NULL ? form : "");
  kernel = find (set->family, full, error);
  return kernel != NULL && gtorch_cuda_kernel_launch (kernel, lane, shape, p, error);
}

const gchar *
gtorch_cuda_size_suffix (gsize size)
{
  static const gchar *const names[] = { "1", "2", "4", "8", "16" };

  return names[g_bit_storage (size) - 1];
}

gboolean
gtorch_cuda_launch_over (const GTorchCudaKernelSet *set, const gchar *suffix, const gchar *form,
                         GTorchCudaLane *lane, gint64 n, gconstpointer p, GError **error)
{
  const GTorchCudaLaunch shape = {
    .grid = { CLAMP ((n + THREADS - 1) / THREADS, 1, MAX_BLOCKS) },
    .block = { THREADS },
  };

  return n == 0 || launch (set, suffix, form, lane, &shape, p, error);
}

gboolean
gtorch_cuda_launch_wide (const GTorchCudaKernelSet *set, const gchar *suffix, GTorchCudaLane *lane,
                         guint64 blocks, guint threads, gconstpointer p, GError **error)
{
  const GTorchCudaLaunch shape = { .grid = { blocks }, .block = { threads } };

  return blocks == 0 || launch (set, suffix, NULL, lane, &shape, p, error);
}

gboolean
gtorch_cuda_launch_blocks (const GTorchCudaKernelSet *set, const gchar *suffix,
                           GTorchCudaLane *lane, guint64 blocks, gconstpointer p, GError **error)
{
  return gtorch_cuda_launch_wide (set, suffix, lane, blocks, THREADS, p, error);
}

gboolean
gtorch_cuda_launch_each (const GTorchCudaKernelSet *set, const gchar *suffix, GTorchCudaLane *lane,
                         gint64 n, gconstpointer p, GError **error)
{
  const GTorchCudaLaunch shape = { .grid = { MIN (n, MAX_BLOCKS) },
                                   .block = { n < 64 ? 1024 : THREADS } };

  return n == 0 || launch (set, suffix, NULL, lane, &shape, p, error);
}

gboolean
gtorch_cuda_launch_rows (const GTorchCudaKernelSet *set, guint dtype, GTorchCudaLane *lane,
                         gint64 rows, gint64 n, guintptr aligned, gconstpointer p, GError **error)
{
  gint64 v = 16 / (gint64) gtorch_dtype_size (dtype), k, width;
  GTorchCudaLaunch shape = { .grid = { 1 }, .block = { 32, 1 } };
  const gchar *suffix = gtorch_cuda_dtype_suffixes[dtype];
  gchar form[8], kind = 's';

  if (rows == 0 || n == 0)
    return TRUE;
  if (n % v == 0 && (aligned & 15) == 0 && n / v <= 4096)
    {
      kind = 'v';
      width = n / v;
      k = width <= 32 ? 1 : (width <= 64 ? 2 : 4);
    }
  else
    {
      width = n;
      k = width <= 32 ? 1 : (width <= 128 ? 4 : 8);
    }
  if (width > 1024 * k)
    {
      shape.grid[0] = MIN (rows, G_MAXINT32);
      shape.block[0] = rows < 512 ? 1024 : 512; /* of many rows, several are under way together */
      return launch (set, suffix, "long", lane, &shape, p, error);
    }
  shape.block[0] = (width + 32 * k - 1) / (32 * k) * 32;
  if (shape.block[0] == 32)
    shape.block[1] = 4;
  shape.grid[0] = (rows + shape.block[1] - 1) / shape.block[1];
  g_snprintf (form, sizeof form, "%c%d", kind, (int) k);
  return launch (set, suffix, form, lane, &shape, p, error);
}

/* The threads of a row have few vectors each, unless there are rows enough to keep the device busy. */
gboolean
gtorch_cuda_launch_passes (const GTorchCudaKernelSet *set, guint dtype, GTorchCudaLane *lane,
                           gint64 rows, gint64 n, gconstpointer p, GError **error)
{
  const gint64 vectors = n / (16 / (gint64) gtorch_dtype_size (dtype));
  const gint64 threads = CLAMP ((vectors + 127) / 128 * 32, 32, rows < 512 ? 512 : 256);
  GTorchCudaLaunch shape = { .grid = { 1 }, .block = { threads, threads == 32 ? 4 : 1 } };

  shape.grid[0] = MIN ((rows + shape.block[1] - 1) / shape.block[1], MAX_BLOCKS);
  return rows == 0
         || launch (set, gtorch_cuda_dtype_suffixes[dtype], "rows", lane, &shape, p, error);
}

/* --- operands --- */

GTorchImpl *
gtorch_cuda_pack (GTorchImpl *impl, guint dtype, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;
  GTorchDevice *device = gtorch_cuda_lane_device (lane);
  gdouble number[2];

  if (impl->storage->device != device)
    { /* the tensor is a number, or has no dimensions, and is on the host */
      copy = gtorch_impl_new (device, dtype, impl->shape, impl->n_dims, error);
      if (copy == NULL || !gtorch_impl_sync (impl, error))
        return NULL;
      memcpy (number, gtorch_impl_data (impl), gtorch_dtype_size (impl->dtype));
      return gtorch_cuda_fill_with (copy, impl->dtype, number, lane, error)
                 ? g_steal_pointer (&copy)
                 : NULL;
    }
  if (impl->dtype == dtype && impl->is_contiguous)
    return gtorch_impl_ref (impl);
  copy = gtorch_impl_new (device, dtype, impl->shape, impl->n_dims, error);
  if (copy == NULL || !gtorch_cuda_copy_here (copy, impl, lane, error))
    return NULL;
  return g_steal_pointer (&copy);
}

GTorchImpl *
gtorch_cuda_pack_output (GTorchImpl *output, guint dtype, GError **error)
{
  if (output->dtype == dtype && output->is_contiguous)
    return gtorch_impl_ref (output);
  return gtorch_impl_new (output->storage->device, dtype, output->shape, output->n_dims, error);
}

gboolean
gtorch_cuda_unpack (GTorchImpl *packed, GTorchImpl *output, GTorchCudaLane *lane, GError **error)
{
  return packed == output || gtorch_cuda_copy_here (output, packed, lane, error);
}

GTorchImpl *
gtorch_cuda_turn (GTorchImpl *impl, gboolean channels_last)
{
  return channels_last ? gtorch_cpu_move_last (impl, 1 << 1) : gtorch_impl_ref (impl);
}

gboolean
gtorch_cuda_pack_reduction (GTorchOpCall *call, guint dtype, GTorchCudaLane *lane, GTorchImpl **x,
                            GTorchImpl **y, GTorchRows *rows, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) moved = NULL;
  gboolean keepdim;
  guint64 mask;
  guint ignored;

  if (!gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error))
    return FALSE;
  moved = gtorch_cpu_move_last (call->inputs[0], mask);
  *x = gtorch_cuda_pack (moved, dtype, lane, error);
  *y = *x != NULL ? gtorch_cuda_pack_output (output, dtype, error) : NULL;
  if (*y == NULL)
    return FALSE;
  *rows = (GTorchRows){ output->numel, (*x)->numel / output->numel, 1 };
  return TRUE;
}

GTorchImpl *
gtorch_cuda_scratch (GTorchCudaLane *lane, gint64 n_bytes, GError **error)
{
  return gtorch_impl_new (gtorch_cuda_lane_device (lane), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
}

gboolean
gtorch_cuda_clear (GTorchImpl *impl, GTorchCudaLane *lane, GError **error)
{
  const gdouble zero = 0;

  return gtorch_cuda_fill_with (impl, GTORCH_DTYPE_FLOAT64, &zero, lane, error);
}

/* Scales the tensor in place. */
gboolean
gtorch_cuda_scale (GTorchImpl *impl, gdouble factor, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (factor);
  GTorchImpl *inputs[] = { impl, number };
  GTorchOpCall mul = {
    .op = &gtorch_ops[GTORCH_OP_MUL],
    .inputs = inputs,
    .n_inputs = 2,
    .outputs = { impl },
    .n_outputs = 1,
    .in_place = TRUE,
    .device = gtorch_impl_device (impl),
    .compute = impl->dtype,
  };

  return factor == 1 || gtorch_call_run (&mul, lane, error);
}
