/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls random public functions on objects that earlier calls have created, changed, released and
 * disposed: each returns a result or an error that names its function. All arguments have the right class
 * and are NULL only where that is allowed, so critical messages are failures.
 *
 *     test-refuse-sequences [SEED [SEQUENCES]]
 *
 * runs so many sequences; with GTORCH_TEST_SEQUENCE=N only the Nth of them, printing its calls. */

#include "config.h"

#include <gio/gio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refuse.h"
#include "test-device.h"

#define MAX_OBJECTS 48
#define N_CALLS     60
#define N_PER_TEST  50
#define MAX_LIST    3
#define PATIENCE    60 /* time limit in seconds for a call */

static guint32 first_seed = 1;
static guint n_sequences = 400, n_calls, n_errors, n_kept;
static gchar current[8192]; /* the current call with its arguments, for a debugger */

typedef struct
{
  GRand *random;
  GPtrArray *objects; /* GObjects of any class, owned */
  GPtrArray *theme;   /* the functions of some headers, from which most calls are chosen */
  const Function *function;
  Value args[MAX_PARAMS];
  Value places[MAX_PARAMS];
  gpointer made[MAX_PARAMS]; /* arguments of this call that are not GObjects */
  gpointer lists[MAX_PARAMS][MAX_LIST];
  gint64 ints[MAX_PARAMS][4];
  gdouble doubles[MAX_PARAMS][4];
  gfloat floats[MAX_PARAMS][4];
  gboolean bools[MAX_PARAMS][4];
  const gchar *strings[MAX_PARAMS][4];
} Sequence;

/* --- choice of functions --- */

/* Excludes guards, which their users must end in the right order, addresses and manual memory management,
 * which cannot be checked, and asynchronous functions, which have their own tests. */
static gboolean
is_left_out (const Function *function)
{
  static const gchar *const ends[] = { "_async",    "_finish", "_finish_lists", "_free",
                                       "_get_type", "_quark",  "_ref",          "_unref" };
  static const gchar *const names[] = {
    "gtorch_arrow_export_stream",
    "gtorch_arrow_export_table",
    "gtorch_arrow_export_tensor",
    "gtorch_arrow_import_table",
    "gtorch_arrow_import_tensor",
    "gtorch_arrow_reader_new",
    "gtorch_arrow_release",
    "gtorch_shared_memory_release",
    "gtorch_dlpack_delete",
    "gtorch_memory_source_release",
    "gtorch_stream_new_external",
    "gtorch_stream_new_from_address",
    "gtorch_tensor_export_dlpack",
    "gtorch_tensor_import_dlpack",
    "gtorch_tensor_new_from_dlpack",
    "gtorch_tensor_to_dlpack",
    "gtorch_set_num_threads",
    "gtorch_allocator_set_memory_fraction",
    NULL,
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (function->name, ends[i]))
      return TRUE;
  for (i = 0; i < function->n_params; i++)
    if (strstr (function->params[i].type, "Guard") != NULL
        || g_str_equal (function->params[i].type, "GOptionGroup")
        || g_str_equal (function->params[i].type, "GAsyncResult")
        || g_str_equal (function->params[i].type, "GTorchDeviceMonitor")
        || g_str_equal (function->params[i].type, "GTorchDeviceProcess"))
      return TRUE;
  return strstr (function->name, "guard") != NULL
         || strstr (function->name, "_grad_enabled") != NULL
         || g_str_equal (function->name, "gtorch_no_grad")
         || g_str_equal (function->name, "gtorch_enable_grad")
         || g_str_equal (function->header, "gtorch-function-context.h")
         || g_strv_contains (names, function->name);
}

static guint
below (Sequence *self, guint n)
{
  return g_rand_int_range (self->random, 0, n);
}

static gboolean
one_in (Sequence *self, guint n)
{
  return below (self, n) == 0;
}

