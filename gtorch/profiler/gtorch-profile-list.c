/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profile-list.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "device/gtorch-device-private.h"
#include "profiler/gtorch-profile-list-private.h"

/**
 * GTorchProfileList:
 *
 * A list of [class@ProfileRow], of which a program can make a view or a table.
 *
 * [method@Profiler.events] gives one of single events and [method@Profiler.key_averages] one of sums. It
 * never changes. Rows are made when they are asked for.
 *
 * Since: 0.1
 */
struct _GTorchProfileList
{
  GObject parent_instance;
  GTorchProfileColumns columns;
  GArray *rows;        /* GTorchProfileData */
  GStringChunk *texts; /* shapes and stacks */
  GPtrArray *traces;   /* of a list of all events; or NULL */
  GPtrArray *owners;   /* of the rows of another list: objects that keep what they refer to */
};

static void gtorch_profile_list_model_init (GListModelInterface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchProfileList, gtorch_profile_list, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_profile_list_model_init))

typedef GTorchProfileList Self;

static const GTorchField fields[] = {
  /**
   * GTorchProfileList:self-cpu-time-total:
   *
   * The time that the host needed for all of it, in microseconds.
   *
   * Since: 0.1
   */
  { "self-cpu-time-total",
    GTORCH_PROPERTY_DOUBLE (gtorch_profile_list_get_self_cpu_time_total, NULL) },
};

static GTorchProfileData *
nth (GTorchProfileList *self, guint i)
{
  return &g_array_index (self->rows, GTorchProfileData, i);
}

static GType
gtorch_profile_list_get_item_type (GListModel *model)
{
  return GTORCH_TYPE_PROFILE_ROW;
}

static guint
gtorch_profile_list_get_n_items (GListModel *model)
{
  return GTORCH_PROFILE_LIST (model)->rows->len;
}

static gpointer
gtorch_profile_list_get_item (GListModel *model, guint position)
{
  GTorchProfileList *self = GTORCH_PROFILE_LIST (model);

  return position < self->rows->len ? gtorch_profile_row_new (nth (self, position), self) : NULL;
}

static void
gtorch_profile_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = gtorch_profile_list_get_item_type;
  iface->get_n_items = gtorch_profile_list_get_n_items;
  iface->get_item = gtorch_profile_list_get_item;
}

static void
gtorch_profile_list_finalize (GObject *object)
{
  GTorchProfileList *self = GTORCH_PROFILE_LIST (object);

  g_array_unref (self->rows);
  g_string_chunk_free (self->texts);
  g_clear_pointer (&self->traces, g_ptr_array_unref);
  g_ptr_array_unref (self->owners);
  G_OBJECT_CLASS (gtorch_profile_list_parent_class)->finalize (object);
}

