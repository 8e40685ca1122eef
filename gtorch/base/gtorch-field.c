/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-field-private.h"

#include "base/gtorch-property-private.h"
#include "base/gtorch-size.h"

#include <math.h>

/* All rows of all tables that were installed, by the number of the property, which is one of its own in the
 * whole library: looking there costs next to nothing. All classes together have about 230. A class does not
 * inherit the functions below (GObject sees to that), so they are asked for these properties alone. */
#define MAX_ROWS 4096

static const GTorchField *rows[MAX_ROWS];
static gint n_rows = 1; /* no property has the number 0 */

/* --- reading --- */

static void
get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  const GTorchField *field = rows[prop_id];
  gconstpointer place;

#define GET(Value) \
  (field->get != NULL ? ((Value (*) (gpointer)) field->get) (object) : *(const Value *) place)
#define GIVE(what, pointer)                 \
  G_STMT_START                              \
  {                                         \
    if (field->is_full)                     \
      g_value_take_##what (value, pointer); \
    else                                    \
      g_value_set_##what (value, pointer);  \
  }                                         \
  G_STMT_END

  if (field->get_value != NULL)
    {
      field->get_value (object, field, value);
      return;
    }
  place = G_STRUCT_MEMBER_P (object, field->offset);
  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      g_value_set_boolean (value, GET (gboolean));
      break;
    case GTORCH_FIELD_INT:
      g_value_set_int (value, GET (gint));
      break;
    case GTORCH_FIELD_UINT:
      g_value_set_uint (value, GET (guint));
      break;
    case GTORCH_FIELD_INT64:
      g_value_set_int64 (value, GET (gint64));
      break;
    case GTORCH_FIELD_UINT64:
      g_value_set_uint64 (value, GET (guint64));
      break;
    case GTORCH_FIELD_DOUBLE:
      g_value_set_double (value, GET (gdouble));
      break;
    case GTORCH_FIELD_ENUM:
      g_value_set_enum (value, GET (gint));
      break;
    case GTORCH_FIELD_FLAGS:
      g_value_set_flags (value, GET (guint));
      break;
    case GTORCH_FIELD_STRING:
      GIVE (string, GET (gpointer));
      break;
    case GTORCH_FIELD_OBJECT:
      GIVE (object, GET (gpointer));
      break;
    case GTORCH_FIELD_BOXED:
    case GTORCH_FIELD_SIZE:
      GIVE (boxed, GET (gpointer));
      break;
    }
#undef GET
#undef GIVE
}

/* --- writing --- */

/* A member that owns what it points to. Boxed values cannot be compared: each is another one. */
static gboolean
set_owned (GParamSpec *pspec, gpointer *place, const GValue *value)
{
  switch (G_TYPE_FUNDAMENTAL (pspec->value_type))
    {
    case G_TYPE_STRING:
      if (g_strcmp0 (*place, g_value_get_string (value)) == 0)
        return FALSE;
      g_free (*place);
      *place = g_value_dup_string (value);
      return TRUE;
    case G_TYPE_BOXED:
      if (*place == g_value_get_boxed (value))
        return FALSE;
      if (*place != NULL)
        g_boxed_free (pspec->value_type, *place);
      *place = g_value_dup_boxed (value);
      return TRUE;
    default:
      return g_set_object ((GObject **) place, g_value_get_object (value));
    }
}

