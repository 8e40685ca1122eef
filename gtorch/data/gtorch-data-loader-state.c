/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Beginning a pass, anew or in its middle. What a loader continues from is the number of the epoch, the
 * seed of its workers, what lets the sampler begin the pass again, and which batches were handed out:
 * their indices are drawn once more, and no sample of them is read. A state also has what the loader is
 * like, so that one of another loader is refused. After the end of an epoch the last
 * pass of the sampler is drawn once more, too, so that a generator is where it was. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-references-private.h"
#include "base/gtorch-text-private.h"
#include "data/gtorch-dataset-private.h"
#include "data/gtorch-loader-private.h"
#include "device/gtorch-device-private.h"
#include "stream/gtorch-stream.h"
#include "tensor/gtorch-impl-private.h"

#define VERSION 2

/* --- keeping count --- */

void
gtorch_data_loader_count (GTorchDataLoader *self, guint64 serial, guint64 number)
{
  const gint64 n = number;
  guint i = 0;

  if (self->serial != serial)
    return;
  self->position++;
  if (number != self->n_first)
    {
      while (i < self->later->len && g_array_index (self->later, gint64, i) < n)
        i++;
      g_array_insert_val (self->later, i, n);
    }
  else
    {
      self->n_first++;
      while (i < self->later->len
             && g_array_index (self->later, gint64, i) == (gint64) self->n_first)
        {
          self->n_first++;
          i++;
        }
      if (i > 0)
        g_array_remove_range (self->later, 0, i);
    }
  gtorch_data_loader_notify (self, FALSE);
}

void
gtorch_data_loader_finish_pass (GTorchDataLoader *self, guint64 serial)
{
  if (self->serial != serial || self->is_done)
    return;
  self->is_done = TRUE;
  gtorch_data_loader_notify (self, FALSE);
}

/* --- states --- */

static const gchar *
name_order (GTorchDataLoader *self)
{
  if (GTORCH_IS_ITERABLE_DATASET (self->dataset))
    return "iterable";
  if (self->batch_sampler != NULL)
    return G_OBJECT_TYPE_NAME (self->batch_sampler);
  if (self->sampler != NULL)
    return G_OBJECT_TYPE_NAME (self->sampler);
  return self->shuffle ? "random" : "sequential";
}

/* Samples that a thread makes for next_async () are neither given nor left. */
static gboolean
refuse_while_making (GTorchDataLoader *self, GError **error)
{
  if (self->n_making == 0)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PENDING,
               _ ("data_loader: a state cannot be taken while a batch of the data set is being "
                  "made"));
  return FALSE;
}

static gboolean
has_dataset_state (GTorchDataLoader *self)
{
  return self->num_workers == 0 && GTORCH_IS_ITERABLE_DATASET (self->dataset);
}

/**
 * gtorch_data_loader_get_state:
 * @self: a loader
 * @error: return location for an error
 *
 * Gets what [method@DataLoader.set_state] of a loader with the same settings and the same data set
 * continues from, in this process or another.
 *
 * It has the epoch, the number of batches that were given, and the state of the sampler's random numbers:
 * the other loader gives the very batches that this one would give next in this epoch, and, if it has a
 * `generator` of its own, in the next ones. Without one, the orders of further epochs follow from the
 * CPU's default generator, whose state is not in it. Of an iterable data set the batches that were given
 * are read again, and left out, unless the loader has no workers and the data set has states
 * ([method@IterableDataset.get_state]).
 *
 * Returns: (transfer full): a dictionary of type `a{sv}`, or %NULL with the error of the data set, or with
 *   %G_IO_ERROR_PENDING if it has states and [method@DataLoaderIter.next_async] is making a batch
 *
 * Since: 0.1
 */
