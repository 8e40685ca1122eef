/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every property of every class that the functions of the headers know. It is read without a word, and has
 * the value that its function in C gives. What is writable is given numbers, choices and texts that its type
 * has, and its default. A property has no place for an error. Either it keeps what it is given, logs nothing,
 * and the object works or says in a later call what is wrong; or it stays as it was, and a warning names it.
 * It notifies once where its value has changed, and not where it has not. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "refuse.h"

static const gdouble real[] = { NAN,    INFINITY, -INFINITY, G_MAXDOUBLE, -G_MAXDOUBLE,
                                4e-320, 0.0,      -1.0,      1.0,         1e19 };
/* None is a size that a machine could allocate but would take long to fill. */
static const gint64 whole[] = { G_MININT64, -1, 0, 1, 7, (G_GINT64_CONSTANT (1) << 46) + 1,
                                G_MAXINT64 };
static const gint few[G_N_ELEMENTS (whole)] = { G_MININT, -1, 0, 1, 7, 9999, G_MAXINT };
static const gchar *const texts[] = { NULL, "", " ", "%s%n", "\xff\xfe", "a\nb" };

static guint n_values, n_kept, n_refused, n_watched, n_read, n_compared;

/* --- values --- */

/* Returns the m-th value of the property. Returns FALSE if there are no more. */
static gboolean
nth_value (GParamSpec *pspec, guint m, GValue *value)
{
  const GType type = G_TYPE_FUNDAMENTAL (pspec->value_type);

  g_value_init (value, pspec->value_type);
  switch (type)
    {
    case G_TYPE_DOUBLE:
      if (m < G_N_ELEMENTS (real))
        g_value_set_double (value, real[m]);
      return m < G_N_ELEMENTS (real);
    case G_TYPE_STRING:
      if (m < G_N_ELEMENTS (texts))
        g_value_set_static_string (value, texts[m]);
      return m < G_N_ELEMENTS (texts);
    case G_TYPE_BOOLEAN:
      g_value_set_boolean (value, m == 1);
      return m < 2;
    case G_TYPE_OBJECT:
    case G_TYPE_INTERFACE:
      return m == 0; /* NULL; GObject refuses objects of another class */
    case G_TYPE_BOXED:
      return m == 0;
    default:
      break;
    }
  if (m >= G_N_ELEMENTS (whole))
    return FALSE;
  switch (type)
    {
    case G_TYPE_ENUM:
      g_value_set_enum (value, few[m]);
      break;
    case G_TYPE_FLAGS:
      g_value_set_flags (value, (guint) few[m]);
      break;
    case G_TYPE_INT:
      g_value_set_int (value, few[m]);
      break;
    case G_TYPE_UINT:
      g_value_set_uint (value, (guint) few[m]);
      break;
    case G_TYPE_INT64:
      g_value_set_int64 (value, whole[m]);
      break;
    case G_TYPE_UINT64:
      g_value_set_uint64 (value, (guint64) whole[m]);
      break;
    default:
      g_error ("%s has a type that nobody knows values of: %s", pspec->name,
               g_type_name (pspec->value_type));
    }
  return TRUE;
}

/* --- objects --- */

static GHashTable *
find_types (void)
{
  GHashTable *types = g_hash_table_new (NULL, NULL);
  guint i, j;

  for (i = 0; i < n_functions; i++)
    {
      if (functions[i].returns == RETURN_FULL && functions[i].get_type != NULL)
        g_hash_table_add (types, GSIZE_TO_POINTER (functions[i].get_type ()));
      for (j = 0; j < functions[i].n_params; j++)
        if (functions[i].params[j].kind == PARAM_OBJECT && functions[i].params[j].get_type != NULL)
          g_hash_table_add (types, GSIZE_TO_POINTER (functions[i].params[j].get_type ()));
    }
  return types;
}

static gboolean
is_made_without_more (GType type)
{
  return !G_TYPE_IS_ABSTRACT (type)
         && (g_type_is_a (type, GTORCH_TYPE_MODULE) || g_type_is_a (type, GTORCH_TYPE_OPTIMIZER)
             || g_type_is_a (type, GTORCH_TYPE_LR_SCHEDULER) || type == GTORCH_TYPE_GRAD_SCALER
             || type == GTORCH_TYPE_EVENT || type == GTORCH_TYPE_GENERATOR
             || type == GTORCH_TYPE_TIMER);
}

