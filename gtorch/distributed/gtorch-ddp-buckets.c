/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The buckets of a GTorchDistributedModule: which gradients go together, and when. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-error.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

#define FIRST_CAP (1024 * 1024) /* bytes: the first bucket is there soon */

void
gtorch_ddp_bucket_free (gpointer data)
{
  GTorchDDPBucket *bucket = data;

  g_clear_object (&bucket->flat);
  g_clear_object (&bucket->face);
  g_clear_object (&bucket->result);
  g_clear_object (&bucket->work);
  g_free (bucket);
}

GTorchTensor *
gtorch_ddp_make_slice (GTorchTensor *flat, gint64 start, GTorchTensor *parameter, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (parameter);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (flat, 0, start, impl->numel, error);

  return part == NULL ? NULL : gtorch_tensor_view (part, impl->shape, impl->n_dims, error);
}

static gboolean
make_bucket (GTorchDistributedModule *self, guint first, guint n, GError **error)
{
  GTorchDDPEntry **entries = (GTorchDDPEntry **) self->entries->pdata + first;
  GTorchTensor *model = entries[0]->parameter;
  GTorchDDPBucket *bucket = g_new0 (GTorchDDPBucket, 1);
  gint64 numel = 0, start = 0;
  guint i;

  g_ptr_array_add (self->buckets, bucket);
  bucket->n_entries = n;
  for (i = 0; i < n; i++)
    numel += gtorch_tensor_get_numel (entries[i]->parameter);
  bucket->flat = gtorch_zeros (&numel, 1, gtorch_tensor_get_dtype (model),
                               gtorch_tensor_get_device (model), error);
  if (bucket->flat == NULL)
    return FALSE;
  bucket->face = gtorch_grad_bucket_new (self->buckets->len - 1, self->group, bucket->flat);
  for (i = 0; i < n; i++)
    {
      GTorchDDPEntry *entry = entries[i];

      entry->bucket = bucket;
      g_clear_object (&entry->slice);
      entry->slice = gtorch_ddp_make_slice (bucket->flat, start, entry->parameter, error);
      if (entry->slice == NULL)
        return FALSE;
      gtorch_grad_bucket_add (bucket->face, entry->parameter);
      start += gtorch_tensor_get_numel (entry->parameter);
    }
  return TRUE;
}

static gboolean
is_like (GTorchTensor *a, GTorchTensor *b)
{
  return gtorch_tensor_get_dtype (a) == gtorch_tensor_get_dtype (b)
         && gtorch_tensor_get_device (a) == gtorch_tensor_get_device (b);
}

/* At first from the last parameter to the first, which is about the order in which gradients come. */
gboolean
gtorch_ddp_make_buckets (GTorchDistributedModule *self, GError **error)
{
  GTorchDDPEntry **entries = (GTorchDDPEntry **) self->entries->pdata;
  gsize cap = MIN (FIRST_CAP, (gsize) (self->bucket_cap_mb * 1024 * 1024)), size = 0;
  const guint n = self->entries->len;
  guint first = 0, i;

  for (i = 0; i < n; i++)
    {
      GTorchTensor *parameter = entries[i]->parameter;
      const gsize n_bytes = gtorch_impl_n_bytes (gtorch_tensor_unwrap (parameter));

      if (i > first && (size + n_bytes > cap || !is_like (parameter, entries[first]->parameter)))
        {
          if (!make_bucket (self, first, i - first, error))
            return FALSE;
          first = i;
          size = 0;
          cap = (gsize) (self->bucket_cap_mb * 1024 * 1024);
        }
      size += n_bytes;
    }
  return first == n || make_bucket (self, first, n - first, error);
}

/* --- one pass --- */

void
gtorch_ddp_reset (GTorchDistributedModule *self)
{
  guint i;

  self->n_ready = self->next_bucket = 0;
  if (self->order == GTORCH_DDP_ORDER_FIRST)
    self->n_arrived = 0;
  for (i = 0; i < self->entries->len; i++)
    {
      GTorchDDPEntry *entry = self->entries->pdata[i];

      entry->is_ready = entry->is_unused = FALSE;
    }
  for (i = 0; i < self->buckets->len; i++)
    {
      GTorchDDPBucket *bucket = self->buckets->pdata[i];

      bucket->n_pending = bucket->n_entries;
      g_clear_object (&bucket->result);
    }
}

/* Whether the grad is the bucket's memory already. */
static gboolean
is_in_place (const GTorchDDPEntry *entry, GTorchTensor *grad)
{
  return gtorch_impl_is_same_place (gtorch_tensor_unwrap (grad),
                                    gtorch_tensor_unwrap (entry->slice));
}

static gboolean
fill_slice (const GTorchDDPEntry *entry, GError **error)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (entry->parameter);

  if (grad == NULL)
    return gtorch_op_zero_inplace (gtorch_tensor_unwrap (entry->slice), error);
  return is_in_place (entry, grad)
         || gtorch_op_copy_inplace (gtorch_tensor_unwrap (entry->slice),
                                    gtorch_tensor_unwrap (grad), FALSE, error);
}

