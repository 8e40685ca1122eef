/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A page about the memory of all devices: what was allocated when, and which code holds what. It needs no
 * other file and no network. */

#include "config.h"

#include "memory/gtorch-memory-report-private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-file-save-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-program-private.h"
#include "device/gtorch-device-info.h"

#define MAX_ENTRIES 200000 /* of a history that the environment asks for */
#define MAX_PLACES  100
#define MAX_BLOCKS  500

static GMutex lock; /* protects everything below */
GTORCH_FORK_LOCK (lock);
static GPtrArray
    *allocators; /* in the order in which they were made; they live as long as the process */
static gchar *exit_path; /* where a report is written at exit, or NULL */
static pid_t exit_process;

/* --- the history --- */

static gint64
change_of (const GTorchMemoryEntry *entry, GTorchMemoryAction more, GTorchMemoryAction less)
{
  return entry->action == more ? (gint64) entry->size
                               : (entry->action == less ? -(gint64) entry->size : 0);
}

GArray *
gtorch_memory_report_moments (const GArray *blocks, const GArray *entries)
{
  GArray *moments = g_array_new (FALSE, TRUE, sizeof (GTorchMemoryMoment));
  gint64 allocated = 0, reserved = 0;
  guint i;

  for (i = 0; i < blocks->len; i++)
    {
      const GTorchBlockInfo *block = &g_array_index (blocks, GTorchBlockInfo, i);

      reserved += block->size;
      allocated += block->state == GTORCH_BLOCK_ALLOCATED ? block->size : 0;
    }
  g_array_set_size (moments, entries->len);
  for (i = entries->len; i-- > 0;)
    {
      const GTorchMemoryEntry *entry = &g_array_index (entries, GTorchMemoryEntry, i);

      g_array_index (moments, GTorchMemoryMoment, i) =
          (GTorchMemoryMoment){ MAX (allocated, 0), MAX (reserved, 0) };
      allocated -= change_of (entry, GTORCH_MEMORY_ALLOC, GTORCH_MEMORY_FREE_REQUESTED);
      reserved -= change_of (entry, GTORCH_MEMORY_SEGMENT_ALLOC, GTORCH_MEMORY_SEGMENT_FREE);
      reserved -= change_of (entry, GTORCH_MEMORY_SEGMENT_MAP, GTORCH_MEMORY_SEGMENT_UNMAP);
    }
  return moments;
}

/* The moment at which most was allocated. */
static guint
find_peak (const GArray *moments)
{
  guint i, peak = 0;

  for (i = 1; i < moments->len; i++)
    if (g_array_index (moments, GTorchMemoryMoment, i).allocated
        > g_array_index (moments, GTorchMemoryMoment, peak).allocated)
      peak = i;
  return peak;
}

/* What was allocated in the recorded time and still there after an entry. */
static GHashTable *
places_at (const GArray *entries, guint at)
{
  g_autoptr (GHashTable) live = g_hash_table_new (g_int64_hash, g_int64_equal);
  GHashTable *places = gtorch_memory_places_new ();
  GHashTableIter iter;
  gpointer value;
  guint i;

  for (i = 0; i <= at; i++)
    {
      GTorchMemoryEntry *entry = &g_array_index (entries, GTorchMemoryEntry, i);

      if (entry->action == GTORCH_MEMORY_ALLOC)
        g_hash_table_replace (live, &entry->address, entry);
      else if (entry->action == GTORCH_MEMORY_FREE_REQUESTED)
        g_hash_table_remove (live, &entry->address);
    }
  g_hash_table_iter_init (&iter, live);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    gtorch_memory_places_add (places, ((GTorchMemoryEntry *) value)->site,
                              ((GTorchMemoryEntry *) value)->size);
  return places;
}

/* --- pages --- */

static const gchar head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>";

