/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tables of properties: each kind as a member of the instance and by functions of the class. */

#include "config.h"

#include <gio/gio.h>
#include <math.h>

#include <gtorch/gtorch.h>

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/base/gtorch-property-private.h>

typedef struct
{
  gboolean on;
  gint number;
  guint count;
  gint64 position;
  guint64 bytes;
  gdouble ratio;
  gint type;
  guint flags;
  gchar *text;
  GObject *object;
  GDateTime *date;
  GTorchSize *size;
} Values;

/* What is set by functions has changed `n_calls` times. */
typedef struct
{
  GObject parent_instance;
  Values kept, computed;
  guint n_calls;
} TestFields;

typedef struct
{
  GObjectClass parent_class;
} TestFieldsClass;

typedef TestFields Self;

GType test_fields_get_type (void);
G_DEFINE_TYPE (TestFields, test_fields, G_TYPE_OBJECT)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TestFields, g_object_unref)

#define NUMBER(Value, name, property)                                  \
  static Value get_##name (Self *self) { return self->computed.name; } \
                                                                       \
  static void set_##name (Self *self, Value value)                     \
  {                                                                    \
    self->n_calls++;                                                   \
    if (self->computed.name == value)                                  \
      return;                                                          \
    self->computed.name = value;                                       \
    g_object_notify (G_OBJECT (self), property);                       \
  }

NUMBER (gboolean, on, "computed-on")
NUMBER (gint, number, "computed-number")
NUMBER (guint, count, "computed-count")
NUMBER (gint64, position, "computed-position")
NUMBER (guint64, bytes, "computed-bytes")
NUMBER (GTorchDeviceType, type, "computed-type")
NUMBER (GTorchEventFlags, flags, "computed-flags")

static gdouble
get_ratio (Self *self)
{
  return self->computed.ratio;
}

/* Half of them are refused. */
static gboolean
set_ratio (Self *self, gdouble ratio, GError **error)
{
  self->n_calls++;
  if (ratio < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "sample: the ratio %g is below 0",
                   ratio);
      return FALSE;
    }
  if (gtorch_property_set_double (&self->computed.ratio, ratio))
    g_object_notify (G_OBJECT (self), "computed-ratio");
  return TRUE;
}

static const gchar *
get_text (Self *self)
{
  return self->computed.text;
}

static void
set_text (Self *self, const gchar *text)
{
  self->n_calls++;
  if (g_strcmp0 (self->computed.text, text) == 0)
    return;
  g_free (self->computed.text);
  self->computed.text = g_strdup (text);
  g_object_notify (G_OBJECT (self), "computed-text");
}

/* The caller's. */
static GObject *
get_object (Self *self)
{
  return self->computed.object != NULL ? g_object_ref (self->computed.object) : NULL;
}

static gboolean
set_object (Self *self, GObject *object, GError **error)
{
  self->n_calls++;
  if (g_set_object (&self->computed.object, object))
    g_object_notify (G_OBJECT (self), "computed-object");
  return TRUE;
}

static GDateTime *
get_date (Self *self)
{
  return self->computed.date;
}

static void
set_date (Self *self, GDateTime *date)
{
  self->n_calls++;
  g_clear_pointer (&self->computed.date, g_date_time_unref);
  self->computed.date = date != NULL ? g_date_time_ref (date) : NULL;
  g_object_notify (G_OBJECT (self), "computed-date");
}

static void
get_answer (gpointer object, const GTorchField *field, GValue *value)
{
  g_value_set_int (value, (gint) field->offset + ((Self *) object)->computed.number);
}

static gboolean
set_answer (gpointer object, const GTorchField *field, const GValue *value)
{
  gint *place = &((Self *) object)->computed.number;
  const gint former = *place;

  *place = g_value_get_int (value) - (gint) field->offset;
  return *place != former;
}

#define KEPT(name) GTORCH_FIELD (Self, kept.name)

