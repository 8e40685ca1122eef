/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Making a trace of what threads and GPUs have recorded. */

#include "config.h"

#include "profiler/gtorch-profile-buffer-private.h"

#include <string.h>
#include <time.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-check-private.h"
#include "device/gtorch-backend-private.h"
#include "device/gtorch-device-private.h"
#include "memory/gtorch-allocator.h"
#include "stream/gtorch-event.h"

struct _GTorchTrace
{
  gint ref_count;
  GTorchRecord *records;
  guint n_records;
  GArray *threads;     /* GTorchTraceThread */
  GStringChunk *texts; /* names and places */
  GPtrArray *memory;   /* of inputs */
  gint64 start, end, realtime;
  GTorchProfilerGpuSource source;
  gboolean has_gpu;
  guint64 n_lost, n_untimed;
};

/* A record before it has its place. */
typedef struct
{
  GTorchRecord record;
  guint64 parent;   /* an id */
  guint64 external; /* of activities: an id */
  guint64 system_thread;
} Made;

typedef struct
{
  guint64 id, sequence;
} Link;

/* A range that another thread than its own has ended. */
typedef struct
{
  guint64 id;
  gint64 end;
} Closed;

typedef struct
{
  guint64 id;
  const GTorchRecordInput *inputs; /* in the memory of the trace */
  guint n_inputs;
} Given;

struct _GTorchTraceBuilder
{
  GTorchTrace *trace;
  GArray *made;      /* Made */
  GArray *links;     /* Link */
  GArray *opened;    /* Made: each range, as it began */
  GArray *closed;    /* Closed */
  GHashTable *given; /* id -> Given */
  GHashTable *bases; /* device -> Base of its spans */
};

/* The first timing event of a device, and when it was recorded. */
typedef struct
{
  GTorchEvent *event;
  gint64 time;
} Base;

static void
base_free (gpointer data)
{
  Base *self = data;

  g_object_unref (self->event);
  g_free (self);
}

/* --- the trace --- */

GTorchTrace *
gtorch_trace_ref (GTorchTrace *trace)
{
  g_atomic_int_inc (&trace->ref_count);
  return trace;
}

void
gtorch_trace_unref (GTorchTrace *trace)
{
  guint i;

  if (!g_atomic_int_dec_and_test (&trace->ref_count))
    return;
  for (i = 0; i < trace->threads->len; i++)
    g_free (g_array_index (trace->threads, GTorchTraceThread, i).name);
  g_array_unref (trace->threads);
  g_free (trace->records);
  g_string_chunk_free (trace->texts);
  g_ptr_array_unref (trace->memory);
  g_free (trace);
}

const GTorchRecord *
gtorch_trace_get_records (const GTorchTrace *trace, guint *n)
{
  *n = trace->n_records;
  return trace->records;
}

const GTorchTraceThread *
gtorch_trace_get_threads (const GTorchTrace *trace, guint *n)
{
  *n = trace->threads->len;
  return (const GTorchTraceThread *) (const void *) trace->threads->data;
}

gint64
gtorch_trace_get_start (const GTorchTrace *trace)
{
  return trace->start;
}

gint64
gtorch_trace_get_end (const GTorchTrace *trace)
{
  return trace->end;
}

gint64
gtorch_trace_get_realtime_offset (const GTorchTrace *trace)
{
  return trace->realtime;
}

gboolean
gtorch_trace_has_gpu (const GTorchTrace *trace)
{
  return trace->has_gpu;
}

GTorchProfilerGpuSource
gtorch_trace_get_gpu_source (const GTorchTrace *trace)
{
  return trace->source;
}

guint64
gtorch_trace_get_n_lost (const GTorchTrace *trace)
{
  return trace->n_lost;
}

guint64
gtorch_trace_get_n_untimed (const GTorchTrace *trace)
{
  return trace->n_untimed;
}

/* --- reading what threads have written --- */

GTorchTraceBuilder *
gtorch_trace_builder_new (void)
{
  GTorchTraceBuilder *self = g_new0 (GTorchTraceBuilder, 1);

  self->trace = g_new0 (GTorchTrace, 1);
  self->trace->ref_count = 1;
  self->trace->texts = g_string_chunk_new (4096);
  self->trace->memory = g_ptr_array_new_with_free_func (g_free);
  self->made = g_array_new (FALSE, TRUE, sizeof (Made));
  self->links = g_array_new (FALSE, FALSE, sizeof (Link));
  self->opened = g_array_new (FALSE, FALSE, sizeof (Made));
  self->closed = g_array_new (FALSE, FALSE, sizeof (Closed));
  self->given = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  self->bases = g_hash_table_new_full (NULL, NULL, NULL, base_free);
  return self;
}

