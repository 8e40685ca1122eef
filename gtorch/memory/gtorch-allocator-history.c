/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The history and the present state of an allocator, in the format that PyTorch's memory viewer reads: a
 * pickle of protocol 2 with dictionaries, lists, strings and numbers. */

#include "config.h"

#include "memory/gtorch-allocator-history.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-file-save-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-place-private.h"
#include "device/gtorch-scratch-private.h"
#include "memory/gtorch-allocator-history-private.h"

struct _GTorchHistory
{
  GMutex lock;
  GTorchHistoryLevel level;
  GTorchMemoryEntry *entries; /* ring buffer */
  gsize max, first, n;
};

guint gtorch_memory_wants_ops;
__thread const gchar *gtorch_memory_site_op;

GType
gtorch_history_level_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_HISTORY_NEVER, "GTORCH_HISTORY_NEVER", "never" },
    { GTORCH_HISTORY_STATE, "GTORCH_HISTORY_STATE", "state" },
    { GTORCH_HISTORY_ALLOC, "GTORCH_HISTORY_ALLOC", "alloc" },
    { GTORCH_HISTORY_ALL, "GTORCH_HISTORY_ALL", "all" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchHistoryLevel", values));
  return type;
}

/* --- allocation sites --- */

GTorchMemorySite *
gtorch_memory_site_new (gboolean with_place)
{
  g_autofree gchar *place = with_place ? gtorch_place_take () : NULL;
  GTorchMemorySite *self = g_new (GTorchMemorySite, 1);

  self->ref_count = 1;
  self->op = gtorch_memory_site_op;
  self->place = place != NULL ? g_ref_string_new_intern (place) : NULL;
  gtorch_site_take (&self->site);
  return self;
}

GTorchMemorySite *
gtorch_memory_site_ref (GTorchMemorySite *self)
{
  if (self != NULL)
    g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_memory_site_unref (GTorchMemorySite *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (self->place != NULL)
    g_ref_string_release ((char *) self->place);
  g_free (self);
}

/* --- the ring buffer --- */

static void
drop_first (GTorchHistory *self)
{
  gtorch_memory_site_unref (self->entries[self->first].site);
  self->first = (self->first + 1) % self->max;
  self->n--;
}

static GTorchMemoryEntry
entry_at (GTorchHistory *self, gsize i)
{
  return self->entries[(self->first + i) % self->max];
}

void
gtorch_allocator_note (GTorchAllocator *self, GTorchMemoryAction action, guint64 address,
                       gsize size, guint64 stream, guint64 pool_id, GTorchMemorySite *site,
                       gsize available)
{
  GTorchHistory *history = g_atomic_pointer_get (&self->history);

  if (history == NULL)
    return;
  g_mutex_lock (&history->lock);
  if (history->level >= GTORCH_HISTORY_ALLOC && history->max > 0)
    {
      if (history->n == history->max)
        drop_first (history);
      history->entries[(history->first + history->n++) % history->max] = (GTorchMemoryEntry){
        .action = action,
        .address = address,
        .size = size,
        .stream = stream,
        .pool_id = pool_id,
        .time_us = g_get_real_time (),
        .available = available,
        .site = gtorch_memory_site_ref (site),
      };
    }
  g_mutex_unlock (&history->lock);
}

/**
 * gtorch_allocator_record_history:
 * @self: an allocator
 * @level: what to record
 * @max_entries: the maximum number of events to keep; older ones are dropped
 * @error: return location for an error
 *
 * Starts recording where memory is allocated, for [method@Allocator.snapshot].
 *
 * A record contains the name of the operation, if there is one, the place in the program's language that
 * [func@set_place_func] tells, which Python and JavaScript do, and a backtrace of C functions; functions that
 * their library does not export have no name. Where memory is freed, only functions of C are recorded.
 * Earlier records are dropped. Recording adds some microseconds to each allocation, in Python and JavaScript
 * some tens of them.
 *
 * With any level but %GTORCH_HISTORY_NEVER, out-of-memory errors name the five allocation sites whose
 * tensors hold the most memory, and the first of them whose tensors alone would free enough.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED on the CPU, with %GTORCH_ERROR_INVALID
 *   if @level is not a member of the enumeration
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_record_history (GTorchAllocator *self, GTorchHistoryLevel level, gsize max_entries,
                                 GError **error)
{
  GTorchHistory *history;
  GTorchMemoryEntry *entries;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  if (self->list_blocks == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: that of %s cannot record a history"),
                   gtorch_device_name (self->device));
      return FALSE;
    }
  if ((guint) level > GTORCH_HISTORY_ALL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("allocator: %d is not a level of history, they are 0 to %d"), level,
                   GTORCH_HISTORY_ALL);
      return FALSE;
    }
  entries = gtorch_scratch_new0 ((gint64) MIN (max_entries, G_MAXINT64), sizeof (GTorchMemoryEntry),
                                 error);
  if (entries == NULL)
    {
      g_prefix_error (error, "allocator: ");
      return FALSE;
    }
  g_mutex_lock (&self->config_lock);
  history = self->history;
  if (history == NULL)
    {
      history = g_new0 (GTorchHistory, 1);
      g_mutex_init (&history->lock);
      gtorch_fork_add_lock (&history->lock);
    }
  g_mutex_lock (&history->lock);
  while (history->n > 0)
    drop_first (history);
  g_free (history->entries);
  history->entries = entries;
  history->max = max_entries;
  history->first = 0;
  history->level = level;
  g_mutex_unlock (&history->lock);
  g_atomic_pointer_set (&self->history, history);
  g_atomic_int_set (&self->history_level, level);
  if (level != GTORCH_HISTORY_NEVER)
    __atomic_or_fetch (&gtorch_memory_wants_ops, GTORCH_WANTS_OPS_HISTORY, __ATOMIC_RELAXED);
  g_mutex_unlock (&self->config_lock);
  return TRUE;
}

/* --- copies --- */

static void
block_info_clear (gpointer data)
{
  gtorch_memory_site_unref (((GTorchBlockInfo *) data)->site);
}

static void
entry_clear (gpointer data)
{
  gtorch_memory_site_unref (((GTorchMemoryEntry *) data)->site);
}

GArray *
gtorch_allocator_dup_blocks (GTorchAllocator *self)
{
  GArray *blocks = g_array_new (FALSE, FALSE, sizeof (GTorchBlockInfo));

  g_array_set_clear_func (blocks, block_info_clear);
  self->list_blocks (self->device, blocks);
  return blocks;
}

GArray *
gtorch_allocator_dup_entries (GTorchAllocator *self, guint64 pool_id)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (GTorchMemoryEntry));
  GTorchHistory *history = g_atomic_pointer_get (&self->history);
  gsize i;

  g_array_set_clear_func (entries, entry_clear);
  if (history == NULL)
    return entries;
  g_mutex_lock (&history->lock);
  for (i = 0; i < history->n; i++)
    {
      GTorchMemoryEntry entry = entry_at (history, i);

      if (pool_id != 0 && entry.pool_id != pool_id)
        continue;
      gtorch_memory_site_ref (entry.site);
      g_array_append_val (entries, entry);
    }
  g_mutex_unlock (&history->lock);
  return entries;
}