static const GTorchField members[] = {
  { "on", GTORCH_FIELD_BOOL, KEPT (on), TRUE, .flags = GTORCH_FIELD_SETTING },
  { "number", GTORCH_FIELD_INT, KEPT (number), -7, .flags = GTORCH_FIELD_SETTING },
  { "count", GTORCH_FIELD_UINT, KEPT (count), 7, .flags = GTORCH_FIELD_SETTING },
  { "position", GTORCH_FIELD_INT64, KEPT (position), -0x1p40, .flags = GTORCH_FIELD_SETTING },
  { "bytes", GTORCH_FIELD_UINT64, KEPT (bytes), INFINITY, .flags = GTORCH_FIELD_SETTING },
  { "ratio", GTORCH_FIELD_DOUBLE, KEPT (ratio), 0.5, .flags = GTORCH_FIELD_SETTING },
  { "type", GTORCH_FIELD_ENUM, KEPT (type), GTORCH_DEVICE_TYPE_CUDA,
    .type = gtorch_device_type_get_type, .flags = GTORCH_FIELD_SETTING },
  { "flags", GTORCH_FIELD_FLAGS, KEPT (flags), GTORCH_EVENT_BLOCKING,
    .type = gtorch_event_flags_get_type, .flags = GTORCH_FIELD_SETTING },
  { "text", GTORCH_FIELD_STRING, KEPT (text), .flags = GTORCH_FIELD_SETTING },
  { "object", GTORCH_FIELD_OBJECT, KEPT (object), .type = g_object_get_type,
    .flags = GTORCH_FIELD_SETTING },
  { "date", GTORCH_FIELD_BOXED, KEPT (date), .type = g_date_time_get_type,
    .flags = GTORCH_FIELD_SETTING },
  { "size", GTORCH_FIELD_SIZE, KEPT (size), .flags = GTORCH_FIELD_FIXED },
};

static const GTorchField functions[] = {
  { "computed-on", GTORCH_PROPERTY_BOOL (get_on, set_on), .value = TRUE },
  { "computed-number", GTORCH_PROPERTY_INT (get_number, set_number), .low = -10, .high = 10 },
  { "computed-count", GTORCH_PROPERTY_UINT (get_count, set_count), .low = 1, .high = INFINITY,
    .value = INFINITY },
  { "computed-position", GTORCH_PROPERTY_INT64 (get_position, set_position), .low = -INFINITY,
    .high = 0x1p62 },
  { "computed-bytes", GTORCH_PROPERTY_UINT64 (get_bytes, set_bytes), .low = 5, .high = INFINITY,
    .value = 5 },
  { "computed-ratio", GTORCH_PROPERTY_DOUBLE (get_ratio, set_ratio) },
  { "computed-type",
    GTORCH_PROPERTY_ENUM (GTorchDeviceType, gtorch_device_type_get_type, get_type, set_type) },
  { "computed-flags",
    GTORCH_PROPERTY_FLAGS (GTorchEventFlags, gtorch_event_flags_get_type, get_flags, set_flags) },
  { "computed-text", GTORCH_PROPERTY_STRING (get_text, set_text) },
  { "computed-object", GTORCH_PROPERTY_OBJECT (GObject, g_object_get_type, get_object, set_object),
    .is_full = TRUE },
  { "computed-date", GTORCH_PROPERTY_BOXED (GDateTime, g_date_time_get_type, get_date, set_date) },
  { "read-ratio", GTORCH_PROPERTY_DOUBLE (get_ratio, NULL), .low = 0, .high = 1 },
  { "answer", GTORCH_FIELD_INT, 42, .get_value = get_answer, .set_value = set_answer },
};

static void
test_fields_finalize (GObject *object)
{
  Self *self = (Self *) object;

  gtorch_fields_clear (object, members, G_N_ELEMENTS (members));
  gtorch_fields_clear (object, functions, G_N_ELEMENTS (functions)); /* owns nothing */
  g_free (self->computed.text);
  g_clear_object (&self->computed.object);
  g_clear_pointer (&self->computed.date, g_date_time_unref);
  G_OBJECT_CLASS (test_fields_parent_class)->finalize (object);
}

static void
test_fields_class_init (TestFieldsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_fields_finalize;
  GTORCH_FIELDS (klass, members);
  GTORCH_FIELDS (klass, functions);
}

static void
test_fields_init (Self *self)
{
}

static Self *
sample_new (void)
{
  return g_object_new (test_fields_get_type (), NULL);
}

/* --- */

static guint n_logged;
static gchar *last_logged;

static void
keep_log (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  n_logged++;
  g_free (last_logged);
  last_logged = g_strdup (message);
}

static void
assert_logged (const gchar *pattern)
{
  g_assert_cmpuint (n_logged, ==, 1);
  g_test_message ("%s", last_logged);
  g_assert_true (g_pattern_match_simple (pattern, last_logged));
  n_logged = 0;
}