/* Three of four calls are from a few headers, so that they are related. */
static GPtrArray *
choose_theme (Sequence *self)
{
  GPtrArray *theme = g_ptr_array_new ();
  guint k, i;

  for (k = 0; k < 3; k++)
    {
      const gchar *header = functions[below (self, n_functions)].header;

      for (i = 0; i < n_functions; i++)
        if (g_str_equal (functions[i].header, header) && !is_left_out (&functions[i]))
          g_ptr_array_add (theme, (gpointer) &functions[i]);
    }
  return theme;
}

static const Function *
choose_function (Sequence *self)
{
  if (self->theme->len == 0 || one_in (self, 4))
    return &functions[below (self, n_functions)];
  return self->theme->pdata[below (self, self->theme->len)];
}

/* --- objects --- */

static void
keep (Sequence *self, gpointer object)
{
  if (object == NULL)
    return;
  if (self->objects->len == MAX_OBJECTS)
    g_ptr_array_remove_index_fast (self->objects, below (self, MAX_OBJECTS));
  g_ptr_array_add (self->objects, object);
  n_kept++;
}

static gpointer
find (Sequence *self, GType type)
{
  guint first = below (self, self->objects->len + 1), i;

  for (i = 0; i < self->objects->len; i++)
    {
      GObject *object = self->objects->pdata[(first + i) % self->objects->len];

      if (g_type_is_a (G_OBJECT_TYPE (object), type))
        return object;
    }
  return NULL;
}

/* Chooses an existing object most of the time; borrowed. Returns NULL if none can be created. */
static gpointer
choose (Sequence *self, const Param *param)
{
  const GType type = param->get_type ();
  gpointer object = one_in (self, 5) ? NULL : find (self, type);
  const gchar *what;

  if (object != NULL)
    return object;
  callback_mode = CALLBACK_WORKS;
  if (one_in (self, 8))
    object = refuse_make_state (param, below (self, 7), &what);
  if (object == NULL)
    object = refuse_make (param);
  if (object != NULL)
    keep (self, object);
  return object;
}

/* Creates a file of tensors. */
static GBytes *
make_file (void)
{
  g_autoptr (GHashTable) table = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GTorchTensor) tensor = gtorch_ones (GTORCH_SHAPE (2, 3), 0, NULL, NULL);
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();

  g_hash_table_insert (table, (gpointer) "weight", tensor);
  if (tensor == NULL || !gtorch_safetensors_save (table, NULL, stream, NULL, NULL, NULL, NULL))
    return NULL;
  g_output_stream_close (stream, NULL, NULL);
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (stream));
}

/* Creates a state of the object that loads it, or of another one. */
static GHashTable *
make_table (gpointer object)
{
  if (GTORCH_IS_MODULE (object))
    return gtorch_module_state_dict (object);
  if (GTORCH_IS_OPTIMIZER (object))
    return gtorch_optimizer_state_dict (object);
  return GTORCH_IS_GRAD_SCALER (object) ? gtorch_grad_scaler_state_dict (object, NULL) : NULL;
}

/* Creates a value that the function accepts; NULL if unknown. */
static gpointer
make_fitting (Sequence *self, const Param *param)
{
  gpointer object = (gpointer) self->args[0].p;
  g_autoptr (GBytes) bytes = NULL;
  GHashTable *table = NULL;

  if (g_str_equal (param->type, "GHashTable") && self->function->params[0].kind == PARAM_OBJECT)
    {
      if (one_in (self, 4))
        object = find (self, G_OBJECT_TYPE (object));
      table = object != NULL ? make_table (object) : NULL;
    }
  if (table != NULL)
    return table;
  if (g_str_equal (param->type, "GBytes") && self->function->params[0].kind == PARAM_OBJECT)
    return GTORCH_IS_GENERATOR (object) ? gtorch_generator_get_state (object) : NULL;
  if (g_str_equal (param->type, "GBytes"))
    return make_file ();
  if (!g_str_equal (param->type, "GInputStream") || (bytes = make_file ()) == NULL)
    return NULL;
  return g_memory_input_stream_new_from_bytes (bytes);
}