static void
gtorch_profile_list_class_init (GTorchProfileListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_profile_list_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_profile_list_init (GTorchProfileList *self)
{
  self->rows = g_array_new (FALSE, TRUE, sizeof (GTorchProfileData));
  self->texts = g_string_chunk_new (1024);
  self->owners = g_ptr_array_new_with_free_func (g_object_unref);
}

static GTorchProfileList *
list_new (const GTorchProfileColumns *columns)
{
  GTorchProfileList *self = g_object_new (GTORCH_TYPE_PROFILE_LIST, NULL);

  self->columns = *columns;
  return self;
}

/* A list for rows of another one. */
static GTorchProfileList *
list_new_of (GTorchProfileList *other)
{
  GTorchProfileList *self = list_new (&other->columns);

  g_ptr_array_add (self->owners, g_object_ref (other));
  return self;
}

/* --- single events --- */

void
gtorch_profile_write_shapes (GString *text, const GTorchRecord *record)
{
  guint i, j;

  g_string_append_c (text, '[');
  for (i = 0; i < record->op.n_inputs; i++)
    {
      const GTorchRecordInput *input = &record->op.inputs[i];

      g_string_append (text, i > 0 ? ", [" : "[");
      for (j = 0; j < input->n_dims; j++)
        g_string_append_printf (text, "%s%" PRId64, j > 0 ? ", " : "", input->shape[j]);
      g_string_append_c (text, ']');
    }
  g_string_append_c (text, ']');
}

/* Whether the record has a row: what happens on devices, all events of the host, and memory outside of
 * them. */
static gboolean
has_row (const GTorchRecord *record)
{
  switch (record->kind)
    {
    case GTORCH_RECORD_SPAN:
      return FALSE;
    case GTORCH_RECORD_ALLOC:
    case GTORCH_RECORD_FREE:
      return record->parent < 0;
    default:
      return TRUE;
    }
}

/* Adds what each record took to those that it is inside of: a parent stands before its children. Until the
 * events have their positions, `parent` is the index of a record. */
static void
add_up (GTorchTrace *trace, gint64 origin, GTorchProfileData *data)
{
  const GTorchRecord *records;
  guint n, i;

  records = gtorch_trace_get_records (trace, &n);

  for (i = 0; i < n; i++)
    {
      const GTorchRecord *record = &records[i];
      GTorchProfileData *own = &data[i];
      const gint64 took = record->end - record->start;

      own->key = record->kind == GTORCH_RECORD_STEP ? "ProfilerStep*" : record->name;
      own->count = 1;
      own->shapes = own->stack = "";
      own->trace = trace;
      own->record = i;
      own->origin = origin;
      own->parent = record->parent;
      own->position = own->first = own->next = -1;
      own->is_annotation = record->kind == GTORCH_RECORD_RANGE || record->kind == GTORCH_RECORD_STEP
                           || record->kind == GTORCH_RECORD_TRANSFER
                           || record->kind == GTORCH_RECORD_WAIT;
      own->is_of_device = gtorch_record_is_of_device (record);
      if (own->is_of_device)
        own->device_total = own->self_device = took;
      else
        {
          own->cpu_total = took;
          own->self_cpu =
              gtorch_record_is_async (record) && record->kind != GTORCH_RECORD_RUN ? 0 : took;
        }
      if (record->kind == GTORCH_RECORD_RUN && record->forward >= 0)
        own->count = 0; /* the operation that has enqueued it is counted */
      if (record->kind == GTORCH_RECORD_OP)
        own->flops = record->op.flops;
      if (record->kind == GTORCH_RECORD_ALLOC || record->kind == GTORCH_RECORD_FREE)
        {
          const gint64 bytes = record->kind == GTORCH_RECORD_ALLOC
                                   ? (gint64) record->memory.n_bytes
                                   : -(gint64) record->memory.n_bytes;

          if (gtorch_device_is_host (record->device))
            own->cpu_memory = own->self_cpu_memory = bytes;
          else
            own->device_memory = own->self_device_memory = bytes;
        }
    }
  /* What belongs to a device, and memory, is no event of the host inside of another one: it is the other's.
   * */
  for (i = n; i-- > 0;)
    {
      GTorchProfileData *own = &data[i];
      GTorchProfileData *parent = own->parent >= 0 ? &data[own->parent] : NULL;
      const guint kind = records[i].kind;
      const gboolean is_part =
          own->is_of_device || kind == GTORCH_RECORD_ALLOC || kind == GTORCH_RECORD_FREE;

      if (parent == NULL)
        continue;
      parent->self_cpu -= own->cpu_total;
      parent->device_total += own->device_total;
      parent->cpu_memory += own->cpu_memory;
      parent->device_memory += own->device_memory;
      if (!is_part)
        continue;
      parent->self_device += own->device_total;
      parent->self_cpu_memory += own->cpu_memory;
      parent->self_device_memory += own->device_memory;
    }
}

static void
set_texts (GTorchProfileList *self, GTorchProfileData *row, GString *text)
{
  const GTorchRecord *records;
  const GTorchRecord *record;
  guint n;

  records = gtorch_trace_get_records (row->trace, &n);
  record = &records[row->record];
  if (self->columns.settings.record_shapes)
    {
      g_string_truncate (text, 0);
      if (gtorch_record_is_call (record))
        gtorch_profile_write_shapes (text, record);
      row->shapes = text->len > 0 ? g_string_chunk_insert_const (self->texts, text->str) : "[]";
    }
  if (record->place != NULL)
    row->stack = record->place;
  else if (record->forward >= 0 && records[record->forward].place != NULL)
    row->stack = records[record->forward].place;
}

/* Adds the events of a trace behind those that are there. */
static void
add_trace (GTorchProfileList *self, GTorchTrace *trace, gint64 origin)
{
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree GTorchProfileData *data = NULL;
  const GTorchRecord *records;
  const guint begin = self->rows->len;
  guint n, i;

  records = gtorch_trace_get_records (trace, &n);
  data = g_new0 (GTorchProfileData, n + 1);
  add_up (trace, origin, data);
  for (i = 0; i < n; i++)
    if (has_row (&records[i]))
      g_array_append_val (order, i);
  gtorch_trace_sort_by_start (trace, order);
  for (i = 0; i < order->len; i++)
    data[g_array_index (order, guint, i)].position = (gint) (begin + i);
  for (i = 0; i < order->len; i++)
    {
      GTorchProfileData *row = &data[g_array_index (order, guint, i)];

      row->events = self;
      row->parent = row->parent >= 0 ? data[row->parent].position : -1;
      set_texts (self, row, text);
      g_array_append_val (self->rows, *row);
    }
  for (i = self->rows->len; i-- > begin;)
    {
      GTorchProfileData *row = nth (self, i);

      if (row->parent < 0)
        continue;
      row->next = nth (self, row->parent)->first;
      nth (self, row->parent)->first = (gint) i;
    }
}

GTorchProfileList *
gtorch_profile_list_new_events (GTorchProfiler *profiler, GPtrArray *traces)
{
  GTorchProfileColumns columns = { .device_name = NULL };
  GTorchProfileList *self;
  guint i;

  gtorch_profiler_get_settings (profiler, &columns.settings);
  for (i = 0; i < traces->len; i++)
    {
      columns.n_missing += gtorch_trace_get_n_lost (traces->pdata[i])
                           + gtorch_trace_get_n_untimed (traces->pdata[i]);
      if (gtorch_trace_has_gpu (traces->pdata[i]))
        columns.device_name = "CUDA";
    }
  self = list_new (&columns);
  self->traces = g_ptr_array_ref (traces);
  for (i = 0; i < traces->len; i++)
    add_trace (self, traces->pdata[i], gtorch_trace_get_start (traces->pdata[0]));
  return self;
}

GTorchProfileRow *
gtorch_profile_list_get_event (GTorchProfileList *events, guint position)
{
  return gtorch_profile_row_new (nth (events, position), events);
}

GTorchProfileList *
gtorch_profile_list_new_inside (const GTorchProfileData *data, gboolean is_of_device)
{
  static const GTorchProfileColumns none = { .device_name = NULL };
  GTorchProfileList *events = data->events, *self;
  gint i;

  if (events == NULL)
    return list_new (&none);
  self = list_new_of (events);
  for (i = data->first; i >= 0; i = nth (events, i)->next)
    if (nth (events, i)->is_of_device == is_of_device)
      g_array_append_val (self->rows, *nth (events, i));
  return self;
}

/**
 * gtorch_profile_list_new_from_rows:
 * @rows: (array length=n_rows): rows of any lists
 * @n_rows: the length of @rows
 *
 * Creates a list of some rows, in their order, for a table or sums of them.
 *
 * ```js
 * const slow = GTorch.ProfileList.new_from_rows([...rows].filter(row => row.cpu_time > 100));
 * print(slow.table());
 * ```
 *
 * The columns of its tables are those of the list of the first row.
 *
 * Returns: (transfer full): a list
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profile_list_new_from_rows (GTorchProfileRow **rows, gsize n_rows)
{
  static const GTorchProfileColumns none = { .device_name = NULL };
  GTorchProfileList *self;
  GObject *former = NULL;
  gsize i;

  g_return_val_if_fail (rows != NULL || n_rows == 0, NULL);
  for (i = 0; i < n_rows; i++)
    g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (rows[i]), NULL);
  self = list_new (&none);
  for (i = 0; i < n_rows; i++)
    {
      GObject *owner = gtorch_profile_row_get_owner (rows[i]);

      if (owner == NULL) /* a row that nobody has filled */
        continue;
      if (self->rows->len == 0)
        self->columns = GTORCH_PROFILE_LIST (owner)->columns;
      if (owner != former)
        g_ptr_array_add (self->owners, g_object_ref (owner));
      former = owner;
      g_array_append_val (self->rows, *gtorch_profile_row_get_data (rows[i]));
    }
  return self;
}