GTorchHistoryLevel
gtorch_allocator_get_history_level (GTorchAllocator *self)
{
  return g_atomic_int_get (&self->history_level);
}

/* --- pickling --- */

typedef GByteArray Pickle;

static void
put_byte (Pickle *pickle, guint8 byte)
{
  g_byte_array_append (pickle, &byte, 1);
}

static void
put_int (Pickle *pickle, gint64 value)
{
  guint8 bytes[8];
  guint i, n = 8;

  for (i = 0; i < 8; i++)
    bytes[i] = (guint64) value >> (8 * i);
  if (value >= G_MININT32 && value <= G_MAXINT32)
    {
      put_byte (pickle, 'J');
      n = 4;
    }
  else
    {
      put_byte (pickle, 0x8a);
      put_byte (pickle, 8);
    }
  g_byte_array_append (pickle, bytes, n);
}

static void
put_string (Pickle *pickle, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);
  guint32 length = strlen (valid), little = GUINT32_TO_LE (length);

  put_byte (pickle, 'X');
  g_byte_array_append (pickle, (const guint8 *) &little, 4);
  g_byte_array_append (pickle, (const guint8 *) valid, length);
}

static void
begin (Pickle *pickle, gchar kind)
{
  put_byte (pickle, kind == '{' ? '}' : ']'); /* an empty container */
  put_byte (pickle, '(');
}

static void
end (Pickle *pickle, gchar kind)
{
  put_byte (pickle,
            kind == '{' ? 'u' : 'e'); /* SETITEMS or APPENDS: adds the items since the mark */
}

static void
put_int_item (Pickle *pickle, const gchar *key, gint64 value)
{
  put_string (pickle, key);
  put_int (pickle, value);
}

static void
put_string_item (Pickle *pickle, const gchar *key, const gchar *value)
{
  put_string (pickle, key);
  put_string (pickle, value);
}

static void
put_bool_item (Pickle *pickle, const gchar *key, gboolean value)
{
  put_string (pickle, key);
  put_byte (pickle, value ? 0x88 : 0x89);
}

static void
put_frame (Pickle *pickle, const gchar *file, gint64 line, const gchar *name)
{
  begin (pickle, '{');
  put_string_item (pickle, "filename", file);
  put_int_item (pickle, "line", line);
  put_string_item (pickle, "name", name);
  end (pickle, '{');
}

