/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Calls of the library's functions that take a function.
 *
 * libgirepository makes a closure for each function that PyGObject passes to C, and keeps some of its memory
 * when it is freed; a virtual function that takes a list and raises leaves the list, too. A program that
 * makes such a call in each step grows for ever, so these calls are made here, with functions in C that call
 * the one in Python, which is their data. Without this module PyGObject makes them. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

/* --- values --- */

/* Returns the object of a wrapper, NULL for None; sets @failed and an exception for anything else. */
static gpointer
get_object (PyObject *value, GType type, gboolean is_needed, gboolean *failed)
{
  GObject *object = NULL;

  if (value == Py_None && !is_needed)
    return NULL;
  if (PyObject_TypeCheck (value, pygobject_lookup_class (G_TYPE_OBJECT)))
    object = pygobject_get (value);
  if (object != NULL && g_type_is_a (G_OBJECT_TYPE (object), type))
    return object;
  if (!*failed)
    PyErr_Format (PyExc_TypeError, "a %s was expected, not %s",
                  g_str_has_prefix (g_type_name (type), "GTorch") ? g_type_name (type) + 6
                                                                  : g_type_name (type),
                  Py_TYPE (value)->tp_name);
  *failed = TRUE;
  return NULL;
}

/* Lends the tensors of a list, in an array to be freed; NULL with an exception. */
static GTorchTensor **
get_tensors (PyObject *list, gsize *n)
{
  gboolean failed = FALSE;
  GTorchTensor **tensors;
  gsize i;

  if (!PyList_Check (list))
    {
      PyErr_Format (PyExc_TypeError, "a list of tensors was expected, not %s",
                    Py_TYPE (list)->tp_name);
      return NULL;
    }
  *n = PyList_GET_SIZE (list);
  tensors = g_new0 (GTorchTensor *, *n + 1);
  for (i = 0; i < *n && !failed; i++)
    tensors[i] = get_object (PyList_GET_ITEM (list, i), GTORCH_TYPE_TENSOR, TRUE, &failed);
  if (failed)
    g_clear_pointer (&tensors, g_free);
  return tensors;
}

/* Copies a list of texts; NULL for None, and with an exception. */
static gchar **
get_texts (PyObject *list, gboolean *failed)
{
  GPtrArray *texts;
  Py_ssize_t i;

  if (list == Py_None || *failed)
    return NULL;
  if (!PyList_Check (list))
    {
      PyErr_Format (PyExc_TypeError, "a list of texts was expected, not %s",
                    Py_TYPE (list)->tp_name);
      *failed = TRUE;
      return NULL;
    }
  texts = g_ptr_array_new_with_free_func (g_free);
  for (i = 0; i < PyList_GET_SIZE (list) && !*failed; i++)
    {
      const char *text = PyUnicode_AsUTF8 (PyList_GET_ITEM (list, i));

      *failed = text == NULL;
      g_ptr_array_add (texts, g_strdup (text));
    }
  g_ptr_array_add (texts, NULL);
  if (*failed)
    {
      g_ptr_array_unref (texts);
      return NULL;
    }
  return (gchar **) g_ptr_array_free (texts, FALSE);
}

static PyObject *
texts_to_list (gchar **texts)
{
  gsize i, n = texts != NULL ? g_strv_length (texts) : 0;
  PyObject *list = PyList_New (n);

  for (i = 0; list != NULL && i < n; i++)
    {
      PyObject *text = PyUnicode_FromString (texts[i]);

      if (text == NULL)
        Py_CLEAR (list);
      else
        PyList_SET_ITEM (list, i, text);
    }
  return list;
}

static PyObject *
tensors_to_list (gpointer *tensors, gsize n)
{
  PyObject *list = PyList_New (n);
  gsize i;

  for (i = 0; list != NULL && i < n; i++)
    {
      PyObject *tensor = pygobject_new (tensors[i]);

      if (tensor == NULL)
        Py_CLEAR (list);
      else
        PyList_SET_ITEM (list, i, tensor);
    }
  return list;
}

static void
unref_if_any (gpointer object)
{
  if (object != NULL)
    g_object_unref (object);
}