GVariant *
gtorch_data_loader_get_state (GTorchDataLoader *self, GError **error)
{
  GVariantBuilder builder;
  g_autoptr (GVariant) dataset = NULL;
  GError *local = NULL;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), NULL);
  if (!gtorch_data_loader_check (self, error))
    return NULL;
  if (self->resume != NULL)
    return g_variant_ref (self->resume);
  if (self->serial > 0 && has_dataset_state (self))
    {
      if (!refuse_while_making (self, error))
        return NULL;
      dataset = gtorch_iterable_dataset_get_state (GTORCH_ITERABLE_DATASET (self->dataset), &local);
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return NULL;
        }
    }
  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "version", g_variant_new_uint32 (VERSION));
  g_variant_builder_add (&builder, "{sv}", "begun", g_variant_new_boolean (self->serial > 0));
  g_variant_builder_add (&builder, "{sv}", "done", g_variant_new_boolean (self->is_done));
  g_variant_builder_add (&builder, "{sv}", "epoch", g_variant_new_uint64 (self->epoch));
  g_variant_builder_add (&builder, "{sv}", "position", g_variant_new_int64 (self->position));
  g_variant_builder_add (&builder, "{sv}", "seed", g_variant_new_uint64 (self->seed));
  g_variant_builder_add (&builder, "{sv}", "first", g_variant_new_uint64 (self->n_first));
  g_variant_builder_add (&builder, "{sv}", "later",
                         g_variant_new_fixed_array (G_VARIANT_TYPE_INT64, self->later->data,
                                                    self->later->len, sizeof (gint64)));
  if (self->pass_state != NULL)
    g_variant_builder_add (&builder, "{sv}", "sampler", self->pass_state);
  if (dataset != NULL)
    g_variant_builder_add (&builder, "{sv}", "dataset", dataset);
  g_variant_builder_add (&builder, "{sv}", "order", g_variant_new_string (name_order (self)));
  g_variant_builder_add (&builder, "{sv}", "batch-size", g_variant_new_int64 (self->batch_size));
  g_variant_builder_add (&builder, "{sv}", "drop-last", g_variant_new_boolean (self->drop_last));
  g_variant_builder_add (&builder, "{sv}", "samples",
                         g_variant_new_int64 (gtorch_dataset_get_length (self->dataset, NULL)));
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

typedef struct
{
  guint32 version;
  gboolean begun, done;
  guint64 epoch, seed, n_first;
  gint64 position, batch_size, n_samples;
  gboolean drop_last;
  GVariant *later, *sampler, *dataset, *order;
} State;

static void
state_clear (State *self)
{
  g_clear_pointer (&self->later, g_variant_unref);
  g_clear_pointer (&self->sampler, g_variant_unref);
  g_clear_pointer (&self->dataset, g_variant_unref);
  g_clear_pointer (&self->order, g_variant_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (State, state_clear)

static gboolean
read_state (GVariant *state, State *self, GError **error)
{
  if (!g_variant_is_of_type (state, G_VARIANT_TYPE_VARDICT)
      || !g_variant_lookup (state, "version", "u", &self->version))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("data_loader: a value of type %s is not the state of a loader"),
                   g_variant_get_type_string (state));
      return FALSE;
    }
  if (self->version != VERSION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("data_loader: a state of version %u cannot be read, only one of version %d"),
                   self->version, VERSION);
      return FALSE;
    }
  self->later = g_variant_lookup_value (state, "later", G_VARIANT_TYPE ("ax"));
  self->sampler = g_variant_lookup_value (state, "sampler", NULL);
  self->dataset = g_variant_lookup_value (state, "dataset", NULL);
  self->order = g_variant_lookup_value (state, "order", G_VARIANT_TYPE_STRING);
  if (self->later != NULL && self->order != NULL
      && g_variant_lookup (state, "batch-size", "x", &self->batch_size)
      && g_variant_lookup (state, "drop-last", "b", &self->drop_last)
      && g_variant_lookup (state, "samples", "x", &self->n_samples)
      && g_variant_lookup (state, "begun", "b", &self->begun)
      && g_variant_lookup (state, "done", "b", &self->done)
      && g_variant_lookup (state, "epoch", "t", &self->epoch)
      && g_variant_lookup (state, "position", "x", &self->position)
      && g_variant_lookup (state, "seed", "t", &self->seed)
      && g_variant_lookup (state, "first", "t", &self->n_first) && self->position >= 0
      && self->n_first + g_variant_n_children (self->later) == (guint64) self->position)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("data_loader: the state lacks a part, or its numbers contradict each other"));
  return FALSE;
}

static gboolean
refuse_number (const gchar *what, gint64 theirs, gint64 ours, GError **error)
{
  if (theirs == ours)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("data_loader: the state is that of a loader whose %s is %" PRId64
                  ", and this one's is %" PRId64),
               what, theirs, ours);
  return FALSE;
}

/* Whether the state is that of a loader like this one. */
static gboolean
is_like (GTorchDataLoader *self, const State *state, GError **error)
{
  const gchar *theirs = g_variant_get_string (state->order, NULL), *ours = name_order (self);

  if (!g_str_equal (theirs, ours))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("data_loader: the state is that of a loader whose order is “%s”, and this "
                      "one's is "
                      "“%s”"),
                   gtorch_name_str (theirs), gtorch_name_str (ours));
      return FALSE;
    }
  return refuse_number ("batch_size", state->batch_size, self->batch_size, error)
         && refuse_number ("drop_last", state->drop_last, self->drop_last, error)
         && refuse_number (_ ("number of samples"), state->n_samples,
                           gtorch_dataset_get_length (self->dataset, NULL), error);
}