static const gchar *
keep_text (GTorchTraceBuilder *self, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  return g_string_chunk_insert_const (self->trace->texts, valid);
}

/* The name of a node in PyTorch's form: "MulBackward0" for mul, and "SquareBackward" for a function of the
 * program's. */
static const gchar *
name_node (GTorchTraceBuilder *self, const gchar *name)
{
  g_autoptr (GString) text = NULL;
  gboolean begins = TRUE;

  if (g_str_equal (name, "AccumulateGrad"))
    return "torch::autograd::AccumulateGrad";
  if (strchr (name, '+') != NULL || g_ascii_isupper (name[0]))
    {
      g_autofree gchar *own = g_strconcat (gtorch_type_own_name (name), "Backward", NULL);

      return keep_text (self, own);
    }
  text = g_string_new (NULL);
  for (; *name != '\0'; name++)
    if (*name == '_')
      begins = TRUE;
    else
      {
        g_string_append_c (text, begins ? g_ascii_toupper (*name) : *name);
        begins = FALSE;
      }
  g_string_append (text, "Backward0");
  return g_string_chunk_insert_const (self->trace->texts, text->str);
}

/* Returns the inputs of a raw record, NULL if it has none. */
static const GTorchRecordInput *
read_inputs (GTorchTraceBuilder *self, const GTorchRaw *raw)
{
  GTorchRecordInput *inputs;
  const char *from;
  char *data;
  guint i;

  if (raw->n_inputs == 0)
    return NULL;
  inputs = g_malloc0 (raw->n_inputs * sizeof *inputs + raw->inputs_size);
  g_ptr_array_add (self->trace->memory, inputs);
  data = (char *) (inputs + raw->n_inputs);
  memcpy (data, raw + 1, raw->inputs_size);
  for (from = data, i = 0; i < raw->n_inputs; i++)
    {
      const GTorchRawInput *input = (const GTorchRawInput *) (const void *) from;
      const gint64 *numbers = (const gint64 *) (const void *) (input + 1);

      inputs[i] = (GTorchRecordInput){
        .dtype = input->is_given ? input->dtype : GTORCH_DTYPE_NONE,
        .n_dims = input->n_dims,
        .is_number = input->is_number,
        .shape = numbers,
        .strides = numbers + input->n_dims,
      };
      from = (const char *) (numbers + 2 * input->n_dims);
    }
  return inputs;
}

static void
keep_given (GTorchTraceBuilder *self, const GTorchRaw *raw)
{
  Given *given = g_new (Given, 1);

  *given = (Given){ raw->id, read_inputs (self, raw), raw->n_inputs };
  g_hash_table_replace (self->given, &given->id, given);
}

/* Of its beginning or, of those that are told of then, of its end. */
static void
set_inputs (GTorchTraceBuilder *self, const GTorchRaw *raw, GTorchRecord *record)
{
  const Given *given = g_hash_table_lookup (self->given, &raw->id);

  record->op.inputs = given != NULL ? given->inputs : read_inputs (self, raw);
  record->op.n_inputs = given != NULL ? given->n_inputs : raw->n_inputs;
}

/* The first frames outside of the library, "function (file+0x12)", one a line. */
static const gchar *
name_frames (GTorchTraceBuilder *self, const gpointer *frames, guint n)
{
  g_autofree gchar *names = NULL;
  g_auto (GStrv) parts = NULL;
  g_autofree gchar *lines = NULL;
  GTorchSite site = { { NULL } };

  memcpy (site.frames, frames, MIN (n, GTORCH_SITE_FRAMES) * sizeof site.frames[0]);
  names = gtorch_site_to_string (&site);
  parts = g_strsplit (names, ", ", -1);
  lines = g_strjoinv ("\n", parts);
  return keep_text (self, lines);
}

/* The class and the path; the name follows from the other modules of the trace. */
static void
read_module (GTorchTraceBuilder *self, const GTorchRaw *raw, GTorchRecord *record)
{
  const gchar *end = strchr (record->name, '\n');

  record->module.serial = raw->a;
  record->module.path = end != NULL ? end + 1 : "";
  record->name =
      end != NULL ? g_string_chunk_insert_len (self->trace->texts, record->name, end - record->name)
                  : record->name;
}