/* Returns the tensors of a list, with NULL for None; NULL with an error unless it is such a list. */
static GPtrArray *
list_to_tensors (PyObject *list, GError **error)
{
  GPtrArray *tensors = g_ptr_array_new_with_free_func (unref_if_any);
  Py_ssize_t i, n = PyList_Check (list) ? PyList_GET_SIZE (list) : -1;

  for (i = 0; i < n; i++)
    {
      PyObject *item = PyList_GET_ITEM (list, i);
      GTorchTensor *tensor = gt_dup_tensor (item);

      if (tensor == NULL && item != Py_None)
        break;
      g_ptr_array_add (tensors, tensor);
    }
  if (i == n)
    return tensors;
  g_ptr_array_unref (tensors);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "no list of tensors was returned");
  return NULL;
}

static PyObject *
succeeded (gboolean success, GError **error)
{
  if (success)
    Py_RETURN_TRUE;
  gt_raise (error);
  return NULL;
}

/* --- functions in C that call the one in Python --- */

static gboolean
run_with_object (gpointer object, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = gt_call (function, Py_BuildValue ("(N)", pygobject_new (object)), error);
  gboolean success = result != NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return success;
}

static gboolean
run_alone (gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = gt_call (function, PyTuple_New (0), error);
  gboolean success = result != NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return success;
}

static GTorchTensor *
run_with_tensors (GTorchTensor **tensors, gsize n, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (function, Py_BuildValue ("(N)", tensors_to_list ((gpointer *) tensors, n)), error);
  GTorchTensor *output = gt_dup_tensor (result);

  if (result != NULL && output == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "the function returned no tensor");
  Py_XDECREF (result);
  PyGILState_Release (state);
  return output;
}

static GTorchTensor *
run_with_pair (GTorchTensor *x1, GTorchTensor *x2, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = gt_call (function,
                              Py_BuildValue ("(NN)", pygobject_new ((GObject *) x1),
                                             pygobject_new ((GObject *) x2)),
                              error);
  GTorchTensor *output = gt_dup_tensor (result);

  if (result != NULL && output == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "the function returned no tensor");
  Py_XDECREF (result);
  PyGILState_Release (state);
  return output;
}

static GPtrArray *
run_graphed (GTorchTensor **tensors, gsize n, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (function, Py_BuildValue ("(N)", tensors_to_list ((gpointer *) tensors, n)), error);
  GPtrArray *outputs = result != NULL ? list_to_tensors (result, error) : NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return outputs;
}

/* Its function raises nothing. */
static void
report (goffset done, goffset total, gpointer function)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = PyObject_CallFunction (function, "LL", (long long) done, (long long) total);

  if (result == NULL)
    PyErr_Print ();
  Py_XDECREF (result);
  PyGILState_Release (state);
}

static void
complete (GObject *source, GAsyncResult *result, gpointer function)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *done = PyObject_CallFunction (function, "NN", pygobject_new (source),
                                          pygobject_new ((GObject *) result));

  if (done == NULL)
    PyErr_Print ();
  Py_XDECREF (done);
  Py_DECREF ((PyObject *) function);
  PyGILState_Release (state);
}

/* --- functions that run another --- */

typedef gboolean (*RunFunc) (gpointer object, gpointer data, GError **error);
typedef gboolean (*Runner) (gpointer self, RunFunc func, gpointer data, GError **error);

static const struct
{
  const char *name;
  GType (*get_type) (void);
  Runner runner;
} runners[] = {
  { "Device.run", gtorch_device_get_type, (Runner) (GCallback) gtorch_device_run },
  { "Device.run_as_default", gtorch_device_get_type,
    (Runner) (GCallback) gtorch_device_run_as_default },
  { "MemoryPool.run", gtorch_memory_pool_get_type, (Runner) (GCallback) gtorch_memory_pool_run },
  { "Stream.run", gtorch_stream_get_type, (Runner) (GCallback) gtorch_stream_run },
};

/* run(name, object, function) */
static PyObject *
run (PyObject *module, PyObject *args)
{
  gboolean success, failed = FALSE;
  PyObject *wrapper, *function;
  GError *error = NULL;
  const char *name;
  gpointer object;
  gsize i;

  if (!PyArg_ParseTuple (args, "sOO", &name, &wrapper, &function))
    return NULL;
  for (i = 0; i < G_N_ELEMENTS (runners); i++)
    if (g_str_equal (runners[i].name, name))
      break;
  if (i == G_N_ELEMENTS (runners))
    return PyErr_Format (PyExc_LookupError, "no function %s", name);
  object = get_object (wrapper, runners[i].get_type (), TRUE, &failed);
  if (failed)
    return NULL;
  Py_BEGIN_ALLOW_THREADS success = runners[i].runner (object, run_with_object, function, &error);
  Py_END_ALLOW_THREADS return succeeded (success, &error);
}