static gboolean
set_dataset_state (GTorchDataLoader *self, const State *state, GError **error)
{
  if (state->dataset != NULL && has_dataset_state (self))
    {
      if (!gtorch_iterable_dataset_set_state (GTORCH_ITERABLE_DATASET (self->dataset),
                                              state->dataset, error))
        return FALSE;
      self->is_dataset_set = TRUE;
      return TRUE;
    }
  if (!self->is_dataset_set)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("data_loader: the state has none of the data set, which goes on from another "
                  "state"));
  return FALSE;
}

/**
 * gtorch_data_loader_set_state:
 * @self: a loader
 * @state: a state from [method@DataLoader.get_state]
 * @error: return location for an error
 *
 * Lets the next epoch that is begun be the one that @state was in the middle of, with the batches that
 * were not given yet. If that one was at its end, the next one follows.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_FORMAT if @state is not the state of a loader, with
 *   %GTORCH_ERROR_INVALID if it is that of a loader with another order, batch size or number of samples, or
 *   with the errors of [method@DataLoader.check] and of the data set
 *
 * Since: 0.1
 */
gboolean
gtorch_data_loader_set_state (GTorchDataLoader *self, GVariant *state, GError **error)
{
  g_auto (State) read = { 0 };
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  g_variant_ref_sink (state);
  done = gtorch_data_loader_check (self, error) && read_state (state, &read, error)
         && is_like (self, &read, error) && set_dataset_state (self, &read, error);
  if (done)
    {
      g_clear_pointer (&self->resume, g_variant_unref);
      self->resume = g_variant_ref (state);
    }
  g_variant_unref (state);
  return done;
}

/* --- passes --- */

/* Reads the indices of n batches, and further ones to the end. */
static gboolean
skip (GTorchIndexSource *source, guint64 n, gboolean to_end, GError **error)
{
  GError *local = NULL;
  guint64 i;

  for (i = 0; i < n || to_end; i++)
    {
      g_autoptr (GTorchSize) indices = gtorch_index_source_next (source, 1, &local);

      if (indices != NULL)
        continue;
      if (local == NULL && i >= n)
        break;
      if (local == NULL)
        g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("data_loader: the state was taken after %" PRIu64
                        " batches, and the sampler gives %" PRIu64),
                     n, i);
      g_propagate_error (error, local);
      return FALSE;
    }
  return TRUE;
}

/* Begins the pass that the state is in, up to where it is. */
static GTorchIndexSource *
resume_source (GTorchDataLoader *self, GTorchSampler *sampler, const State *state, GError **error)
{
  g_autoptr (GTorchIndexSource) source = NULL;

  if (state->sampler != NULL && !gtorch_sampler_set_state (sampler, state->sampler, error))
    return NULL;
  source = gtorch_sampler_iterate (sampler, state->epoch, error);
  if (source == NULL || !skip (source, state->n_first, state->done, error))
    return NULL;
  return g_steal_pointer (&source);
}

static gboolean
begin_source (GTorchDataLoader *self, GTorchPassStart *start, GError **error)
{
  g_autoptr (GTorchSampler) sampler = NULL;
  g_auto (State) state = { 0 };
  GError *local = NULL;

  if (self->resume != NULL && !read_state (self->resume, &state, error))
    return FALSE;
  sampler = gtorch_data_loader_make_sampler (self, &local);
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  start->epoch = self->serial > 0 ? self->epoch + 1 : 0;
  if (self->resume != NULL)
    start->epoch = state.begun && state.done ? state.epoch + 1 : state.epoch;
  if (state.begun && !state.done)
    {
      start->seed = state.seed;
      start->n_skipped = state.n_first;
      if (g_variant_n_children (state.later) > 0)
        {
          gsize n;
          gconstpointer numbers = g_variant_get_fixed_array (state.later, &n, sizeof (gint64));

          start->skipped = g_array_sized_new (FALSE, FALSE, sizeof (gint64), n);
          g_array_append_vals (start->skipped, numbers, n);
        }
      if (sampler != NULL)
        start->source = resume_source (self, sampler, &state, error);
      return sampler == NULL || start->source != NULL;
    }
  if (state.begun && sampler != NULL)
    {
      g_autoptr (GTorchIndexSource) last = resume_source (self, sampler, &state, error);

      if (last == NULL)
        return FALSE;
      g_clear_object (&sampler);
      sampler = gtorch_data_loader_make_sampler (self, error);
      if (sampler == NULL)
        return FALSE;
    }
  start->seed = gtorch_draw_seed (self->generator);
  if (sampler != NULL)
    start->source = gtorch_sampler_iterate (sampler, start->epoch, error);
  return sampler == NULL || start->source != NULL;
}