static GParamSpec *
find (const gchar *name)
{
  g_autoptr (GTypeClass) klass = g_type_class_ref (test_fields_get_type ());

  return g_object_class_find_property (G_OBJECT_CLASS (klass), name);
}

static void
tables_are_in_their_order (void)
{
  g_autoptr (GTypeClass) klass = g_type_class_ref (test_fields_get_type ());
  g_autofree GParamSpec **specs = NULL;
  guint n, i;

  specs = g_object_class_list_properties (G_OBJECT_CLASS (klass), &n);
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (members) + G_N_ELEMENTS (functions));
  for (i = 0; i < n; i++)
    g_assert_cmpstr (specs[i]->name, ==,
                     i < G_N_ELEMENTS (members) ? members[i].name
                                                : functions[i - G_N_ELEMENTS (members)].name);
}

static void
flags_follow_from_the_row (void)
{
  const GParamFlags usual = G_PARAM_STATIC_STRINGS;
  const GParamFlags settable = usual | G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY;
  static const gchar *const choices[] = { "type", "flags" };
  guint i;

  g_assert_cmphex (find ("number")->flags, ==,
                   settable | G_PARAM_CONSTRUCT | G_PARAM_LAX_VALIDATION);
  g_assert_cmphex (find ("size")->flags, ==,
                   usual | G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_LAX_VALIDATION);
  g_assert_cmphex (find ("computed-on")->flags, ==, settable | G_PARAM_LAX_VALIDATION);
  g_assert_cmphex (find ("computed-number")->flags, ==, settable); /* it has a range */
  g_assert_cmphex (find ("read-ratio")->flags, ==, usual | G_PARAM_READABLE);
  g_assert_cmphex (find ("answer")->flags, ==, settable | G_PARAM_LAX_VALIDATION);
  for (i = 0; i < G_N_ELEMENTS (choices); i++)
    g_assert_cmphex (find (choices[i])->flags, ==, settable | G_PARAM_CONSTRUCT);
}

static void
ranges_end_with_the_type (void)
{
  g_assert_cmpint (G_PARAM_SPEC_INT (find ("number"))->minimum, ==, G_MININT);
  g_assert_cmpint (G_PARAM_SPEC_INT (find ("number"))->maximum, ==, G_MAXINT);
  g_assert_cmpint (G_PARAM_SPEC_INT (find ("computed-number"))->minimum, ==, -10);
  g_assert_cmpint (G_PARAM_SPEC_INT (find ("computed-number"))->maximum, ==, 10);
  g_assert_cmpuint (G_PARAM_SPEC_UINT (find ("count"))->maximum, ==, G_MAXUINT);
  g_assert_cmpuint (G_PARAM_SPEC_UINT (find ("computed-count"))->minimum, ==, 1);
  g_assert_cmpuint (G_PARAM_SPEC_UINT (find ("computed-count"))->maximum, ==, G_MAXUINT);
  g_assert_cmpuint (G_PARAM_SPEC_UINT (find ("computed-count"))->default_value, ==, G_MAXUINT);
  g_assert_cmpint (G_PARAM_SPEC_INT64 (find ("position"))->minimum, ==, G_MININT64);
  g_assert_cmpint (G_PARAM_SPEC_INT64 (find ("position"))->maximum, ==, G_MAXINT64);
  g_assert_cmpint (G_PARAM_SPEC_INT64 (find ("computed-position"))->minimum, ==, G_MININT64);
  g_assert_cmpint (G_PARAM_SPEC_INT64 (find ("computed-position"))->maximum, ==,
                   G_GINT64_CONSTANT (1) << 62);
  g_assert_cmpuint (G_PARAM_SPEC_UINT64 (find ("computed-bytes"))->minimum, ==, 5);
  g_assert_cmpuint (G_PARAM_SPEC_UINT64 (find ("computed-bytes"))->maximum, ==, G_MAXUINT64);
  g_assert_true (G_PARAM_SPEC_DOUBLE (find ("ratio"))->minimum == -INFINITY);
  g_assert_true (G_PARAM_SPEC_DOUBLE (find ("ratio"))->maximum == INFINITY);
  g_assert_true (G_PARAM_SPEC_DOUBLE (find ("read-ratio"))->maximum == 1);
}