/**
 * gtorch_profile_list_dup_events:
 * @self: a list
 *
 * Gets the list of all events from which the rows are, in which they have their
 * [property@ProfileRow:position]; of rows of several profiles, that of the first one.
 *
 * Returns: (transfer full): a list, which is @self if that has all events, or if it is empty
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profile_list_dup_events (GTorchProfileList *self)
{
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROFILE_LIST (self), NULL);
  for (i = 0; i < self->rows->len; i++)
    if (nth (self, i)->events != NULL)
      return g_object_ref (nth (self, i)->events);
  return g_object_ref (self);
}

/* --- sums --- */

static void
add (GTorchProfileData *sum, const GTorchProfileData *one)
{
  sum->count += one->count;
  sum->cpu_total += one->cpu_total;
  sum->self_cpu += one->self_cpu;
  sum->device_total += one->device_total;
  sum->self_device += one->self_device;
  sum->cpu_memory += one->cpu_memory;
  sum->self_cpu_memory += one->self_cpu_memory;
  sum->device_memory += one->device_memory;
  sum->self_device_memory += one->self_device_memory;
  sum->flops += one->flops;
}

/* The first n lines. */
static const gchar *
first_lines (GTorchProfileList *self, const gchar *stack, guint n)
{
  const gchar *end = stack;

  for (; n > 0 && end != NULL; n--)
    end = strchr (end + (end > stack), '\n');
  if (end == NULL)
    return stack;
  return end == stack ? "" : g_string_chunk_insert_len (self->texts, stack, end - stack);
}

