/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Finds work on two streams that uses the same memory without order.
 *
 * Each queue counts its work, and has a clock: for every other queue, up to which number that one's work is
 * known to come before whatever is put into this queue next. An event takes a copy of the clock of the queue
 * it is recorded on, with that queue's own count; a queue that waits for the event raises its own clock to
 * it. What the host has waited for, in whichever thread and by whichever way, is done for all: how the
 * threads of a program tell each other of it is not known here. Nothing depends on what happens to be done:
 * a program is reported for what it left to chance, also in a run in which chance was kind.
 *
 * Each storage has a list of who used which part of it. A new use must come after all earlier ones that
 * touch the same elements, unless both only read. Uses that every later one must come after anyway, because
 * it has to come after a newer one, are dropped. The CPU's default stream works where it is called and waits
 * for whoever wrote its operands, as the launcher does. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <stdlib.h>
#include <string.h>

#include "gtorch-race-private.h"

#include "gtorch-capture-private.h"

#define MAX_QUEUES 256
#define MAX_USES   64

typedef struct
{
  gpointer key;
  GTorchDevice *device;
  gpointer stream; /* seen last; for messages, may be gone */
  gboolean is_default;
  guint64 submitted, done;
  guint64 clock[MAX_QUEUES];
} Queue;

struct _GTorchRaceOrder
{
  guint n;
  guint64 clock[];
};

/* Which elements; in bytes. n_dims = G_MAXUINT8: all of it. */
typedef struct
{
  gint64 low, high, offset;
  gint64 n_bytes; /* of the elements alone, without holes */
  gint64 shape[GTORCH_MAX_DIMS],
      strides[GTORCH_MAX_DIMS]; /* by size of the stride, largest first */
  guint8 n_dims;
} Part;

typedef struct
{
  guint queue;
  guint64 number;
  gboolean is_write, in_place;
  Part part;
  const gchar *what;
  gchar *shape;
  GTorchSite site;
  GTorchRaceOrder *order; /* of writes by queues of the CPU: the host waits for single ones */
} Use;

static GMutex lock; /* of all that follows */
static Queue *queues[MAX_QUEUES];
static guint n_queues;
static GHashTable *storages; /* GTorchStorage to GArray of Use */

/* --- queues --- */

static Queue *
find_queue (gpointer key)
{
  guint i;

  for (i = 0; i < n_queues; i++)
    if (queues[i]->key == key)
      return queues[i];
  if (n_queues == MAX_QUEUES)
    return NULL;
  queues[n_queues] = g_new0 (Queue, 1);
  queues[n_queues]->key = key;
  return queues[n_queues++];
}

static guint
queue_index (const Queue *queue)
{
  guint i;

  for (i = 0; queues[i] != queue; i++)
    continue;
  return i;
}

static Queue *
stream_queue (GTorchStream *stream, GTorchDevice *device)
{
  Queue *queue;

  if (stream == NULL)
    stream = gtorch_device_get_default_stream (device);
  queue = find_queue (gtorch_stream_get_queue (stream));
  if (queue != NULL)
    {
      queue->device = device;
      queue->stream = stream;
      queue->is_default = stream->is_default;
    }
  return queue;
}

static GTorchRaceOrder *
order_of (Queue *queue)
{
  GTorchRaceOrder *order =
      g_malloc (sizeof (GTorchRaceOrder) + n_queues * sizeof (order->clock[0]));

  order->n = n_queues;
  memcpy (order->clock, queue->clock, n_queues * sizeof (order->clock[0]));
  order->clock[queue_index (queue)] = queue->submitted;
  return order;
}

static void
raise_clock (Queue *queue, const GTorchRaceOrder *order)
{
  guint i;

  for (i = 0; i < order->n; i++)
    queue->clock[i] = MAX (queue->clock[i], order->clock[i]);
}

GTorchRaceOrder *
gtorch_race_order_new (gpointer key)
{
  GTorchRaceOrder *order = NULL;
  Queue *queue;

  g_mutex_lock (&lock);
  queue = find_queue (key);
  if (queue != NULL)
    order = order_of (queue);
  g_mutex_unlock (&lock);
  return order;
}

GTorchRaceOrder *
gtorch_race_order_copy (const GTorchRaceOrder *order)
{
  return order != NULL ? g_memdup2 (order, sizeof *order + order->n * sizeof order->clock[0])
                       : NULL;
}