static void
members_begin_with_their_defaults (void)
{
  g_autoptr (TestFields) self = sample_new ();

  g_assert_true (self->kept.on);
  g_assert_cmpint (self->kept.number, ==, -7);
  g_assert_cmpuint (self->kept.count, ==, 7);
  g_assert_cmpint (self->kept.position, ==, -(G_GINT64_CONSTANT (1) << 40));
  g_assert_cmpuint (self->kept.bytes, ==, G_MAXUINT64);
  g_assert_cmpfloat (self->kept.ratio, ==, 0.5);
  g_assert_cmpint (self->kept.type, ==, GTORCH_DEVICE_TYPE_CUDA);
  g_assert_cmpuint (self->kept.flags, ==, GTORCH_EVENT_BLOCKING);
  g_assert_null (self->kept.text);
  g_assert_null (self->kept.size);
  g_assert_cmpuint (self->n_calls, ==, 0);
}

static void
count_call (GObject *object, GParamSpec *pspec, gpointer count)
{
  (*(guint *) count)++;
}

/* The m-th value of the property, each another one than the one before. */
static void
nth_value (GParamSpec *pspec, guint m, GValue *value)
{
  g_value_init (value, pspec->value_type);
  switch (G_TYPE_FUNDAMENTAL (pspec->value_type))
    {
    case G_TYPE_BOOLEAN:
      g_value_set_boolean (value, m % 2 == 0);
      break;
    case G_TYPE_INT:
      g_value_set_int (value, 3 - (gint) m);
      break;
    case G_TYPE_UINT:
      g_value_set_uint (value, G_MAXUINT - 3 + m);
      break;
    case G_TYPE_INT64:
      g_value_set_int64 (value, m - (G_GINT64_CONSTANT (1) << 50));
      break;
    case G_TYPE_UINT64:
      g_value_set_uint64 (value, G_MAXUINT64 - 9 + m);
      break;
    case G_TYPE_DOUBLE:
      g_value_set_double (value, m == 1 ? NAN : m + 0.25);
      break;
    case G_TYPE_ENUM:
      g_value_set_enum (value, m % 2 == 0 ? GTORCH_DEVICE_TYPE_CPU : GTORCH_DEVICE_TYPE_CUDA);
      break;
    case G_TYPE_FLAGS:
      g_value_set_flags (value, m % 2 == 0 ? GTORCH_EVENT_TIMING : GTORCH_EVENT_NONE);
      break;
    case G_TYPE_STRING:
      g_value_take_string (value, m == 2 ? NULL : g_strdup_printf ("%u", m));
      break;
    case G_TYPE_OBJECT:
      g_value_take_object (value, m == 2 ? NULL : g_object_new (G_TYPE_OBJECT, NULL));
      break;
    case G_TYPE_BOXED:
      g_value_take_boxed (value, g_date_time_new_from_unix_utc (m));
      break;
    default:
      g_assert_not_reached ();
    }
}

static gboolean
are_equal (GParamSpec *pspec, const GValue *a, const GValue *b)
{
  if (G_VALUE_HOLDS_DOUBLE (a) && isnan (g_value_get_double (a)))
    return isnan (g_value_get_double (b));
  if (G_VALUE_HOLDS (a, G_TYPE_DATE_TIME)) /* a copy, which is another reference */
    return g_date_time_equal (g_value_get_boxed (a), g_value_get_boxed (b));
  return g_param_values_cmp (pspec, a, b) == 0;
}

/* Each value is read as it was written, and notified once; the same again is not notified. */
static void
values_come_back (void)
{
  g_autoptr (GTypeClass) klass = g_type_class_ref (test_fields_get_type ());
  g_autoptr (TestFields) self = sample_new ();
  g_autofree GParamSpec **specs = NULL;
  guint n, i, m, n_written = 0;

  specs = g_object_class_list_properties (G_OBJECT_CLASS (klass), &n);
  for (i = 0; i < n; i++)
    {
      g_autofree gchar *signal = g_strconcat ("notify::", specs[i]->name, NULL);
      guint count = 0;

      if (!(specs[i]->flags & G_PARAM_WRITABLE) || specs[i]->flags & G_PARAM_CONSTRUCT_ONLY)
        continue;
      g_signal_connect (self, signal, G_CALLBACK (count_call), &count);
      for (m = 0; m < 4; m++, n_written++)
        {
          g_auto (GValue) value = G_VALUE_INIT, now = G_VALUE_INIT;
          /* a computed date is another object each time it is read */
          const gboolean is_new = g_str_equal (specs[i]->name, "computed-date");

          nth_value (specs[i], m, &value);
          g_object_set_property (G_OBJECT (self), specs[i]->name, &value);
          g_value_init (&now, specs[i]->value_type);
          g_object_get_property (G_OBJECT (self), specs[i]->name, &now);
          g_test_message ("%s, value %u", specs[i]->name, m);
          g_assert_true (are_equal (specs[i], &value, &now));
          if (m == 0)
            count = 1; /* the first may be what it was */
          g_assert_cmpuint (count, ==, m + 1);
          g_object_set_property (G_OBJECT (self), specs[i]->name, &now);
          g_assert_cmpuint (count, ==, m + 1 + is_new);
          count = m + 1;
        }
      g_signal_handlers_disconnect_by_func (self, count_call, &count);
    }
  g_assert_cmpuint (n_written, ==, 4 * 23);
}

