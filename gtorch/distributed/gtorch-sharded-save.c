/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Writing tensors to several safetensors files and an index, by one process or by those of a group. The
 * names of the files are new each time, so that the old ones stay whole until the index, which is replaced
 * last, names the new ones.
 *
 * Where ranks have parts of a tensor, one of them makes the file with its header, and each writes its part to
 * its place in it: rows, which are one behind the other, or pieces of rows. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-bytes-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "distributed/gtorch-sharded-file-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "io/gtorch-safetensors-private.h"
#include "io/gtorch-safetensors.h"
#include "tensor/gtorch-tensor-private.h"

#define END ".safetensors"

typedef struct
{
  GFile *index;
  gchar **names;
  GPtrArray *tensors;
  gchar **metadata;
  guint64 max_part_size;
  GTorchProcessGroup *group; /* or NULL */
  GTorchDevice *device;      /* of what the group carries: that of the thread that calls */
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_object_unref (save->index);
  g_strfreev (save->names);
  g_ptr_array_unref (save->tensors);
  g_strfreev (save->metadata);
  g_clear_object (&save->group);
  g_free (save);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Save, save_free)

static gint
rank_of (const Save *save)
{
  return save->group == NULL ? 0 : gtorch_process_group_get_rank (save->group);
}

/* --- what the ranks have --- */

/* A tensor of a rank. */
typedef struct
{
  gchar *name;
  gchar *form; /* dtype and shape */
  guint64 n_bytes;
  gint rank;
  gboolean is_written; /* by this rank; of parts, the file is made by it */
  /* Of one of which the rank has a part. */
  gboolean is_part;
  guint64 first, n_own; /* where its bytes begin in the whole, and how many it has */
  GTorchSafetensorsEntry entry;
} Item;

typedef struct
{
  gchar *tag;
  GPtrArray *items; /* in the order of the ranks */
} Plan;

static void
item_free (gpointer data)
{
  Item *item = data;

  g_free (item->name);
  g_free (item->form);
  g_free (item);
}

static void
plan_clear (Plan *plan)
{
  g_free (plan->tag);
  g_ptr_array_unref (plan->items);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Plan, plan_clear)

static GPtrArray *
gather (const Save *save, GString *own, GError **error)
{
  GTORCH_GROUP_CALL ("safetensors_index");
  g_autoptr (GBytes) bytes = g_string_free_to_bytes (own);
  GPtrArray *all;

  if (save->group != NULL)
    return gtorch_group_gather_bytes (save->group, save->device, bytes, error);
  all = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  g_ptr_array_add (all, g_steal_pointer (&bytes));
  return all;
}

/* Tells all ranks whether this one has failed, and fails if one has. Takes the failure. */
static gboolean
agree (const Save *save, GError *failure, GError **error)
{
  g_autoptr (GError) own = failure;
  g_autoptr (GPtrArray) all =
      gather (save, g_string_new (own == NULL ? "" : own->message), own == NULL ? error : NULL);
  guint i;

  if (own != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&own));
      return FALSE;
    }
  for (i = 0; all != NULL && i < all->len; i++)
    if (g_bytes_get_size (all->pdata[i]) > 0)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("safetensors_index: rank %u has failed: %.*s"), i,
                     (int) g_bytes_get_size (all->pdata[i]),
                     (const gchar *) g_bytes_get_data (all->pdata[i], NULL));
        return FALSE;
      }
  return all != NULL;
}

