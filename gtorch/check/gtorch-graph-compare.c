/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checks that a replay computes what its operations compute. All memory that the operations touch is copied
 * before the replay. After the replay the operations are called on the copies one by one, with the random
 * numbers that the replay had, and copies and originals must be equal in every byte. Tensors of a graph may
 * reuse the same memory one after the other; so do their copies, since address ranges are copied rather
 * than tensors. */

#include "config.h"

#include "check/gtorch-checks-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "stream/gtorch-stream-private.h"
#include "device/gtorch-generator-private.h"
#include "gtorch-ops-private.h"
#include "graph/gtorch-graph-exec-private.h"

/* The first replays of each graph are compared. */
#define N_COMPARED 3

/* With a graph: what it consists of. */
typedef struct
{
  GTorchNote note;
  GPtrArray *calls; /* GTorchSavedCall, in call order */
  gint n_compared;  /* atomically */
} Known;

typedef struct
{
  GTorchDevice *device;
  char *start, *end;
  GTorchImpl *original; /* bytes of the range */
  GTorchImpl *copy;
} Region;

/* With a replay: the memory before it. */
typedef struct
{
  GTorchNote note;
  GPtrArray *calls;     /* GTorchSavedCall */
  GHashTable *left_out; /* calls in branches that were not taken */
  GTorchStream *stream;
  GArray *regions;       /* Region, sorted by address */
  GPtrArray *generators; /* GTorchGenerator, without duplicates */
  GPtrArray *states;     /* GBytes: state of each generator before the replay */
} Compare;

static const GTorchArgSpec branch_args[] = {
  { "predicate", GTORCH_ARG_TENSOR },
  { "n_calls", GTORCH_ARG_INT },
};

/* A pseudo-call that marks a branch: the following calls, as many as its attribute says, run only where its
 * input, a single bool, is true. */
static const GTorchOpClass branch_op = {
  .name = "branch",
  .n_args = G_N_ELEMENTS (branch_args),
  .n_inputs = 1,
  .n_attrs = 1,
  .args = branch_args,
};

static void
clear_region (gpointer data)
{
  Region *region = data;

  g_clear_pointer (&region->original, gtorch_impl_unref);
  g_clear_pointer (&region->copy, gtorch_impl_unref);
}

static void
compare_free (GTorchNote *note)
{
  Compare *self = (Compare *) note;

  g_array_unref (self->regions);
  g_ptr_array_unref (self->generators);
  g_ptr_array_unref (self->states);
  g_ptr_array_unref (self->calls);
  g_hash_table_unref (self->left_out);
  g_object_unref (self->stream);
  g_free (self);
}

/* --- memory --- */

static guint
n_operands (const GTorchSavedCall *saved)
{
  return saved->call.n_inputs + saved->call.n_outputs;
}

/* Returns NULL for a missing operand and for a number, which is not in the graph's memory. */
static GTorchImpl *
nth_operand (const GTorchSavedCall *saved, guint i)
{
  GTorchImpl *impl =
      i < saved->call.n_inputs ? saved->inputs[i] : saved->call.outputs[i - saved->call.n_inputs];

  return impl != NULL && !impl->is_number && impl->storage != NULL && impl->storage->n_bytes > 0
             ? impl
             : NULL;
}

static gint
by_address (gconstpointer a, gconstpointer b)
{
  const Region *x = a, *y = b;

  return x->start < y->start ? -1 : x->start > y->start;
}