/* Singletons, and objects that need arguments, come from objects.c. */
static gpointer
object_new (GType type)
{
  Param param = { .kind = PARAM_OBJECT, .name = "object", .type = g_type_name (type) };

  if (is_made_without_more (type))
    {
      const Param wanted = { .kind = PARAM_OBJECT, .name = "object", .type = "GTorchOptimizer" };
      gboolean is_schedule = g_type_is_a (type, GTORCH_TYPE_LR_SCHEDULER);
      g_autoptr (GObject) optimizer = is_schedule ? refuse_make (&wanted) : NULL;
      gpointer object = g_object_new (type, is_schedule ? "optimizer" : NULL, optimizer, NULL);

      if (g_type_is_a (type, GTORCH_TYPE_OPTIMIZER))
        {
          g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
          g_autoptr (GTorchParamGroup) group =
              gtorch_param_group_new (G_LIST_MODEL (params), 0.1, 0, NULL);

          gtorch_optimizer_add_param_group (object, group, NULL);
        }
      return object;
    }
  return refuse_make (&param);
}

/* Any outcome is allowed: an error, or a result. */
static void
use (gpointer object)
{
  g_autoptr (GTorchTensor) input = gtorch_ones (GTORCH_SHAPE (1, 2, 6, 6), 0, NULL, NULL);

  if (GTORCH_IS_LOSS (object))
    {
      g_autoptr (GTorchTensor) loss = gtorch_loss_forward (object, input, input, NULL);
    }
  else if (GTORCH_IS_OPTIMIZER (object))
    {
      gtorch_optimizer_check (object, NULL);
      gtorch_optimizer_step (object, NULL);
    }
  else if (GTORCH_IS_LR_SCHEDULER (object))
    gtorch_lr_scheduler_step (object, NULL);
  else if (GTORCH_IS_GRAD_SCALER (object))
    {
      g_autoptr (GTorchTensor) scaled = gtorch_grad_scaler_scale (object, input, NULL);

      gtorch_grad_scaler_update (object, NULL, NULL);
    }
  else if (GTORCH_IS_FUNCTION (object))
    {
      g_autoptr (GPtrArray) outputs = gtorch_function_apply (object, &input, 1, NULL);
    }
  else if (GTORCH_IS_MODULE (object) && !GTORCH_IS_GRAPHED_MODULE (object))
    {
      g_autoptr (GTorchTensor) output = gtorch_module_forward (object, input, NULL);
      g_autofree gchar *text = gtorch_module_to_string (object);
    }
}

/* Restores a setting of the whole program. */
static void
restore (gpointer object, GParamSpec *pspec, const GValue *former)
{
  if (!(pspec->flags & G_PARAM_CONSTRUCT_ONLY) && (pspec->flags & G_PARAM_READABLE))
    g_object_set_property (object, pspec->name, former);
}

static void
complain (GType type, GParamSpec *pspec, const GValue *value, const gchar *doing, const gchar *what)
{
  g_autofree gchar *shown = g_strdup_value_contents (value);

  g_test_message ("%s:%s, %s %s: %s", g_type_name (type), pspec->name, doing, shown, what);
  g_test_fail ();
}

static gboolean
are_equal (GParamSpec *pspec, const GValue *a, const GValue *b)
{
  if (G_VALUE_HOLDS_DOUBLE (a))
    return g_value_get_double (a) == g_value_get_double (b)
           || (isnan (g_value_get_double (a)) && isnan (g_value_get_double (b)));
  return g_param_values_cmp (pspec, a, b) == 0;
}

/* NULL stands for the current device, and -1 for a kernel height equal to the width: the initial values
 * of such properties. */
static gboolean
stands_for_another (GParamSpec *pspec, const GValue *value)
{
  return (pspec->flags & G_PARAM_CONSTRUCT_ONLY)
         && (g_type_is_a (pspec->value_type, G_TYPE_OBJECT)
             || g_param_value_defaults (pspec, value));
}

/* The property has the value, or a warning reports that it does not. */
static void
check_outcome (gpointer object, GParamSpec *pspec, const GValue *value, const GValue *former,
               const gchar *doing)
{
  const GType type = G_OBJECT_TYPE (object);
  g_autofree gchar *log = g_strdup (refuse_take_log ());
  g_auto (GValue) now = G_VALUE_INIT;

  if (log != NULL && strstr (log, pspec->name) == NULL)
    complain (type, pspec, value, doing, log);
  if (!(pspec->flags & G_PARAM_READABLE))
    return;
  g_value_init (&now, pspec->value_type);
  g_object_get_property (object, pspec->name, &now);
  if (log == NULL && !are_equal (pspec, value, &now) && !stands_for_another (pspec, value))
    {
      g_autofree gchar *shown = g_strdup_value_contents (&now);

      complain (type, pspec, value, doing, shown);
    }
  if (log != NULL && former != NULL && !are_equal (pspec, former, &now))
    complain (type, pspec, value, doing, "it is refused, and has changed something");
  if (log == NULL)
    n_kept++;
  else
    n_refused++;
}