static const gchar style[] =
    "</title>\n<style>\n"
    ":root { color-scheme: light dark; --line: #8886; --strong: #2b6cb0; }\n"
    "body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 "
    "1em; }\n"
    "h2 { border-bottom: 1px solid var(--line); margin-top: 2em; }\n"
    "table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }\n"
    "td, th { border-bottom: 1px solid var(--line); padding: .2em .6em; vertical-align: top; }\n"
    ".number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    ".mono, pre { font-family: monospace; font-size: 13px; } pre { margin: .3em 0; white-space: "
    "pre-wrap; }\n"
    "svg { display: block; width: 100%; } svg text { font-size: 12px; fill: currentColor; }\n"
    "polyline { fill: none; stroke-width: 1.5; } polyline.allocated { stroke: #2b6cb0; }\n"
    "polyline.reserved { stroke: #dd8452; stroke-dasharray: 5 3; }\n"
    "line.grid { stroke: var(--line); } line.oom { stroke: #c53030; stroke-width: 2; }\n"
    ".key span::before { content: ''; display: inline-block; width: 1.2em; height: .7em; margin: 0 "
    ".4em 0 1em; }\n"
    ".key .allocated::before { background: #2b6cb0; } .key .reserved::before { background: "
    "#dd8452; }\n"
    ".key .oom::before { background: #c53030; }\n"
    ".bar { height: 26px; } .map { padding: 0 0 .6em; } rect { stroke: #fff8; stroke-width: .4; }\n"
    ".free { fill: #8883; } .awaiting { fill: #d6b656; } .many { fill: #888; }\n"
    ".c0 { fill: #4c72b0; } .c1 { fill: #dd8452; } .c2 { fill: #55a868; } .c3 { fill: #c44e52; }\n"
    ".c4 { fill: #8172b3; } .c5 { fill: #937860; } .c6 { fill: #da8bc3; } .c7 { fill: #64b5cd; }\n"
    ".swatch { display: inline-block; width: 1.2em; height: .7em; } polygon { opacity: .8; }\n"
    "</style>\n</head>\n<body>\n<h1>";

void
gtorch_html_begin (GString *page, const gchar *title)
{
  g_string_append (page, head);
  gtorch_html_text (page, title);
  g_string_append (page, style);
  gtorch_html_text (page, title);
  g_string_append (page, "</h1>\n");
}

void
gtorch_html_end (GString *page)
{
  g_string_append (page, "</body>\n</html>\n");
}

void
gtorch_html_origin (GString *page)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree gchar *time = g_date_time_format (now, "%F %T");
  g_autofree gchar *program = gtorch_program_dup_name ();

  g_string_append (page, "<p>");
  gtorch_html_text (page, program);
  g_string_append_printf (page, ", process %d, %s</p>\n", (gint) getpid (), time);
}

static void
append_row (GString *page, const gchar *name, guint64 now, guint64 peak)
{
  g_string_append_printf (page, "<tr><td>%s</td><td class=\"number\">", name);
  gtorch_html_size (page, now);
  g_string_append (page, "</td><td class=\"number\">");
  gtorch_html_size (page, peak);
  g_string_append (page, "</td></tr>\n");
}

static void
append_numbers (GString *page, GTorchAllocator *self)
{
  g_string_append (page, "<table><thead><tr><th></th><th class=\"number\">now</th>"
                         "<th class=\"number\">at most</th></tr></thead><tbody>\n");
  append_row (page, "allocated by tensors", gtorch_allocator_get_allocated (self),
              gtorch_allocator_get_peak_allocated (self));
  append_row (page, "reserved", gtorch_allocator_get_reserved (self),
              gtorch_allocator_get_peak_reserved (self));
  g_string_append (page, "</tbody></table>\n");
}

/* The place in the language, with its callers and the functions of C to unfold. */
static void
append_site (GString *page, const GTorchMemorySite *site)
{
  g_autofree gchar *where = gtorch_memory_site_to_string (site);
  g_autofree gchar *functions = gtorch_site_to_string (&site->site);

  g_string_append (page, "<details><summary>");
  gtorch_html_text (page, where);
  g_string_append (page, "</summary><pre>");
  if (site->place != NULL)
    {
      gtorch_html_text (page, site->place);
      g_string_append (page, "\n\n");
    }
  g_string_append (page, "C: ");
  gtorch_html_text (page, functions);
  g_string_append (page, "</pre></details>");
}

static void
append_places (GString *page, GHashTable *table, guint64 total)
{
  g_autoptr (GPtrArray) places = gtorch_memory_places_sort (table);
  guint64 others = total;
  guint i;

  g_string_append (page, "<table><thead><tr><th class=\"number\">bytes</th><th "
                         "class=\"number\">share</th>"
                         "<th class=\"number\">tensors</th><th>operation</th><th>made "
                         "in</th></tr></thead>"
                         "<tbody>\n");
  for (i = 0; i < MIN (places->len, MAX_PLACES); i++)
    {
      const GTorchMemoryPlace *place = places->pdata[i];

      g_string_append (page, "<tr><td class=\"number\">");
      gtorch_html_size (page, place->n_bytes);
      g_string_append_printf (page,
                              "</td><td class=\"number\">%u %%</td><td "
                              "class=\"number\">%u</td><td>",
                              total > 0 ? (guint) (place->n_bytes * 100.0 / total + 0.5) : 0,
                              place->n);
      gtorch_html_text (page, gtorch_memory_site_get_op (place->site));
      g_string_append (page, "</td><td>");
      append_site (page, place->site);
      g_string_append (page, "</td></tr>\n");
      others -= MIN (others, place->n_bytes);
    }
  if (others > 0)
    {
      g_string_append (page, "<tr><td class=\"number\">");
      gtorch_html_size (page, others);
      g_string_append (page,
                       "</td><td></td><td></td><td></td><td>elsewhere, or before the recording"
                       "</td></tr>\n");
    }
  g_string_append (page, "</tbody></table>\n");
}