/* Merges adjacent and overlapping ranges. */
static void
find_regions (Compare *self)
{
  GArray *all = g_array_new (FALSE, TRUE, sizeof (Region));
  guint i, j;

  for (i = 0; i < self->calls->len; i++)
    for (j = 0; j < n_operands (self->calls->pdata[i]); j++)
      {
        GTorchImpl *impl = nth_operand (self->calls->pdata[i], j);
        Region region = { NULL };

        if (impl == NULL)
          continue;
        region.device = impl->storage->device;
        region.start = impl->storage->data;
        region.end = region.start + impl->storage->n_bytes;
        g_array_append_val (all, region);
      }
  g_array_sort (all, by_address);
  for (i = 0; i < all->len; i++)
    {
      Region *next = &g_array_index (all, Region, i);
      Region *last = self->regions->len > 0
                         ? &g_array_index (self->regions, Region, self->regions->len - 1)
                         : NULL;

      if (last != NULL && next->start < last->end && next->device == last->device)
        last->end = MAX (last->end, next->end);
      else
        g_array_append_val (self->regions, *next);
    }
  g_array_unref (all);
}

static void
keep_memory (GTorchStorage *storage)
{
}

static GTorchImpl *
show_bytes (const Region *region)
{
  gint64 n = region->end - region->start;
  GTorchStorage *storage =
      gtorch_storage_new_foreign (region->device, region->start, n, keep_memory, NULL);
  GTorchImpl *impl = gtorch_impl_new_strided (storage, GTORCH_DTYPE_UINT8, 0, &n, NULL, 1);

  gtorch_storage_unref (storage);
  return impl;
}

static Region *
find_region (Compare *self, const char *address)
{
  guint i;

  for (i = 0; i < self->regions->len; i++)
    {
      Region *region = &g_array_index (self->regions, Region, i);

      if (address >= region->start && address < region->end)
        return region;
    }
  return NULL;
}

/* --- before the replay --- */

static void
find_generators (Compare *self)
{
  guint i, j, attr;

  for (i = 0; i < self->calls->len; i++)
    {
      const GTorchOpCall *call = &((GTorchSavedCall *) self->calls->pdata[i])->call;
      GTorchGenerator *generator = NULL;

      if (!(call->op->flags & GTORCH_OP_FLAG_RANDOM))
        continue;
      for (j = 0, attr = 0; j < call->op->n_args; j++)
        {
          if (call->op->args[j].kind <= GTORCH_ARG_TENSORS)
            continue;
          if (call->op->args[j].kind == GTORCH_ARG_GENERATOR)
            generator = call->attrs[attr].p;
          attr++;
        }
      if (generator == NULL)
        generator = gtorch_device_get_default_generator (call->device);
      if (g_ptr_array_find (self->generators, generator, NULL))
        continue;
      g_ptr_array_add (self->generators, g_object_ref (generator));
      g_ptr_array_add (self->states, gtorch_generator_get_state (generator));
    }
}

/* Waits for the devices of the stream and of all memory. */
static gboolean
wait_for_devices (Compare *self, GError **error)
{
  GTorchDevice *last = self->stream->device;
  gboolean result = gtorch_device_synchronize (last, NULL, error);
  guint i;

  for (i = 0; result && i < self->regions->len; i++)
    {
      GTorchDevice *device = g_array_index (self->regions, Region, i).device;

      if (device != last)
        result = gtorch_device_synchronize (device, NULL, error);
      last = device;
    }
  return result;
}

/* Prepares to compare the next replay. */
static Compare *
compare_new (GPtrArray *calls, GTorchStream *stream, GError **error)
{
  Compare *self = g_new0 (Compare, 1);
  guint i;

  self->note.owner = &gtorch_compare_observer;
  self->note.free = compare_free;
  self->calls = g_ptr_array_ref (calls);
  self->left_out = g_hash_table_new (NULL, NULL);
  self->stream = g_object_ref (stream);
  self->regions = g_array_new (FALSE, TRUE, sizeof (Region));
  g_array_set_clear_func (self->regions, clear_region);
  self->generators = g_ptr_array_new_with_free_func (g_object_unref);
  self->states = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  find_generators (self);
  find_regions (self);
  if (wait_for_devices (self, error))
    {
      for (i = 0; i < self->regions->len; i++)
        {
          Region *region = &g_array_index (self->regions, Region, i);

          region->original = show_bytes (region);
          region->copy = gtorch_op_clone (region->original, error);
          if (region->copy == NULL)
            break;
        }
      /* the replay may be on other streams than the copies */
      if (i == self->regions->len && wait_for_devices (self, error))
        return self;
    }
  compare_free (&self->note);
  return NULL;
}