static gboolean
check_own (const Save *save, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autofree gchar *base = g_file_get_basename (save->index);
  guint i;

  if (!g_str_has_suffix (base, ".index.json"))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors_index: the file is “%s”; the name of an index ends in "
                      ".index.json"),
                   gtorch_name_str (base));
      return FALSE;
    }
  if (save->max_part_size == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors_index: a file has at most 0 bytes of tensors; it has 1 or "
                      "more"));
      return FALSE;
    }
  for (i = 0; save->metadata != NULL && save->metadata[i] != NULL; i++)
    if (!g_utf8_validate (save->metadata[i], -1, NULL))
      break;
  if (save->metadata != NULL && (save->metadata[i] != NULL || i % 2 != 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors_index: the metadata has %u texts, of which number %u is the "
                      "first that "
                      "is not UTF-8 or has no value: each key has one"),
                   g_strv_length (save->metadata), i);
      return FALSE;
    }
  if (g_strv_length (save->names) != save->tensors->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors_index: there are %u names for %u tensors"),
                   g_strv_length (save->names), save->tensors->len);
      return FALSE;
    }
  for (i = 0; i < save->tensors->len; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (save->tensors->pdata[i]);

      if (!g_utf8_validate (save->names[i], -1, NULL) || !g_hash_table_add (seen, save->names[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("safetensors_index: the name %u, “%s”, is not UTF-8, or there are two of "
                          "it"),
                       i, gtorch_name_str (save->names[i]));
          return FALSE;
        }
      if (impl->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                       _ ("safetensors_index: “%s” has been released"),
                       gtorch_name_str (save->names[i]));
          return FALSE;
        }
    }
  return TRUE;
}

/* The place of the first byte of a part in the whole; the number of bytes of that. */
static guint64
measure_part (const GTorchImpl *impl, const GTorchPart *part, guint64 *n_bytes)
{
  guint64 first = 0, numel = 1;
  guint i;

  for (i = 0; i < part->n_dims; i++)
    {
      first = first * part->shape[i] + part->first[i];
      numel *= part->shape[i];
    }
  *n_bytes = numel * gtorch_dtype_size (impl->dtype);
  return first * gtorch_dtype_size (impl->dtype);
}

/* A part as where it is in the whole, and the dtype and the shape of that. */
static void
describe_part (GString *text, const GTorchImpl *impl, const GTorchPart *part)
{
  guint64 n_bytes;
  const guint64 first = measure_part (impl, part, &n_bytes);
  guint i;

  g_string_append_printf (text,
                          ",%" G_GUINT64_FORMAT ",\"part of %s %s\",%" G_GUINT64_FORMAT
                          ",%" G_GSIZE_FORMAT ",%u",
                          n_bytes, gtorch_dtype_infos[impl->dtype].name,
                          gtorch_shape_str (part->shape, part->n_dims), first,
                          gtorch_impl_n_bytes (impl), impl->dtype);
  for (i = 0; i < part->n_dims; i++)
    g_string_append_printf (text, ",%" G_GINT64_FORMAT, part->shape[i]);
  g_string_append_c (text, ']');
}

/* The names and sizes of this rank as lines, behind a tag. */
static GString *
describe (const Save *save)
{
  GString *text = g_string_new (NULL);
  guint i;

  g_string_append_printf (text, "{\"tag\":\"%08x\",\"items\":[", g_random_int ());
  for (i = 0; i < save->tensors->len; i++)
    {
      GTorchTensor *tensor = save->tensors->pdata[i];
      const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
      GTorchPart part;

      g_string_append (text, i > 0 ? ",[" : "[");
      gtorch_json_write_string (text, save->names[i], -1);
      if (gtorch_part_find (tensor, &part))
        describe_part (text, impl, &part);
      else
        g_string_append_printf (text, ",%" G_GSIZE_FORMAT ",\"%s %s\"]", gtorch_impl_n_bytes (impl),
                                gtorch_dtype_infos[impl->dtype].name, gtorch_impl_shape_str (impl));
    }
  g_string_append (text, "]}");
  return text;
}

static void
read_part (Item *item, const GTorchJsonNode *node)
{
  GTorchSafetensorsEntry *entry = &item->entry;

  item->is_part = TRUE;
  item->first = (guint64) node->integer;
  node = node->next;
  item->n_own = (guint64) node->integer;
  node = node->next;
  entry->name = item->name;
  entry->dtype = (guint) node->integer;
  for (node = node->next; node != NULL; node = node->next)
    entry->shape[entry->n_dims++] = node->integer;
}