static GTorchSample *
call_collate (GTorchSample **samples, gsize n_samples, gpointer func, GError **error)
{
  GTorchLoaderFunc *self = func;

  return self->collate (samples, n_samples, self->user_data, error);
}

static gboolean
make_plan (GTorchDataLoader *self, GTorchBatchPlan *plan, GError **error)
{
  const gboolean is_elsewhere = self->device != NULL && self->device != gtorch_device_cpu ();
  g_autoptr (GTorchImpl) probe = NULL;

  plan->pin = self->pin_memory || is_elsewhere;
  if (plan->pin)
    {
      probe = gtorch_impl_new_pinned (GTORCH_DTYPE_UINT8, (gint64[]){ 1 }, 1, error);
      if (probe == NULL)
        {
          g_prefix_error (error, "data_loader: pin_memory: ");
          return FALSE;
        }
    }
  if (is_elsewhere && self->stream == NULL
      && (self->stream = gtorch_stream_new (self->device, 0, error)) == NULL)
    return FALSE;
  if (self->fetcher == NULL && self->made_fetcher == NULL)
    {
      GTorchFetcher *made =
          gtorch_fetcher_new (self->dataset, self->batch_size > 0 || self->batch_sampler != NULL);

      if (self->collate != NULL)
        gtorch_fetcher_set_collate (made, call_collate, g_atomic_rc_box_acquire (self->collate),
                                    gtorch_loader_func_unref);
      gtorch_references_lock ();
      self->made_fetcher = made;
      gtorch_references_unlock ();
    }
  plan->fetcher = g_object_ref (self->fetcher != NULL ? self->fetcher : self->made_fetcher);
  plan->init = self->init != NULL ? g_atomic_rc_box_acquire (self->init) : NULL;
  g_set_object (&plan->device, self->device);
  if (is_elsewhere)
    plan->stream = g_object_ref (self->stream);
  plan->n_samples = self->batch_size;
  plan->drop_last = self->drop_last;
  return TRUE;
}

void
gtorch_pass_start_clear (GTorchPassStart *self)
{
  g_clear_object (&self->source);
  g_clear_pointer (&self->skipped, g_array_unref);
  gtorch_batch_plan_clear (&self->plan);
}

gboolean
gtorch_data_loader_begin (GTorchDataLoader *self, GTorchPassStart *start, GError **error)
{
  *start = (GTorchPassStart){ 0 };
  if (!gtorch_data_loader_check (self, error) || !make_plan (self, &start->plan, error))
    return FALSE;
  if (self->num_workers > 0 && self->persistent_workers)
    {
      if (self->workers == NULL)
        self->workers = gtorch_workers_new (self->num_workers, &start->plan, error);
      if (self->workers == NULL)
        return FALSE;
      start->workers = gtorch_workers_are_busy (self->workers) ? NULL : self->workers;
      if (start->workers == NULL && start->plan.fetcher == NULL
          && !make_plan (self, &start->plan, error))
        return FALSE;
    }
  if (!begin_source (self, start, error))
    return FALSE;
  start->length = gtorch_data_loader_get_length (self, NULL);
  start->serial = ++self->serial;
  g_clear_pointer (&self->resume, g_variant_unref);
  g_clear_pointer (&self->pass_state, g_variant_unref);
  if (start->source != NULL)
    self->pass_state = gtorch_index_source_get_state (start->source);
  start->is_dataset_set = self->is_dataset_set;
  self->is_dataset_set = FALSE;
  self->epoch = start->epoch;
  self->seed = start->seed;
  self->is_done = FALSE;
  self->length = start->length;
  self->n_first = start->n_skipped;
  g_array_set_size (self->later, 0);
  if (start->skipped != NULL)
    g_array_append_vals (self->later, start->skipped->data, start->skipped->len);
  self->position = (gint64) (self->n_first + self->later->len);
  gtorch_data_loader_notify (self, TRUE);
  return TRUE;
}