/* The program's function may give back another tensor, which is copied at the end of the pass: here one would
 * have to wait for it. */
static gboolean
call_hook (GTorchDistributedModule *self, GTorchDDPBucket *bucket, GError **error)
{
  const gboolean is_last = self->next_bucket == self->buckets->len - 1;
  g_autoptr (GTorchTensor) result = NULL;
  GError *failure = NULL;

  gtorch_grad_bucket_prepare (bucket->face, bucket->flat, is_last);
  result = self->hook (bucket->face, self->hook_data, &failure);
  gtorch_grad_bucket_prepare (bucket->face, bucket->flat, is_last);
  if (!gtorch_callback_gave ("comm_hook", result, failure, error)
      || !gtorch_callback_check ("comm_hook", "the function", &result, GTORCH_TYPE_TENSOR, error))
    return FALSE;
  if (gtorch_tensor_get_numel (result) != gtorch_tensor_get_numel (bucket->flat))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("comm_hook: the function gave a tensor of shape %s for a bucket of "
                      "%" PRId64 " elements; it has as many"),
                   gtorch_impl_shape_str (gtorch_tensor_unwrap (result)),
                   gtorch_tensor_get_numel (bucket->flat));
      return FALSE;
    }
  if (!gtorch_impl_is_same_place (gtorch_tensor_unwrap (result),
                                  gtorch_tensor_unwrap (bucket->flat)))
    bucket->result = g_steal_pointer (&result);
  return TRUE;
}

static gboolean
send_bucket (GTorchDistributedModule *self, GTorchDDPBucket *bucket, GError **error)
{
  const gboolean is_mean_of_all =
      !self->is_joining || self->divides_by_all
      || self->n_active == (guint) gtorch_process_group_get_size (self->group);

  g_clear_object (&bucket->work);
  if (self->hook != NULL)
    return call_hook (self, bucket, error);
  if (!is_mean_of_all
      && gtorch_tensor_div_scalar_inplace (bucket->flat, self->n_active, error) == NULL)
    return FALSE;
  {
    GTORCH_GROUP_CALL ("distributed_module");

    bucket->work = gtorch_process_group_all_reduce (self->group, bucket->flat,
                                                    is_mean_of_all ? GTORCH_REDUCE_OP_AVG
                                                                   : GTORCH_REDUCE_OP_SUM,
                                                    error);
  }
  return bucket->work != NULL;
}

/* What no rank has used keeps no grad; what another rank has used gets one here, too. */
static gboolean *
find_used (GTorchDistributedModule *self, GError **error)
{
  GTORCH_GROUP_CALL ("distributed_module");
  const guint n = self->entries->len;
  g_autofree gint64 *flags = g_new (gint64, n);
  g_autofree gint64 *values = NULL;
  GTorchTensor *model = ((GTorchDDPEntry *) self->entries->pdata[0])->parameter;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gint64 shape = n;
  gboolean *used;
  gsize n_values;
  guint i;

  for (i = 0; i < n; i++)
    {
      const GTorchDDPEntry *entry = self->entries->pdata[i];

      flags[entry->number] = !entry->is_unused;
    }
  tensor = gtorch_tensor_new_from_ints (flags, n, &shape, 1, GTORCH_DTYPE_INT64,
                                        gtorch_tensor_get_device (model), error);
  work = tensor == NULL
             ? NULL
             : gtorch_process_group_all_reduce (self->group, tensor, GTORCH_REDUCE_OP_MAX, error);
  values = work == NULL || !gtorch_work_join (work, error)
               ? NULL
               : gtorch_tensor_to_ints (tensor, &n_values, error);
  if (values == NULL)
    return NULL;
  used = g_new (gboolean, n);
  for (i = 0; i < n; i++)
    used[i] = values[i] != 0;
  return used;
}

static gboolean
take_results (GTorchDistributedModule *self, GError **error)
{
  guint i;

  for (i = 0; i < self->buckets->len; i++)
    {
      GTorchDDPBucket *bucket = self->buckets->pdata[i];
      g_autoptr (GTorchWork) work = g_steal_pointer (&bucket->work);
      g_autoptr (GTorchTensor) flat = NULL;

      if (work != NULL && !gtorch_work_join (work, error))
        return FALSE;
      if (bucket->result == NULL)
        continue;
      flat = gtorch_tensor_reshape_as (bucket->result, bucket->flat, error);
      if (flat == NULL || gtorch_tensor_copy_inplace (bucket->flat, flat, FALSE, error) == NULL)
        return FALSE;
      g_clear_object (&bucket->result);
    }
  return TRUE;
}

/* All buckets are under way: grads become views of them. On the CPU, whoever reads one waits for its bucket;
 * on a GPU the current stream does. */