/* Modules that were recorded beside frames, which did not ask for them in tables. */
static gboolean
is_hidden (GTorchProfileList *self, const GTorchProfileData *row)
{
  guint n;

  return !self->columns.settings.with_modules && row->record >= 0
         && gtorch_trace_get_records (row->trace, &n)[row->record].kind == GTORCH_RECORD_MODULE;
}

/**
 * gtorch_profile_list_key_averages:
 * @self: a list of events
 * @group_by_input_shapes: whether events with operands of other shapes have rows of their own
 * @group_by_stack_n: how many of the innermost frames must be the same for one row; 0: none
 *
 * Adds up the rows of each name; see [method@Profiler.key_averages].
 *
 * Returns: (transfer full): a list, in the order in which names came first
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profile_list_key_averages (GTorchProfileList *self, gboolean group_by_input_shapes,
                                  guint group_by_stack_n)
{
  g_autoptr (GHashTable) known = NULL;
  GTorchProfileList *sums;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROFILE_LIST (self), NULL);
  known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sums = list_new_of (self);
  for (i = 0; i < self->rows->len; i++)
    {
      const GTorchProfileData *one = nth (self, i);
      const gchar *shapes = group_by_input_shapes ? one->shapes : "";
      const gchar *stack = first_lines (sums, one->stack, group_by_stack_n);
      g_autofree gchar *key = g_strdup_printf ("%d%d\1%s\1%s\1%s", one->is_of_device,
                                               one->is_annotation, one->key, shapes, stack);
      gpointer found;

      if (is_hidden (self, one))
        continue;
      if (g_hash_table_lookup_extended (known, key, NULL, &found))
        {
          add (nth (sums, GPOINTER_TO_UINT (found)), one);
          continue;
        }
      g_hash_table_insert (known, g_steal_pointer (&key), GUINT_TO_POINTER (sums->rows->len));
      g_array_append_val (sums->rows, *one);
      nth (sums, sums->rows->len - 1)->shapes = g_string_chunk_insert_const (sums->texts, shapes);
      nth (sums, sums->rows->len - 1)->stack = stack;
    }
  return sums;
}

/**
 * gtorch_profile_list_total_average:
 * @self: a list
 *
 * Adds up all rows.
 *
 * Returns: (transfer full): a row whose key is “Total”
 *
 * Since: 0.1
 */