static gint
by_size (gconstpointer a, gconstpointer b)
{
  const GTorchBlockInfo *x = *(GTorchBlockInfo *const *) a, *y = *(GTorchBlockInfo *const *) b;

  return x->size > y->size ? -1 : x->size < y->size;
}

static void
append_blocks (GString *page, const GArray *blocks)
{
  g_autoptr (GPtrArray) used = g_ptr_array_new ();
  guint i;

  for (i = 0; i < blocks->len; i++)
    if (g_array_index (blocks, GTorchBlockInfo, i).state != GTORCH_BLOCK_INACTIVE)
      g_ptr_array_add (used, &g_array_index (blocks, GTorchBlockInfo, i));
  g_ptr_array_sort (used, by_size);
  g_string_append (page, "<table><thead><tr><th>address</th><th class=\"number\">size</th>"
                         "<th class=\"number\">asked for</th><th>operation</th><th>made "
                         "in</th></tr></thead>"
                         "<tbody>\n");
  for (i = 0; i < MIN (used->len, MAX_BLOCKS); i++)
    {
      const GTorchBlockInfo *block = used->pdata[i];

      g_string_append_printf (page,
                              "<tr><td class=\"mono\">0x%" G_GINT64_MODIFIER
                              "x</td><td class=\"number\">",
                              block->address);
      gtorch_html_size (page, block->size);
      g_string_append (page, "</td><td class=\"number\">");
      gtorch_html_size (page, block->requested);
      g_string_append (page, "</td><td>");
      if (block->site != NULL)
        gtorch_html_text (page, gtorch_memory_site_get_op (block->site));
      g_string_append (page, "</td><td>");
      if (block->site != NULL)
        append_site (page, block->site);
      g_string_append (page, "</td></tr>\n");
    }
  g_string_append (page, "</tbody></table>\n");
  if (used->len > MAX_BLOCKS)
    g_string_append_printf (page, "<p>%u smaller blocks are not shown.</p>\n",
                            used->len - MAX_BLOCKS);
}

static void
append_history (GString *page, const GArray *blocks, const GArray *entries)
{
  g_autoptr (GArray) moments = gtorch_memory_report_moments (blocks, entries);
  const guint peak = find_peak (moments);
  const gint64 most = g_array_index (moments, GTorchMemoryMoment, peak).allocated;
  g_autoptr (GHashTable) places = places_at (entries, peak);

  g_string_append_printf (page, "<h3>Over time</h3>\n<p>%u events were recorded.</p>\n",
                          entries->len);
  gtorch_html_timeline (page, entries, moments);
  g_string_append (page, "<h3>Who held memory at the peak</h3>\n<p>");
  gtorch_html_size (page, most);
  g_string_append_printf (page, " were allocated %.3f s after the first event.</p>\n",
                          (g_array_index (entries, GTorchMemoryEntry, peak).time_us
                           - g_array_index (entries, GTorchMemoryEntry, 0).time_us)
                              / 1e6);
  append_places (page, places, most);
}

static void
append_allocator (GString *page, GTorchAllocator *self)
{
  GTorchDevice *device = gtorch_allocator_get_device (self);
  g_autoptr (GArray) blocks = NULL;
  g_autoptr (GArray) entries = NULL;
  g_autoptr (GHashTable) places = NULL;

  g_string_append (page, "<section>\n<h2>");
  gtorch_html_text (page, gtorch_device_name (device));
  g_string_append (page, "</h2>\n");
  append_numbers (page, self);
  if (self->list_blocks == NULL)
    {
      g_string_append (page, "<p class=\"none\">The allocator of this device keeps no list of "
                             "blocks and no "
                             "history: only these numbers are known.</p>\n</section>\n");
      return;
    }
  blocks = gtorch_allocator_dup_blocks (self);
  entries = gtorch_allocator_dup_entries (self, 0);
  if (entries->len > 0)
    append_history (page, blocks, entries);
  else if (gtorch_allocator_get_history_level (self) < GTORCH_HISTORY_ALLOC)
    g_string_append (page, "<p class=\"none\">No history of this device was recorded: "
                           "GTORCH_MEMORY_REPORT in the environment, or record_history () of the "
                           "allocator, does that.</p>\n");
  g_string_append (page, "<h3>Who holds memory now</h3>\n");
  places = gtorch_memory_places_of_blocks (blocks);
  append_places (page, places, gtorch_allocator_get_allocated (self));
  g_string_append (page, "<h3>Segments</h3>\n<p>Each bar is a range of memory from the driver; a "
                         "block tells "
                         "its size and origin when the mouse is over it.</p>\n");
  gtorch_html_segments (page, blocks);
  g_string_append (page, "<h3>Blocks in use</h3>\n");
  append_blocks (page, blocks);
  g_string_append (page, "</section>\n");
}