static gboolean
finish_pass (GTorchDistributedModule *self, GError **error)
{
  const gboolean has_unused = self->find_unused_parameters || self->is_static;
  g_autofree gboolean *found = NULL;
  const gboolean *used = self->used;
  guint i;

  if (has_unused && used == NULL)
    {
      used = found = find_used (self, error);
      if (used == NULL)
        return FALSE;
    }
  if (!take_results (self, error))
    return FALSE;
  for (i = 0; i < self->entries->len; i++)
    {
      GTorchDDPEntry *entry = self->entries->pdata[i];
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (entry->parameter);

      if ((used == NULL || used[entry->number]) && (grad == NULL || !is_in_place (entry, grad))
          && !gtorch_tensor_set_grad (entry->parameter, entry->slice, error))
        return FALSE;
    }
  if (self->is_static && self->used == NULL)
    self->used = g_steal_pointer (&found);
  if (self->order == GTORCH_DDP_ORDER_FIRST && (!self->find_unused_parameters || self->is_static))
    self->order = GTORCH_DDP_ORDER_KNOWN;
  self->is_armed = FALSE;
  return TRUE;
}

static gboolean
mark_ready (GTorchDistributedModule *self, GTorchDDPEntry *entry, GError **error)
{
  if (!fill_slice (entry, error))
    return FALSE;
  entry->is_ready = TRUE;
  entry->bucket->n_pending--;
  self->n_ready++;
  if (self->order == GTORCH_DDP_ORDER_FIRST && !entry->is_unused)
    self->arrived[self->n_arrived++] = entry->number;
  while (self->next_bucket < self->buckets->len)
    {
      GTorchDDPBucket *bucket = self->buckets->pdata[self->next_bucket];

      if (bucket->n_pending > 0)
        break;
      if (!send_bucket (self, bucket, error))
        return FALSE;
      self->next_bucket++;
    }
  return self->next_bucket < self->buckets->len || finish_pass (self, error);
}

gboolean
gtorch_ddp_mark_ready (GTorchDistributedModule *self, GTorchDDPEntry *entry, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (mark_ready (self, entry, &failure))
    return TRUE;
  if (self->failure == NULL)
    self->failure = g_strdup (failure->message);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
gtorch_ddp_send_zeros (GTorchDistributedModule *self, GError **error)
{
  guint i;

  gtorch_ddp_reset (self);
  for (i = 0; i < self->entries->len; i++)
    {
      GTorchDDPEntry *entry = self->entries->pdata[i];

      entry->is_unused = TRUE;
    }
  for (; self->next_bucket < self->buckets->len; self->next_bucket++)
    {
      GTorchDDPBucket *bucket = self->buckets->pdata[self->next_bucket];

      if (!gtorch_op_zero_inplace (gtorch_tensor_unwrap (bucket->flat), error)
          || !send_bucket (self, bucket, error))
        return FALSE;
    }
  return finish_pass (self, error);
}

/* --- another order --- */

/* Takes the order of the numbers; what they do not name comes last, as it was. */
static gboolean
sort_entries (GTorchDistributedModule *self, const gint64 *numbers, gint64 n, GError **error)
{
  const guint n_entries = self->entries->len;
  g_autofree gpointer *by_number = g_new0 (gpointer, n_entries);
  g_autofree gpointer *sorted = g_new (gpointer, n_entries);
  guint n_sorted = 0, i;

  for (i = 0; i < n_entries; i++)
    by_number[((GTorchDDPEntry *) self->entries->pdata[i])->number] = self->entries->pdata[i];
  for (i = 0; i < n; i++)
    {
      if (numbers[i] < 0 || numbers[i] >= n_entries || by_number[numbers[i]] == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                       _ ("distributed_module: the order of gradients that another rank has sent "
                          "is "
                          "none: the ranks do not call the same functions"));
          return FALSE;
        }
      sorted[n_sorted++] = g_steal_pointer (&by_number[numbers[i]]);
    }
  for (i = 0; i < n_entries; i++)
    if (by_number[i] != NULL)
      sorted[n_sorted++] = by_number[i];
  memcpy (self->entries->pdata, sorted, n_entries * sizeof (gpointer));
  return TRUE;
}

gboolean
gtorch_ddp_rebuild (GTorchDistributedModule *self, gint source, GError **error)
{
  GTORCH_GROUP_CALL ("distributed_module");
  const guint n = self->entries->len;
  GTorchTensor *model = ((GTorchDDPEntry *) self->entries->pdata[0])->parameter;
  g_autofree gint64 *own = g_new0 (gint64, n + 1);
  g_autofree gint64 *numbers = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gint64 shape = n + 1;
  gsize n_values;

  own[0] = self->n_arrived;
  memcpy (own + 1, self->arrived, self->n_arrived * sizeof *own);
  tensor = gtorch_tensor_new_from_ints (own, n + 1, &shape, 1, GTORCH_DTYPE_INT64,
                                        gtorch_tensor_get_device (model), error);
  work =
      tensor == NULL ? NULL : gtorch_process_group_broadcast (self->group, tensor, source, error);
  numbers = work == NULL || !gtorch_work_join (work, error)
                ? NULL
                : gtorch_tensor_to_ints (tensor, &n_values, error);
  if (numbers == NULL
      || !sort_entries (self, numbers + 1, CLAMP (numbers[0], 0, (gint64) n), error))
    return FALSE;
  g_ptr_array_set_size (self->buckets, 0);
  self->order = GTORCH_DDP_ORDER_REBUILT;
  return gtorch_ddp_make_buckets (self, error);
}
