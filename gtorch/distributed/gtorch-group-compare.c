/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of a group must have alike, such as the parameters of a module that they train together.
 * They exchange a checksum of it; only if one differs do they exchange the whole, and find the difference.
 * What they exchange is not translated, since hosts may have different languages. */

#include "config.h"

#include "distributed/gtorch-group-compare-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "device/gtorch-device.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-bytes-private.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-tensor-private.h"

#define FAILED "!" /* what the text of a rank that has failed begins with */

void
gtorch_group_facts_init (GTorchGroupFacts *self)
{
  *self = (GTorchGroupFacts){ g_ptr_array_new_with_free_func (g_free),
                              g_ptr_array_new_with_free_func (g_free), NULL, NULL };
}

void
gtorch_group_facts_clear (GTorchGroupFacts *self)
{
  g_clear_pointer (&self->names, g_ptr_array_unref);
  g_clear_pointer (&self->values, g_ptr_array_unref);
  g_clear_error (&self->failure);
}

/* A name is of one line. */
static gchar *
plain (const gchar *name)
{
  return g_strdelimit (g_strdup (name), "\t\n", ' ');
}

void
gtorch_group_facts_add (GTorchGroupFacts *self, const gchar *name, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  g_ptr_array_add (self->names, plain (name));
  g_ptr_array_add (self->values, g_strdup_vprintf (format, args));
  va_end (args);
}

void
gtorch_group_facts_add_flag (GTorchGroupFacts *self, const gchar *name, gboolean flag)
{
  gtorch_group_facts_add (self, name, "%s", flag ? "true" : "false");
}

void
gtorch_group_facts_add_number (GTorchGroupFacts *self, const gchar *name, gdouble value)
{
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];

  gtorch_group_facts_add (self, name, "%s", g_ascii_dtostr (text, sizeof text, value));
}

static void
name_members (GHashTable *names, const GArray *members, const gchar *path)
{
  guint i;

  for (i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (member->tensor != NULL && !g_hash_table_contains (names, member->tensor))
        g_hash_table_insert (names, member->tensor,
                             path == NULL || *path == '\0'
                                 ? g_strdup (member->name)
                                 : g_strconcat (path, ".", member->name, NULL));
    }
}

/* The name by which each parameter and each buffer is found first. */
static void
name_module (GTorchModule *module, const gchar *path, gpointer names)
{
  name_members (names, gtorch_module_get_private (module)->parameters, path);
  name_members (names, gtorch_module_get_private (module)->buffers, path);
}

gchar *
gtorch_group_find_name (GTorchModule *module, GTorchTensor *tensor)
{
  g_autoptr (GHashTable) names = g_hash_table_new_full (NULL, NULL, NULL, g_free);

  gtorch_module_visit (module, TRUE, name_module, names);
  return g_strdup (g_hash_table_lookup (names, tensor));
}

void
gtorch_group_facts_add_tensors (GTorchGroupFacts *self, GTorchModule *module,
                                GTorchTensor *const *tensors, guint n)
{
  g_autoptr (GHashTable) names = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  guint i;

  if (module != NULL)
    gtorch_module_visit (module, TRUE, name_module, names);
  for (i = 0; i < n; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (tensors[i]);
      const gchar *known = g_hash_table_lookup (names, tensors[i]);
      g_autofree gchar *name =
          known != NULL ? g_strdup (known) : g_strdup_printf ("parameter %u", i);

      if (self->device == NULL)
        self->device = gtorch_tensor_get_device (tensors[i]);
      gtorch_group_facts_add (self, name, "%s %s%s", gtorch_dtype_infos[impl->dtype].name,
                              gtorch_impl_shape_str (impl),
                              gtorch_tensor_get_requires_grad (tensors[i]) ? ""
                                                                           : " without gradient");
    }
}

/* --- comparing --- */

/* “NAME TAB VALUE” in each line. */
static GBytes *
make_text (const GTorchGroupFacts *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint i;

  if (self->failure != NULL)
    g_string_printf (text, "%s%s", FAILED, self->failure->message);
  else
    for (i = 0; i < self->names->len; i++)
      g_string_append_printf (text, "%s%s\t%s", i > 0 ? "\n" : "", (gchar *) self->names->pdata[i],
                              (gchar *) self->values->pdata[i]);
  return g_string_free_to_bytes (g_steal_pointer (&text));
}

/* Where the group can carry tensors: on the device of the parameters, if they are on one of its kind. */
static GTorchDevice *
find_place (const GTorchGroupFacts *self, GTorchProcessGroup *group, GError **error)
{
  return self->device != NULL
                 && gtorch_device_get_device_type (self->device)
                        == gtorch_process_group_get_device_type (group)
             ? self->device
             : gtorch_group_get_device (group, error);
}