/* Creates an object with a property, or without any. A transformer that is made without has millions of
 * parameters: these are fewer. */
static gpointer
new_with (GType type, const gchar *name, const GValue *value)
{
  static const gchar *const sizes[] = { "d-model", "num-encoder-layers", "num-decoder-layers",
                                        "dim-feedforward" };
  static const gint64 numbers[] = { 8, 1, 1, 4 };
  const gchar *names[G_N_ELEMENTS (sizes) + 1];
  GValue values[G_N_ELEMENTS (sizes) + 1] = { G_VALUE_INIT };
  guint n = 0;
  gpointer object;

  if (name != NULL)
    {
      names[n] = name;
      g_value_init (&values[n], G_VALUE_TYPE (value));
      g_value_copy (value, &values[n++]);
    }
  for (guint i = 0; type == GTORCH_TYPE_TRANSFORMER && i < G_N_ELEMENTS (sizes); i++)
    {
      if (g_strcmp0 (name, sizes[i]) == 0)
        continue;
      names[n] = sizes[i];
      g_value_init (&values[n], G_TYPE_INT64);
      g_value_set_int64 (&values[n++], numbers[i]);
    }
  object = g_object_new_with_properties (type, n, names, values);
  for (guint i = 0; i < n; i++)
    g_value_unset (&values[i]);
  return object;
}

/* Sets the property at construction. */
static void
make_with_value (GType type, GParamSpec *pspec, const GValue *value)
{
  g_autoptr (GObject) other = new_with (type, NULL, NULL);
  g_auto (GValue) former = G_VALUE_INIT;
  gpointer object;

  g_value_init (&former, pspec->value_type);
  if (pspec->flags & G_PARAM_READABLE)
    g_object_get_property (other, pspec->name, &former);
  refuse_take_log ();
  object = new_with (type, pspec->name, value);
  check_outcome (object, pspec, value, &former, "made with");
  use (object);
  if (refuse_take_log () != NULL)
    complain (type, pspec, value, "made with", "its use logs something");
  g_object_unref (object);
  refuse_take_log ();
}

static void
count_call (GObject *object, GParamSpec *pspec, gpointer count)
{
  (*(guint *) count)++;
}

/* Expects one notification if the value has changed, none otherwise. */
static void
check_notification (gpointer object, GParamSpec *pspec, const GValue *value, const GValue *former,
                    const gchar *doing, guint count)
{
  g_auto (GValue) now = G_VALUE_INIT;
  guint expected;

  if (!(pspec->flags & G_PARAM_READABLE))
    return;
  g_value_init (&now, pspec->value_type);
  g_object_get_property (object, pspec->name, &now);
  expected = !are_equal (pspec, former, &now);
  if (count != expected)
    {
      g_autofree gchar *text = g_strdup_printf ("notified %u times instead of %u", count, expected);

      complain (G_OBJECT_TYPE (object), pspec, value, doing, text);
    }
  n_watched++;
}

static void
set_watched (gpointer object, GParamSpec *pspec, const GValue *value, const GValue *former,
             const gchar *doing)
{
  g_autofree gchar *signal = g_strconcat ("notify::", pspec->name, NULL);
  guint count = 0;
  gulong id = g_signal_connect (object, signal, G_CALLBACK (count_call), &count);

  g_object_set_property (object, pspec->name, value);
  check_notification (object, pspec, value, former, doing, count);
  g_signal_handler_disconnect (object, id);
}

/* Sets the property to its current value. */
static void
set_again (gpointer object, GParamSpec *pspec)
{
  g_auto (GValue) now = G_VALUE_INIT;

  if (!(pspec->flags & G_PARAM_READABLE))
    return;
  g_value_init (&now, pspec->value_type);
  g_object_get_property (object, pspec->name, &now);
  set_watched (object, pspec, &now, &now, "set again to");
  refuse_take_log ();
}

