/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The signals and the error message of an allocator that is out of memory. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-thread-private.h"
#include "memory/gtorch-allocator-private.h"

/* How long an allocating thread waits for the owner's main loop to start emitting a signal. The owner may
 * itself be waiting for that thread. */
gint64 gtorch_allocator_patience = G_USEC_PER_SEC / 2;
#define END_TIMEOUT (10 * G_USEC_PER_SEC)

enum
{
  MEMORY_PRESSURE,
  OUT_OF_MEMORY,
  N_SIGNALS
};

static guint signals[N_SIGNALS];
static GPrivate asking; /* prevents recursion when a handler allocates */

typedef struct
{
  gint ref_count;
  GTorchAllocator *allocator;
  guint signal;
  guint64 n_bytes;
  GMutex lock;
  GCond cond;
  enum
  {
    WAITING,
    RUNNING,
    DONE,
    DROPPED,
  } state;
  gboolean result;
} Question;

static void
question_unref (gpointer data)
{
  Question *self = data;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  g_free (self);
}

/* Emits the signal; called in the owner's thread. */
static gboolean
ask_here (GTorchAllocator *self, guint signal, guint64 n_bytes)
{
  gboolean result = FALSE, former = g_private_get (&asking) != NULL;

  if (former)
    return FALSE;
  g_private_set (&asking, GINT_TO_POINTER (TRUE));
  if (signal == OUT_OF_MEMORY)
    g_signal_emit (self, signals[signal], 0, n_bytes, &result);
  else
    {
      g_signal_emit (self, signals[signal], 0, n_bytes);
      result = TRUE;
    }
  g_private_set (&asking, GINT_TO_POINTER (former));
  return result;
}

static gboolean
question_run (gpointer data)
{
  Question *self = data;
  gboolean result;

  g_mutex_lock (&self->lock);
  if (self->state == DROPPED)
    {
      g_mutex_unlock (&self->lock);
      return G_SOURCE_REMOVE;
    }
  self->state = RUNNING;
  g_mutex_unlock (&self->lock);
  result = ask_here (self->allocator, self->signal, self->n_bytes);
  g_mutex_lock (&self->lock);
  self->result = result;
  self->state = DONE;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
  return G_SOURCE_REMOVE;
}

static gboolean
ask_there (GTorchAllocator *self, guint signal, guint64 n_bytes)
{
  Question *question = g_new0 (Question, 1);
  g_autoptr (GSource) source = g_idle_source_new ();
  gint64 end = g_get_monotonic_time () + gtorch_allocator_patience;
  gboolean result;

  g_atomic_int_set (&question->ref_count, 1);
  g_atomic_int_inc (&question->ref_count);
  g_mutex_init (&question->lock);
  g_cond_init (&question->cond);
  question->allocator = self;
  question->signal = signal;
  question->n_bytes = n_bytes;
  g_source_set_priority (source, G_PRIORITY_HIGH);
  g_source_set_callback (source, question_run, question, question_unref);
  g_source_attach (source, self->context);

  g_mutex_lock (&question->lock);
  while (question->state == WAITING && g_cond_wait_until (&question->cond, &question->lock, end))
    ;
  end = g_get_monotonic_time () + END_TIMEOUT;
  while (question->state == RUNNING && g_cond_wait_until (&question->cond, &question->lock, end))
    ;
  result = question->state == DONE && question->result;
  if (question->state == WAITING)
    question->state = DROPPED;
  g_mutex_unlock (&question->lock);
  g_source_destroy (source);
  question_unref (question);
  return result;
}

static gboolean
ask (GTorchAllocator *self, guint signal, guint64 n_bytes)
{
  if (g_private_get (&asking) != NULL
      || !g_signal_has_handler_pending (self, signals[signal], 0, FALSE))
    return FALSE;
  if (self->device->owner == g_thread_self ())
    return ask_here (self, signal, n_bytes);
  return ask_there (self, signal, n_bytes);
}

gboolean
gtorch_allocator_memory_pressure (GTorchAllocator *self, guint64 n_bytes)
{
  gboolean result = gtorch_device_memory_pressure (self->device, n_bytes);

  return ask (self, MEMORY_PRESSURE, n_bytes) || result;
}

gboolean
gtorch_allocator_out_of_memory (GTorchAllocator *self, guint64 n_bytes)
{
  return ask (self, OUT_OF_MEMORY, n_bytes);
}