static GBytes *
make_page (void)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  GString *page = g_string_new (NULL);
  guint i;

  gtorch_html_begin (page, "Memory of tensors");
  gtorch_html_origin (page);
  g_mutex_lock (&lock);
  for (i = 0; allocators != NULL && i < allocators->len; i++)
    g_ptr_array_add (all, allocators->pdata[i]);
  g_mutex_unlock (&lock);
  for (i = 0; i < all->len; i++)
    append_allocator (page, all->pdata[i]);
  if (all->len == 0)
    g_string_append (page, "<p class=\"none\">No device was used.</p>\n");
  gtorch_html_end (page);
  return g_string_free_to_bytes (page);
}

/**
 * gtorch_memory_report_save:
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes a page about the memory of all devices that the program has used, to be opened by any browser. The
 * file is complete in itself, and nothing is loaded from a network.
 *
 * For each device it shows how much memory tensors hold and what is reserved. For devices whose allocator
 * knows its blocks, which are GPUs, it also has the segments and blocks as a map and a table and, with
 * [method@Allocator.record_history], the bytes that were allocated over time and the places in the program
 * that held most of them, now and at the peak. Places are lines of Python or JavaScript, and functions of C.
 *
 * With `GTORCH_MEMORY_REPORT=FILE` in the environment, the history of all GPUs is recorded from the beginning
 * and the report is written when the program ends by `exit ()` or by returning from `main ()`; `%p` in the
 * name stands for the number of the process.
 *
 * ```c
 * g_autoptr (GFile) file = g_file_new_for_path ("memory.html");
 *
 * gtorch_memory_report_save (file, NULL, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with an error of the file, which is then unchanged, or with %G_IO_ERROR_CANCELLED
 *
 * Since: 0.1
 */
gboolean
gtorch_memory_report_save (GFile *file, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) page = NULL;

  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  page = make_page ();
  return gtorch_file_save_bytes (file, page, cancellable, error);
}

/* --- what the environment asks for --- */

static void
save_at_exit (void)
{
  g_autoptr (GFile) file = NULL;
  g_autoptr (GError) error = NULL;

  if (getpid () != exit_process) /* the child of a fork has no report of its own */
    return;
  file = g_file_new_for_path (exit_path);
  if (!gtorch_memory_report_save (file, NULL, &error))
    g_warning ("GTORCH_MEMORY_REPORT: %s", error->message);
}

/* Called with the lock held. */
static void
read_environment (void)
{
  const gchar *path = gtorch_getenv ("GTORCH_MEMORY_REPORT");
  g_auto (GStrv) parts = NULL;
  gchar number[16];

  if (path == NULL || exit_path != NULL)
    return;
  exit_process = getpid ();
  g_snprintf (number, sizeof number, "%d", (gint) exit_process);
  parts = g_strsplit (path, "%p", -1);
  exit_path = g_strjoinv (number, parts);
  atexit (save_at_exit);
}

void
gtorch_memory_report_add (GTorchAllocator *allocator)
{
  g_mutex_lock (&lock);
  if (allocators == NULL)
    {
      allocators = g_ptr_array_new ();
      read_environment ();
    }
  g_ptr_array_add (allocators, allocator);
  g_mutex_unlock (&lock);
}

void
gtorch_allocator_set_list_blocks (GTorchAllocator *self,
                                  void (*list_blocks) (GTorchDevice *device, GArray *blocks))
{
  g_autoptr (GError) error = NULL;
  gboolean is_recorded;

  self->list_blocks = list_blocks;
  g_mutex_lock (&lock);
  is_recorded = exit_path != NULL;
  g_mutex_unlock (&lock);
  if (is_recorded
      && !gtorch_allocator_record_history (self, GTORCH_HISTORY_ALLOC, MAX_ENTRIES, &error))
    g_warning ("GTORCH_MEMORY_REPORT: %s", error->message);
}