static gboolean
add_items (Plan *plan, gint rank, GBytes *bytes, GError **error)
{
  gsize length;
  const gchar *text = g_bytes_get_data (bytes, &length);
  g_autoptr (GTorchJson) json = gtorch_json_parse ("safetensors_index", text, length, error);
  const GTorchJsonNode *root, *items, *node;

  if (json == NULL)
    return FALSE;
  root = gtorch_json_get_root (json);
  if (rank == 0)
    plan->tag = g_strdup (gtorch_json_lookup (root, "tag")->string);
  items = gtorch_json_lookup (root, "items");
  for (node = items->first; node != NULL; node = node->next)
    {
      const GTorchJsonNode *form = node->first->next->next;
      Item *item = g_new0 (Item, 1);

      item->name = g_strdup (node->first->string);
      item->n_bytes = (guint64) node->first->next->integer;
      item->form = g_strdup (form->string);
      item->rank = rank;
      if (form->next != NULL)
        read_part (item, form->next);
      g_ptr_array_add (plan->items, item);
    }
  return TRUE;
}

static gint
compare_items (gconstpointer a, gconstpointer b)
{
  const Item *first = *(Item *const *) a, *second = *(Item *const *) b;
  const gint names = strcmp (first->name, second->name), forms = strcmp (first->form, second->form);

  if (first->n_bytes != second->n_bytes)
    return first->n_bytes > second->n_bytes ? -1 : 1;
  return names != 0 ? names : forms != 0 ? forms : first->rank - second->rank;
}

static gboolean
are_same (const Item *a, const Item *b)
{
  return strcmp (a->name, b->name) == 0 && strcmp (a->form, b->form) == 0;
}

/* All parts must be there; one that several ranks have is written by the first. */
static gboolean
check_parts (GPtrArray *sorted, guint start, guint end, GError **error)
{
  const Item *first = sorted->pdata[start];
  g_autoptr (GHashTable) seen = g_hash_table_new (g_int64_hash, g_int64_equal);
  guint64 n_bytes = 0;
  guint i;

  for (i = start; i < end; i++)
    {
      Item *item = sorted->pdata[i];

      if (item->n_own > 0 && g_hash_table_add (seen, &item->first))
        n_bytes += item->n_own;
      else
        item->n_own = 0;
    }
  if (n_bytes == first->n_bytes)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("safetensors_index: the ranks that write have %" PRIu64 " of the %" PRIu64
                  " bytes of “%s”, which is spread over ranks: all of these write together"),
               n_bytes, first->n_bytes, gtorch_name_str (first->name));
  return FALSE;
}

/* Each name is written by one of the ranks that have it: the one that has least to write. */
static gboolean
assign (Plan *plan, gint size, GError **error)
{
  g_autofree guint64 *loads = g_new0 (guint64, size);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) sorted = g_ptr_array_copy (plan->items, NULL, NULL);
  guint i, k;

  g_ptr_array_set_free_func (sorted, NULL);
  g_ptr_array_sort (sorted, compare_items);
  for (i = 0; i < sorted->len; i = k)
    {
      Item *first = sorted->pdata[i], *chosen = first;

      for (k = i; k < sorted->len && are_same (first, sorted->pdata[k]); k++)
        if (!first->is_part && loads[((Item *) sorted->pdata[k])->rank] < loads[chosen->rank])
          chosen = sorted->pdata[k];
      chosen->is_written = TRUE;
      if (!first->is_part)
        loads[chosen->rank] += MAX (chosen->n_bytes, 1);
      else if (!check_parts (sorted, i, k, error))
        return FALSE;
      if (!g_hash_table_add (seen, first->name))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("safetensors_index: the tensor “%s”, %s on rank %d, is another one on "
                          "another "
                          "rank: those that differ have names of their own"),
                       gtorch_name_str (first->name), first->form, first->rank);
          return FALSE;
        }
    }
  return TRUE;
}

static gboolean
make_plan (const Save *save, Plan *plan, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) all = NULL;
  GError *failure = NULL;
  guint i;

  if (!g_cancellable_set_error_if_cancelled (cancellable, &failure))
    check_own (save, &failure);
  if (!agree (save, failure, error) || (all = gather (save, describe (save), error)) == NULL)
    return FALSE;
  for (i = 0; i < all->len; i++)
    if (!add_items (plan, (gint) i, all->pdata[i], error))
      return FALSE;
  return assign (plan, (gint) all->len, error);
}

/* --- files --- */

/* Divides what is written into files: number of the file of each item, -1 for what is not written. Those of
 * parts come last. */