/* Places the span between the times of its events, from the first event of the device on. */
static void
read_span (GTorchTraceBuilder *self, const GTorchRaw *raw, GTorchRecord *record)
{
  GTorchEvent *begin = GSIZE_TO_POINTER (raw->a), *end = GSIZE_TO_POINTER (raw->b);
  Base *base = g_hash_table_lookup (self->bases, raw->device);
  gdouble from, length;

  if (base == NULL)
    {
      base = g_new (Base, 1);
      *base = (Base){ g_object_ref (begin), raw->start };
      g_hash_table_insert (self->bases, raw->device, base);
    }
  from = begin == base->event ? 0 : gtorch_event_get_elapsed_ms (base->event, begin, NULL);
  length = gtorch_event_get_elapsed_ms (begin, end, NULL);
  record->start = base->time + (gint64) (from * 1e6);
  record->end = record->start + (gint64) (MAX (length, 0) * 1e6);
  record->thread = -1;
  record->id = 0;
}

void
gtorch_trace_builder_add_raw (const GTorchRaw *raw, guint thread, gpointer builder)
{
  GTorchTraceBuilder *self = builder;
  Made made = { .parent = raw->parent };
  GTorchRecord *record = &made.record;
  const char *inputs = (const char *) (raw + 1);
  const char *frames = inputs + raw->inputs_size;
  const char *text = frames + raw->n_frames * sizeof (gpointer);

  if (raw->kind == GTORCH_RAW_LINK)
    {
      g_array_append_vals (self->links, &(Link){ raw->id, raw->sequence }, 1);
      return;
    }
  if (raw->kind == GTORCH_RAW_CLOSED)
    {
      g_array_append_vals (self->closed, &(Closed){ raw->id, raw->end }, 1);
      return;
    }
  if (raw->kind == GTORCH_RAW_GIVEN)
    {
      keep_given (self, raw);
      return;
    }
  *record = (GTorchRecord){
    .kind = raw->kind == GTORCH_RAW_OPEN ? raw->flags : raw->kind,
    .thread = thread,
    .name = raw->name != NULL ? raw->name : keep_text (self, text),
    .start = raw->start,
    .end = raw->end,
    .id = raw->id,
    .parent = -1,
    .forward = -1,
    .sequence = raw->sequence,
    .device = raw->device,
  };
  switch (raw->kind)
    {
    case GTORCH_RECORD_OP:
    case GTORCH_RECORD_TRANSFER:
      record->op.flops = raw->a;
      set_inputs (self, raw, record);
      if (raw->n_frames > 0)
        record->place = name_frames (self, (const gpointer *) (const void *) frames, raw->n_frames);
      else if (raw->name != NULL && raw->text > 1)
        record->place = keep_text (self, text);
      break;
    case GTORCH_RECORD_MODULE:
    case GTORCH_RECORD_RANGE:
    case GTORCH_RAW_OPEN:
      if (record->kind == GTORCH_RECORD_MODULE)
        read_module (self, raw, record);
      else if (record->kind == GTORCH_RECORD_RANGE && strlen (text) + 1 < raw->text)
        record->range.args = keep_text (self, text + strlen (text) + 1);
      break;
    case GTORCH_RECORD_ALLOC:
    case GTORCH_RECORD_FREE:
      record->memory.address = raw->a;
      record->memory.n_bytes = raw->b;
      made.external = raw->flags & GTORCH_RAW_NATIVE;
      break;
    case GTORCH_RECORD_BACKWARD:
      record->name = name_node (self, raw->name);
      set_inputs (self, raw, record);
      break;
    case GTORCH_RECORD_RUN:
      made.external = raw->a;
      break;
    case GTORCH_RECORD_SPAN:
      made.external = raw->parent;
      read_span (self, raw, record);
      break;
    default:
      break;
    }
  g_array_append_val (raw->kind == GTORCH_RAW_OPEN ? self->opened : self->made, made);
}

