/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-field-private.h"

#include "gtorch-module-members.h"

static G_DEFINE_QUARK (gtorch - field, field)

    static const GTorchField *find_field (GParamSpec *pspec)
{
  return g_param_spec_get_qdata (g_param_spec_get_redirect_target (pspec) != NULL
                                     ? g_param_spec_get_redirect_target (pspec)
                                     : pspec,
                                 field_quark ());
}

static void
get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  const GTorchField *field = find_field (pspec);
  gconstpointer place;

  if (field == NULL)
    {
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      return;
    }
  place = (const char *) object + field->offset;
  switch (field->kind)
    {
    case GTORCH_FIELD_INT:
      g_value_set_int64 (value, *(const gint64 *) place);
      break;
    case GTORCH_FIELD_DOUBLE:
      g_value_set_double (value, *(const gdouble *) place);
      break;
    case GTORCH_FIELD_BOOL:
      g_value_set_boolean (value, *(const gboolean *) place);
      break;
    case GTORCH_FIELD_PARAMETER:
      g_value_set_object (value,
                          gtorch_module_nth_parameter (GTORCH_MODULE (object), field->offset));
      break;
    case GTORCH_FIELD_BUFFER:
      g_value_set_object (value, gtorch_module_nth_buffer (GTORCH_MODULE (object), field->offset));
      break;
    }
}

static gboolean
set_buffer (GObject *object, const GTorchField *field, GTorchTensor *tensor)
{
  g_autofree gchar *name = g_strdelimit (g_strdup (field->name), "-", '_');

  if (gtorch_module_nth_buffer (GTORCH_MODULE (object), field->offset) == tensor)
    return FALSE;
  return gtorch_module_set_buffer (GTORCH_MODULE (object), name, tensor, NULL);
}

static void
set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  const GTorchField *field = find_field (pspec);
  gpointer place;
  gboolean changed = FALSE;

#define SET(type, get)                                      \
  G_STMT_START                                              \
  {                                                         \
    changed = *(type *) place != g_value_get_##get (value); \
    *(type *) place = g_value_get_##get (value);            \
  }                                                         \
  G_STMT_END

  if (field == NULL)
    {
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      return;
    }
  place = (char *) object + field->offset;
  switch (field->kind)
    {
    case GTORCH_FIELD_INT:
      SET (gint64, int64);
      break;
    case GTORCH_FIELD_DOUBLE:
      SET (gdouble, double);
      break;
    case GTORCH_FIELD_BOOL:
      SET (gboolean, boolean);
      break;
    case GTORCH_FIELD_BUFFER:
      changed = set_buffer (object, field, g_value_get_object (value));
      break;
    default:
      break;
    }
#undef SET
  if (changed && field->is_mutable)
    g_object_notify_by_pspec (object, pspec);
}

static GParamSpec *
make_spec (const GTorchField *field)
{
  /* any number is taken: what is computed with it fails */
  GParamFlags flags = G_PARAM_STATIC_STRINGS | G_PARAM_READWRITE | G_PARAM_LAX_VALIDATION;

  flags |= field->is_mutable ? G_PARAM_CONSTRUCT | G_PARAM_EXPLICIT_NOTIFY : G_PARAM_CONSTRUCT_ONLY;
  switch (field->kind)
    {
    case GTORCH_FIELD_INT:
      return g_param_spec_int64 (field->name, NULL, NULL, G_MININT64, G_MAXINT64,
                                 (gint64) field->value, flags);
    case GTORCH_FIELD_DOUBLE:
      return g_param_spec_double (field->name, NULL, NULL, -INFINITY, INFINITY, field->value,
                                  flags);
    case GTORCH_FIELD_BOOL:
      return g_param_spec_boolean (field->name, NULL, NULL, field->value != 0, flags);
    case GTORCH_FIELD_PARAMETER:
      return g_param_spec_object (field->name, NULL, NULL, GTORCH_TYPE_PARAMETER,
                                  G_PARAM_STATIC_STRINGS | G_PARAM_READABLE);
    case GTORCH_FIELD_BUFFER:
      break;
    }
  return g_param_spec_object (field->name, NULL, NULL, GTORCH_TYPE_TENSOR,
                              field->is_mutable ? flags
                                                : G_PARAM_STATIC_STRINGS | G_PARAM_READABLE);
}

void
gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n)
{
  guint i;

  klass->get_property = get_property;
  klass->set_property = set_property;
  for (i = 0; i < n; i++)
    {
      GParamSpec *pspec = make_spec (&fields[i]);

      g_param_spec_set_qdata (pspec, field_quark (), (gpointer) &fields[i]);
      g_object_class_install_property (klass, i + 1, pspec);
    }
}

gchar *
gtorch_tuple_str (const gint64 *values, guint n)
{
  GString *text = g_string_new ("(");
  guint i;

  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "", values[i]);
  g_string_append (text, n == 1 ? ",)" : ")");
  return g_string_free (text, FALSE);
}

gchar *
gtorch_pair_str (gint64 first, gint64 second)
{
  const gint64 values[] = { first, second };

  return gtorch_tuple_str (values, 2);
}

const gchar *
gtorch_double_str (gdouble value)
{
  /* Static TLS is scarce in libraries that are loaded late. */
  static GPrivate ring = G_PRIVATE_INIT (g_free);
  const gsize size = G_ASCII_DTOSTR_BUF_SIZE + 2;
  gchar *texts = g_private_get (&ring);
  gchar *text;
  guint digits;

  if (texts == NULL)
    {
      texts = g_malloc0 (4 * size + 1); /* the last byte says which is next */
      g_private_set (&ring, texts);
    }
  text = texts + (gsize) (texts[4 * size]++ & 3) * size;
  for (digits = 1; digits <= 17; digits++) /* the shortest that reads back */
    {
      gchar format[8];

      g_snprintf (format, sizeof (format), "%%.%ug", digits);
      g_ascii_formatd (text, G_ASCII_DTOSTR_BUF_SIZE, format, value);
      if (g_ascii_strtod (text, NULL) == value)
        break;
    }
  if (strcspn (text, ".einf") == strlen (text))
    strcat (text, ".0");
  return text;
}