/* capture(graph, stream, pool, function) */
static PyObject *
capture (PyObject *module, PyObject *args)
{
  PyObject *wrapper, *on, *from, *function;
  gboolean success, failed = FALSE;
  GTorchCUDAGraph *graph;
  GTorchMemoryPool *pool;
  GTorchStream *stream;
  GError *error = NULL;

  if (!PyArg_ParseTuple (args, "OOOO", &wrapper, &on, &from, &function))
    return NULL;
  graph = get_object (wrapper, GTORCH_TYPE_CUDA_GRAPH, TRUE, &failed);
  stream = get_object (on, GTORCH_TYPE_STREAM, FALSE, &failed);
  pool = get_object (from, GTORCH_TYPE_MEMORY_POOL, FALSE, &failed);
  if (failed)
    return NULL;
  Py_BEGIN_ALLOW_THREADS success =
      gtorch_cuda_graph_capture (graph, stream, pool,
                                 (GTorchStreamFunc) (GCallback) run_with_object, function, &error);
  Py_END_ALLOW_THREADS return succeeded (success, &error);
}

/* autocast_run(device_type, dtype, enabled, cache_enabled, function) */
static PyObject *
autocast_run (PyObject *module, PyObject *args)
{
  int device_type, dtype, enabled, cached;
  PyObject *function;
  GError *error = NULL;
  gboolean success;

  if (!PyArg_ParseTuple (args, "iippO", &device_type, &dtype, &enabled, &cached, &function))
    return NULL;
  Py_BEGIN_ALLOW_THREADS success =
      gtorch_autocast_run (device_type, dtype, enabled, cached, run_alone, function, &error);
  Py_END_ALLOW_THREADS return succeeded (success, &error);
}

/* record_function(name, function) */
static PyObject *
record_function (PyObject *module, PyObject *args)
{
  const char *name;
  PyObject *function;
  GError *error = NULL;
  gboolean success;

  if (!PyArg_ParseTuple (args, "sO", &name, &function))
    return NULL;
  Py_BEGIN_ALLOW_THREADS success = gtorch_record_function (name, run_alone, function, &error);
  Py_END_ALLOW_THREADS return succeeded (success, &error);
}

static PyObject *
is_profiling (PyObject *module, PyObject *unused)
{
  return PyBool_FromLong (gtorch_is_profiling ());
}

/* gradcheck(is_second, function, inputs, eps, atol, rtol) */
static PyObject *
gradcheck (PyObject *module, PyObject *args)
{
  PyObject *function, *list;
  GTorchTensor **inputs;
  double eps, atol, rtol;
  GError *error = NULL;
  gboolean success;
  int is_second;
  gsize n;

  if (!PyArg_ParseTuple (args, "pOOddd", &is_second, &function, &list, &eps, &atol, &rtol))
    return NULL;
  inputs = get_tensors (list, &n);
  if (inputs == NULL)
    return NULL;
  Py_BEGIN_ALLOW_THREADS success =
      (is_second ? gtorch_gradgradcheck : gtorch_gradcheck) (run_with_tensors, function, inputs, n,
                                                             eps, atol, rtol, &error);
  Py_END_ALLOW_THREADS g_free (inputs);
  return succeeded (success, &error);
}

/* distance(function, [anchor, positive, negative], margin, swap, reduction) */
static PyObject *
distance (PyObject *module, PyObject *args)
{
  PyObject *function, *list, *result;
  GTorchTensor **inputs, *loss;
  int swap, reduction;
  GError *error = NULL;
  double margin;
  gsize n;

  if (!PyArg_ParseTuple (args, "OOdpi", &function, &list, &margin, &swap, &reduction))
    return NULL;
  inputs = get_tensors (list, &n);
  if (inputs == NULL || n != 3)
    {
      g_free (inputs);
      return PyErr_Occurred () != NULL ? NULL : PyErr_Format (PyExc_TypeError, "three tensors");
    }
  Py_BEGIN_ALLOW_THREADS loss =
      gtorch_triplet_margin_with_distance_loss (inputs[0], inputs[1], inputs[2], run_with_pair,
                                                function, margin, swap, reduction, &error);
  Py_END_ALLOW_THREADS g_free (inputs);
  if (loss == NULL)
    return succeeded (FALSE, &error);
  result = pygobject_new ((GObject *) loss);
  g_object_unref (loss);
  return result;
}