void
gtorch_trace_builder_add_activity (const GTorchGpuActivity *activity, gpointer builder)
{
  GTorchTraceBuilder *self = builder;
  Made made = { .external = activity->external, .system_thread = activity->thread };
  GTorchRecord *record = &made.record;

  *record = (GTorchRecord){
    .kind = activity->kind,
    .thread = -1,
    .name = keep_text (self, activity->name != NULL ? activity->name : "?"),
    .start = activity->start,
    .end = activity->end != 0 ? MAX (activity->start, activity->end)
                              : 0, /* 0: the time is not known */
    .parent = -1,
    .forward = -1,
    .correlation = activity->correlation,
    .stream = activity->stream,
  };
  if (activity->device >= 0)
    record->device = gtorch_backends[gtorch_gpu_tracer->device_type]->get (activity->device, NULL);
  if (activity->kind == GTORCH_RECORD_KERNEL)
    {
      memcpy (record->kernel.grid, activity->grid, sizeof activity->grid);
      memcpy (record->kernel.block, activity->block, sizeof activity->block);
      record->kernel.n_registers = activity->n_registers;
      record->kernel.static_shared = activity->static_shared;
      record->kernel.dynamic_shared = activity->dynamic_shared;
      record->kernel.graph = activity->graph;
      record->kernel.graph_node = activity->graph_node;
    }
  else if (activity->kind == GTORCH_RECORD_DRIVER)
    record->call.result = activity->result;
  else
    {
      record->copy.n_bytes = activity->n_bytes;
      record->copy.direction = activity->direction;
    }
  g_array_append_val (self->made, made);
}

/* --- order --- */

static inline gboolean
is_of_thread (const GTorchRecord *record)
{
  return record->kind < GTORCH_RECORD_DRIVER;
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  const GTorchRecord *x = &((const Made *) a)->record, *y = &((const Made *) b)->record;

  if (is_of_thread (x) != is_of_thread (y))
    return is_of_thread (x) ? -1 : 1;
  if (is_of_thread (x) && x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  if (x->end != y->end)
    return x->end > y->end ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* The innermost record of the host that was under way in the thread; -1: none. */
static gint
find_enclosing (const GTorchRecord *records, const guint *first, guint thread, gint64 time)
{
  gint low = first[thread], high = (gint) first[thread + 1] - 1, found = -1;

  while (low <= high)
    {
      const gint middle = low + (high - low) / 2;

      if (records[middle].start <= time)
        {
          found = middle;
          low = middle + 1;
        }
      else
        high = middle - 1;
    }
  /* nothing is inside of a WAIT: what began before it may go on */
  while (found >= 0
         && (!gtorch_record_is_of_host (&records[found]) || records[found].end < time
             || records[found].kind == GTORCH_RECORD_WAIT))
    if (records[found].kind == GTORCH_RECORD_WAIT)
      found = found > (gint) first[thread] ? found - 1 : -1;
    else
      found = records[found].parent;
  return found;
}

typedef struct
{
  guint64 sequence;
  gint64 start;
  guint index;
} Forward;

static gint
compare_forwards (gconstpointer a, gconstpointer b)
{
  const Forward *x = a, *y = b;

  if (x->sequence != y->sequence)
    return x->sequence < y->sequence ? -1 : 1;
  return x->start < y->start ? -1 : x->start > y->start;
}

/* Finds the operation of each node: the last one before it that was recorded with its number, since each
 * thread counts for itself. */
static void
link_backward (GTorchTrace *trace)
{
  g_autoptr (GArray) forwards = g_array_new (FALSE, FALSE, sizeof (Forward));
  guint i;

  for (i = 0; i < trace->n_records; i++)
    if (trace->records[i].kind == GTORCH_RECORD_OP && trace->records[i].sequence != 0)
      g_array_append_vals (forwards,
                           &(Forward){ trace->records[i].sequence, trace->records[i].start, i }, 1);
  g_array_sort (forwards, compare_forwards);
  for (i = 0; i < trace->n_records; i++)
    {
      GTorchRecord *record = &trace->records[i];
      gint low = 0, high = (gint) forwards->len - 1;

      if (record->kind != GTORCH_RECORD_BACKWARD || record->sequence == 0)
        continue;
      while (low <= high)
        {
          const gint middle = low + (high - low) / 2;
          const Forward *one = &g_array_index (forwards, Forward, middle);

          if (one->sequence < record->sequence
              || (one->sequence == record->sequence && one->start <= record->start))
            {
              if (one->sequence == record->sequence)
                record->forward = one->index;
              low = middle + 1;
            }
          else
            high = middle - 1;
        }
    }
}

/* Gives modules their names in PyTorch's form: "nn.Module: Linear_0" is the Linear that was called first. */
static void
name_modules (GTorchTrace *trace)
{
  g_autoptr (GHashTable) known =
      g_hash_table_new (g_int64_hash, g_int64_equal); /* serial -> record */
  g_autoptr (GHashTable) counts = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (guint));
  guint i;

  for (i = 0; i < trace->n_records; i++)
    if (trace->records[i].kind == GTORCH_RECORD_MODULE)
      g_array_append_val (order, i);
  gtorch_trace_sort_by_start (trace, order);
  for (i = 0; i < order->len; i++)
    {
      GTorchRecord *record = &trace->records[g_array_index (order, guint, i)];
      const GTorchRecord *former = g_hash_table_lookup (known, &record->module.serial);
      g_autofree gchar *name = NULL;
      guint n;

      if (former != NULL)
        {
          record->name = former->name;
          record->module.number = former->module.number;
          continue;
        }
      n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, record->name));
      g_hash_table_insert (counts, (gpointer) record->name, GUINT_TO_POINTER (n + 1));
      name = g_strdup_printf ("nn.Module: %s_%u", record->name, n);
      record->name = g_string_chunk_insert (trace->texts, name);
      record->module.number = n;
      g_hash_table_insert (known, &record->module.serial, record);
    }
}

