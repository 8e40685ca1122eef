/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls every public function that is not an operation, with one invalid argument at a time. The
 * functions are read from the headers: a new function is tested automatically, unless it needs an object
 * of a new class. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "refuse.h"

#define SHORT_TIME 0.005 /* seconds that something may wait */

/* Whether it says for how long to wait: a call with a long time would be right, and wait. */
static gboolean
is_time (const Param *param)
{
  return g_str_equal (param->name, "timeout");
}

typedef struct
{
  const Function *function;
  gboolean no_place; /* for a mandatory result */
  gboolean is_called;
  Value args[MAX_PARAMS];
  gpointer objects[MAX_PARAMS]; /* unreferenced at the end */
  gpointer lists[MAX_PARAMS][3];
  union
  {
    gint64 ints[72];
    gdouble doubles[8];
    gfloat floats[8];
    gboolean bools[8];
    const gchar *strings[8];
  } data[MAX_PARAMS];
} Call;

typedef struct
{
  const Function *finish; /* NULL: the result is kept */
  gboolean is_done;
  GAsyncResult *result;
} Waiting;

static Waiting waiting;

/* Values of arguments that do not follow from their kinds. Numbers are 1, or 0.5; texts are “weight”. */
static const struct
{
  const gchar *function; /* NULL: any */
  const gchar *param;
  gint64 number;
  const gchar *text;
} values[] = {
  { NULL, "dim", 0, NULL },
  { NULL, "dtype", GTORCH_DTYPE_FLOAT32, NULL },
  { NULL, "device_type", GTORCH_DEVICE_TYPE_CPU, NULL },
  { "gtorch_device_cuda", "index", 0, NULL },
  { "gtorch_device_new_from_string", "string", 0, "cpu" },
  { "gtorch_dtype_from_name", "name", 0, "float32" },
  { "gtorch_einsum", "equation", 0, "..." },
  { "gtorch_set_float32_matmul_precision", "precision", 0, "highest" },
  { "gtorch_tensor_get", "spec", 0, "0" },
  { "gtorch_tensor_set", "spec", 0, "0" },
  { "gtorch_tensor_set_int", "spec", 0, "0" },
  { "gtorch_tensor_set_scalar", "spec", 0, "0" },
  { "gtorch_sequential_insert", "position", 0, NULL },
  { "gtorch_sequential_remove", "position", 0, NULL },
};

/* Addresses cannot be checked. */
static const struct
{
  const gchar *function;
  const gchar *param;
} addresses[] = {
  { "gtorch_dlpack_delete", "address" },          { "gtorch_memory_source_release", "address" },
  { "gtorch_stream_new_external", "handle" },     { "gtorch_tensor_import_dlpack", "address" },
  { "gtorch_tensor_new_from_dlpack", "managed" }, { "gtorch_stream_new_from_address", "address" },
  { "gtorch_arrow_import_tensor", "schema" },     { "gtorch_arrow_import_tensor", "array" },
  { "gtorch_arrow_import_table", "schema" },      { "gtorch_arrow_import_table", "array" },
  { "gtorch_arrow_export_tensor", "schema" },     { "gtorch_arrow_export_tensor", "array" },
  { "gtorch_arrow_export_table", "schema" },      { "gtorch_arrow_export_table", "array" },
  { "gtorch_arrow_export_stream", "stream" },     { "gtorch_arrow_reader_new", "stream" },
  { "gtorch_arrow_release", "schema" },           { "gtorch_arrow_release", "array" },
  { "gtorch_arrow_release", "stream" },
};

static gboolean
is_address (const Function *function, const Param *param)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (addresses); i++)
    if (g_str_equal (addresses[i].function, function->name)
        && g_str_equal (addresses[i].param, param->name))
      return TRUE;
  return FALSE;
}

/* Returns TRUE if the function takes ownership of its first argument. */
static gboolean
consumes (const Function *function)
{
  return g_str_has_suffix (function->name, "_unref") || g_str_has_suffix (function->name, "_free");
}