static gint *
divide (const Save *save, const Plan *plan, guint *n_files)
{
  gint *numbers = g_new (gint, MAX (plan->items->len, 1));
  gint number = -1, parts;
  guint i;

  for (parts = FALSE; parts <= TRUE; parts++)
    {
      guint64 size = 0;
      gint rank = -1;

      for (i = 0; i < plan->items->len; i++)
        {
          const Item *item = plan->items->pdata[i];

          if (item->is_part != parts)
            continue;
          numbers[i] = -1;
          if (!item->is_written)
            continue;
          if (item->rank != rank
              || item->n_bytes > save->max_part_size - MIN (size, save->max_part_size))
            {
              number++;
              size = 0;
              rank = item->rank;
            }
          size += item->n_bytes;
          numbers[i] = number;
        }
    }
  *n_files = (guint) (number + 1);
  return numbers;
}

static gchar *
name_file (const Save *save, const Plan *plan, gint number, guint n_files)
{
  g_autofree gchar *base = g_file_get_basename (save->index);
  g_autofree gchar *stem = g_strndup (base, strlen (base) - strlen (".index.json"));

  if (g_str_has_suffix (stem, END))
    stem[strlen (stem) - strlen (END)] = '\0';
  return g_strdup_printf ("%s-%s-%05d-of-%05u" END, stem, plan->tag, number + 1, n_files);
}

static GFile *
find_file (const Save *save, const gchar *name)
{
  g_autoptr (GFile) folder = g_file_get_parent (save->index);

  return g_file_get_child (folder, name);
}

static guint
find_own (const Save *save, const gchar *name)
{
  guint i;

  for (i = 0; strcmp (save->names[i], name) != 0; i++)
    ;
  return i;
}

static gboolean
write_file (const Save *save, const Plan *plan, const gint *numbers, gint number, const gchar *name,
            GCancellable *cancellable, GError **error)
{
  static const gchar *const metadata[] = { "format", "pt", NULL };
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) tensors = g_ptr_array_new ();
  g_autoptr (GFile) file = find_file (save, name);
  guint i;

  for (i = 0; i < plan->items->len; i++)
    {
      Item *item = plan->items->pdata[i];

      if (numbers[i] != number)
        continue;
      g_ptr_array_add (names, item->name);
      g_ptr_array_add (tensors, save->tensors->pdata[find_own (save, item->name)]);
    }
  g_ptr_array_add (names, NULL);
  return gtorch_safetensors_save_file_lists ((const gchar *const *) names->pdata,
                                             (GTorchTensor **) tensors->pdata, tensors->len,
                                             metadata, file, cancellable, NULL, NULL, error);
}

/* Files that are of no use any more; what cannot be removed stays. */
static void
remove_files (const Save *save, GHashTable *names)
{
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    {
      g_autoptr (GFile) file = find_file (save, name);

      g_file_delete (file, NULL, NULL);
    }
}

/* --- files of parts --- */

/* Makes the header of a file, which all ranks know, and the places of its tensors. */
static GString *
make_header (const Plan *plan, const gint *numbers, gint number, GTorchSafetensorsHeader *header)
{
  GString *text = g_string_new (NULL);
  guint i;

  for (i = 0; i < plan->items->len; i++)
    if (numbers[i] == number)
      {
        GTorchSafetensorsEntry entry = ((Item *) plan->items->pdata[i])->entry;

        entry.name = g_strdup (entry.name);
        g_array_append_val (header->entries, entry);
      }
  g_hash_table_insert (header->metadata, g_strdup ("format"), g_strdup ("pt"));
  gtorch_safetensors_header_write (header, text);
  return text;
}

static gchar *
find_path (const Save *save, const Plan *plan, gint number, guint n_files, GError **error)
{
  g_autofree gchar *name = name_file (save, plan, number, n_files);
  g_autoptr (GFile) file = find_file (save, name);
  gchar *path = g_file_get_path (file);

  if (path == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("safetensors_index: parts of tensors are written to files of this host, and "
                    "“%s” is not one"),
                 gtorch_name_str (name));
  return path;
}