static gint
by_start (gconstpointer a, gconstpointer b, gpointer data)
{
  const GTorchRecord *records = data;
  const GTorchRecord *x = &records[*(const guint *) a], *y = &records[*(const guint *) b];

  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

void
gtorch_trace_sort_by_start (const GTorchTrace *trace, GArray *indices)
{
  g_array_sort_with_data (indices, by_start, trace->records);
}

/* Counts the bytes of each device, so that those at the end are the allocator's. */
static void
count_memory (GTorchTrace *trace, const GArray *made)
{
  g_autoptr (GHashTable) totals = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_autoptr (GHashTable) known = g_hash_table_new (NULL, NULL);
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (guint));
  guint i, pass;

  for (i = 0; i < trace->n_records; i++)
    if (trace->records[i].kind == GTORCH_RECORD_ALLOC
        || trace->records[i].kind == GTORCH_RECORD_FREE)
      g_array_append_val (order, i);
  gtorch_trace_sort_by_start (trace, order);
  for (pass = 0; pass < 2; pass++)
    {
      g_hash_table_remove_all (known);
      for (i = 0; i < order->len; i++)
        {
          const guint at = g_array_index (order, guint, i);
          GTorchRecord *record = &trace->records[at];
          const gboolean is_new = record->kind == GTORCH_RECORD_ALLOC;
          const gpointer address = GSIZE_TO_POINTER ((gsize) record->memory.address);
          gint64 *total = g_hash_table_lookup (totals, record->device);

          if (total == NULL)
            g_hash_table_insert (totals, record->device, total = g_new0 (gint64, 1));
          if (is_new)
            *total += record->memory.n_bytes;
          else if (g_hash_table_contains (known, address)
                   || g_array_index (made, Made, at).external != 0)
            *total -= record->memory.n_bytes;
          if (is_new)
            g_hash_table_add (known, address);
          else
            g_hash_table_remove (known, address);
          record->memory.total = *total;
        }
      if (pass == 0)
        {
          GHashTableIter iter;
          gpointer device, total;

          g_hash_table_iter_init (&iter, totals);
          while (g_hash_table_iter_next (&iter, &device, &total))
            *(gint64 *) total =
                MAX (0,
                     (gint64) gtorch_allocator_get_allocated (gtorch_device_get_allocator (device))
                         - *(gint64 *) total);
        }
    }
}

/* --- putting it together --- */

static guint
find_thread (GTorchTrace *trace, guint64 system_id)
{
  GTorchTraceThread thread = { .id = system_id };
  guint i;

  for (i = 0; i < trace->threads->len; i++)
    if (g_array_index (trace->threads, GTorchTraceThread, i).id == system_id)
      return i;
  thread.name = g_strdup ("driver");
  g_array_append_val (trace->threads, thread);
  return i;
}

/* Adds the ranges whose end their threads have not written: those that another thread has ended, and those
 * that are still open, which last until the end. */