void
gtorch_race_order_free (GTorchRaceOrder *order)
{
  g_free (order);
}

static void
reached (const GTorchRaceOrder *order)
{
  guint i;

  for (i = 0; order != NULL && i < order->n; i++)
    queues[i]->done = MAX (queues[i]->done, order->clock[i]);
}

void
gtorch_race_reached (const GTorchRaceOrder *order)
{
  if (order == NULL || gtorch_thread.worker != NULL)
    return;
  g_mutex_lock (&lock);
  reached (order);
  g_mutex_unlock (&lock);
}

void
gtorch_race_wait (GTorchStream *stream, const GTorchRaceOrder *order)
{
  Queue *queue;

  if (order == NULL)
    return;
  g_mutex_lock (&lock);
  queue = stream_queue (stream, stream->device);
  if (queue != NULL)
    raise_clock (queue, order);
  g_mutex_unlock (&lock);
}

/* --- copies of pinned memory --- */

void
gtorch_race_note_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only)
{
  GTorchRaceOrder *former, *order;
  Queue *queue;
  guint i;

  g_mutex_lock (&lock);
  former = copies->copies_order;
  queue = stream_queue (stream, stream->device);
  order = queue != NULL ? order_of (queue) : NULL;
  for (i = 0; order != NULL && former != NULL && !is_only && i < former->n; i++)
    order->clock[i] = MAX (order->clock[i], former->clock[i]);
  g_free (former);
  copies->copies_order = order;
  g_mutex_unlock (&lock);
}

void
gtorch_race_copies_waited (GTorchTimeline *copies)
{
  if (gtorch_thread.worker != NULL)
    return;
  g_mutex_lock (&lock);
  reached (copies->copies_order);
  g_mutex_unlock (&lock);
}

static gboolean
is_before (const Use *use, const Queue *queue)
{
  return queues[use->queue] == queue || use->number <= queues[use->queue]->done
         || use->number <= queue->clock[use->queue];
}

/* --- parts of memory --- */

static void
part_init (Part *part, const GTorchImpl *impl)
{
  gint64 size = gtorch_dtype_size (impl->dtype);
  guint d, i;

  *part = (Part){ .low = impl->offset * size, .offset = impl->offset * size };
  part->high = part->low + size;
  part->n_bytes = size;
  for (d = 0; d < impl->n_dims; d++)
    {
      gint64 stride = impl->strides[d] * size, shape = impl->shape[d];

      if (shape == 1 || stride == 0)
        continue;
      *(stride < 0 ? &part->low : &part->high) += (shape - 1) * stride;
      for (i = part->n_dims; i > 0 && llabs (part->strides[i - 1]) < llabs (stride); i--)
        {
          part->strides[i] = part->strides[i - 1];
          part->shape[i] = part->shape[i - 1];
        }
      part->strides[i] = stride;
      part->shape[i] = shape;
      part->n_dims++;
      part->n_bytes *= shape;
    }
}

static void
part_init_all (Part *part, const GTorchStorage *storage)
{
  *part = (Part){ .high = storage->n_bytes, .n_bytes = storage->n_bytes, .n_dims = G_MAXUINT8 };
}

/* Where the part begins in a grid of these strides, if it is a box there. */
static gboolean
find_corner (const Part *part, gint64 *corner)
{
  gint64 rest = part->offset, reach = 0;
  guint d;

  for (d = part->n_dims; d > 0; d--)
    {
      if (part->strides[d - 1] < 0)
        return FALSE;
      reach += (part->shape[d - 1] - 1) * part->strides[d - 1];
      if (d > 1 && part->offset % part->strides[d - 2] + reach >= part->strides[d - 2])
        return FALSE;
    }
  for (d = 0; d < part->n_dims; d++)
    {
      corner[d] = rest / part->strides[d];
      rest %= part->strides[d];
    }
  return TRUE;
}

static gboolean
parts_meet (const Part *a, const Part *b)
{
  gint64 corners[2][GTORCH_MAX_DIMS];
  guint d;

  if (a->low >= b->high || b->low >= a->high)
    return FALSE;
  if (a->n_dims == G_MAXUINT8 || a->n_dims != b->n_dims
      || memcmp (a->strides, b->strides, a->n_dims * sizeof (a->strides[0])) != 0
      || !find_corner (a, corners[0]) || !find_corner (b, corners[1]))
    return TRUE;
  for (d = 0; d < a->n_dims; d++)
    if (corners[0][d] + a->shape[d] <= corners[1][d]
        || corners[1][d] + b->shape[d] <= corners[0][d])
      return FALSE;
  return TRUE;
}