typedef GPtrArray *(*Matrix) (GTorchFunctionalFunc func, gpointer data, GTorchTensor **inputs,
                              gsize n, gboolean create_graph, gboolean strict, GError **error);
typedef GPtrArray *(*Product) (GTorchFunctionalFunc func, gpointer data, GTorchTensor **inputs,
                               gsize n, GTorchTensor **v, gsize n_v, gboolean create_graph,
                               gboolean strict, GPtrArray **products, GError **error);

static const struct
{
  const char *name;
  Matrix matrix;
  Product product;
} functionals[] = {
  { "hessian", gtorch_autograd_hessian, NULL },
  { "hessian_forward", gtorch_autograd_hessian_forward, NULL },
  { "hvp", NULL, gtorch_autograd_hvp },
  { "jacobian", gtorch_autograd_jacobian, NULL },
  { "jacobian_forward", gtorch_autograd_jacobian_forward, NULL },
  { "jvp", NULL, gtorch_autograd_jvp },
  { "vhp", NULL, gtorch_autograd_vhp },
  { "vjp", NULL, gtorch_autograd_vjp },
};

/* functional(name, function, inputs, v, create_graph, strict): blocks, or outputs and products */
static PyObject *
functional (PyObject *module, PyObject *args)
{
  PyObject *function, *list, *vector, *result;
  GPtrArray *found, *products = NULL;
  GTorchTensor **inputs, **v;
  GError *error = NULL;
  int create, strict;
  const char *name;
  gsize i, n, n_v;

  if (!PyArg_ParseTuple (args, "sOOOpp", &name, &function, &list, &vector, &create, &strict))
    return NULL;
  for (i = 0; i < G_N_ELEMENTS (functionals); i++)
    if (g_str_equal (functionals[i].name, name))
      break;
  if (i == G_N_ELEMENTS (functionals))
    return PyErr_Format (PyExc_LookupError, "no function %s", name);
  inputs = get_tensors (list, &n);
  v = inputs != NULL ? get_tensors (vector, &n_v) : NULL;
  if (v == NULL)
    {
      g_free (inputs);
      return NULL;
    }
  Py_BEGIN_ALLOW_THREADS found =
      functionals[i].matrix != NULL
          ? functionals[i].matrix (run_graphed, function, inputs, n, create, strict, &error)
          : functionals[i].product (run_graphed, function, inputs, n, v, n_v, create, strict,
                                    &products, &error);
  Py_END_ALLOW_THREADS g_free (inputs);
  g_free (v);
  if (found == NULL)
    return succeeded (FALSE, &error);
  result = tensors_to_list (found->pdata, found->len);
  g_ptr_array_unref (found);
  if (products == NULL)
    return result;
  result = Py_BuildValue ("(NN)", result, tensors_to_list (products->pdata, products->len));
  g_ptr_array_unref (products);
  return result;
}

/* graphed(function, samples) */
static PyObject *
graphed (PyObject *module, PyObject *args)
{
  GTorchGraphedModule *made;
  PyObject *function, *list;
  GTorchTensor **samples;
  GError *error = NULL;
  gsize n;

  if (!PyArg_ParseTuple (args, "OO", &function, &list))
    return NULL;
  samples = get_tensors (list, &n);
  if (samples == NULL)
    return NULL;
  made = gtorch_graphed_module_new_for_func (run_graphed, Py_NewRef (function), gt_unref, samples,
                                             n, &error);
  g_free (samples);
  if (made == NULL)
    return succeeded (FALSE, &error);
  return pygobject_new_full ((GObject *) made, TRUE, NULL);
}

/* --- saved tensors --- */

/* Its function gives an object of GObject's. */
static GObject *
run_pack (GTorchTensor *tensor, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (function, Py_BuildValue ("(N)", pygobject_new ((GObject *) tensor)), error);
  gboolean failed = FALSE;
  GObject *packed = result != NULL ? get_object (result, G_TYPE_OBJECT, TRUE, &failed) : NULL;

  if (packed != NULL)
    g_object_ref (packed);
  else if (failed)
    gt_call (NULL, NULL, error);
  Py_XDECREF (result);
  PyGILState_Release (state);
  return packed;
}