/* Changes objects between calls. */
static void
wear (Sequence *self)
{
  gpointer object = find (self, one_in (self, 2) ? GTORCH_TYPE_TENSOR : G_TYPE_OBJECT);

  if (object == NULL)
    return;
  if (GTORCH_IS_TENSOR (object) && one_in (self, 3))
    gtorch_tensor_release (object);
  else if (one_in (self, 2))
    g_ptr_array_remove_fast (self->objects, object);
  else if (!GTORCH_IS_DEVICE (object) && !GTORCH_IS_ALLOCATOR (object)
           && !GTORCH_IS_HOST_ALLOCATOR (object) && !GTORCH_IS_DEVICE_MANAGER (object)
           && !GTORCH_IS_FFT_PLAN_CACHE (object))
    g_object_run_dispose (object);
}

/* --- arguments --- */

static gint64
choose_int (Sequence *self, const Param *param)
{
  static const gint64 numbers[] = { 0, 1, -1, 2, 3, 1, 0, 5, -2, 7 };

  const gint64 number = numbers[below (self, G_N_ELEMENTS (numbers))];

  return CLAMP (number, param->low, param->high);
}

static gdouble
choose_double (Sequence *self)
{
  static const gdouble numbers[] = { 0, 1, 0.5, -1, 2, 0.1, 1e-3, NAN, INFINITY, 1e19 };

  return numbers[below (self, G_N_ELEMENTS (numbers))];
}

static const gchar *
choose_string (Sequence *self, const Param *param)
{
  static const gchar *const texts[] = { "weight",   "bias", "0",     "cpu",          "float32", "",
                                        "0.weight", "a.b",  "...,0", "state.0.step", "1:2" };

  return param->nullable && one_in (self, 4) ? NULL : texts[below (self, G_N_ELEMENTS (texts))];
}

static gint64
choose_enum (Sequence *self, const Param *param)
{
  g_autoptr (GTypeClass) klass = g_type_class_ref (param->get_type ());

  if (G_IS_FLAGS_CLASS (klass))
    return one_in (self, 2) ? 0 : G_FLAGS_CLASS (klass)->mask & (gint64) g_rand_int (self->random);
  return G_ENUM_CLASS (klass)->values[below (self, G_ENUM_CLASS (klass)->n_values)].value;
}

static gboolean
choose_list (Sequence *self, guint i)
{
  const Param *param = &self->function->params[i];
  guint n = below (self, MAX_LIST + 1), k;

  for (k = 0; k < 4; k++)
    {
      self->ints[i][k] =
          one_in (self, 3) ? (k == 0 ? 2 : 3) : choose_int (self, &(Param){ .low = -9, .high = 9 });
      self->doubles[i][k] = choose_double (self);
      self->floats[i][k] = (gfloat) choose_double (self);
      self->bools[i][k] = below (self, 2);
      self->strings[i][k] = k < n ? choose_string (self, &(Param){ .nullable = FALSE }) : NULL;
    }
  switch (param->kind)
    {
    case PARAM_INTS:
      self->args[i].p = self->ints[i];
      n = one_in (self, 2) ? 2 : n;
      break;
    case PARAM_DOUBLES:
      self->args[i].p = self->doubles[i];
      break;
    case PARAM_FLOATS:
      self->args[i].p = self->floats[i];
      break;
    case PARAM_BOOLS:
      self->args[i].p = self->bools[i];
      break;
    case PARAM_STRINGS:
      self->args[i].p = self->strings[i];
      return TRUE;
    default:
      /* boxed values are none of the objects that are kept */
      if (!G_TYPE_IS_OBJECT (param->get_type ()))
        return FALSE;
      self->args[i].p = self->lists[i];
      for (k = 0; k < n; k++)
        {
          gpointer object = choose (self, param);

          if (object == NULL)
            return FALSE;
          self->lists[i][k] = g_object_ref (object); /* the next object may replace it */
          self->args[i + 1].i = k + 1;
        }
    }
  self->args[i + 1].i = n;
  return TRUE;
}