/* --- after the replay --- */

static GTorchImpl *
copied_operand (GTorchImpl *impl, gpointer data)
{
  const char *address;
  Region *region;
  GTorchImpl *result;

  if (impl->is_number || impl->storage == NULL || impl->storage->n_bytes == 0)
    return gtorch_impl_alias (impl);
  address = gtorch_impl_data (impl);
  region = find_region (data, impl->storage->data);
  result = gtorch_impl_new_strided (region->copy->storage, impl->dtype,
                                    (address - region->start) / gtorch_dtype_size (impl->dtype),
                                    impl->shape, impl->strides, impl->n_dims);
  return result;
}

static GTorchImpl *
to_host (GTorchImpl *impl, GError **error)
{
  return gtorch_device_is_host (gtorch_impl_device (impl))
             ? gtorch_impl_ref (impl)
             : gtorch_copy_to_device (impl, gtorch_device_cpu (), FALSE, NULL, error);
}

static gboolean
take_branch (Compare *self, guint index, const GTorchOpCall *copied, GError **error)
{
  g_autoptr (GTorchImpl) predicate = to_host (copied->inputs[0], error);
  guint i;

  if (predicate == NULL)
    return FALSE;
  for (i = 1; !*(const guint8 *) gtorch_impl_data (predicate) && i <= copied->attrs[0].i; i++)
    g_hash_table_add (self->left_out, self->calls->pdata[index + i]);
  return TRUE;
}

static gboolean
call_one (Compare *self, guint index, GTorchOpCall *copied, GError **error)
{
  if (copied->op->flags & GTORCH_OP_FLAG_RANDOM)
    gtorch_random_reserve (copied);
  if (g_hash_table_contains (self->left_out, self->calls->pdata[index]))
    return TRUE;
  if (copied->op == &branch_op)
    return take_branch (self, index, copied, error);
  return gtorch_launch (copied, error) && wait_for_devices (self, error);
}

static gboolean
call_all (Compare *self, GError **error)
{
  gboolean success = TRUE;
  guint i;

  for (i = 0; success && i < self->calls->len; i++)
    {
      GTorchSavedCall *saved = self->calls->pdata[i];
      GTorchSavedCall *copied = gtorch_saved_call_new (&saved->call, copied_operand, self);

      success = call_one (self, i, &copied->call, error);
      gtorch_saved_call_free (copied);
      if (!success)
        g_prefix_error (error, _ ("graph: node %u without the graph: "), i);
    }
  return success;
}

/* Returns the index, in memory order, of the element that contains the address, or -1. */
static gint64
find_element (const GTorchImpl *impl, const char *address)
{
  gint64 offset = address - (const char *) impl->storage->data;
  gint64 size = gtorch_dtype_size (impl->dtype), rest = offset / size - impl->offset, index = 0;
  gint64 order[GTORCH_MAX_DIMS];
  guint i, j;

  if (rest < 0)
    return -1;
  for (i = 0; i < impl->n_dims; i++)
    {
      for (j = i; j > 0 && impl->strides[order[j - 1]] < impl->strides[i]; j--)
        order[j] = order[j - 1];
      order[j] = i;
    }
  for (i = 0; i < impl->n_dims; i++)
    {
      gint64 stride = impl->strides[order[i]], at, step = 1;

      if (impl->shape[order[i]] == 1 || stride <= 0)
        continue;
      at = MIN (rest / stride, impl->shape[order[i]] - 1);
      rest -= at * stride;
      for (j = order[i] + 1; j < impl->n_dims; j++)
        step *= impl->shape[j];
      index += at * step;
    }
  return rest == 0 ? index : -1;
}