static GTorchTensor *
run_unpack (GObject *packed, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = gt_call (function, Py_BuildValue ("(N)", pygobject_new (packed)), error);
  GTorchTensor *tensor = gt_dup_tensor (result);

  if (result != NULL && tensor == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "the function returned no tensor");
  Py_XDECREF (result);
  PyGILState_Release (state);
  return tensor;
}

static gboolean
run_again (GTorchTensor **tensors, gsize n, gpointer function, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (function, Py_BuildValue ("(N)", tensors_to_list ((gpointer *) tensors, n)), error);
  gboolean success = result != NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return success;
}

static PyObject *
wrap_guard (GTorchSavedTensorsGuard *guard, GError **error)
{
  if (guard == NULL)
    return succeeded (FALSE, error);
  return pyg_boxed_new (GTORCH_TYPE_SAVED_TENSORS_GUARD, guard, FALSE, TRUE);
}

/* saved_hooks(pack, unpack) */
static PyObject *
saved_hooks (PyObject *module, PyObject *args)
{
  PyObject *pack, *unpack;
  GError *error = NULL;

  if (!PyArg_ParseTuple (args, "OO", &pack, &unpack))
    return NULL;
  return wrap_guard (gtorch_saved_tensors_hooks (run_pack, Py_NewRef (pack), gt_unref, run_unpack,
                                                 Py_NewRef (unpack), gt_unref, &error),
                     &error);
}

/* checkpoint_begin(function, inputs, preserve_rng_state, determinism_check, early_stop) */
static PyObject *
checkpoint_begin (PyObject *module, PyObject *args)
{
  GTorchSavedTensorsGuard *guard;
  PyObject *function, *list;
  GTorchTensor **inputs;
  int random, check, early;
  GError *error = NULL;
  gsize n;

  if (!PyArg_ParseTuple (args, "OOppp", &function, &list, &random, &check, &early))
    return NULL;
  inputs = get_tensors (list, &n);
  if (inputs == NULL)
    return NULL;
  guard = gtorch_checkpoint_begin (run_again, Py_NewRef (function), gt_unref, inputs, n, random,
                                   check, early, &error);
  g_free (inputs);
  return wrap_guard (guard, &error);
}

/* checkpoint_function(function, preserve_rng_state) */
static PyObject *
checkpoint_function (PyObject *module, PyObject *args)
{
  PyObject *function;
  int random;

  if (!PyArg_ParseTuple (args, "Op", &function, &random))
    return NULL;
  return pygobject_new_full ((GObject *) gtorch_checkpoint_function_new (run_graphed,
                                                                         Py_NewRef (function),
                                                                         gt_unref, random),
                             TRUE, NULL);
}

/* --- files --- */

/* load(stream or file, map, device, cancellable, progress): the tensors, their names and the metadata. */
static PyObject *
load (PyObject *module, PyObject *args)
{
  PyObject *from, *on, *stopped, *progress, *result = NULL;
  gchar **names = NULL, **metadata = NULL;
  gboolean map, failed = FALSE;
  GCancellable *cancellable;
  GTorchDevice *device;
  GPtrArray *tensors;
  GError *error = NULL;
  gpointer source;

  if (!PyArg_ParseTuple (args, "OpOOO", &from, &map, &on, &stopped, &progress))
    return NULL;
  source = get_object (from, G_TYPE_OBJECT, TRUE, &failed);
  device = get_object (on, GTORCH_TYPE_DEVICE, FALSE, &failed);
  cancellable = get_object (stopped, G_TYPE_CANCELLABLE, FALSE, &failed);
  if (!failed && !G_IS_FILE (source))
    source = get_object (from, G_TYPE_INPUT_STREAM, TRUE, &failed);
  if (failed)
    return NULL;
  Py_BEGIN_ALLOW_THREADS if (G_IS_FILE (source)) tensors =
      gtorch_safetensors_load_file_lists (source, map, device, &names, &metadata, cancellable,
                                          report, progress, &error);
  else tensors = gtorch_safetensors_load_lists (source, device, &names, &metadata, cancellable,
                                                report, progress, &error);
  Py_END_ALLOW_THREADS if (tensors == NULL) return succeeded (FALSE, &error);
  result = Py_BuildValue ("(NNN)", tensors_to_list (tensors->pdata, tensors->len),
                          texts_to_list (names), texts_to_list (metadata));
  g_ptr_array_unref (tensors);
  g_strfreev (names);
  g_strfreev (metadata);
  return result;
}

