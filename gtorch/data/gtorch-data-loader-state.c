/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Beginning a pass, anew or in its middle. What a loader continues from is the number of the epoch, the
 * seed of its workers, what lets the sampler begin the pass again, and which batches were handed out:
 * their indices are drawn once more, and no sample of them is read. After the end of an epoch the last
 * pass of the sampler is drawn once more, too, so that a generator is where it was. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "data/gtorch-loader-private.h"
#include "device/gtorch-device-private.h"
#include "stream/gtorch-stream.h"
#include "tensor/gtorch-impl-private.h"

#define VERSION 1

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

/**
 * gtorch_data_loader_get_state:
 * @self: a loader
 *
 * Gets what [method@DataLoader.set_state] of a loader with the same settings and the same data set
 * continues from, in this process or another.
 *
 * It has the epoch, the number of batches that were given, and the state of the sampler's random numbers:
 * the other loader gives the very batches that this one would give next in this epoch, and, if it has a
 * `generator` of its own, in the next ones. Without one, the orders of further epochs follow from the
 * CPU's default generator, whose state is not in it. Of an iterable data set the batches that were given
 * are read again, and left out.
 *
 * Returns: (transfer full): a dictionary of type `a{sv}`
 *
 * Since: 0.1
 */
GVariant *
gtorch_data_loader_get_state (GTorchDataLoader *self)
{
  GVariantBuilder builder;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), NULL);
  if (self->resume != NULL)
    return g_variant_ref (self->resume);
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
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

typedef struct
{
  guint32 version;
  gboolean begun, done;
  guint64 epoch, seed, n_first;
  gint64 position;
  GVariant *later, *sampler;
} State;

static void
state_clear (State *self)
{
  g_clear_pointer (&self->later, g_variant_unref);
  g_clear_pointer (&self->sampler, g_variant_unref);
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
  if (self->later != NULL && g_variant_lookup (state, "begun", "b", &self->begun)
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

/**
 * gtorch_data_loader_set_state:
 * @self: a loader
 * @state: a state from [method@DataLoader.get_state]
 * @error: return location for an error
 *
 * Lets the next epoch that is begun be the one that @state was in the middle of, with the batches that
 * were not given yet. If that one was at its end, the next one follows.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_FORMAT if @state is not the state of a loader
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
  done = read_state (state, &read, error);
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
      self->made_fetcher =
          gtorch_fetcher_new (self->dataset, self->batch_size > 0 || self->batch_sampler != NULL);
      if (self->collate != NULL)
        gtorch_fetcher_set_collate (self->made_fetcher, call_collate,
                                    g_atomic_rc_box_acquire (self->collate),
                                    gtorch_loader_func_unref);
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