/* --- asynchronous calls --- */
static void
ready (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_auto (Refusal) refusal = { .what = g_strdup ("the result of the call"), .expect = MAY_FAIL };
  Value args[MAX_PARAMS] = { { 0 } };
  guint i;

  waiting.is_done = TRUE;
  if (waiting.finish == NULL)
    waiting.result = g_object_ref (result);
  for (i = 0; waiting.finish != NULL && i < waiting.finish->n_params; i++)
    if (g_str_equal (waiting.finish->params[i].type, "GAsyncResult"))
      args[i].p = result;
    else if (waiting.finish->params[i].kind == PARAM_OBJECT)
      args[i].p = source;
  if (waiting.finish != NULL)
    refuse_call_once (waiting.finish, args, &refusal, TRUE);
}

static void
find_finish (const Function *function)
{
  g_autofree gchar *stem = g_strndup (function->name, strlen (function->name) - strlen ("_async"));
  g_autofree gchar *name = g_strconcat (stem, "_finish", NULL);

  waiting.is_done = FALSE;
  waiting.finish = refuse_find (name);
  g_assert_nonnull (waiting.finish);
}

static gboolean
give_up (gpointer data)
{
  *(gboolean *) data = TRUE;
  return G_SOURCE_REMOVE;
}

static void
wait_until_ready (const Function *function)
{
  gboolean is_late = FALSE;
  const guint source = g_timeout_add_seconds (60, give_up, &is_late);

  while (!waiting.is_done && !is_late)
    g_main_context_iteration (NULL, TRUE);
  if (is_late)
    {
      g_test_message ("%s never called back", function->name);
      g_test_fail ();
    }
  else
    g_source_remove (source);
}

static gboolean
is_finish (const Function *function)
{
  return g_str_has_suffix (function->name, "_finish")
         || g_str_has_suffix (function->name, "_finish_lists");
}

/* The length of a list, which several lists may have. */
static gint64 *
length_of (Call *call, guint i)
{
  while (call->function->params[i].kind != PARAM_LENGTH)
    i++;
  return &call->args[i].i;
}

/* --- valid arguments --- */
static void
set_list (Call *call, guint i)
{
  const Param *param = &call->function->params[i];
  const gint64 shape[] = { 2, 3 };
  guint k, n = 2;

  call->args[i].p = &call->data[i];
  switch (param->kind)
    {
    case PARAM_INTS:
      memcpy (call->data[i].ints, shape, sizeof (shape));
      n = G_N_ELEMENTS (shape);
      if (g_str_equal (param->name, "values"))
        for (n = 6, k = 0; k < n; k++)
          call->data[i].ints[k] = k;
      break;
    case PARAM_OBJECTS:
      for (k = 0; k < n; k++)
        call->lists[i][k] = refuse_make (param);
      call->args[i].p = call->lists[i];
      break;
    case PARAM_STRINGS:
      call->data[i].strings[0] = "weight";
      call->data[i].strings[1] = "bias";
      return;
    default: /* zeros */
      n = 6;
      break;
    }
  *length_of (call, i) = n;
}

static void
call_init (Call *call)
{
  guint i, k;

  callback_mode = CALLBACK_WORKS;
  for (i = 0; i < call->function->n_params; i++)
    {
      const Param *param = &call->function->params[i];
      gint64 number = param->kind == PARAM_BOOL || param->kind == PARAM_ENUM
                              || is_address (call->function, param)
                          ? 0
                          : 1;
      const gchar *text = "weight";

      for (k = 0; k < G_N_ELEMENTS (values); k++)
        if (g_str_equal (values[k].param, param->name)
            && (values[k].function == NULL
                || g_str_equal (values[k].function, call->function->name)))
          {
            number = values[k].number;
            text = values[k].text;
          }
      switch (param->kind)
        {
        case PARAM_BOOL:
        case PARAM_ENUM:
        case PARAM_INT:
          call->args[i].i = number;
          break;
        case PARAM_DOUBLE:
          call->args[i].d = is_time (param) ? SHORT_TIME : 0.5;
          break;
        case PARAM_STRING:
          call->args[i].p = text;
          break;
        case PARAM_FOREIGN:
        case PARAM_OBJECT:
          call->args[i].p = call->objects[i] = refuse_make (param);
          break;
        case PARAM_FUNC:
          call->args[i].p = g_str_equal (param->type, "GAsyncReadyCallback") ? (gpointer) ready
                                                                             : refuse_func (param);
          break;
        case PARAM_LENGTH:
        case PARAM_OUT:
        case PARAM_OUT_FULL:
        case PARAM_POINTER:
          break;
        default:
          set_list (call, i);
        }
    }
}