GTorchProfileRow *
gtorch_profile_list_total_average (GTorchProfileList *self)
{
  GTorchProfileData total = GTORCH_PROFILE_DATA_NONE ("Total");
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROFILE_LIST (self), NULL);
  for (i = 0; i < self->rows->len; i++)
    add (&total, nth (self, i));
  return gtorch_profile_row_new (&total, self);
}

/**
 * gtorch_profile_list_get_self_cpu_time_total:
 * @self: a list
 *
 * Gets the time that the host needed for all of it.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_list_get_self_cpu_time_total (GTorchProfileList *self)
{
  gint64 total = 0;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROFILE_LIST (self), 0);
  for (i = 0; i < self->rows->len; i++)
    total += nth (self, i)->self_cpu;
  return total / 1e3;
}

/**
 * gtorch_profile_list_table:
 * @self: a list
 * @sort_by: (nullable): the column by which rows are sorted, the largest first: “cpu_time”, “cuda_time”,
 *   “cpu_time_total”, “cuda_time_total”, “self_cpu_time_total”, “self_cuda_time_total”, “cpu_memory_usage”,
 *   “cuda_memory_usage”, “self_cpu_memory_usage”, “self_cuda_memory_usage”, “count”, “flops” or “key”, each
 *   with “device” for “cuda”, too; %NULL for the list's own order
 * @row_limit: the most rows; -1: all
 * @max_src_column_width: the widest column of frames; -1: any
 * @max_name_column_width: the widest column of names; -1: any
 * @max_shapes_column_width: the widest column of shapes; -1: any
 * @header: (nullable): a line above the table
 * @top_level_events_only: whether events inside of others are left out
 * @time_unit: (nullable): “s”, “ms” or “us”; %NULL: what suits each time
 * @error: return location for an error
 *
 * Writes the list as a table, with PyTorch's columns.
 *
 * Columns of devices, memory, shapes, frames and floating-point operations are there if they were recorded.
 *
 * Returns: (transfer full): the text; empty for an empty list; %NULL with %GTORCH_ERROR_INVALID if @sort_by
 *   or @time_unit is something else, or a width is too small
 *
 * Since: 0.1
 */
gchar *
gtorch_profile_list_table (GTorchProfileList *self, const gchar *sort_by, gint row_limit,
                           gint max_src_column_width, gint max_name_column_width,
                           gint max_shapes_column_width, const gchar *header,
                           gboolean top_level_events_only, const gchar *time_unit, GError **error)
{
  const GTorchProfileTableStyle style = { sort_by,
                                          row_limit,
                                          max_src_column_width,
                                          max_name_column_width,
                                          max_shapes_column_width,
                                          header,
                                          top_level_events_only,
                                          time_unit };
  g_autoptr (GPtrArray) rows = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROFILE_LIST (self), NULL);
  rows = g_ptr_array_new ();
  for (i = 0; i < self->rows->len; i++)
    g_ptr_array_add (rows, nth (self, i));
  return gtorch_profile_write_table (&self->columns, rows, &style, error);
}