static gchar *
to_hex (const guint8 *bytes, gsize n)
{
  GString *text = g_string_new ("0x");

  while (n-- > 0) /* most significant byte first, as numbers are written */
    g_string_append_printf (text, "%02x", bytes[n]);
  return g_string_free (text, FALSE);
}

typedef struct
{
  gboolean exists;
  guint node; /* G_MAXUINT: no operation writes to the byte */
  gint64 element;
  gchar *replayed, *called; /* bytes of the element */
} Difference;

static void
difference_clear (Difference *difference)
{
  g_clear_pointer (&difference->replayed, g_free);
  g_clear_pointer (&difference->called, g_free);
}

/* Finds the call to blame. Each byte was left by the last call that wrote it; the earliest such call with a
 * difference is reported. */
static void
find_difference (Compare *self, Region *region, const guint8 *replayed, const guint8 *called,
                 Difference *difference)
{
  gsize n = region->end - region->start, byte;
  guint i, j;

  for (byte = 0; byte < n; byte++)
    {
      gint64 where = -1;

      if (replayed[byte] == called[byte])
        continue;
      difference->exists = TRUE;
      for (i = self->calls->len; where < 0 && i-- > 0;)
        {
          const GTorchSavedCall *saved = self->calls->pdata[i];

          if (g_hash_table_contains (self->left_out, saved))
            continue;
          for (j = 0; where < 0 && j < saved->call.n_outputs; j++)
            {
              GTorchImpl *output = nth_operand (saved, saved->call.n_inputs + j);
              gsize size, at;

              if (output == NULL || find_region (self, output->storage->data) != region)
                continue;
              where = find_element (output, region->start + byte);
              if (where < 0 || i >= difference->node)
                continue;
              size = gtorch_dtype_size (output->dtype);
              at = byte - byte % size;
              difference_clear (difference);
              difference->node = i;
              difference->element = where;
              difference->replayed = to_hex (replayed + at, size);
              difference->called = to_hex (called + at, size);
            }
        }
    }
}

static void
set_error (Compare *self, const Difference *difference, GError **error)
{
  const GTorchOpCall *call;

  if (difference->node == G_MAXUINT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("graph: the replay has changed memory that none of its operations writes "
                      "to"));
      return;
    }
  call = &((GTorchSavedCall *) self->calls->pdata[difference->node])->call;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("graph: the result of the replay differs from that of its operations: "
                  "node %u, %s of %s %s, element %" PRId64 ": %s instead of %s"),
               difference->node, call->op->name, gtorch_dtype_get_name (call->outputs[0]->dtype),
               gtorch_impl_shape_str (call->outputs[0]), difference->element, difference->replayed,
               difference->called);
}

static gboolean
compare_region (Compare *self, Region *region, Difference *difference, GError **error)
{
  g_autoptr (GTorchImpl) replayed = to_host (region->original, error);
  g_autoptr (GTorchImpl) called = replayed != NULL ? to_host (region->copy, error) : NULL;

  if (called == NULL)
    return FALSE;
  if (memcmp (gtorch_impl_data (replayed), gtorch_impl_data (called), region->end - region->start)
      != 0)
    find_difference (self, region, gtorch_impl_data (replayed), gtorch_impl_data (called),
                     difference);
  return TRUE;
}

/* Compares after the replay. Returns FALSE with an error that names the first operation whose result
 * differs. */