static void
call_clear (Call *call)
{
  guint i, k;

  for (i = 0; i < call->function->n_params; i++)
    {
      if (call->objects[i] != NULL && !(i == 0 && call->is_called && consumes (call->function)))
        refuse_drop (&call->function->params[i], call->objects[i]);
      for (k = 0; k < G_N_ELEMENTS (call->lists[i]); k++)
        if (call->lists[i][k] != NULL)
          refuse_drop (&call->function->params[i], call->lists[i][k]);
    }
}

/* --- invalid arguments --- */
/* None is a size that a machine could allocate but would take long to fill. */
static const gint64 whole[] = {
  G_MININT64, -1, 0, 2, 7, 63, (G_GINT64_CONSTANT (1) << 46) + 1, G_MAXINT64 - 1, G_MAXINT64,
};

static const gdouble real[] = { NAN,    INFINITY, -INFINITY, G_MAXDOUBLE, -G_MAXDOUBLE,
                                4e-320, 0.0,      -1.0,      1.0,         1e19 };

static const gchar *const texts[] = {
  "",
  " ",
  ".",
  "a.b..c",
  "weight.",
  "0",
  "-1",
  "99999999999999999999",
  "%s%n%d",
  "cuda:99999999999",
  "float33",
  "\xff\xfe",
  "a\nb",
  "[",
  "::",
  "1:2:3:4",
  "...,...",
  "None,",
  "no such thing:1,max_split_size_mb:-1",
};

static gboolean
spoil_int (Call *call, guint i, guint m, Refusal *refusal)
{
  const Param *param = &call->function->params[i];

  if (is_address (call->function, param) || m >= G_N_ELEMENTS (whole))
    return FALSE;
  call->args[i].i = CLAMP (whole[m], param->low, param->high);
  refusal->what = g_strdup_printf ("is %" G_GINT64_FORMAT, call->args[i].i);
  return TRUE;
}

static gboolean
is_choice (const Param *param, gint64 value)
{
  g_autoptr (GTypeClass) klass = g_type_class_ref (param->get_type ());

  if (G_IS_FLAGS_CLASS (klass))
    return ((guint) value & ~G_FLAGS_CLASS (klass)->mask) == 0;
  return g_enum_get_value (G_ENUM_CLASS (klass), (gint) value) != NULL;
}

static gboolean
spoil_choice (Call *call, guint i, guint m, Refusal *refusal)
{
  const gint64 choices[] = { 1, 2, -1, 9999, G_MAXINT, G_MININT };

  if (m >= G_N_ELEMENTS (choices))
    return FALSE;
  call->args[i].i = choices[m];
  refusal->what = g_strdup_printf ("is %" G_GINT64_FORMAT, choices[m]);
  if (!is_choice (&call->function->params[i], choices[m]))
    refusal->expect = call->function->throws ? MUST_FAIL : MAY_COMPLAIN;
  return TRUE;
}

static gboolean
spoil_text (Call *call, guint i, guint m, Refusal *refusal)
{
  static gchar endless[5000];

  if (m == 0)
    {
      call->args[i].p = NULL;
      refusal->what = g_strdup ("is NULL");
      refusal->expect = call->function->params[i].nullable ? MAY_FAIL : MUST_COMPLAIN;
      return TRUE;
    }
  if (m - 1 < G_N_ELEMENTS (texts))
    {
      call->args[i].p = texts[m - 1];
      refusal->what = g_strdup_printf ("is “%s”", texts[m - 1]);
      return TRUE;
    }
  memset (endless, 'x', sizeof (endless) - 1);
  call->args[i].p = endless;
  refusal->what = g_strdup ("is endless");
  return m - 1 == G_N_ELEMENTS (texts);
}

static void
replace (Call *call, guint i, gpointer object)
{
  if (call->objects[i] != NULL)
    refuse_drop (&call->function->params[i], call->objects[i]);
  call->args[i].p = call->objects[i] = object;
}