static gboolean
make_part_file (const Save *save, const Plan *plan, const gint *numbers, gint number, guint n_files,
                GError **error)
{
  g_autoptr (GTorchSafetensorsHeader) header = gtorch_safetensors_header_new ();
  GString *text = make_header (plan, numbers, number, header);
  g_autofree gchar *path = find_path (save, plan, number, n_files, error);
  const gboolean is_made =
      path != NULL
      && gtorch_sharded_make_file (path, text,
                                   text->len
                                       + ((GTorchSafetensorsEntry *)
                                              header->entries->data)[header->entries->len - 1]
                                             .end,
                                   error);

  g_string_free (text, TRUE);
  return is_made;
}

/* The number of the file of a tensor of which ranks have parts. */
static gint
find_number (const Plan *plan, const gint *numbers, const gchar *name)
{
  guint i;

  for (i = 0; numbers[i] < 0 || strcmp (((Item *) plan->items->pdata[i])->name, name) != 0; i++)
    ;
  return numbers[i];
}

static gboolean
write_rows (const Save *save, const Item *item, const gchar *path, const GString *text,
            const GTorchSafetensorsHeader *header, GError **error)
{
  GTorchTensor *tensor = save->tensors->pdata[find_own (save, item->name)];
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (tensor, error);
  GTorchPart part;
  guint i;

  if (bytes == NULL)
    return FALSE;
  if (!gtorch_part_find (tensor, &part))
    g_assert_not_reached ();
  for (i = 0;
       strcmp (g_array_index (header->entries, GTorchSafetensorsEntry, i).name, item->name) != 0;
       i++)
    ;
  return gtorch_sharded_put_part (path, bytes, gtorch_tensor_unwrap (tensor), &part,
                                  text->len
                                      + g_array_index (header->entries, GTorchSafetensorsEntry, i)
                                            .begin,
                                  error);
}

/* The rows of this rank, to the files that there are now. */
static gboolean
write_parts (const Save *save, const Plan *plan, const gint *numbers, guint n_files,
             GCancellable *cancellable, GError **error)
{
  gboolean is_done = TRUE;
  guint i;

  for (i = 0; is_done && i < plan->items->len; i++)
    {
      const Item *item = plan->items->pdata[i];
      g_autoptr (GTorchSafetensorsHeader) header = NULL;
      g_autofree gchar *path = NULL;
      GString *text;
      gint number;

      if (!item->is_part || item->rank != rank_of (save) || item->n_own == 0)
        continue;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      number = find_number (plan, numbers, item->name);
      header = gtorch_safetensors_header_new ();
      text = make_header (plan, numbers, number, header);
      path = find_path (save, plan, number, n_files, error);
      is_done = path != NULL && write_rows (save, item, path, text, header, error);
      g_string_free (text, TRUE);
    }
  return is_done;
}

/* Writes what this rank has alone, and makes the files of what others have parts of. */
static gboolean
write_own (const Save *save, const Plan *plan, const gint *numbers, guint n_files,
           GHashTable *written, GCancellable *cancellable, GError **error)
{
  gint last = -1, parts;
  guint i;

  for (parts = FALSE; parts <= TRUE; parts++)
    for (i = 0; i < plan->items->len; i++)
      {
        const Item *item = plan->items->pdata[i];
        g_autofree gchar *name = NULL;

        if (item->is_part != parts || item->rank != rank_of (save) || numbers[i] < 0
            || numbers[i] == last)
          continue;
        last = numbers[i];
        name = name_file (save, plan, last, n_files);
        if (parts) /* it may be there, but not whole */
          g_hash_table_add (written, g_strdup (name));
        if (parts ? !make_part_file (save, plan, numbers, last, n_files, error)
                  : !write_file (save, plan, numbers, last, name, cancellable, error))
          return FALSE;
        g_hash_table_add (written, g_steal_pointer (&name));
      }
  return TRUE;
}