/* Whether the member has changed. */
static gboolean
set_member (GObject *object, const GTorchField *field, GParamSpec *pspec, const GValue *value)
{
  gpointer place = G_STRUCT_MEMBER_P (object, field->offset);
  gboolean changed = FALSE;

#define SET(Value, what)                                      \
  G_STMT_START                                                \
  {                                                           \
    changed = *(Value *) place != g_value_get_##what (value); \
    *(Value *) place = g_value_get_##what (value);            \
  }                                                           \
  G_STMT_END

  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      SET (gboolean, boolean);
      break;
    case GTORCH_FIELD_INT:
      SET (gint, int);
      break;
    case GTORCH_FIELD_UINT:
      SET (guint, uint);
      break;
    case GTORCH_FIELD_INT64:
      SET (gint64, int64);
      break;
    case GTORCH_FIELD_UINT64:
      SET (guint64, uint64);
      break;
    case GTORCH_FIELD_DOUBLE:
      changed = gtorch_property_set_double (place, g_value_get_double (value));
      break;
    case GTORCH_FIELD_ENUM:
      SET (gint, enum);
      break;
    case GTORCH_FIELD_FLAGS:
      SET (guint, flags);
      break;
    case GTORCH_FIELD_STRING:
    case GTORCH_FIELD_OBJECT:
    case GTORCH_FIELD_BOXED:
    case GTORCH_FIELD_SIZE:
      changed = set_owned (pspec, place, value);
      break;
    }
#undef SET
  return changed;
}

static void
call_setter (GObject *object, const GTorchField *field, const GValue *value, GError **error)
{
#define CALL(Value, what)                                                              \
  G_STMT_START                                                                         \
  {                                                                                    \
    const Value given = g_value_get_##what (value);                                    \
                                                                                       \
    if (field->is_fallible)                                                            \
      ((gboolean (*) (gpointer, Value, GError **)) field->set) (object, given, error); \
    else                                                                               \
      ((void (*) (gpointer, Value)) field->set) (object, given);                       \
  }                                                                                    \
  G_STMT_END

  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      CALL (gboolean, boolean);
      break;
    case GTORCH_FIELD_INT:
      CALL (gint, int);
      break;
    case GTORCH_FIELD_UINT:
      CALL (guint, uint);
      break;
    case GTORCH_FIELD_INT64:
      CALL (gint64, int64);
      break;
    case GTORCH_FIELD_UINT64:
      CALL (guint64, uint64);
      break;
    case GTORCH_FIELD_DOUBLE:
      CALL (gdouble, double);
      break;
    case GTORCH_FIELD_ENUM:
      CALL (gint, enum);
      break;
    case GTORCH_FIELD_FLAGS:
      CALL (guint, flags);
      break;
    case GTORCH_FIELD_STRING:
      CALL (gconstpointer, string);
      break;
    case GTORCH_FIELD_OBJECT:
      CALL (gpointer, object);
      break;
    case GTORCH_FIELD_BOXED:
    case GTORCH_FIELD_SIZE:
      CALL (gpointer, boxed);
      break;
    }
#undef CALL
}

static void
set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  const GTorchField *field = rows[prop_id];
  GError *error = NULL;
  gboolean changed = FALSE;

  if (field->set_value != NULL)
    changed = field->set_value (object, field, value);
  else if (field->set != NULL)
    call_setter (object, field, value, &error);
  else
    changed = set_member (object, field, pspec, value);
  if (error != NULL)
    gtorch_property_refuse (object, pspec->name, error);
  if (changed && !(pspec->flags & G_PARAM_CONSTRUCT_ONLY))
    g_object_notify_by_pspec (object, pspec);
}

/* --- making --- */

static gboolean
has_range (const GTorchField *field)
{
  return field->low != field->high;
}

static GParamFlags
get_flags (const GTorchField *field)
{
  GParamFlags flags = field->flags;

  if (flags == 0)
    flags = field->set != NULL || field->set_value != NULL ? GTORCH_FIELD_SETTABLE
                                                           : GTORCH_FIELD_READABLE;
  /* Any number is kept, and what computes with it fails; a choice that there is not is refused. */
  if (flags & G_PARAM_WRITABLE && !has_range (field) && field->kind != GTORCH_FIELD_ENUM
      && field->kind != GTORCH_FIELD_FLAGS)
    flags |= G_PARAM_LAX_VALIDATION;
  return flags | G_PARAM_STATIC_STRINGS;
}