static gboolean
choose_argument (Sequence *self, guint i)
{
  const Param *param = &self->function->params[i];

  switch (param->kind)
    {
    case PARAM_BOOL: /* a leaf whose gradient has a graph is a cycle, which its user must break */
      self->args[i].i = !g_str_equal (param->name, "create_graph") && one_in (self, 2);
      return TRUE;
    case PARAM_DOUBLE:
      self->args[i].d = choose_double (self);
      return TRUE;
    case PARAM_ENUM:
      self->args[i].i = choose_enum (self, param);
      return TRUE;
    case PARAM_INT:
      self->args[i].i = choose_int (self, param);
      return TRUE;
    case PARAM_STRING:
      self->args[i].p = choose_string (self, param);
      return TRUE;
    case PARAM_FUNC:
      self->args[i].p = refuse_func (param);
      return self->args[i].p != NULL;
    case PARAM_OBJECT:
      if (param->get_type == NULL) /* types that cannot be told from others */
        return param->nullable;
      if (param->nullable && one_in (self, 3))
        return TRUE;
      if (!G_TYPE_IS_OBJECT (param->get_type ()))
        self->args[i].p = self->made[i] = refuse_make (param);
      else if ((self->args[i].p = choose (self, param)) != NULL)
        g_object_ref ((gpointer) self->args[i].p);
      return self->args[i].p != NULL;
    case PARAM_FOREIGN:
      self->made[i] = one_in (self, 3) ? NULL : make_fitting (self, param);
      if (self->made[i] == NULL)
        self->made[i] = refuse_make (param);
      self->args[i].p = self->made[i];
      return self->args[i].p != NULL || param->nullable;
    case PARAM_OUT:
    case PARAM_OUT_FULL:
      self->args[i].p = param->nullable && one_in (self, 3) ? NULL : &self->places[i];
      return TRUE;
    case PARAM_LENGTH:
    case PARAM_POINTER:
      return TRUE;
    default:
      return choose_list (self, i);
    }
}

static void
drop_arguments (Sequence *self)
{
  guint i, k;

  for (i = 0; i < self->function->n_params; i++)
    {
      const Param *param = &self->function->params[i];

      if (self->made[i] != NULL)
        refuse_drop (param, self->made[i]);
      else if (param->kind == PARAM_OBJECT && self->args[i].p != NULL)
        g_object_unref ((gpointer) self->args[i].p);
      for (k = 0; param->kind == PARAM_OBJECTS && k < (guint) self->args[i + 1].i; k++)
        g_object_unref (self->lists[i][k]);
    }
}

/* --- calls --- */

static void
describe (Sequence *self, guint sequence)
{
  GString *text = g_string_new (NULL);
  guint i;

  g_string_printf (text, "sequence %u: %s (", sequence, self->function->name);
  for (i = 0; i < self->function->n_params; i++)
    {
      const Param *param = &self->function->params[i];

      g_string_append_printf (text, "%s%s=", i > 0 ? ", " : "", param->name);
      if (param->kind == PARAM_DOUBLE)
        g_string_append_printf (text, "%g", self->args[i].d);
      else if (param->kind == PARAM_STRING)
        g_string_append_printf (text, "“%s”", (const gchar *) self->args[i].p);
      else if (param->kind == PARAM_OBJECT && self->args[i].p != NULL
               && G_TYPE_IS_OBJECT (param->get_type ()))
        g_string_append (text, G_OBJECT_TYPE_NAME (self->args[i].p));
      else if (param->kind == PARAM_BOOL || param->kind == PARAM_ENUM || param->kind == PARAM_INT
               || param->kind == PARAM_LENGTH)
        g_string_append_printf (text, "%" G_GINT64_FORMAT, self->args[i].i);
      else
        g_string_append (text, self->args[i].p != NULL ? "…" : "NULL");
    }
  g_string_append (text, ")");
  g_strlcpy (current, text->str, sizeof current);
  g_string_free (text, TRUE);
}

static void
fail (const gchar *what, const gchar *more)
{
  g_autofree gchar *line = g_strdup_printf ("%s: %s: %s", current, what, more);
  g_autofree gchar *valid = g_utf8_make_valid (line, -1);

  g_test_message ("%s", valid);
  g_test_fail ();
}