static gboolean
covers (const Part *a, const Part *b)
{
  return a->low <= b->low && a->high >= b->high
         && (a->n_bytes == a->high - a->low || memcmp (a, b, sizeof *a) == 0);
}

/* --- uses of storages --- */

static void
use_clear (gpointer data)
{
  g_free (((Use *) data)->shape);
  g_free (((Use *) data)->order);
}

static GArray *
get_uses (GTorchStorage *storage)
{
  GArray *uses;

  if (storages == NULL)
    storages = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_array_unref);
  uses = g_hash_table_lookup (storages, storage);
  if (uses == NULL)
    {
      uses = g_array_new (FALSE, FALSE, sizeof (Use));
      g_array_set_clear_func (uses, use_clear);
      g_hash_table_insert (storages, storage, uses);
    }
  return uses;
}

void
gtorch_race_forget (GTorchStorage *storage)
{
  g_mutex_lock (&lock);
  if (storages != NULL)
    g_hash_table_remove (storages, storage);
  g_mutex_unlock (&lock);
}

static void
waited_for (GTorchStorage *storage, gpointer writer)
{
  GArray *uses = storages != NULL ? g_hash_table_lookup (storages, storage) : NULL;
  guint i;

  for (i = 0; uses != NULL && i < uses->len; i++)
    {
      Use *use = &g_array_index (uses, Use, i);

      if (use->is_write && queues[use->queue]->key == writer)
        reached (use->order);
    }
}

/* Of pinned memory: the queue's work, or the host before it, waits for the copies. */
static gboolean
follow_copies (Queue *queue, GTorchStorage *storage)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  if (writer == NULL || !gtorch_timeline_is_of_copies (writer))
    return FALSE;
  if (queue != NULL && writer->copies_order != NULL)
    raise_clock (queue, writer->copies_order);
  return TRUE;
}

/* Before the work the host waits for whoever writes to the storage, if it is the host's. */
static void
follow_host (Queue *queue, GTorchStorage *storage)
{
  GTorchStream *stream = gtorch_current_stream (storage->device);
  Queue *own;

  if (storage->device->type != GTORCH_DEVICE_TYPE_CPU || follow_copies (queue, storage))
    return;
  if (stream != NULL && stream->timeline != NULL) /* … and for its current stream */
    {
      own = stream_queue (stream, storage->device);
      if (own != NULL)
        {
          g_autofree GTorchRaceOrder *order = order_of (own);

          reached (order);
        }
    }
  waited_for (storage, __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE));
}

void
gtorch_race_storage_waited (GTorchStorage *storage, gpointer writer)
{
  if (gtorch_thread.worker != NULL)
    return;
  g_mutex_lock (&lock);
  waited_for (storage, writer);
  g_mutex_unlock (&lock);
}

static gchar *
describe (const Use *use, const Queue *queue)
{
  g_autofree gchar *stream =
      queue->is_default
          ? g_strdup_printf (_ ("the default stream of %s"), gtorch_device_name (queue->device))
          : g_strdup_printf (_ ("stream %p of %s"), queue->stream,
                             gtorch_device_name (queue->device));

  return g_strdup_printf (use->is_write ? _ ("%s%s on %s, which writes to it as shape %s")
                                        : _ ("%s%s on %s, which reads it as shape %s"),
                          use->what, use->in_place ? "_" : "", stream, use->shape);
}

/* FALSE with the message if the use has no order with an earlier one. */
static gboolean
check (GTorchStorage *storage, Use *use, Queue *queue, gchar **message)
{
  GArray *uses = get_uses (storage);
  gboolean result = TRUE;
  guint i;

  for (i = 0; i < uses->len; i++)
    {
      Use *former = &g_array_index (uses, Use, i);

      if ((use->is_write || former->is_write) && !is_before (former, queue)
          && parts_meet (&use->part, &former->part))
        {
          if (*message == NULL)
            {
              g_autofree gchar *first = describe (former, queues[former->queue]);
              g_autofree gchar *second = describe (use, queue);
              g_autofree gchar *first_site = gtorch_site_to_string (&former->site);
              g_autofree gchar *second_site = gtorch_site_to_string (&use->site);

              *message = g_strdup_printf (_ ("streams: nothing says which comes first for one "
                                             "tensor: %s, or %s: let the second stream wait for "
                                             "the first (called by %s; and by %s)"),
                                          first, second, first_site, second_site);
            }
          queue->clock[former->queue] = MAX (queue->clock[former->queue], former->number);
          result = FALSE;
        }
    }
  return result;
}