static GParamSpec *
make_spec (const GTorchField *field)
{
  const GParamFlags flags = get_flags (field);

/* The ends of the type where the number is none of the type. */
#define FIT(number, Type, least, most)      \
  ((number) <= (gdouble) (least)  ? (least) \
   : (number) >= (gdouble) (most) ? (most)  \
                                  : (Type) (number))
#define NUMBER(what, Type, least, most)                                                   \
  g_param_spec_##what (field->name, NULL, NULL,                                           \
                       has_range (field) ? FIT (field->low, Type, least, most) : (least), \
                       has_range (field) ? FIT (field->high, Type, least, most) : (most), \
                       FIT (field->value, Type, least, most), flags)

  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      return g_param_spec_boolean (field->name, NULL, NULL, field->value != 0, flags);
    case GTORCH_FIELD_INT:
      return NUMBER (int, gint, G_MININT, G_MAXINT);
    case GTORCH_FIELD_UINT:
      return NUMBER (uint, guint, 0u, G_MAXUINT);
    case GTORCH_FIELD_INT64:
      return NUMBER (int64, gint64, G_MININT64, G_MAXINT64);
    case GTORCH_FIELD_UINT64:
      return NUMBER (uint64, guint64, G_GUINT64_CONSTANT (0), G_MAXUINT64);
    case GTORCH_FIELD_DOUBLE:
      return g_param_spec_double (field->name, NULL, NULL,
                                  has_range (field) ? field->low : -INFINITY,
                                  has_range (field) ? field->high : INFINITY, field->value, flags);
    case GTORCH_FIELD_ENUM:
      return g_param_spec_enum (field->name, NULL, NULL, field->type (), (gint) field->value,
                                flags);
    case GTORCH_FIELD_FLAGS:
      return g_param_spec_flags (field->name, NULL, NULL, field->type (), (guint) field->value,
                                 flags);
    case GTORCH_FIELD_STRING:
      return g_param_spec_string (field->name, NULL, NULL, NULL, flags);
    case GTORCH_FIELD_OBJECT:
      return g_param_spec_object (field->name, NULL, NULL, field->type (), flags);
    case GTORCH_FIELD_BOXED:
      return g_param_spec_boxed (field->name, NULL, NULL, field->type (), flags);
    case GTORCH_FIELD_SIZE:
      return g_param_spec_boxed (field->name, NULL, NULL, GTORCH_TYPE_SIZE, flags);
    }
#undef FIT
#undef NUMBER
  g_assert_not_reached ();
}

void
gtorch_fields_install (GObjectClass *klass, const GTorchField *fields, guint n)
{
  const guint first = g_atomic_int_add (&n_rows, n);
  guint i;

  g_assert (first + n <= MAX_ROWS);
  klass->get_property = get_property;
  klass->set_property = set_property;
  for (i = 0; i < n; i++)
    {
      rows[first + i] = &fields[i];
      g_object_class_install_property (klass, first + i, make_spec (&fields[i]));
    }
}

void
gtorch_fields_clear (gpointer object, const GTorchField *fields, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      gpointer *place = G_STRUCT_MEMBER_P (object, fields[i].offset);

      if (!(fields[i].flags & G_PARAM_WRITABLE) || fields[i].set != NULL
          || fields[i].set_value != NULL)
        continue;
      if (fields[i].kind == GTORCH_FIELD_SIZE)
        g_clear_pointer ((GTorchSize **) place, gtorch_size_unref);
      else if (fields[i].kind == GTORCH_FIELD_OBJECT)
        g_clear_object (place);
      else if (fields[i].kind == GTORCH_FIELD_STRING)
        g_clear_pointer (place, g_free);
      else if (fields[i].kind == GTORCH_FIELD_BOXED && *place != NULL)
        g_boxed_free (fields[i].type (), g_steal_pointer (place));
    }
}