static void
set_value (GType type, GParamSpec *pspec, const GValue *value)
{
  g_auto (GValue) former = G_VALUE_INIT;
  gpointer object = NULL;

  n_values++;
  if (is_made_without_more (type))
    make_with_value (type, pspec, value);
  if (pspec->flags & G_PARAM_CONSTRUCT_ONLY)
    return;
  object = object_new (type);
  if (object == NULL)
    return; /* there is no such object here */
  if (pspec->flags & G_PARAM_READABLE)
    {
      g_value_init (&former, pspec->value_type);
      g_object_get_property (object, pspec->name, &former);
    }
  refuse_take_log ();
  set_watched (object, pspec, value, &former, "set to");
  check_outcome (object, pspec, value, &former, "set to");
  set_again (object, pspec);
  use (object);
  if (refuse_take_log () != NULL)
    complain (type, pspec, value, "used with", "its use logs something");
  restore (object, pspec, &former);
  g_object_unref (object);
  refuse_take_log ();
}

static void
properties_take_all_values (gconstpointer data)
{
  const GType type = (GType) data;
  g_autoptr (GTypeClass) klass = g_type_class_ref (type);
  g_autofree GParamSpec **specs = NULL;
  guint i, m, n;

  specs = g_object_class_list_properties (G_OBJECT_CLASS (klass), &n);
  for (i = 0; i < n; i++)
    {
      g_auto (GValue) initial = G_VALUE_INIT;

      if (!(specs[i]->flags & G_PARAM_WRITABLE))
        continue;
      for (m = 0;; m++)
        {
          g_auto (GValue) value = G_VALUE_INIT;

          if (!nth_value (specs[i], m, &value))
            break;
          set_value (type, specs[i], &value);
        }
      g_value_init (&initial, specs[i]->value_type);
      g_param_value_set_default (specs[i], &initial);
      set_value (type, specs[i], &initial);
    }
}

/* --- reading --- */

/* gtorch_device_get_warp_size() of GTorchDevice:warp-size; NULL: there is none that needs no more than the
 * object. */
static const Function *
find_getter (GParamSpec *pspec)
{
  g_autofree gchar *word = g_strdelimit (g_strdup (pspec->name), "-", '_');
  const gchar *bare = word + (g_str_has_prefix (word, "is_") ? 3 : 0);
  g_autofree gchar *get = g_strconcat ("_get_", word, NULL);
  g_autofree gchar *is = g_strconcat ("_is_", bare, NULL);
  guint i;

  for (i = 0; i < n_functions; i++)
    if (functions[i].n_params == 1 && !functions[i].throws
        && functions[i].params[0].kind == PARAM_OBJECT
        && g_strcmp0 (functions[i].params[0].type, g_type_name (pspec->owner_type)) == 0
        && (g_str_has_suffix (functions[i].name, get) || g_str_has_suffix (functions[i].name, is)))
      return &functions[i];
  return NULL;
}

static gboolean
is_same (const GValue *value, const Value *other)
{
  switch (G_TYPE_FUNDAMENTAL (G_VALUE_TYPE (value)))
    {
    case G_TYPE_BOOLEAN:
      return g_value_get_boolean (value) == (gboolean) other->i;
    case G_TYPE_INT:
      return g_value_get_int (value) == (gint) other->i;
    case G_TYPE_UINT:
      return g_value_get_uint (value) == (guint) other->i;
    case G_TYPE_INT64:
      return g_value_get_int64 (value) == other->i;
    case G_TYPE_UINT64:
      return g_value_get_uint64 (value) == (guint64) other->i;
    case G_TYPE_ENUM:
      return g_value_get_enum (value) == (gint) other->i;
    case G_TYPE_FLAGS:
      return g_value_get_flags (value) == (guint) other->i;
    case G_TYPE_DOUBLE:
      return g_value_get_double (value) == other->d
             || (isnan (g_value_get_double (value)) && isnan (other->d));
    case G_TYPE_STRING:
      return g_strcmp0 (g_value_get_string (value), other->p) == 0;
    case G_TYPE_BOXED: /* a copy */
      return (g_value_get_boxed (value) != NULL) == (other->p != NULL);
    default:
      return g_value_get_object (value) == other->p;
    }
}

