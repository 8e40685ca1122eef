/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "nn/gtorch-field-private.h"
#include "base/gtorch-property-private.h"

#include "device/gtorch-device.h"
#include "nn/gtorch-layer-enums.h"
#include "nn/gtorch-module-members.h"

static G_DEFINE_QUARK (gtorch - field, field)

    static const GTorchField *find_field (GParamSpec *pspec)
{
  return g_param_spec_get_qdata (g_param_spec_get_redirect_target (pspec) != NULL
                                     ? g_param_spec_get_redirect_target (pspec)
                                     : pspec,
                                 field_quark ());
}

/* Returns the tensor that determines the device and dtype of a module. */
static GTorchTensor *
first_tensor (GTorchModule *module)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (module);
  GArray *members[] = { priv->parameters, priv->buffers };

  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    for (guint j = 0; j < members[i]->len; j++)
      if (g_array_index (members[i], GTorchMember, j).tensor != NULL)
        return g_array_index (members[i], GTorchMember, j).tensor;
  return NULL;
}

static void
get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  const GTorchField *field = find_field (pspec);
  GTorchTensor *tensor;
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
    case GTORCH_FIELD_ENUM:
      g_value_set_enum (value, *(const gint *) place);
      break;
    case GTORCH_FIELD_PARAMETER:
      g_value_set_object (value,
                          gtorch_module_nth_parameter (GTORCH_MODULE (object), field->offset));
      break;
    case GTORCH_FIELD_BUFFER:
      g_value_set_object (value, gtorch_module_nth_buffer (GTORCH_MODULE (object), field->offset));
      break;
    case GTORCH_FIELD_SIZE:
      g_value_set_boxed (value, *(GTorchSize *const *) place);
      break;
    case GTORCH_FIELD_DEVICE:
      tensor = first_tensor (GTORCH_MODULE (object));
      g_value_set_object (value, tensor != NULL ? gtorch_tensor_get_device (tensor)
                                                : *(GTorchDevice *const *) place);
      break;
    case GTORCH_FIELD_DTYPE:
      tensor = first_tensor (GTORCH_MODULE (object));
      g_value_set_enum (value,
                        tensor != NULL ? gtorch_tensor_get_dtype (tensor) : *(const guint *) place);
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
      changed = gtorch_property_set_double (place, g_value_get_double (value));
      break;
    case GTORCH_FIELD_BOOL:
      SET (gboolean, boolean);
      break;
    case GTORCH_FIELD_ENUM:
      SET (gint, enum);
      break;
    case GTORCH_FIELD_BUFFER:
      changed = set_buffer (object, field, g_value_get_object (value));
      break;
    case GTORCH_FIELD_SIZE: /* set at construction only */
      g_clear_pointer ((GTorchSize **) place, gtorch_size_unref);
      *(GTorchSize **) place = g_value_dup_boxed (value);
      break;
    case GTORCH_FIELD_DEVICE:
      g_set_object ((GObject **) place, g_value_get_object (value));
      break;
    case GTORCH_FIELD_DTYPE:
      SET (gint, enum);
      break;
    case GTORCH_FIELD_PARAMETER:
      break;
    }
#undef SET
  if (changed && field->is_mutable)
    g_object_notify_by_pspec (object, pspec);
}

static GParamSpec *
make_spec (const GTorchField *field)
{
  /* numbers are not restricted: the function that uses an invalid one fails; unknown enum values are
   * refused */
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
    case GTORCH_FIELD_ENUM:
      return g_param_spec_enum (field->name, NULL, NULL, field->type (), (gint) field->value,
                                flags & ~G_PARAM_LAX_VALIDATION);
    case GTORCH_FIELD_PARAMETER:
      return g_param_spec_object (field->name, NULL, NULL, GTORCH_TYPE_PARAMETER,
                                  G_PARAM_STATIC_STRINGS | G_PARAM_READABLE);
    case GTORCH_FIELD_SIZE:
      return g_param_spec_boxed (field->name, NULL, NULL, GTORCH_TYPE_SIZE, flags);
    case GTORCH_FIELD_DEVICE:
      return g_param_spec_object (field->name, NULL, NULL, GTORCH_TYPE_DEVICE, flags);
    case GTORCH_FIELD_DTYPE:
      return g_param_spec_enum (field->name, NULL, NULL, GTORCH_TYPE_DTYPE, GTORCH_DTYPE_NONE,
                                flags & ~G_PARAM_LAX_VALIDATION);
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

void
gtorch_fields_clear (gpointer object, const GTorchField *fields, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      gpointer place = (char *) object + fields[i].offset;

      if (fields[i].kind == GTORCH_FIELD_SIZE)
        g_clear_pointer ((GTorchSize **) place, gtorch_size_unref);
      else if (fields[i].kind == GTORCH_FIELD_DEVICE)
        g_clear_object ((GObject **) place);
    }
}

/* Returns TRUE if the field has its default value. */
static gboolean
is_default (const GTorchField *field, gconstpointer place)
{
  GTorchSize *size;
  const gint64 *values;
  gsize n;

  switch (field->kind)
    {
    case GTORCH_FIELD_INT:
      return *(const gint64 *) place == (gint64) field->value;
    case GTORCH_FIELD_DOUBLE:
      return *(const gdouble *) place == field->value;
    case GTORCH_FIELD_BOOL:
      return (*(const gboolean *) place != FALSE) == (field->value != 0);
    case GTORCH_FIELD_ENUM:
      return *(const gint *) place == (gint) field->value;
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

static void
append_value (GString *text, const GTorchField *field, gconstpointer place)
{
  g_autoptr (GTypeClass) klass = NULL;
  GTorchSize *size;
  const gint64 *values;
  gsize n;

  switch (field->kind)
    {
    case GTORCH_FIELD_INT:
      if (field->is_optional && *(const gint64 *) place == GTORCH_NONE)
        g_string_append (text, "None");
      else
        g_string_append_printf (text, "%" G_GINT64_FORMAT, *(const gint64 *) place);
      break;
    case GTORCH_FIELD_DOUBLE:
      g_string_append (text, field->is_optional && isnan (*(const gdouble *) place)
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
    case GTORCH_FIELD_SIZE:
      size = *(GTorchSize *const *) place;
      values = size != NULL ? gtorch_size_get_values (size, &n) : NULL;
      if (values != NULL && n == 1 && field->length > 0) /* in the form in which it was given */
        g_string_append_printf (text, "%" G_GINT64_FORMAT, values[0]);
      else if (values != NULL)
        {
          g_autofree gchar *tuple = gtorch_tuple_str (values, (guint) n);

          g_string_append (text, tuple);
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

          /* has-bias is PyTorch's bias, padding-rule is its padding if given as a string */
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
  /* Static TLS is scarce in libraries that are opened with dlopen (). */
  static GPrivate ring = G_PRIVATE_INIT (g_free);
  const gsize size = G_ASCII_DTOSTR_BUF_SIZE + 2;
  gchar *texts = g_private_get (&ring);
  gchar *text;
  guint digits;

  if (texts == NULL)
    {
      texts = g_malloc0 (4 * size + 1); /* the last byte is the index of the next */
      g_private_set (&ring, texts);
    }
  text = texts + (gsize) (texts[4 * size]++ & 3) * size;
  for (digits = 1; digits <= 17; digits++) /* finds the shortest text that reads back exactly */
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
