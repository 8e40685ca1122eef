/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The members of a module as PyTorch writes them. */

#include "config.h"

#include "nn/gtorch-field-text-private.h"

#include <string.h>

#include "base/gtorch-factors.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-size.h"
#include "nn/gtorch-layer-enums.h"

/* Has the field the value that it gets when nothing is said? */
static gboolean
is_default (const GTorchField *field, gconstpointer place)
{
  GTorchSize *size;
  const gint64 *values;
  gsize n;

  switch (field->kind)
    {
    case GTORCH_FIELD_INT64:
      return *(const gint64 *) place == (gint64) field->value;
    case GTORCH_FIELD_DOUBLE:
      return *(const gdouble *) place == field->value;
    case GTORCH_FIELD_BOOL:
      return (*(const gboolean *) place != FALSE) == (field->value != 0);
    case GTORCH_FIELD_ENUM:
      return *(const gint *) place == (gint) field->value;
    case GTORCH_FIELD_BOXED:
      return *(GTorchFactors *const *) place == NULL;
    case GTORCH_FIELD_SIZE:
      size = *(GTorchSize *const *) place;
      if (size == NULL)
        return TRUE;
      values = gtorch_size_get_values (size, &n);
      for (gsize i = 0; i < n; i++)
        if (values[i] != (gint64) field->value)
          return FALSE;
      return TRUE;
    default:
      return TRUE;
    }
}

/* A number of a size that is none is not there in other languages. */
static void
append_number (GString *text, gint64 value)
{
  if (value == GTORCH_NONE)
    g_string_append (text, "None");
  else
    g_string_append_printf (text, "%" G_GINT64_FORMAT, value);
}

static void
append_factors (GString *text, GTorchFactors *factors)
{
  const gdouble *values;
  gsize n;

  if (factors == NULL)
    {
      g_string_append (text, "None");
      return;
    }
  values = gtorch_factors_get_values (factors, &n);
  g_string_append (text, n == 1 ? "" : "(");
  for (gsize i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", gtorch_double_str (values[i]));
  g_string_append (text, n == 1 ? "" : ")");
}

static void
append_value (GString *text, const GTorchField *field, gconstpointer place)
{
  g_autoptr (GTypeClass) klass = NULL;
  GTorchSize *size;
  const gint64 *values;
  gsize n;

  switch (field->kind)
    {
    case GTORCH_FIELD_INT64:
      if (field->is_optional && *(const gint64 *) place == GTORCH_NONE)
        g_string_append (text, "None");
      else
        g_string_append_printf (text, "%" G_GINT64_FORMAT, *(const gint64 *) place);
      break;
    case GTORCH_FIELD_DOUBLE:
      g_string_append (text, field->is_optional && gtorch_is_none_double (*(const gdouble *) place)
                                 ? "None"
                                 : gtorch_double_str (*(const gdouble *) place));
      break;
    case GTORCH_FIELD_BOOL:
      g_string_append (text, GTORCH_BOOL_STR (*(const gboolean *) place));
      break;
    case GTORCH_FIELD_ENUM:
      klass = g_type_class_ref (field->type ());
      g_string_append (text, g_enum_get_value (G_ENUM_CLASS (klass), *(const gint *) place) != NULL
                                 ? g_enum_get_value (G_ENUM_CLASS (klass), *(const gint *) place)
                                       ->value_nick
                                 : "?");
      break;
    case GTORCH_FIELD_BOXED: /* a layer has no others */
      append_factors (text, *(GTorchFactors *const *) place);
      break;
    case GTORCH_FIELD_SIZE:
      size = *(GTorchSize *const *) place;
      values = size != NULL ? gtorch_size_get_values (size, &n) : NULL;
      if (values != NULL && n == 1 && field->length > 0) /* as it was given */
        append_number (text, values[0]);
      else if (values != NULL)
        {
          g_string_append_c (text, '(');
          for (gsize i = 0; i < n; i++)
            {
              append_number (text, values[i]);
              g_string_append (text, i + 1 < n ? ", " : n == 1 ? "," : "");
            }
          g_string_append_c (text, ')');
        }
      else
        g_string_append (text, "None");
      break;
    default:
      break;
    }
}

gchar *
gtorch_fields_str (gpointer object, const GTorchField *fields, guint n)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    {
      const GTorchField *field = &fields[i];
      gconstpointer place = (const char *) object + field->offset;
      const gchar *quote = field->text == GTORCH_FIELD_QUOTED ? "'" : "";

      if (field->text == GTORCH_FIELD_HIDDEN
          || (field->text == GTORCH_FIELD_CHANGED && is_default (field, place)))
        continue;
      if (text->len > 0)
        g_string_append (text, ", ");
      if (field->text != GTORCH_FIELD_BARE)
        {
          g_autofree gchar *name = g_strdelimit (g_strdup (field->name), "-", '_');

          /* has-bias is PyTorch's bias, padding-rule its padding as a text */
          if (g_str_has_suffix (name, "_rule"))
            name[strlen (name) - strlen ("_rule")] = '\0';
          g_string_append_printf (text, "%s=", name + (g_str_has_prefix (name, "has_") ? 4 : 0));
        }
      g_string_append (text, quote);
      append_value (text, field, place);
      g_string_append (text, quote);
    }
  return g_string_free (text, FALSE);
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
  /* %g writes an exponent already where a number ends in zeros; Python, which this imitates, from 1e16 on */
  if (strchr (text, 'e') != NULL && fabs (value) >= 1 && fabs (value) < 1e16)
    g_ascii_formatd (text, G_ASCII_DTOSTR_BUF_SIZE, "%.0f", value);
  if (strcspn (text, ".einf") == strlen (text))
    strcat (text, ".0");
  return text;
}