static GBytes *
make_index (const Save *save, const Plan *plan, const gint *numbers, guint n_files)
{
  GString *text = g_string_new (NULL);
  gboolean is_first = TRUE;
  guint64 total = 0;
  guint i;

  for (i = 0; i < plan->items->len; i++)
    total += numbers[i] < 0 ? 0 : ((Item *) plan->items->pdata[i])->n_bytes;
  g_string_append_printf (text, "{\n  \"metadata\": {\n    \"total_size\": %" G_GUINT64_FORMAT,
                          total);
  for (i = 0; save->metadata != NULL && save->metadata[i] != NULL; i += 2)
    {
      g_string_append (text, ",\n    ");
      gtorch_json_write_string (text, save->metadata[i], -1);
      g_string_append (text, ": ");
      gtorch_json_write_string (text, save->metadata[i + 1], -1);
    }
  g_string_append (text, "\n  },\n  \"weight_map\": {");
  for (i = 0; i < plan->items->len; i++)
    {
      g_autofree gchar *name = NULL;

      if (numbers[i] < 0)
        continue;
      name = name_file (save, plan, numbers[i], n_files);
      g_string_append (text, is_first ? "\n    " : ",\n    ");
      gtorch_json_write_string (text, ((Item *) plan->items->pdata[i])->name, -1);
      g_string_append (text, ": ");
      gtorch_json_write_string (text, name, -1);
      is_first = FALSE;
    }
  g_string_append (text, "\n  }\n}\n");
  return g_string_free_to_bytes (text);
}

static gboolean
write_index (const Save *save, const Plan *plan, const gint *numbers, guint n_files,
             GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchShardedIndex) former =
      gtorch_sharded_index_read (save->index, cancellable, NULL);
  g_autoptr (GBytes) text = make_index (save, plan, numbers, n_files);
  g_autoptr (GHashTable) old = g_hash_table_new (g_str_hash, g_str_equal);
  guint i;

  if (!gtorch_file_save_bytes (save->index, text, cancellable, error))
    return FALSE;
  for (i = 0; former != NULL && i < former->files->len; i++)
    if (g_str_has_suffix (former->files->pdata[i], END))
      g_hash_table_add (old, former->files->pdata[i]);
  remove_files (save, old);
  return TRUE;
}

static gboolean
has_parts (const Plan *plan)
{
  guint i;

  for (i = 0; i < plan->items->len; i++)
    if (((Item *) plan->items->pdata[i])->is_part)
      return TRUE;
  return FALSE;
}

static gboolean
run (const Save *save, GCancellable *cancellable, GError **error)
{
  g_auto (Plan) plan = { NULL, g_ptr_array_new_with_free_func (item_free) };
  g_autoptr (GHashTable) written = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree gint *numbers = NULL;
  GError *failure = NULL;
  gboolean is_done;
  guint n_files;

  if (!make_plan (save, &plan, cancellable, error))
    return FALSE;
  numbers = divide (save, &plan, &n_files);
  write_own (save, &plan, numbers, n_files, written, cancellable, &failure);
  is_done = agree (save, failure, error);
  if (is_done && has_parts (&plan))
    {
      failure = NULL;
      write_parts (save, &plan, numbers, n_files, cancellable, &failure);
      is_done = agree (save, failure, error);
    }
  if (is_done)
    {
      failure = NULL;
      if (rank_of (save) == 0)
        write_index (save, &plan, numbers, n_files, cancellable, &failure);
      is_done = agree (save, failure, error);
    }
  if (!is_done)
    remove_files (save, written);
  return is_done;
}

static Save *
save_new (GFile *index, const gchar *const *names, GTorchTensor **tensors, gsize n_tensors,
          const gchar *const *metadata, guint64 max_part_size, GTorchProcessGroup *group,
          GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  GTorchDevice *device = group == NULL ? NULL : gtorch_group_get_device (group, &failure);
  Save *save;
  gsize i;

  if (group != NULL && device == NULL)
    {
      if (!g_cancellable_set_error_if_cancelled (cancellable, error))
        g_propagate_error (error, g_steal_pointer (&failure));
      return NULL;
    }
  save = g_new0 (Save, 1);
  save->device = device;
  save->index = g_object_ref (index);
  save->names = names == NULL ? g_new0 (gchar *, 1) : g_strdupv ((gchar **) names);
  save->tensors = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < n_tensors; i++)
    g_ptr_array_add (save->tensors, g_object_ref (tensors[i]));
  save->metadata = g_strdupv ((gchar **) metadata);
  save->max_part_size = max_part_size;
  save->group = group == NULL ? NULL : g_object_ref (group);
  return save;
}