/* A line of a place: “file:12, in name”, perhaps followed by “: source”. */
static void
put_place (Pickle *pickle, const gchar *line)
{
  const gchar *comma = strstr (line, ", in "), *colon;
  g_autofree gchar *file = NULL;
  g_autofree gchar *name = NULL;
  gint64 number = 0;

  if (comma == NULL)
    {
      put_frame (pickle, "?", 0, line);
      return;
    }
  for (colon = comma; colon > line && *colon != ':'; colon--)
    ;
  if (*colon == ':')
    number = g_ascii_strtoll (colon + 1, NULL, 10);
  file = g_strndup (line, *colon == ':' ? colon - line : comma - line);
  comma += strlen (", in ");
  name = g_strndup (comma, strcspn (comma, ":"));
  put_frame (pickle, file, number, name);
}

static void
put_places (Pickle *pickle, const gchar *place)
{
  g_auto (GStrv) lines = g_strsplit (place, "\n", -1);
  guint i;

  for (i = 0; lines[i] != NULL; i++)
    put_place (pickle, lines[i]);
}

static void
put_frames (Pickle *pickle, const GTorchMemorySite *site)
{
  gint i;

  put_string (pickle, "frames");
  begin (pickle, '[');
  if (site != NULL && site->op != NULL)
    put_frame (pickle, "GTorch", 0, site->op);
  if (site != NULL && site->place != NULL)
    put_places (pickle, site->place);
  for (i = 0; site != NULL && i < GTORCH_SITE_FRAMES && site->site.frames[i] != NULL; i++)
    {
      g_autofree gchar *name = NULL;
      Dl_info info = { 0 };
      gboolean found = dladdr (site->site.frames[i], &info) != 0;

      if (found && info.dli_sname != NULL)
        name = g_strdup (info.dli_sname);
      else
        name = g_strdup_printf ("+0x%" G_GINTPTR_MODIFIER "x",
                                (guintptr) site->site.frames[i]
                                    - (found ? (guintptr) info.dli_fbase : 0));
      put_frame (pickle, found && info.dli_fname != NULL ? info.dli_fname : "?", 0, name);
    }
  end (pickle, '[');
}

static void
put_pool_id (Pickle *pickle, const gchar *key, guint64 id)
{
  put_string (pickle, key);
  put_int (pickle, 0);
  put_int (pickle, id);
  put_byte (pickle, 0x86);
}

/* Writes one segment and returns the number of its blocks: the first block and those after it that do not
 * begin a segment. */
static guint
put_segment (Pickle *pickle, GTorchAllocator *self, const GTorchBlockInfo *blocks, guint n)
{
  gint64 total = 0, allocated = 0, active = 0, requested = 0;
  guint64 address = blocks->address;
  guint i, count = 1;

  while (count < n && !blocks[count].begins_segment)
    count++;
  for (i = 0; i < count; i++)
    {
      total += blocks[i].size;
      allocated += blocks[i].state == GTORCH_BLOCK_ALLOCATED ? blocks[i].size : 0;
      active += blocks[i].state != GTORCH_BLOCK_INACTIVE ? blocks[i].size : 0;
      requested += blocks[i].state != GTORCH_BLOCK_INACTIVE ? blocks[i].requested : 0;
    }
  begin (pickle, '{');
  put_int_item (pickle, "device", self->device->index);
  put_int_item (pickle, "address", address);
  put_int_item (pickle, "total_size", total);
  put_int_item (pickle, "allocated_size", allocated);
  put_int_item (pickle, "active_size", active);
  put_int_item (pickle, "requested_size", requested);
  put_int_item (pickle, "stream", blocks->stream);
  put_string_item (pickle, "segment_type", blocks->pool == GTORCH_POOL_SMALL ? "small" : "large");
  put_pool_id (pickle, "segment_pool_id", blocks->pool_id);
  put_bool_item (pickle, "is_expandable", blocks->is_expandable);
  put_frames (pickle, NULL);
  put_string (pickle, "blocks");
  begin (pickle, '[');
  for (i = 0; i < count; i++)
    {
      static const gchar *const states[] = { "inactive", "active_awaiting_free",
                                             "active_allocated" };

      begin (pickle, '{');
      put_int_item (pickle, "address", blocks[i].address);
      put_int_item (pickle, "size", blocks[i].size);
      put_int_item (pickle, "requested_size",
                    blocks[i].state != GTORCH_BLOCK_INACTIVE ? blocks[i].requested : 0);
      put_string_item (pickle, "state", states[blocks[i].state]);
      put_frames (pickle, blocks[i].site);
      end (pickle, '{');
    }
  end (pickle, '[');
  end (pickle, '{');
  return count;
}