/* save(names, tensors, metadata, stream or file, cancellable, progress) */
static PyObject *
save (PyObject *module, PyObject *args)
{
  PyObject *list, *values, *texts, *into, *stopped, *progress;
  gboolean success = FALSE, failed = FALSE;
  gchar **names, **metadata;
  GCancellable *cancellable;
  GTorchTensor **tensors;
  GError *error = NULL;
  gpointer target;
  gsize n = 0;

  if (!PyArg_ParseTuple (args, "OOOOOO", &list, &values, &texts, &into, &stopped, &progress))
    return NULL;
  target = get_object (into, G_TYPE_OBJECT, TRUE, &failed);
  cancellable = get_object (stopped, G_TYPE_CANCELLABLE, FALSE, &failed);
  if (!failed && !G_IS_FILE (target))
    target = get_object (into, G_TYPE_OUTPUT_STREAM, TRUE, &failed);
  names = get_texts (list, &failed);
  metadata = get_texts (texts, &failed);
  tensors = failed ? NULL : get_tensors (values, &n);
  if (tensors != NULL)
    {
      Py_BEGIN_ALLOW_THREADS success =
          (G_IS_FILE (target)
               ? gtorch_safetensors_save_file_lists ((const gchar *const *) names, tensors, n,
                                                     (const gchar *const *) metadata, target,
                                                     cancellable, report, progress, &error)
               : gtorch_safetensors_save_lists ((const gchar *const *) names, tensors, n,
                                                (const gchar *const *) metadata, target,
                                                cancellable, report, progress, &error));
      Py_END_ALLOW_THREADS
    }
  g_strfreev (names);
  g_strfreev (metadata);
  if (tensors == NULL)
    return NULL;
  g_free (tensors);
  return succeeded (success, &error);
}

/* --- buffers --- */

static void
release (gpointer data)
{
  Py_buffer *buffer = data;
  PyGILState_STATE state;

  if (!Py_IsInitialized ())
    return;
  state = PyGILState_Ensure ();
  PyBuffer_Release (buffer);
  PyGILState_Release (state);
  g_free (buffer);
}

/* share(buffer): GLib.Bytes that alias its memory and keep it. */
static PyObject *
share (PyObject *module, PyObject *object)
{
  Py_buffer *buffer = g_new0 (Py_buffer, 1);

  if (PyObject_GetBuffer (object, buffer, PyBUF_C_CONTIGUOUS) < 0)
    {
      g_free (buffer);
      return NULL;
    }
  return pyg_boxed_new (G_TYPE_BYTES,
                        g_bytes_new_with_free_func (buffer->buf, buffer->len, release, buffer),
                        FALSE, TRUE);
}

/* --- asynchronous functions --- */

typedef void (*Begin) (gpointer self, GCancellable *cancellable, GAsyncReadyCallback callback,
                       gpointer data);
typedef void (*BeginWith) (gpointer self, gpointer other, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer data);