void
gtorch_allocator_add_signals (GTorchAllocatorClass *klass)
{
  /**
   * GTorchAllocator::memory-pressure:
   * @self: the allocator
   * @n_bytes: how much is about to be allocated
   *
   * The device is out of memory, even after all cached memory was returned to it.
   *
   * Handlers should drop tensors that are no longer needed. Emitted during an allocation, in the thread
   * that used the device first; if another thread allocates, from the main context of the first thread, if
   * that is running.
   *
   * Since: 0.1
   */
  signals[MEMORY_PRESSURE] =
      g_signal_new ("memory-pressure", GTORCH_TYPE_ALLOCATOR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                    NULL, G_TYPE_NONE, 1, G_TYPE_UINT64);
  /**
   * GTorchAllocator::out-of-memory:
   * @self: the allocator
   * @n_bytes: how much was to be allocated
   *
   * An allocation is about to fail with %GTORCH_ERROR_OUT_OF_MEMORY. Emitted after
   * [signal@Allocator::memory-pressure] and in the same way.
   *
   * Returns: %TRUE if the handler has freed memory and the allocation should be retried
   *
   * Since: 0.1
   */
  signals[OUT_OF_MEMORY] = g_signal_new ("out-of-memory", GTORCH_TYPE_ALLOCATOR, G_SIGNAL_RUN_LAST,
                                         0, g_signal_accumulator_true_handled, NULL, NULL,
                                         G_TYPE_BOOLEAN, 1, G_TYPE_UINT64);
}

void
gtorch_allocator_set_oom (GTorchAllocator *self, gsize n_bytes, gsize available, gsize largest,
                          GError **error)
{
  const guint64 total = gtorch_device_get_total_memory (self->device);
  GTorchMemoryStats stats;
  const GTorchCounter *all = stats.counters[GTORCH_POOL_ALL];
  g_autofree gchar *wanted = g_format_size_full (n_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *whole = g_format_size_full (total, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *left = g_format_size_full (available, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *best = g_format_size_full (largest, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *allocated = NULL, *kept = NULL;
  g_autofree gchar *places = gtorch_allocator_describe_places (self, n_bytes, available);
  g_autoptr (GString) hints = g_string_new (NULL);
  const gboolean is_cpu = gtorch_device_is_host (self->device);
  guint64 held, unused, others, private;

  gtorch_allocator_lock_stats (self);
  private = self->private_reserved;
  gtorch_allocator_unlock_stats (self);
  gtorch_allocator_get_stats (self, &stats);
  held = MAX (all[GTORCH_STAT_ALLOCATED_BYTES].current, 0);
  unused = MAX (all[GTORCH_STAT_RESERVED_BYTES].current - (gint64) held, 0);
  others = total - MIN (total, available + held + unused);
  allocated = g_format_size_full (held, G_FORMAT_SIZE_IEC_UNITS);
  kept = g_format_size_full (unused, G_FORMAT_SIZE_IEC_UNITS);

  if (self->config.fraction < 1)
    {
      g_autofree gchar *limit =
          g_format_size_full (self->config.fraction * total, G_FORMAT_SIZE_IEC_UNITS);

      g_string_append_printf (hints, _ ("; this process may reserve %s (memory-fraction)"), limit);
    }
  if (others > total / 8)
    {
      g_autofree gchar *size = g_format_size_full (others, G_FORMAT_SIZE_IEC_UNITS);

      g_string_append_printf (hints, _ ("; %s are used by other programs and libraries"), size);
    }
  if (private > 0)
    {
      g_autofree gchar *size = g_format_size_full (private, G_FORMAT_SIZE_IEC_UNITS);

      g_string_append_printf (hints, _ ("; %s are reserved in private pools (MemoryPool, graphs)"),
                              size);
    }
  if (unused >= n_bytes && !is_cpu && self->config.backend == GTORCH_BACKEND_SEGMENTS)
    g_string_append (hints, _ ("; memory is fragmented: backend:arenas or max_split_size_mb in "
                               "GTORCH_ALLOC_CONF may help"));
  else if (unused >= n_bytes && !is_cpu)
    g_string_append (hints, _ ("; memory is fragmented: separate streams for tensors of different "
                               "lifetimes may help"));
  if (held > total / 2 && !gtorch_thread.no_grad)
    g_string_append (hints,
                     _ ("; smaller batches, gradient accumulation or 16-bit floats need less, "
                        "and so does code without gradients if the grad mode is off"));
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("%s cannot be allocated on %s, out of memory: of its %s, %s are free; tensors of "
                  "this process "
                  "hold %s, and %s are reserved but unallocated, the largest piece of them being "
                  "%s%s%s"),
               wanted, gtorch_device_name (self->device), whole, left, allocated, kept, best,
               hints->str, places != NULL ? places : "");
}