static void
put_entry (Pickle *pickle, const GTorchMemoryEntry *entry)
{
  static const gchar *const actions[] = { "alloc",          "free_requested",
                                          "free_completed", "segment_alloc",
                                          "segment_free",   "segment_map",
                                          "segment_unmap",  "oom",
                                          "snapshot" };

  begin (pickle, '{');
  put_string_item (pickle, "action", actions[entry->action]);
  if (entry->action == GTORCH_MEMORY_OOM)
    put_int_item (pickle, "device_free", entry->available);
  else
    put_int_item (pickle, "addr", entry->address);
  put_int_item (pickle, "size", entry->size);
  put_int_item (pickle, "stream", entry->stream);
  put_int_item (pickle, "time_us", entry->time_us);
  put_pool_id (pickle, "pool_id", entry->pool_id);
  put_frames (pickle, entry->site);
  end (pickle, '{');
}

static void
put_settings (Pickle *pickle, GTorchAllocator *self)
{
  g_autofree gchar *text = gtorch_allocator_get_configuration (self);
  guint64 max_split = gtorch_allocator_get_max_split_size (self);

  put_string (pickle, "allocator_settings");
  begin (pickle, '{');
  put_string_item (pickle, "PYTORCH_CUDA_ALLOC_CONF", text);
  put_int_item (pickle, "max_split_size", max_split == G_MAXUINT64 ? -1 : (gint64) max_split);
  put_bool_item (pickle, "expandable_segments", strstr (text, "backend:native") != NULL);
  end (pickle, '{');
}

GBytes *
gtorch_allocator_snapshot_of (GTorchAllocator *self, guint64 pool_id, GError **error)
{
  g_autoptr (GArray) blocks = NULL;
  g_autoptr (GArray) entries = NULL;
  Pickle *pickle;
  gint device;
  gsize i;

  if (self->list_blocks == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: there is no snapshot of the memory of %s"),
                   gtorch_device_name (self->device));
      return NULL;
    }
  blocks = gtorch_allocator_dup_blocks (self);
  gtorch_allocator_note (self, GTORCH_MEMORY_SNAPSHOT, 0, 0, 0, pool_id, NULL, 0);
  entries = gtorch_allocator_dup_entries (self, pool_id);

  pickle = g_byte_array_new ();
  put_byte (pickle, 0x80);
  put_byte (pickle, 2);
  begin (pickle, '{');
  put_string (pickle, "segments");
  begin (pickle, '[');
  for (i = 0; i < blocks->len;)
    {
      const GTorchBlockInfo *block = &g_array_index (blocks, GTorchBlockInfo, i);

      i += pool_id == 0 || block->pool_id == pool_id
               ? put_segment (pickle, self, block, blocks->len - i)
               : 1;
    }
  end (pickle, '[');
  put_string (pickle, "device_traces");
  begin (pickle, '[');
  for (device = 0; device <= self->device->index; device++)
    {
      begin (pickle, '[');
      for (i = 0; i < entries->len && device == self->device->index; i++)
        put_entry (pickle, &g_array_index (entries, GTorchMemoryEntry, i));
      end (pickle, '[');
    }
  end (pickle, '[');
  put_settings (pickle, self);
  put_string (pickle, "external_annotations");
  begin (pickle, '[');
  end (pickle, '[');
  end (pickle, '{');
  put_byte (pickle, '.');
  return g_byte_array_free_to_bytes (pickle);
}

/**
 * gtorch_allocator_snapshot:
 * @self: an allocator
 * @error: return location for an error
 *
 * Creates a snapshot of all memory of the allocator, with the events that [method@Allocator.record_history]
 * has recorded.
 *
 * The snapshot is a pickle in the format of PyTorch's `torch.cuda.memory._snapshot()`. Written to a file,
 * as [method@Allocator.save_snapshot] does, it can be opened in the viewer at
 * https://pytorch.org/memory_viz.
 *
 * Returns: (transfer full): the pickle; %NULL with %GTORCH_ERROR_NOT_SUPPORTED on the CPU
 *
 * Since: 0.1
 */
GBytes *
gtorch_allocator_snapshot (GTorchAllocator *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  return gtorch_allocator_snapshot_of (self, 0, error);
}

/**
 * gtorch_allocator_save_snapshot:
 * @self: an allocator
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes the result of [method@Allocator.snapshot] to a file, atomically as in
 * [func@safetensors_save_file]: either the whole snapshot is written or the file is not changed.
 *
 * ```c
 * g_autoptr (GFile) file = g_file_new_for_path ("snapshot.pickle");
 *
 * gtorch_allocator_save_snapshot (allocator, file, NULL, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED on the CPU, or with an error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_save_snapshot (GTorchAllocator *self, GFile *file, GCancellable *cancellable,
                                GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  bytes = gtorch_allocator_snapshot (self, error);
  return bytes != NULL && gtorch_file_save_bytes (file, bytes, cancellable, error);
}