static void
add_open (GTorchTraceBuilder *self, gint64 end)
{
  g_autoptr (GHashTable) ended = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (GHashTable) closed = g_hash_table_new (g_int64_hash, g_int64_equal);
  const guint n = self->made->len;
  guint i;

  for (i = 0; i < self->closed->len; i++)
    {
      Closed *one = &g_array_index (self->closed, Closed, i);

      g_hash_table_insert (closed, &one->id, one);
    }
  for (i = 0; i < n; i++)
    {
      const GTorchRecord *record = &g_array_index (self->made, Made, i).record;

      if (record->kind == GTORCH_RECORD_RANGE || record->kind == GTORCH_RECORD_STEP
          || record->kind == GTORCH_RECORD_MODULE)
        g_hash_table_add (ended, g_memdup2 (&record->id, sizeof record->id));
      if (is_of_thread (record))
        end = MAX (end, record->end);
    }
  for (i = 0; i < self->opened->len; i++)
    {
      Made *made = &g_array_index (self->opened, Made, i);
      const Closed *one = g_hash_table_lookup (closed, &made->record.id);

      if (g_hash_table_contains (ended, &made->record.id))
        continue;
      made->record.end = one != NULL ? MAX (one->end, made->record.start) : end;
      g_array_append_vals (self->made, made, 1);
    }
}

/* The index of the record with this id; of one around it, if it has not lasted until the time; or -1. */
static gint
find_parent (const GTorchTrace *trace, GHashTable *by_id, guint64 id, gint64 end)
{
  gpointer found;
  gint index;

  if (!g_hash_table_lookup_extended (by_id, &id, NULL, &found))
    return -1;
  for (index = GPOINTER_TO_INT (found); index >= 0 && trace->records[index].end < end;)
    index = trace->records[index].parent;
  return index;
}

/* Finds the parents of the host's records by their ids. */
static GHashTable *
link_host (GTorchTrace *trace, const GArray *made)
{
  GHashTable *by_id = g_hash_table_new (g_int64_hash, g_int64_equal);
  guint i;

  for (i = 0; i < trace->n_records; i++)
    if (gtorch_record_is_of_host (&trace->records[i]))
      g_hash_table_insert (by_id, &trace->records[i].id, GUINT_TO_POINTER (i));
  for (i = 0; i < trace->n_records && is_of_thread (&trace->records[i]); i++)
    {
      const gint parent =
          find_parent (trace, by_id, g_array_index (made, Made, i).parent, trace->records[i].end);

      trace->records[i].parent = parent;
      trace->records[i].depth = parent >= 0 ? trace->records[parent].depth + 1 : 0;
    }
  return by_id;
}

/* Finds what has enqueued each RUN, whose name and operands it has: sums are of both. */
static void
link_runs (GTorchTrace *trace, const GArray *made, GHashTable *by_id)
{
  guint i;

  for (i = 0; i < trace->n_records && is_of_thread (&trace->records[i]); i++)
    {
      GTorchRecord *record = &trace->records[i];
      gpointer found;

      if (record->kind != GTORCH_RECORD_RUN
          || !g_hash_table_lookup_extended (by_id, &g_array_index (made, Made, i).external, NULL,
                                            &found))
        continue;
      record->forward = GPOINTER_TO_INT (found);
      record->op = trace->records[record->forward].op;
      record->op.flops = 0;
      record->name = trace->records[record->forward].name;
      record->place = trace->records[record->forward].place;
      record->correlation = trace->records[record->forward].correlation =
          trace->records[record->forward].id;
    }
}

/* Finds who made each call of the driver, and by it or by themselves who launched what devices did. */
static void
link_devices (GTorchTrace *trace, const GArray *made, GHashTable *by_id)
{
  g_autoptr (GHashTable) calls = g_hash_table_new (g_int64_hash, g_int64_equal);
  const guint n_threads = trace->threads->len; /* those with buffers */
  g_autofree guint *first = g_new0 (guint, n_threads + 1);
  guint n_host = 0, i, pass;

  while (n_host < trace->n_records && is_of_thread (&trace->records[n_host]))
    n_host++;
  for (i = 0; i <= n_threads; i++)
    first[i] = n_host;
  for (i = n_host; i-- > 0;)
    first[trace->records[i].thread] = i;
  for (i = n_threads; i-- > 0;)
    first[i] = MIN (first[i], first[i + 1]);
  for (pass = 0; pass < 2; pass++) /* calls first */
    for (i = n_host; i < trace->n_records; i++)
      {
        const Made *one = &g_array_index (made, Made, i);
        GTorchRecord *record = &trace->records[i];
        gpointer found;

        if ((record->kind == GTORCH_RECORD_DRIVER) != (pass == 0))
          continue;
        if (one->external != 0
            && g_hash_table_lookup_extended (by_id, &one->external, NULL, &found))
          record->parent = GPOINTER_TO_UINT (found);
        if (pass == 0)
          {
            record->thread = find_thread (trace, one->system_thread);
            if (record->parent < 0 && (guint) record->thread < n_threads)
              record->parent =
                  find_enclosing (trace->records, first, record->thread, record->start);
            g_hash_table_insert (calls, &record->correlation, record);
          }
        else if (record->parent < 0 && record->correlation != 0)
          {
            const GTorchRecord *call = g_hash_table_lookup (calls, &record->correlation);

            record->parent = call != NULL ? call->parent : -1;
          }
        if (record->parent >= 0)
          record->depth = trace->records[record->parent].depth + 1;
        trace->has_gpu |= gtorch_record_is_of_device (record);
      }
}