static void
take_result (Sequence *self, gpointer result, GType (*get_type) (void), GDestroyNotify drop)
{
  if (result == NULL)
    return;
  if (drop != NULL)
    drop (result);
  else if (G_TYPE_IS_OBJECT (get_type ()))
    keep (self, result);
  else
    g_boxed_free (get_type (), result);
}

static void
call (Sequence *self, guint sequence)
{
  const Function *function = self->function;
  g_autoptr (GError) error = NULL;
  Value result = { 0 };
  const gchar *critical;
  guint i;

  callback_mode = one_in (self, 4) ? CALLBACK_FAILS : CALLBACK_WORKS;
  describe (self, sequence);
  refuse_take_log ();
  if (g_getenv ("GTORCH_TEST_SEQUENCE") != NULL)
    g_test_message ("%s", current);
  alarm (PATIENCE);
  function->call (self->args, &result, function->throws ? &error : NULL);
  alarm (0);
  n_calls++;
  n_errors += error != NULL;
  critical = refuse_take_critical ();
  if (critical != NULL)
    fail ("logs", critical);
  if (error != NULL && strchr (error->message, ':') == NULL && error->domain == GTORCH_ERROR)
    fail ("does not say who", error->message);
  if (error != NULL && function->returns == RETURN_FULL && result.p != NULL)
    fail ("gives a result and an error", error->message);
  if (error == NULL && function->throws && function->returns == RETURN_BOOL && !result.i
      && critical == NULL)
    fail ("fails", "without an error");
  for (i = 0; i < function->n_params; i++)
    if (function->params[i].kind == PARAM_OUT_FULL && self->places[i].p != NULL)
      {
        if (error != NULL)
          fail ("writes a result in spite of", error->message);
        else
          take_result (self, (gpointer) self->places[i].p, function->params[i].get_type,
                       function->params[i].drop);
      }
  if (function->returns == RETURN_FULL)
    take_result (self, (gpointer) result.p, function->get_type, function->drop);
}

/* Creates tensors for all arguments, not only plain matrices. */
static void
add_tensors (Sequence *self)
{
  const gint64 indices[] = { 1, 0 };
  const struct
  {
    gint64 shape[4];
    guint n_dims;
    GTorchDType dtype;
    gboolean is_leaf;
  } kinds[] = {
    { { 2, 3 }, 2, GTORCH_DTYPE_FLOAT32, FALSE },
    { { 2, 3 }, 2, GTORCH_DTYPE_FLOAT32, TRUE },
    { { 2, 3 }, 2, GTORCH_DTYPE_FLOAT64, TRUE },
    { { 2, 3 }, 2, GTORCH_DTYPE_BOOL, FALSE },
    { { 0 }, 0, GTORCH_DTYPE_FLOAT32, TRUE },
    { { 3, 3 }, 2, GTORCH_DTYPE_FLOAT32, FALSE },
    { { 1, 2, 5, 5 }, 4, GTORCH_DTYPE_FLOAT32, TRUE },
    { { 2, 2, 3, 3 }, 4, GTORCH_DTYPE_FLOAT32, TRUE },
    { { 3 }, 1, GTORCH_DTYPE_COMPLEX64, FALSE },
    { { 0, 3 }, 2, GTORCH_DTYPE_FLOAT32, FALSE },
  };
  guint i, k;

  keep (self,
        gtorch_tensor_new_from_ints (indices, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL));
  for (i = 0; i < 6; i++)
    {
      GTorchTensor *tensor;

      k = below (self, G_N_ELEMENTS (kinds));
      tensor = gtorch_ones (kinds[k].shape, kinds[k].n_dims, kinds[k].dtype, NULL, NULL);
      if (tensor == NULL)
        continue; /* for example if there is no memory */
      gtorch_tensor_set_requires_grad (tensor, kinds[k].is_leaf, NULL);
      keep (self, tensor);
      if (kinds[k].is_leaf)
        keep (self, gtorch_tensor_mul (tensor, tensor, NULL));
    }
}