/* Returns TRUE if the class of an argument can be checked. */
static gboolean
is_object (const Param *param)
{
  if (param->kind == PARAM_FOREIGN)
    return !g_str_equal (param->type, "GBytes") && !g_str_equal (param->type, "GError")
           && !g_str_equal (param->type, "GHashTable") && !g_str_equal (param->type, "GObject")
           && !g_str_equal (param->type, "GValue") && !g_str_equal (param->type, "GVariant")
           && !g_str_equal (param->type, "cairo_t");
  return param->get_type != NULL && G_TYPE_IS_OBJECT (param->get_type ());
}

static gboolean
spoil_object (Call *call, guint i, guint m, Refusal *refusal)
{
  const Param *param = &call->function->params[i];
  const gchar *what = "";
  gpointer odd;

  if (m == 0)
    {
      replace (call, i, NULL);
      refusal->what = g_strdup ("is NULL");
      refusal->expect = param->nullable ? MAY_FAIL : MUST_COMPLAIN;
      /* functions that free accept NULL */
      if (consumes (call->function))
        refusal->expect = MAY_COMPLAIN;
      return TRUE;
    }
  if (is_object (param) && m == 1)
    {
      replace (call, i, g_object_ref (refuse_stranger ()));
      refusal->what = g_strdup ("is of a wrong class");
      refusal->expect = MUST_COMPLAIN;
      return TRUE;
    }
  odd = refuse_make_odd (param, m - 1 - (is_object (param) ? 1 : 0), &what);
  if (odd == NULL)
    return FALSE;
  replace (call, i, odd);
  refusal->what = g_strdup (what);
  return TRUE;
}

/* Passes the m-th disposed or broken object as the argument, or as each element of a list. */
static gboolean
wear_out (Call *call, guint i, guint m, Refusal *refusal)
{
  const Param *param = &call->function->params[i];
  const guint n = param->kind == PARAM_OBJECTS ? *length_of (call, i) : 1;
  const gchar *what = "";
  gpointer worn;

  if (param->kind != PARAM_FOREIGN && param->kind != PARAM_OBJECT && param->kind != PARAM_OBJECTS)
    return FALSE;
  worn = refuse_make_state (param, m / n, &what);
  if (worn == NULL)
    return FALSE;
  refusal->is_state = TRUE;
  if (param->kind == PARAM_OBJECTS)
    {
      refusal->what = g_strdup_printf ("[%u] %s", m % n, what);
      g_object_unref (call->lists[i][m % n]);
      call->lists[i][m % n] = worn;
    }
  else
    {
      refusal->what = g_strdup (what);
      replace (call, i, worn);
    }
  return TRUE;
}