/**
 * gtorch_safetensors_save_index:
 * @index: the index to write or replace, such as `model.safetensors.index.json`
 * @names: (array zero-terminated=1): the names of the tensors
 * @tensors: (array length=n_tensors): the tensors, as many as @names
 * @n_tensors: the number of @tensors
 * @metadata: (nullable) (array zero-terminated=1): metadata of the index: alternating keys and values
 * @max_part_size: how many bytes of tensors a file has at most, 1 or more; a larger tensor has a file of
 *   its own
 * @group: (nullable): processes that write together, all of which call this; %NULL for this one alone
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes tensors to several safetensors files, and an index that tells which one has what, in the form of
 * Hugging Face's.
 *
 * Each rank of @group gives the tensors that it has, and writes its part of them. A tensor that several ranks
 * have is written by one; what differs between ranks has different names. With a whole state dict on all
 * ranks, each writes its share. Parameters of [class@ModuleShards] and of layers that
 * [func@parallelize_columns] or [func@parallelize_rows] has divided, tensors of state dicts that share their
 * elements, states of optimizers for them, and tensors that were given to [method@ModuleShards.adopt] or
 * [func@parallelize_adopt] become whole tensors, of which each rank writes its part; the folder is then one
 * that all ranks share. Any number of processes reads the result by [func@safetensors_load_index].
 *
 * The files have new names. The index is replaced last, when all ranks have written theirs, and the files of
 * the former one are removed then: at any time there is all of the old content or all of the new one. If a
 * rank fails, all of them do, and remove what they have written.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if a name is there twice,
 *   %GTORCH_ERROR_SHAPE if ranks have different tensors of one name, or the error of a file or of @group
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_index (GFile *index, const gchar *const *names, GTorchTensor **tensors,
                               gsize n_tensors, const gchar *const *metadata, guint64 max_part_size,
                               GTorchProcessGroup *group, GCancellable *cancellable, GError **error)
{
  g_autoptr (Save) save = NULL;

  g_return_val_if_fail (G_IS_FILE (index) && gtorch_are_tensors (tensors, n_tensors), FALSE);
  g_return_val_if_fail (group == NULL || GTORCH_IS_PROCESS_GROUP (group), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  save = save_new (index, names, tensors, n_tensors, metadata, max_part_size, group, cancellable,
                   error);
  return save != NULL && run (save, cancellable, error);
}

static void
save_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;

  if (run (data, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_safetensors_save_index_async:
 * @index: the index to write or replace
 * @names: (array zero-terminated=1): the names of the tensors
 * @tensors: (array length=n_tensors): the tensors, as many as @names
 * @n_tensors: the number of @tensors
 * @metadata: (nullable) (array zero-terminated=1): metadata of the index: alternating keys and values
 * @max_part_size: how many bytes of tensors a file has at most, 1 or more
 * @group: (nullable): processes that write together; %NULL for this one alone
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Writes tensors to several files in another thread; see [func@safetensors_save_index]. That thread uses
 * @group until it is done: other operations have another group. The elements of the tensors must not be
 *   changed until then.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_save_index_async (GFile *index, const gchar *const *names,
                                     GTorchTensor **tensors, gsize n_tensors,
                                     const gchar *const *metadata, guint64 max_part_size,
                                     GTorchProcessGroup *group, int io_priority,
                                     GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  Save *save;

  g_return_if_fail (G_IS_FILE (index) && gtorch_are_tensors (tensors, n_tensors));
  g_return_if_fail (group == NULL || GTORCH_IS_PROCESS_GROUP (group));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_safetensors_save_index_async, cancellable, callback, user_data);
  g_task_set_priority (task, io_priority);
  save = save_new (index, names, tensors, n_tensors, metadata, max_part_size, group, cancellable,
                   &error);
  if (save == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  g_task_set_task_data (task, save, save_free);
  g_task_run_in_thread (task, save_in_thread);
}

/**
 * gtorch_safetensors_save_index_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_save_index_async].
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_index_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_safetensors_save_index_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}