static void
what_is_fixed_is_set_once (void)
{
  g_autoptr (GTorchSize) size = gtorch_size_new ((const gint64[]){ 2, 3 }, 2);
  g_autoptr (TestFields) self = g_object_new (test_fields_get_type (), "size", size, NULL);
  g_autoptr (GTorchSize) now = NULL;

  g_object_get (self, "size", &now, NULL);
  g_assert_cmpuint (gtorch_size_get_length (now), ==, 2);
  g_object_set (self, "size", NULL, NULL);
  assert_logged ("*can't be set after construction*");
  g_assert_nonnull (self->kept.size);
}

/* What a setter refuses is said, and nothing changes; a range is GObject's. */
static void
what_is_refused_stays (void)
{
  g_autoptr (TestFields) self = sample_new ();
  guint count = 0;

  g_object_set (self, "computed-ratio", 2.0, "computed-number", 4, NULL);
  g_signal_connect (self, "notify", G_CALLBACK (count_call), &count);
  g_object_set (self, "computed-ratio", -1.0, NULL);
  assert_logged ("TestFields:computed-ratio stays as it was: sample: the ratio -1 is "
                 "below 0");
  g_object_set (self, "computed-number", 11, NULL);
  assert_logged ("*computed-number*");
  g_object_set (self, "read-ratio", 0.5, NULL);
  assert_logged ("*not writable*");
  g_assert_cmpfloat (self->computed.ratio, ==, 2);
  g_assert_cmpint (self->computed.number, ==, 4);
  g_assert_cmpuint (count, ==, 0);
}

/* A truth value of C is any number but 0. */
static void
truth_is_any_number (void)
{
  g_autoptr (TestFields) self = sample_new ();

  g_object_set (self, "on", FALSE, "computed-on", FALSE, NULL);
  g_object_set (self, "on", 4, "computed-on", 4, NULL);
  g_assert_cmpint (self->kept.on, ==, TRUE);
  g_assert_cmpint (self->computed.on, ==, TRUE);
}

static void
members_are_released (void)
{
  g_autoptr (GObject) object = g_object_new (G_TYPE_OBJECT, NULL);
  g_autoptr (GDateTime) date = g_date_time_new_now_utc ();
  g_autoptr (GTorchSize) size = gtorch_size_new ((const gint64[]){ 2, 3 }, 2);
  TestFields *self =
      g_object_new (test_fields_get_type (), "size", size, "object", object, "date", date, "text",
                    "text", "computed-object", object, "computed-date", date, NULL);
  gpointer weak = object;
  GObject *read;

  g_object_get (self, "computed-object", &read, NULL); /* which is the caller's twice over */
  g_assert_true (read == object);
  g_object_unref (read);
  g_object_add_weak_pointer (object, &weak);
  g_object_unref (self);
  g_clear_object (&object);
  g_assert_null (weak);
}

int
main (int argc, char *argv[])
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  /* GObject's releases log what they refuse at one level or another. */
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  g_log_set_default_handler (keep_log, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Field/" #name, name)
  ADD (tables_are_in_their_order);
  ADD (flags_follow_from_the_row);
  ADD (ranges_end_with_the_type);
  ADD (members_begin_with_their_defaults);
  ADD (values_come_back);
  ADD (what_is_fixed_is_set_once);
  ADD (what_is_refused_stays);
  ADD (truth_is_any_number);
  ADD (members_are_released);
  result = g_test_run ();
  g_free (last_logged);
  return result;
}