static gboolean
are_same (GPtrArray *all)
{
  guint i;

  for (i = 1; i < all->len; i++)
    if (!g_bytes_equal (all->pdata[0], all->pdata[i]))
      return FALSE;
  return TRUE;
}

static gchar **
lines_of (GBytes *bytes)
{
  g_autofree gchar *text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));

  return g_strsplit (text, "\n", -1);
}

/* Returns the line of a name, or NULL. */
static const gchar *
find_line (gchar **lines, const gchar *name, gsize length)
{
  for (; *lines != NULL; lines++)
    if (strncmp (*lines, name, length) == 0 && (*lines)[length] == '\t')
      return *lines;
  return NULL;
}

static void
tell_missing (const gchar *who, const gchar *line, gint length, gint has, gint lacks,
              GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the ranks differ: rank %d has “%.*s”, %s, and rank %d has no such "
                  "parameter"),
               who, has, length, line, line + length + 1, lacks);
}

/* The first difference between rank 0 and another one. */
static void
tell (const gchar *who, gchar **first, gchar **other, gint rank, GError **error)
{
  gint length, length_other;
  guint i;

  for (i = 0; first[i] != NULL && other[i] != NULL && strcmp (first[i], other[i]) == 0; i++)
    ;
  length = first[i] == NULL ? 0 : (gint) strcspn (first[i], "\t");
  length_other = other[i] == NULL ? 0 : (gint) strcspn (other[i], "\t");
  if (first[i] != NULL && find_line (other, first[i], length) == NULL)
    tell_missing (who, first[i], length, 0, rank, error);
  else if (other[i] != NULL && find_line (first, other[i], length_other) == NULL)
    tell_missing (who, other[i], length_other, rank, 0, error);
  else if (first[i] != NULL && other[i] != NULL && length == length_other
           && strncmp (first[i], other[i], length) == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the ranks differ: “%.*s” is %s on rank 0, and %s on rank %d"), who, length,
                 first[i], first[i] + length + 1, other[i] + length_other + 1, rank);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the ranks differ: parameter %u is “%.*s” on rank 0, and “%.*s” on rank "
                    "%d: "
                    "they have one order"),
                 who, i, length, first[i] != NULL ? first[i] : "", length_other,
                 other[i] != NULL ? other[i] : "", rank);
}

static void
tell_all (const gchar *who, GPtrArray *texts, GError **error)
{
  g_auto (GStrv) first = lines_of (texts->pdata[0]);
  guint i;

  for (i = 0; i < texts->len; i++)
    {
      g_auto (GStrv) lines = lines_of (texts->pdata[i]);

      if (lines[0] == NULL || !g_str_has_prefix (lines[0], FAILED))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("%s: rank %u has an error: %s"),
                   who, i, lines[0] + strlen (FAILED));
      return;
    }
  for (i = 1; g_bytes_equal (texts->pdata[0], texts->pdata[i]); i++)
    ;
  {
    g_auto (GStrv) other = lines_of (texts->pdata[i]);

    tell (who, first, other, (gint) i, error);
  }
}

static gboolean
compare (GTorchGroupFacts *self, GTorchProcessGroup *group, const gchar *who, GError **error)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (GBytes) text = make_text (self), sum = NULL;
  g_autoptr (GPtrArray) sums = NULL, texts = NULL;
  GTorchDevice *place = find_place (self, group, error);
  guint8 digest[32];
  gsize n = sizeof digest;

  if (place == NULL)
    return FALSE;
  g_checksum_update (checksum, g_bytes_get_data (text, NULL), g_bytes_get_size (text));
  g_checksum_get_digest (checksum, digest, &n);
  sum = g_bytes_new (digest, n);
  sums = gtorch_group_gather_bytes (group, place, sum, error);
  if (sums == NULL)
    return FALSE;
  if (are_same (sums))
    return TRUE;
  texts = gtorch_group_gather_bytes (group, place, text, error);
  if (texts != NULL)
    tell_all (who, texts, error);
  return FALSE;
}

gboolean
gtorch_group_facts_compare (GTorchGroupFacts *self, GTorchProcessGroup *group, const gchar *who,
                            GError **error)
{
  g_autoptr (GError) local = NULL;
  gboolean result = TRUE;

  if (gtorch_process_group_get_size (group) > 1)
    {
      GTORCH_GROUP_CALL (who);

      result = compare (self, group, who, &local);
    }
  if (self->failure != NULL) /* the reason is nearer than what the others say */
    g_propagate_error (error, g_steal_pointer (&self->failure));
  else if (!result)
    g_propagate_error (error, g_steal_pointer (&local));
  else
    return TRUE;
  return FALSE;
}