static gboolean
is_traced (const GTorchRecord *record)
{
  return gtorch_record_is_of_device (record) && record->kind != GTORCH_RECORD_SPAN;
}

/* Drops calls of the driver that were made before or after the recording, and what they have
 * launched. What was launched within it stays at any time: the clock of a device is known to the
 * library of traces to some microseconds, so that the first kernels may seem to come before their
 * calls, and before the recording. Work of a warmup stays where it went on during the recording.
 * What has no times is counted. */
static void
drop_outside (GTorchTraceBuilder *self, gint64 start, gint64 end)
{
  g_autoptr (GHashTable) within = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (GHashTable) late = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  guint n = 0, i;

  for (i = 0; i < self->made->len; i++)
    {
      const GTorchRecord *record = &g_array_index (self->made, Made, i).record;

      if (record->kind == GTORCH_RECORD_DRIVER && record->start >= start)
        g_hash_table_add (record->start <= end ? within : late,
                          g_memdup2 (&record->correlation, sizeof record->correlation));
    }
  for (i = 0; i < self->made->len; i++)
    {
      const Made made = g_array_index (self->made, Made, i);
      const GTorchRecord *record = &made.record;
      const gboolean is_within =
          record->correlation != 0 && g_hash_table_contains (within, &record->correlation);

      if (record->kind == GTORCH_RECORD_DRIVER && (record->start < start || record->start > end))
        continue;
      if (is_traced (record) && (record->start == 0 || record->end == 0))
        {
          self->trace->n_untimed += is_within;
          continue;
        }
      if (is_traced (record) && !is_within
          && (record->start < start || g_hash_table_contains (late, &record->correlation)))
        continue;
      g_array_index (self->made, Made, n++) = made;
    }
  g_array_set_size (self->made, n);
}

GTorchTrace *
gtorch_trace_builder_end (GTorchTraceBuilder *self, GArray *threads, gint64 start, gint64 end,
                          GTorchProfilerGpuSource source, guint64 n_lost)
{
  GTorchTrace *trace = self->trace;
  g_autoptr (GHashTable) by_id = NULL;
  struct timespec now;
  guint i;

  trace->threads = threads;
  trace->start = start;
  trace->end = end;
  trace->source = source;
  trace->n_lost = n_lost;
  clock_gettime (CLOCK_REALTIME, &now);
  trace->realtime =
      now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec - gtorch_profile_now ();

  drop_outside (self, start, end);
  add_open (self, end);
  g_array_sort (self->made, compare);
  trace->n_records = self->made->len;
  trace->records = g_new (GTorchRecord, MAX (trace->n_records, 1));
  for (i = 0; i < trace->n_records; i++)
    trace->records[i] = g_array_index (self->made, Made, i).record;
  by_id = link_host (trace, self->made);
  for (i = 0; i < self->links->len; i++)
    {
      const Link *link = &g_array_index (self->links, Link, i);
      gpointer found;

      if (g_hash_table_lookup_extended (by_id, &link->id, NULL, &found))
        trace->records[GPOINTER_TO_UINT (found)].sequence = link->sequence;
    }
  link_backward (trace);
  link_runs (trace, self->made, by_id);
  name_modules (trace);
  link_devices (trace, self->made, by_id);
  count_memory (trace, self->made);

  g_array_unref (self->made);
  g_array_unref (self->links);
  g_array_unref (self->opened);
  g_array_unref (self->closed);
  g_hash_table_unref (self->given);
  g_hash_table_unref (self->bases);
  g_free (self);
  return trace;
}