static const struct
{
  const char *name;
  GType (*get_type) (void);
  Begin begin;
  GType (*get_other) (void);
  BeginWith begin_with;
} beginners[] = {
  { "Device.synchronize_async", gtorch_device_get_type,
    (Begin) (GCallback) gtorch_device_synchronize_async },
  { "Event.synchronize_async", gtorch_event_get_type,
    (Begin) (GCallback) gtorch_event_synchronize_async },
  { "Stream.synchronize_async", gtorch_stream_get_type,
    (Begin) (GCallback) gtorch_stream_synchronize_async },
  { "Tensor.item_double_async", gtorch_tensor_get_type,
    (Begin) (GCallback) gtorch_tensor_item_double_async },
  { "Tensor.item_int_async", gtorch_tensor_get_type,
    (Begin) (GCallback) gtorch_tensor_item_int_async },
  { "Tensor.get_bytes_async", gtorch_tensor_get_type,
    (Begin) (GCallback) gtorch_tensor_get_bytes_async },
  { "Tensor.to_doubles_async", gtorch_tensor_get_type,
    (Begin) (GCallback) gtorch_tensor_to_doubles_async },
  { "Tensor.to_ints_async", gtorch_tensor_get_type,
    (Begin) (GCallback) gtorch_tensor_to_ints_async },
  { "Timer.stop_async", gtorch_timer_get_type, (Begin) (GCallback) gtorch_timer_stop_async },
  { "GradScaler.step_async", gtorch_grad_scaler_get_type, NULL, gtorch_optimizer_get_type,
    (BeginWith) (GCallback) gtorch_grad_scaler_step_async },
  { "Module.forward_async", gtorch_module_get_type, NULL, gtorch_tensor_get_type,
    (BeginWith) (GCallback) gtorch_module_forward_async },
  { "Tensor.copy_inplace_async", gtorch_tensor_get_type, NULL, gtorch_tensor_get_type,
    (BeginWith) (GCallback) gtorch_tensor_copy_inplace_async },
  { "Tensor.to_device_async", gtorch_tensor_get_type, NULL, gtorch_device_get_type,
    (BeginWith) (GCallback) gtorch_tensor_to_device_async },
};

static PyObject *
begin_backward (PyObject *args, GTorchTensor *self, GCancellable *cancellable, PyObject *function)
{
  gboolean retain, create, failed = FALSE;
  GTorchTensor *gradient;
  PyObject *value;

  if (!PyArg_ParseTuple (args, "Opp", &value, &retain, &create))
    return NULL;
  gradient = get_object (value, GTORCH_TYPE_TENSOR, FALSE, &failed);
  if (failed)
    return NULL;
  Py_INCREF (function);
  Py_BEGIN_ALLOW_THREADS gtorch_tensor_backward_async (self, gradient, retain, create, cancellable,
                                                       complete, function);
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* begin(name, object, arguments, cancellable, function) */
static PyObject *
begin (PyObject *module, PyObject *args)
{
  PyObject *wrapper, *given, *stopped, *function;
  gpointer object, other = NULL;
  GCancellable *cancellable;
  gboolean failed = FALSE;
  const char *name;
  gsize i;

  if (!PyArg_ParseTuple (args, "sOO!OO", &name, &wrapper, &PyTuple_Type, &given, &stopped,
                         &function))
    return NULL;
  cancellable = get_object (stopped, G_TYPE_CANCELLABLE, FALSE, &failed);
  if (g_str_equal (name, "Tensor.backward_async"))
    {
      object = get_object (wrapper, GTORCH_TYPE_TENSOR, TRUE, &failed);
      return failed ? NULL : begin_backward (given, object, cancellable, function);
    }
  for (i = 0; i < G_N_ELEMENTS (beginners); i++)
    if (g_str_equal (beginners[i].name, name))
      break;
  if (i == G_N_ELEMENTS (beginners)
      || PyTuple_GET_SIZE (given) != (beginners[i].begin_with != NULL))
    return PyErr_Format (PyExc_LookupError, "no function %s of %zd arguments", name,
                         PyTuple_GET_SIZE (given));
  object = get_object (wrapper, beginners[i].get_type (), TRUE, &failed);
  if (beginners[i].begin_with != NULL)
    other = get_object (PyTuple_GET_ITEM (given, 0), beginners[i].get_other (), TRUE, &failed);
  if (failed)
    return NULL;
  Py_INCREF (function);
  Py_BEGIN_ALLOW_THREADS if (other != NULL) beginners[i].begin_with (object, other, cancellable,
                                                                     complete, function);
  else beginners[i].begin (object, cancellable, complete, function);
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static gboolean
call_once (gpointer function)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = PyObject_CallNoArgs (function);

  if (result == NULL)
    PyErr_Print ();
  Py_XDECREF (result);
  PyGILState_Release (state);
  return G_SOURCE_REMOVE;
}

/* post(context, function): calls it once from the main loop of the context. */
static PyObject *
post (PyObject *module, PyObject *args)
{
  PyObject *wrapper, *function;
  GSource *source;

  if (!PyArg_ParseTuple (args, "OO", &wrapper, &function))
    return NULL;
  if (!pyg_boxed_check (wrapper, G_TYPE_MAIN_CONTEXT))
    return PyErr_Format (PyExc_TypeError, "a main context was expected");
  source = g_idle_source_new ();
  g_source_set_callback (source, call_once, Py_NewRef (function), gt_unref);
  g_source_attach (source, pyg_boxed_get (wrapper, GMainContext));
  g_source_unref (source);
  Py_RETURN_NONE;
}

/* --- virtual functions that take lists --- */

/* Calls a method of the object's with a context, if there is one, and with the tensors. */
static PyObject *
call_method (gpointer self, const char *name, gpointer context, GTorchTensor **tensors, gsize n,
             GError **error)
{
  PyObject *wrapper = pygobject_new (self);
  PyObject *method = wrapper != NULL ? PyObject_GetAttrString (wrapper, name) : NULL;
  PyObject *list = method != NULL ? tensors_to_list ((gpointer *) tensors, n) : NULL;
  PyObject *args = NULL, *result;

  if (list != NULL)
    args = context != NULL ? Py_BuildValue ("(NN)", pygobject_new (context), list)
                           : Py_BuildValue ("(N)", list);
  result = gt_call (method, args, error);
  Py_XDECREF (method);
  Py_XDECREF (wrapper);
  return result;
}

static GPtrArray *
call_function (GTorchFunction *self, const char *name, GTorchFunctionContext *context,
               GTorchTensor **tensors, gsize n, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = call_method (self, name, context, tensors, n, error);
  GPtrArray *list = result != NULL ? list_to_tensors (result, error) : NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return list;
}

static GPtrArray *
function_forward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **inputs,
                  gsize n_inputs, GError **error)
{
  return call_function (self, "_forward_from_c", context, inputs, n_inputs, error);
}