static gboolean
spoil_list (Call *call, guint i, guint m, Refusal *refusal)
{
  const Param *param = &call->function->params[i];
  gboolean is_ints = param->kind == PARAM_INTS, is_objects = param->kind == PARAM_OBJECTS;
  const gchar *what = "";
  guint k;

  switch (m)
    {
    case 0:
      call->args[i].p = NULL;
      refusal->what = g_strdup ("is NULL");
      /* NULL for a list with a length means an empty list */
      if (param->nullable && param->kind == PARAM_STRINGS)
        refusal->expect = MAY_FAIL;
      else /* asynchronous functions report the error at the end */
        refusal->expect = call->function->throws ? MUST_NOT_WORK : MAY_COMPLAIN;
      return TRUE;
    case 1:
      if (param->kind == PARAM_STRINGS)
        call->data[i].strings[0] = NULL;
      else
        {
          call->args[i].p = NULL;
          *length_of (call, i) = 0;
        }
      refusal->what = g_strdup ("is empty");
      return TRUE;
    case 2:
      if (param->kind == PARAM_STRINGS)
        call->data[i].strings[1] = NULL;
      else
        (*length_of (call, i))--;
      refusal->what = g_strdup ("has one less");
      return TRUE;
    case 3:
      if (is_ints)
        {
          for (k = 0; k < 70; k++)
            call->data[i].ints[k] = 1;
          *length_of (call, i) = 70;
        }
      else if (is_objects)
        {
          refuse_drop (param, call->lists[i][1]);
          call->lists[i][1] = NULL;
        }
      else
        return FALSE;
      refusal->what = g_strdup (is_ints ? "has 70" : "has NULL");
      refusal->expect = is_ints ? MAY_FAIL : MAY_COMPLAIN;
      return TRUE;
    case 4:
      /* a boxed value has no class that could be checked */
      if (is_objects && !G_TYPE_IS_OBJECT (param->get_type ()))
        return FALSE;
      if (is_objects)
        g_set_object ((GObject **) &call->lists[i][1], refuse_stranger ());
      else
        for (k = 0; k < 8; k++)
          call->data[i].ints[k] = G_GINT64_CONSTANT (1) << 31;
      if (is_ints)
        *length_of (call, i) = 8;
      refusal->what = g_strdup (is_objects ? "has a stranger" : "are all 2^31");
      refusal->expect = is_ints ? MAY_FAIL : MAY_COMPLAIN;
      return TRUE;
    default:
      break;
    }
  m -= 5;
  if (is_objects)
    {
      gpointer odd = refuse_make_odd (param, m, &what);

      refusal->what = g_strdup_printf ("has one that %s", what);
      if (odd == NULL)
        return FALSE;
      refuse_drop (&call->function->params[i], call->lists[i][1]);
      call->lists[i][1] = odd;
      return TRUE;
    }
  if (m >= G_N_ELEMENTS (whole))
    return FALSE;
  call->data[i].ints[*length_of (call, i) - 1] = whole[m];
  refusal->what = g_strdup_printf ("has %" G_GINT64_FORMAT, whole[m]);
  return TRUE;
}

static gboolean
spoil_func (Call *call, guint i, guint m, Refusal *refusal)
{
  const Param *param = &call->function->params[i];

  switch (m)
    {
    case 0:
      call->args[i].p = NULL;
      refusal->what = g_strdup ("is NULL");
      refusal->expect = param->nullable ? MAY_FAIL : MUST_COMPLAIN;
      return TRUE;
    case 1:
      callback_mode = CALLBACK_FAILS;
      refusal->what = g_strdup ("fails");
      return TRUE;
    default:
      callback_mode = CALLBACK_IS_SILENT;
      refusal->what = g_strdup ("fails without an error");
      return m == 2;
    }
}

static gboolean
spoil (Call *call, guint i, guint m, Refusal *refusal)
{
  switch (call->function->params[i].kind)
    {
    case PARAM_BOOL:
      call->args[i].i = m == 0 ? TRUE : 0x100;
      refusal->what = g_strdup (m == 0 ? "is TRUE" : "is neither FALSE nor TRUE");
      return m < 2;
    case PARAM_DOUBLE:
      if (m >= G_N_ELEMENTS (real))
        return FALSE;
      call->args[i].d = real[m] > 1 && is_time (&call->function->params[i]) ? SHORT_TIME : real[m];
      refusal->what = g_strdup_printf ("is %g", call->args[i].d);
      return TRUE;
    case PARAM_ENUM:
      return spoil_choice (call, i, m, refusal);
    case PARAM_FOREIGN:
    case PARAM_OBJECT:
      return spoil_object (call, i, m, refusal);
    case PARAM_FUNC:
      return spoil_func (call, i, m, refusal);
    case PARAM_INT:
      return spoil_int (call, i, m, refusal);
    case PARAM_STRING:
      return spoil_text (call, i, m, refusal);
    case PARAM_OUT:
    case PARAM_OUT_FULL:
      /* optional results are omitted in every second call */
      call->no_place = TRUE;
      refusal->what = g_strdup ("is NULL");
      refusal->expect = MUST_COMPLAIN;
      return m == 0 && !call->function->params[i].nullable;
    case PARAM_LENGTH:
    case PARAM_POINTER:
      return FALSE;
    default:
      return spoil_list (call, i, m, refusal);
    }
}

/* Numbers come from data, so they cause no log messages: a function without a GError accepts all numbers,
 * and the function that uses them reports the fault. */