/* Half of the sequences start with objects on a GPU, if there is one. */
static void
add_elsewhere (Sequence *self)
{
  GTorchDevice *device = gtorch_device_cuda (below (self, 2), NULL);
  GTorchTensor *tensor = NULL;
  guint i;

  if (device == NULL || one_in (self, 2))
    return;
  keep (self, g_object_ref (device));
  keep (self, gtorch_stream_new (device, 0, NULL));
  keep (self, gtorch_memory_pool_new (device));
  for (i = 0; i < 3; i++)
    if ((tensor = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, device, NULL)) != NULL)
      keep (self, tensor);
  gtorch_stream_set_current (self->objects->pdata[1]);
}

static void
run_sequence (guint sequence)
{
  Sequence *self = g_new0 (Sequence, 1);
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GError) error = NULL;
  const gchar *critical;
  guint n, i;

  self->random = g_rand_new_with_seed (first_seed * 1000003 + sequence);
  self->objects = g_ptr_array_new_with_free_func (g_object_unref);
  self->theme = choose_theme (self);
  add_tensors (self);
  add_elsewhere (self);
  for (n = 0; n < N_CALLS; n++)
    {
      gboolean is_ready = TRUE;

      self->function = choose_function (self);
      if (is_left_out (self->function))
        continue;
      memset (self->args, 0, sizeof self->args);
      memset (self->places, 0, sizeof self->places);
      memset (self->made, 0, sizeof self->made);
      memset (self->lists, 0, sizeof self->lists);
      for (i = 0; i < self->function->n_params; i++)
        is_ready &= choose_argument (self, i);
      if (is_ready)
        call (self, sequence);
      drop_arguments (self);
      if (one_in (self, 4))
        wear (self);
    }
  while (self->objects->len > 0)
    g_ptr_array_remove_index_fast (self->objects, below (self, self->objects->len));
  g_ptr_array_unref (self->objects);
  g_ptr_array_unref (self->theme);
  g_rand_free (self->random);
  g_free (self);
  refuse_restore ();
  /* reports errors that a GPU detects asynchronously */
  gtorch_device_synchronize (test_device (), NULL, NULL);
  result = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error);
  if (result == NULL || !gtorch_device_synchronize (test_device (), NULL, &error))
    fail ("nothing works afterwards", error->message);
  critical = refuse_take_critical ();
  if (critical != NULL)
    fail ("at the end of the sequence", critical);
}

static void
on_alarm (int number)
{
  static const gchar text[] = "# hangs: ";

  if (write (STDOUT_FILENO, text, sizeof text - 1) < 0
      || write (STDOUT_FILENO, current, strlen (current)) < 0)
    _exit (2);
  _exit (1);
}

static void
sequences_end_well (gconstpointer data)
{
  const gchar *only = g_getenv ("GTORCH_TEST_SEQUENCE");
  guint first = GPOINTER_TO_UINT (data), i;

  for (i = first; i < MIN (first + N_PER_TEST, n_sequences); i++)
    if (only == NULL || (guint) atoi (only) == i)
      run_sequence (i);
}

static void
enough_calls_ran (void)
{
  g_test_message ("%u calls, %u errors, %u objects", n_calls, n_errors, n_kept);
  g_assert_cmpuint (n_kept, >, n_calls / 4);
  g_assert_cmpuint (n_errors, <, n_calls);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  if (argc > 1)
    first_seed = strtoul (argv[1], NULL, 10);
  if (argc > 2)
    n_sequences = strtoul (argv[2], NULL, 10);
  refuse_init ();
  refuse_restore ();
  signal (SIGALRM, on_alarm);
  for (i = 0; i < n_sequences; i += N_PER_TEST)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/refuse/sequences/from_%u", i);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), sequences_end_well);
    }
  g_test_add_func ("/GTorch/refuse/sequences/enough_calls_ran", enough_calls_ran);
  return g_test_run ();
}