static GPtrArray *
function_backward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **grads,
                   gsize n_grads, GError **error)
{
  return call_function (self, "_backward_from_c", context, grads, n_grads, error);
}

static GTorchTensor *
module_forward_many (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = call_method (self, "_forward_many_from_c", NULL, inputs, n_inputs, error);
  GTorchTensor *output = gt_dup_tensor (result);

  if (result != NULL && output == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "no tensor was returned");
  Py_XDECREF (result);
  PyGILState_Release (state);
  return output;
}

/* PyGObject calls these for each class that Python derives, before it looks for its do_…() functions. */

static gboolean
has (PyTypeObject *class, const char *name)
{
  return PyDict_GetItemString (class->tp_dict, name) != NULL;
}

static int
init_function_class (gpointer klass, PyTypeObject *class)
{
  if (has (class, "_forward_from_c"))
    ((GTorchFunctionClass *) klass)->forward = function_forward;
  if (has (class, "_backward_from_c"))
    ((GTorchFunctionClass *) klass)->backward = function_backward;
  return 0;
}

static int
init_module_class (gpointer klass, PyTypeObject *class)
{
  if (has (class, "_forward_many_from_c"))
    ((GTorchModuleClass *) klass)->forward_many = module_forward_many;
  return 0;
}

static PyMethodDef functions[] = {
  { "autocast_run", autocast_run, METH_VARARGS, NULL },
  { "record_function", record_function, METH_VARARGS, NULL },
  { "is_profiling", is_profiling, METH_NOARGS, NULL },
  { "begin", begin, METH_VARARGS, NULL },
  { "capture", capture, METH_VARARGS, NULL },
  { "checkpoint_begin", checkpoint_begin, METH_VARARGS, NULL },
  { "checkpoint_function", checkpoint_function, METH_VARARGS, NULL },
  { "distance", distance, METH_VARARGS, NULL },
  { "functional", functional, METH_VARARGS, NULL },
  { "gradcheck", gradcheck, METH_VARARGS, NULL },
  { "graphed", graphed, METH_VARARGS, NULL },
  { "load", load, METH_VARARGS, NULL },
  { "post", post, METH_VARARGS, NULL },
  { "run", run, METH_VARARGS, NULL },
  { "save", save, METH_VARARGS, NULL },
  { "saved_hooks", saved_hooks, METH_VARARGS, NULL },
  { "share", share, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

gboolean
gt_calls_init (PyObject *module)
{
  pyg_register_class_init (GTORCH_TYPE_FUNCTION, init_function_class);
  pyg_register_class_init (GTORCH_TYPE_MODULE, init_module_class);
  return PyModule_AddFunctions (module, functions) >= 0;
}