static gboolean
is_number (const Param *param)
{
  return param->kind == PARAM_BOOL || param->kind == PARAM_DOUBLE || param->kind == PARAM_INT
         || param->kind == PARAM_INTS;
}

static gboolean
lacks_object (const Call *call)
{
  guint i;

  for (i = 0; i < call->function->n_params; i++)
    if (call->function->params[i].kind == PARAM_OBJECT && !call->function->params[i].nullable
        && call->args[i].p == NULL && !consumes (call->function))
      return TRUE;
  return FALSE;
}

typedef gboolean (*Spoiler) (Call *call, guint i, guint m, Refusal *refusal);

/* Makes one call with one fault, or none. Returns FALSE if there are no more faults. */
static gboolean
refuse_one (const Function *function, Spoiler spoiler, gint arg, guint m, gboolean wants_error)
{
  Call call = { .function = function };
  g_auto (Refusal) refusal = { .expect = MAY_FAIL };
  const gboolean is_async = g_str_has_suffix (function->name, "_async");
  gboolean more = TRUE, ok;

  call_init (&call);
  if (arg < 0)
    refusal.what = g_strdup ("nothing");
  else
    {
      g_autofree gchar *what = NULL;

      more = spoiler (&call, arg, m, &refusal);
      what = refusal.what;
      refusal.what = g_strdup_printf ("%s %s", function->params[arg].name, what);
    }
  if (more)
    {
      if (lacks_object (&call))
        refusal.expect = MUST_COMPLAIN; /* there is no object of its class here */
      else if (is_finish (function) && refusal.expect == MAY_FAIL)
        refusal.expect = MUST_FAIL; /* the result is not this function's */
      else if (arg >= 0 && refusal.expect == MAY_FAIL && !function->throws && !refusal.is_state
               && !is_number (&function->params[arg]))
        refusal.expect = MAY_COMPLAIN;
      if (g_str_equal (function->header, "gtorch-function-context.h"))
        refusal.expect = MAY_COMPLAIN; /* the object is finished */
      if (is_async)
        find_finish (function);
      call.is_called = TRUE;
      refusal.no_place = call.no_place;
      ok = refuse_call_once (function, call.args, &refusal, wants_error);
      if (is_async && ok)
        {
          gboolean calls_back = FALSE;

          for (guint i = 0; i < function->n_params; i++)
            calls_back |= call.args[i].p == (gpointer) ready;
          if (calls_back)
            wait_until_ready (function);
        }
    }
  call_clear (&call);
  refuse_restore ();
  return more;
}

static gboolean
has_results (const Function *function)
{
  guint i;

  for (i = 0; i < function->n_params; i++)
    if (function->params[i].kind == PARAM_OUT || function->params[i].kind == PARAM_OUT_FULL)
      return TRUE;
  return FALSE;
}

static void
refuses (gconstpointer data)
{
  static const Spoiler spoilers[] = { spoil, wear_out };
  const Function *function = data;
  guint i, k, m;

  refuse_one (function, NULL, -1, 0, TRUE);
  for (k = 0; k < G_N_ELEMENTS (spoilers); k++)
    for (i = 0; i < function->n_params; i++)
      for (m = 0; refuse_one (function, spoilers[k], i, m, TRUE); m++)
        if (function->throws || has_results (function))
          refuse_one (function, spoilers[k], i, m, FALSE);
}

/* --- results of asynchronous calls --- */

/* Returns the name without its ending, and without the distinction of lists and tables: these share their
 * results. */
static gchar *
get_stem (const gchar *name)
{
  g_auto (GStrv) parts = g_strsplit (name, "_lists", 2);
  g_autofree gchar *joined = g_strjoinv ("", parts);
  gchar *end = g_strrstr (joined, "_");

  *end = '\0';
  return g_steal_pointer (&joined);
}

static gboolean
takes_results_of (const Function *finish, const Function *function)
{
  g_autofree gchar *wanted = get_stem (finish->name);
  g_autofree gchar *given = get_stem (function->name);

  if (g_str_equal (finish->name, "gtorch_safetensors_load_finish_lists")
      && g_str_equal (given, "gtorch_safetensors_load_file"))
    return TRUE;
  return g_str_equal (wanted, given);
}