static gboolean
compare (Compare *self, GError **error)
{
  g_autoptr (GPtrArray) after = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  GTorchChange mode, change;
  gboolean success = wait_for_devices (self, error);
  Difference difference = { .node = G_MAXUINT };
  guint i;

  for (i = 0; i < self->generators->len; i++)
    {
      g_ptr_array_add (after, gtorch_generator_get_state (self->generators->pdata[i]));
      gtorch_generator_set_state (self->generators->pdata[i], self->states->pdata[i], NULL);
    }
  gtorch_change_to_grad (&mode, FALSE);
  gtorch_change_begin (&change);
  gtorch_change_slot (&change, self->stream->device->slot, NULL);
  for (i = 0; i < self->regions->len; i++)
    {
      const guint slot = g_array_index (self->regions, Region, i).device->slot;

      if (gtorch_thread.streams[slot] != NULL)
        gtorch_change_slot (&change, slot, NULL);
    }
  success = success && call_all (self, error);
  for (i = 0; success && i < self->regions->len; i++)
    success = compare_region (self, &g_array_index (self->regions, Region, i), &difference, error);
  if (success && difference.exists)
    {
      set_error (self, &difference, error);
      success = FALSE;
    }
  difference_clear (&difference);
  gtorch_change_end (&change);
  gtorch_change_end (&mode);
  for (i = 0; i < self->generators->len; i++)
    gtorch_generator_set_state (self->generators->pdata[i], after->pdata[i], NULL);
  return success;
}

/* --- the observer --- */

static void
known_free (GTorchNote *note)
{
  Known *known = (Known *) note;

  g_ptr_array_unref (known->calls);
  g_free (known);
}

/* Adds copies of the graph's calls. Returns FALSE if the graph replays another one, whose memory is not known
 * here. */
static gboolean
add_calls (const GTorchGraphExec *exec, GPtrArray *calls)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];
      GTorchSavedCall *saved;
      guint place;

      if (node->child == NULL)
        {
          g_ptr_array_add (calls, gtorch_saved_call_new (&node->call->call, NULL, NULL));
          continue;
        }
      if (node->predicate == NULL)
        return FALSE;
      saved = gtorch_saved_call_new (&(GTorchOpCall){ .op = &branch_op,
                                                      .inputs = &node->predicate,
                                                      .n_inputs = 1,
                                                      .attrs = &(GTorchAttr){ .i = 0 },
                                                      .device = exec->device },
                                     NULL, NULL);
      g_ptr_array_add (calls, saved);
      place = calls->len;
      if (!add_calls (node->child, calls))
        return FALSE;
      saved->attrs[0].i = calls->len - place;
    }
  return TRUE;
}

static gboolean
compare_capture_end (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning, GError **error)
{
  Known *known;

  /* With foreign nodes, the calls are not the whole graph. */
  if (exec == NULL || gtorch_graph_exec_get_n_foreign (exec) > 0)
    return TRUE;
  known = g_new0 (Known, 1);
  known->note.owner = &gtorch_compare_observer;
  known->note.free = known_free;
  known->calls = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_saved_call_free);
  if (add_calls (exec, known->calls))
    gtorch_note_add (&exec->notes, &known->note);
  else
    known_free (&known->note);
  return TRUE;
}

static gboolean
compare_replay_begin (GTorchReplay *replay, GError **error)
{
  Known *known = (Known *) gtorch_note_find (&replay->exec->notes, &gtorch_compare_observer);
  Compare *self;

  if (known == NULL || gtorch_captures_exist ()
      || g_atomic_int_get (&known->n_compared) >= N_COMPARED
      || g_atomic_int_add (&known->n_compared, 1) >= N_COMPARED)
    return TRUE;
  self = compare_new (known->calls, replay->stream, error);
  if (self == NULL)
    return FALSE;
  gtorch_note_add (&replay->notes, &self->note);
  return TRUE;
}

static gboolean
compare_replay_end (GTorchReplay *replay, gboolean result, GError **error)
{
  GTorchNote *note = gtorch_note_find (&replay->notes, &gtorch_compare_observer);

  return !result || note == NULL || compare ((Compare *) note, error);
}

const GTorchObserver gtorch_compare_observer = {
  .rank = GTORCH_RANK_COMPARE,
  .capture_end = compare_capture_end,
  .replay_begin = compare_replay_begin,
  .replay_end = compare_replay_end,
};