/* Takes the use. */
static void
add_use (GTorchStorage *storage, Use *use, Queue *queue)
{
  GArray *uses = get_uses (storage);
  guint i = 0;

  while (i < uses->len)
    {
      Use *former = &g_array_index (uses, Use, i);

      if (former->number <= queues[former->queue]->done
          || (is_before (former, queue) && covers (&use->part, &former->part)
              && (use->is_write || (!former->is_write && former->queue == use->queue))))
        g_array_remove_index_fast (uses, i);
      else
        i++;
    }
  if (uses->len >= MAX_USES)
    g_array_remove_index (uses, 0);
  g_array_append_vals (uses, use, 1);
}

/* --- work --- */

typedef struct
{
  GTorchStorage *storage;
  Queue *queue;
  Use use;
} Pending;

static void
pending_add (GArray *pending, Queue *queue, GTorchStorage *storage, GTorchImpl *impl,
             gboolean is_write, const gchar *what, gboolean in_place, const GTorchSite *site)
{
  Pending next = { .storage = storage, .queue = queue };

  if (queue == NULL || (impl != NULL && (impl->is_number || impl->numel == 0)))
    return;
  next.use.is_write = is_write;
  next.use.in_place = in_place;
  next.use.what = what;
  next.use.site = *site;
  if (impl != NULL)
    part_init (&next.use.part, impl);
  else
    part_init_all (&next.use.part, storage);
  next.use.shape = impl != NULL ? g_strdup (gtorch_impl_shape_str (impl))
                                : g_strdup_printf ("[%" G_GSIZE_FORMAT " bytes]", storage->n_bytes);
  g_array_append_val (pending, next);
}

/* Under the lock, which it gives up: checks all, then notes them as one piece of work of each queue. */
static gboolean
finish (GArray *pending, GError **error)
{
  g_autofree gchar *message = NULL;
  gboolean is_fatal = gtorch_is_checking (GTORCH_CHECK_STREAMS_FATAL);
  gboolean result = TRUE;
  guint i, j;

  for (i = 0; i < pending->len; i++)
    {
      Pending *next = &g_array_index (pending, Pending, i);

      next->use.queue = queue_index (next->queue);
      if (!check (next->storage, &next->use, next->queue, &message))
        result = FALSE;
    }
  for (i = 0; i < pending->len; i++)
    {
      Pending *next = &g_array_index (pending, Pending, i);

      if (!result && is_fatal)
        {
          use_clear (&next->use);
          continue;
        }
      for (j = 0; j < i && g_array_index (pending, Pending, j).queue != next->queue; j++)
        continue;
      if (j == i)
        next->queue->submitted++;
      next->use.number = next->queue->submitted;
      if (next->use.is_write && next->queue->device->type == GTORCH_DEVICE_TYPE_CPU
          && next->queue->key != next->queue->device)
        next->use.order = order_of (next->queue);
      add_use (next->storage, &next->use, next->queue);
    }
  for (i = 0; i < pending->len; i++)
    {
      Queue *queue = g_array_index (pending, Pending, i).queue;

      if (queue->key == queue->device) /* done where it is called */
        queue->done = queue->submitted;
    }
  g_mutex_unlock (&lock);
  if (result)
    return TRUE;
  if (!is_fatal)
    {
      g_warning ("%s", message);
      return TRUE;
    }
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, message);
  return FALSE;
}