/* Returns FALSE if there is no object of its class here. */
static gboolean
call_finish (const Function *finish, gpointer source, GAsyncResult *result, const gchar *what,
             const gchar *mention)
{
  const gboolean must_fail = mention != NULL;
  guint k;

  for (k = 0; k < 2; k++) /* with and without a place for the error */
    {
      Call call = { .function = finish };
      g_auto (Refusal) refusal = { .what = g_strdup (what), .mention = g_strdup (mention) };
      gboolean is_there;
      guint i;

      refusal.expect = must_fail ? MUST_FAIL : MAY_FAIL;
      call_init (&call);
      for (i = 0; i < finish->n_params; i++)
        if (g_str_equal (finish->params[i].type, "GAsyncResult"))
          replace (&call, i, g_object_ref (result));
        else if (finish->params[i].kind == PARAM_OBJECT && source != NULL)
          replace (&call, i, g_object_ref (source));
      is_there = !lacks_object (&call);
      call.is_called = is_there;
      if (is_there)
        refuse_call_once (finish, call.args, &refusal, k == 0);
      call_clear (&call);
      if (!is_there)
        return FALSE;
      if (!must_fail)
        return TRUE;
    }
  return TRUE;
}

/* Starts the function, and ends it with every other finish function, with another object, correctly, and
 * once more. */
static void
finishes_with_its_own_function_only (gconstpointer data)
{
  const Function *function = data;
  Call call = { .function = function };
  g_auto (Refusal) refusal = { .what = g_strdup ("nothing"), .expect = MAY_FAIL };
  g_autoptr (GAsyncResult) result = NULL;
  g_autofree gchar *stem = NULL;
  const Function *own;
  gpointer source = NULL;
  guint i;

  find_finish (function);
  own = g_steal_pointer (&waiting.finish);
  call_init (&call);
  if (lacks_object (&call))
    {
      g_test_skip ("there is no such object here");
      call_clear (&call);
      return;
    }
  if (function->params[0].kind == PARAM_OBJECT && own->params[0].kind == PARAM_OBJECT)
    source = call.objects[0];
  call.is_called = TRUE;
  if (refuse_call_once (function, call.args, &refusal, TRUE))
    wait_until_ready (function);
  result = g_steal_pointer (&waiting.result);
  g_assert_nonnull (result);

  /* the function that does the work treats lists as tables */
  stem = get_stem (function->name);
  for (i = 0; i < n_functions; i++)
    if (is_finish (&functions[i]) && !takes_results_of (&functions[i], function))
      call_finish (&functions[i], NULL, result, "the result of another function", stem);
  if (source != NULL && !GTORCH_IS_DEVICE (source)) /* there is only one CPU */
    call_finish (own, NULL, result, "the result of another object", stem);
  call_finish (own, source, result, "its own result", NULL);
  call_finish (own, source, result, "its own result for the second time", stem);
  call_clear (&call);
  refuse_restore ();
}

/* --- calls that are cancelled before they begin --- */

static gint
find_cancellable (const Function *function)
{
  guint i;

  for (i = 0; i < function->n_params; i++)
    if (g_str_equal (function->params[i].type, "GCancellable"))
      return i;
  return -1;
}

/* A cancelled source is ready at once. */
static gboolean
gives_a_source (const Function *function)
{
  return function->drop == (GDestroyNotify) g_source_unref;
}

/* It waits for nothing itself. */
static gboolean
keeps_a_cancellable (const Function *function)
{
  return g_str_has_suffix (function->name, "_set_cancellable");
}