static void
properties_are_what_functions_give (gconstpointer data)
{
  const GType type = (GType) data;
  g_autoptr (GTypeClass) klass = g_type_class_ref (type);
  g_autoptr (GObject) object = object_new (type);
  g_autofree GParamSpec **specs = NULL;
  guint i, n;

  if (object == NULL)
    {
      g_test_skip ("there is none here");
      return;
    }
  specs = g_object_class_list_properties (G_OBJECT_CLASS (klass), &n);
  for (i = 0; i < n; i++)
    {
      const Function *getter = find_getter (specs[i]);
      g_auto (GValue) value = G_VALUE_INIT;

      if (!(specs[i]->flags & G_PARAM_READABLE))
        continue;
      refuse_take_log ();
      g_value_init (&value, specs[i]->value_type);
      g_object_get_property (object, specs[i]->name, &value);
      if (refuse_take_log () != NULL)
        complain (type, specs[i], &value, "read as", "it logs something");
      n_read++;
      if (getter != NULL)
        {
          const Value self = { .p = object };
          Value given = { 0 };

          getter->call (&self, &given, NULL);
          if (!is_same (&value, &given))
            complain (type, specs[i], &value, "read as", getter->name);
          if (getter->returns == RETURN_FULL && given.p != NULL)
            g_object_unref ((gpointer) given.p);
          n_compared++;
        }
    }
}

static void
enough_values_were_set (void)
{
  g_test_message ("%u values: %u kept, %u refused", n_values, n_kept, n_refused);
  g_test_message ("%u values read, %u compared with those of functions", n_read, n_compared);
  if (refuse_library.make != NULL) /* of few classes */
    {
      g_assert_cmpuint (MIN (MIN (n_kept, n_watched), MIN (n_read, n_compared)), >, 20);
      return;
    }
  g_assert_cmpuint (n_values, >, 300);
  g_assert_cmpuint (n_kept, >, 300);
  g_assert_cmpuint (n_watched, >, 600);
  g_assert_cmpuint (n_refused, >, 20);
  g_assert_cmpuint (n_read, >, 250);
  g_assert_cmpuint (n_compared, >, 100);
}

/* The function that uses an invalid value refuses it. */
static void
settings_are_refused_by_the_step (void)
{
  static const struct
  {
    const gchar *name;
    gdouble value;
    const gchar *message;
  } cases[] = {
    { "learning-rate", NAN,
      "param_group: the learning rate is nan, it must be finite and at least 0" },
    { "learning-rate", -1,
      "param_group: the learning rate is -1, it must be finite and at least 0" },
    { "momentum", -0.5, "sgd: momentum is -0.5, it must be finite and at least 0" },
    { "dampening", INFINITY, "sgd: dampening is inf, it must be finite" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
      g_autoptr (GTorchTensor) param =
          gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_NONE, NULL, NULL);
      g_autoptr (GTorchSGD) sgd = NULL;
      g_autoptr (GError) error = NULL;
      g_autoptr (GError) later = NULL;

      g_list_store_append (params, param);
      sgd = gtorch_sgd_new (G_LIST_MODEL (params), 0.1, 0.9, NULL);
      g_assert_true (gtorch_optimizer_check (GTORCH_OPTIMIZER (sgd), &error));
      g_object_set (sgd, cases[i].name, cases[i].value, NULL);
      g_assert_null (refuse_take_log ());
      g_assert_false (gtorch_optimizer_check (GTORCH_OPTIMIZER (sgd), &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, cases[i].message);
      g_assert_false (gtorch_optimizer_step (GTORCH_OPTIMIZER (sgd), &later));
      g_assert_cmpstr (later->message, ==, cases[i].message);
    }
}

int
main (int argc, char *argv[])
{
  g_autoptr (GHashTable) types = NULL;
  GHashTableIter iter;
  gpointer type;

  g_test_init (&argc, &argv, NULL);
  refuse_init ();
  types = find_types ();
  g_hash_table_iter_init (&iter, types);
  while (g_hash_table_iter_next (&iter, &type, NULL))
    if (G_TYPE_IS_OBJECT (GPOINTER_TO_SIZE (type)))
      {
        g_autofree gchar *path =
            g_strdup_printf ("/GTorch/properties/%s", g_type_name (GPOINTER_TO_SIZE (type)));
        g_autofree gchar *read_path = g_strconcat (path, "_is_read", NULL);

        g_test_add_data_func (path, type, properties_take_all_values);
        g_test_add_data_func (read_path, type, properties_are_what_functions_give);
      }
  if (refuse_library.make == NULL)
    g_test_add_func ("/GTorch/properties/refused_by_the_step", settings_are_refused_by_the_step);
  g_test_add_func ("/GTorch/properties/enough_values_were_set", enough_values_were_set);
  return g_test_run ();
}