gboolean
gtorch_race_note_call (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_autoptr (GArray) pending = NULL;
  GTorchSite site;
  Queue *queue;
  guint i, j;

  if (gtorch_thread.worker != NULL || g_str_has_prefix (call->op->name, "empty")
      || g_str_has_suffix (call->op->name, "_empty")
      || (stream != NULL && gtorch_stream_is_capturing (stream)))
    return TRUE;
  gtorch_site_take (&site);
  pending = g_array_new (FALSE, FALSE, sizeof (Pending));
  if (stream == NULL)
    stream = gtorch_device_get_default_stream (call->device);

  g_mutex_lock (&lock);
  queue = stream_queue (stream, call->device);
  /* Those like another tensor look at its shape only. */
  for (i = g_str_has_suffix (call->op->name, "_like") ? 1 : 0; i < call->n_inputs; i++)
    {
      GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        continue;
      if (input->storage->device != call->device) /* a copy will see to it */
        {
          follow_host (queue, input->storage);
          continue;
        }
      if (queue != NULL && queue->key == call->device)
        follow_host (queue, input->storage);
      else
        follow_copies (queue, input->storage);
      for (j = 0; j < call->n_outputs && call->outputs[j] != input; j++)
        continue;
      pending_add (pending, queue, input->storage, input,
                   j < call->n_outputs || gtorch_call_writes (call, i), call->op->name,
                   call->in_place, &site);
    }
  for (i = 0; i < call->n_outputs; i++)
    {
      GTorchImpl *output = call->outputs[i];

      for (j = 0; j < call->n_inputs && call->inputs[j] != output; j++)
        continue;
      if (output != NULL && j == call->n_inputs)
        pending_add (pending, queue, output->storage, output, TRUE, call->op->name, call->in_place,
                     &site);
    }
  return finish (pending, error);
}

gboolean
gtorch_race_note_copy (GTorchImpl *dst, GTorchImpl *src, GError **error)
{
  GTorchImpl *sides[2] = { dst, src };
  g_autoptr (GArray) pending = NULL;
  Queue *found[2] = { NULL, NULL };
  GTorchStream *streams[2];
  GTorchSite site;
  guint i;

  if (gtorch_thread.worker != NULL)
    return TRUE;
  for (i = 0; i < 2; i++)
    {
      streams[i] = gtorch_current_stream (sides[i]->storage->device);
      if (streams[i] == NULL)
        streams[i] = gtorch_device_get_default_stream (sides[i]->storage->device);
      if (gtorch_stream_is_capturing (streams[i]))
        return TRUE;
    }
  gtorch_site_take (&site);
  pending = g_array_new (FALSE, FALSE, sizeof (Pending));

  g_mutex_lock (&lock);
  for (i = 0; i < 2; i++)
    if (sides[i]->storage->device->type != GTORCH_DEVICE_TYPE_CPU) /* there the host waits */
      {
        found[i] = stream_queue (streams[i], sides[i]->storage->device);
        follow_host (found[i], sides[1 - i]->storage);
        pending_add (pending, found[i], sides[i]->storage, sides[i], i == 0, "copy", FALSE, &site);
      }
  if (found[0] != NULL && found[1] != NULL && found[0] != found[1])
    { /* each waits for the other */
      g_autofree GTorchRaceOrder *of_dst = order_of (found[0]);
      g_autofree GTorchRaceOrder *of_src = order_of (found[1]);

      raise_clock (found[1], of_dst);
      of_src->clock[queue_index (found[1])]++;
      raise_clock (found[0], of_src);
    }
  return finish (pending, error);
}

gboolean
gtorch_race_note_graph (GTorchStream *stream, gpointer after, GPtrArray *read, GPtrArray *written,
                        GError **error)
{
  g_autoptr (GArray) pending = g_array_new (FALSE, FALSE, sizeof (Pending));
  GTorchSite site;
  Queue *queue;
  guint i;

  gtorch_site_take (&site);
  g_mutex_lock (&lock);
  queue = stream_queue (stream, stream->device);
  if (after != NULL && queue != NULL && queue->key != after)
    {
      Queue *former = find_queue (after);
      g_autofree GTorchRaceOrder *order = former != NULL ? order_of (former) : NULL;

      if (order != NULL)
        raise_clock (queue, order);
    }
  for (i = 0; i < read->len; i++)
    {
      if (queue != NULL && queue->key == stream->device)
        follow_host (queue, read->pdata[i]);
      else
        follow_copies (queue, read->pdata[i]);
      pending_add (pending, queue, read->pdata[i], NULL, FALSE, "graph", FALSE, &site);
    }
  for (i = 0; i < written->len; i++)
    {
      follow_copies (queue, written->pdata[i]);
      pending_add (pending, queue, written->pdata[i], NULL, TRUE, "graph", FALSE, &site);
    }
  return finish (pending, error);
}