static void
obeys_a_cancelled_cancellable (gconstpointer data)
{
  const Function *function = data;
  const gboolean is_async = g_str_has_suffix (function->name, "_async");
  guint k;

  for (k = 0; k < 2; k++) /* with and without a place for the error */
    {
      Call call = { .function = function };
      g_auto (Refusal) refusal = { .is_cancelled = TRUE };
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      const Function *own = NULL;

      g_cancellable_cancel (cancellable);
      refusal.what = g_strdup ("is cancelled");
      refusal.expect = is_async ? MAY_FAIL : MUST_FAIL;
      call_init (&call);
      replace (&call, find_cancellable (function), g_steal_pointer (&cancellable));
      if (lacks_object (&call))
        {
          g_test_skip ("there is no such object here");
          call_clear (&call);
          return;
        }
      if (is_async)
        {
          find_finish (function);
          own = g_steal_pointer (&waiting.finish);
        }
      call.is_called = TRUE;
      refuse_call_once (function, call.args, &refusal, k == 0);
      if (is_async)
        {
          g_autoptr (GAsyncResult) result = NULL;
          g_autoptr (GObject) source = NULL;
          Call end = { .function = own };
          guint i;

          wait_until_ready (function);
          result = g_steal_pointer (&waiting.result);
          source = g_async_result_get_source_object (result);
          for (i = 0; i < own->n_params; i++)
            if (g_str_equal (own->params[i].type, "GAsyncResult"))
              end.args[i].p = result;
            else if (own->params[i].kind == PARAM_OBJECT)
              end.args[i].p = source;
          refusal.expect = MUST_FAIL;
          refuse_call_once (own, end.args, &refusal, k == 0);
        }
      call_clear (&call);
      refuse_restore ();
    }
}

/* A result that is no task. */
typedef struct
{
  GObject parent_instance;
} Foreign;

typedef GObjectClass ForeignClass;

static void
foreign_implement (GAsyncResultIface *iface)
{
}

GType foreign_get_type (void);
G_DEFINE_TYPE_WITH_CODE (Foreign, foreign, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_ASYNC_RESULT, foreign_implement))

static void
foreign_class_init (ForeignClass *klass)
{
}

static void
foreign_init (Foreign *self)
{
}

static void
refuses_foreign_results (gconstpointer data)
{
  const Function *finish = data;
  g_autoptr (GObject) foreign = g_object_new (foreign_get_type (), NULL);
  g_autoptr (GTask) task = g_task_new (NULL, NULL, NULL, NULL);

  g_task_set_source_tag (task, refuses_foreign_results);
  g_task_return_int (task, 42);
  if (!call_finish (finish, NULL, G_ASYNC_RESULT (foreign), "is no task", "Foreign"))
    g_test_skip ("there is no such object here");
  else
    call_finish (finish, NULL, G_ASYNC_RESULT (task), "a task of the program's",
                 "refuses_foreign_results");
}

/* Some functions take any text for the name of a file, and make it: not where the program was started. */
static gchar *
enter_empty_folder (void)
{
  gchar *folder = g_dir_make_tmp ("gtorch-refuse-XXXXXX", NULL);

  g_assert_nonnull (folder);
  g_assert_cmpint (g_chdir (folder), ==, 0);
  return folder;
}

static void
remove_folder (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    g_unlink (name);
  g_assert_cmpint (g_chdir ("/"), ==, 0);
  g_rmdir (folder);
}

int
main (int argc, char *argv[])
{
  g_autofree gchar *folder = NULL;
  guint i;
  int status;

  g_test_init (&argc, &argv, NULL);
  folder = enter_empty_folder ();
  refuse_init ();
  refuse_restore ();
  for (i = 0; i < n_functions; i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/refuse/%s", functions[i].name);
      g_autofree gchar *cancelled = g_strdup_printf ("/GTorch/cancelled/%s", functions[i].name);
      g_autofree gchar *results = g_strdup_printf ("/GTorch/results/%s", functions[i].name);

      if (!g_str_equal (functions[i].header, "gtorch-tensor-ops.h")
          || g_str_equal (functions[i].name, WITHOUT_SAMPLE))
        g_test_add_data_func (path, &functions[i], refuses);
      if (find_cancellable (&functions[i]) >= 0 && !gives_a_source (&functions[i])
          && !keeps_a_cancellable (&functions[i]))
        g_test_add_data_func (cancelled, &functions[i], obeys_a_cancelled_cancellable);
      if (g_str_has_suffix (functions[i].name, "_async"))
        g_test_add_data_func (results, &functions[i], finishes_with_its_own_function_only);
      else if (is_finish (&functions[i]))
        g_test_add_data_func (results, &functions[i], refuses_foreign_results);
    }
  status = g_test_run ();
  remove_folder (folder);
  return status;
}
