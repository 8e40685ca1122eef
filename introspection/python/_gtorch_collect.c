/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reference cycles through the library, for Python's garbage collector.
 *
 * tp_traverse tells the collector which values a value refers to. The collector first calls it with a
 * function that decrements a copy of the reference count of each value; values with a count above zero
 * are in use, and then it calls tp_traverse with another function, for everything that is reachable from
 * there. GTorchReferences does the same for the objects of the library in between. The two functions are
 * learned by observing a collection when the module is loaded; a call with any other function is not from
 * the collector, and does not traverse the library.
 *
 * Only full collections, those of the oldest generation, traverse the library: a graph may be large.
 *
 * References of the library to Python objects, which are reported:
 * - Wrappers that have a dictionary. PyGObject keeps such a wrapper as long as its object lives. Hooks of
 *   modules are in the dictionary, see _gtorch_hooks.py.
 * - Signal handlers, which belong to the object.
 * - Hooks of tensors, which belong to the graph and not to an object: the Hook below. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

static visitproc take_away, reach;   /* the collector's functions; NULL if unknown */
static GTorchReferences *references; /* set during a full collection */
static gboolean is_reaching;
static traverseproc base_traverse;

/* The data that PyGObject attaches to an object: a private layout, which is tested before it is used. */
typedef struct
{
  PyTypeObject *type;
  GSList *closures;
} InstanceData;

static GQuark instance_quark; /* 0 if the layout is another */

/* --- hooks of tensors --- */

typedef struct
{
  PyObject_HEAD;
  PyObject *function;
} Hook;

static int
hook_traverse (PyObject *self, visitproc visit, void *arg)
{
  Py_VISIT (((Hook *) self)->function);
  return 0;
}

static int
hook_clear (PyObject *self)
{
  Py_CLEAR (((Hook *) self)->function);
  return 0;
}

static void
hook_dealloc (PyObject *self)
{
  PyObject_GC_UnTrack (self);
  hook_clear (self);
  PyObject_GC_Del (self);
}

static PyTypeObject hook_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "gi.overrides._gtorch.Hook",
  .tp_basicsize = sizeof (Hook),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
  .tp_traverse = hook_traverse,
  .tp_clear = hook_clear,
  .tp_dealloc = hook_dealloc,
};

void
gt_unref (gpointer data)
{
  PyGILState_STATE state;

  if (!Py_IsInitialized ())
    return;
  state = PyGILState_Ensure ();
  Py_DECREF ((PyObject *) data);
  PyGILState_Release (state);
}

/* Takes the arguments; NULL with the error. */
PyObject *
gt_call (PyObject *function, PyObject *arguments, GError **error)
{
  PyObject *result = arguments != NULL ? PyObject_CallObject (function, arguments) : NULL;

  Py_XDECREF (arguments);
  if (result == NULL)
    {
      if (PyErr_ExceptionMatches (PyExc_Exception))
        pyg_gerror_exception_check (error);
      if (PyErr_Occurred () != NULL)
        PyErr_WriteUnraisable (function);
      if (error != NULL && *error == NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "a hook raised an exception");
    }
  return result;
}

/* Calls it with the tensor; NULL with the error. */
static PyObject *
hook_call (gpointer data, GTorchTensor *tensor, GError **error)
{
  PyObject *function = Py_XNewRef (((Hook *) data)->function);
  PyObject *result;

  if (function == NULL) /* the collector has cleared it */
    Py_RETURN_NONE;
  result = gt_call (function, Py_BuildValue ("(N)", pygobject_new ((GObject *) tensor)), error);
  Py_DECREF (function);
  return result;
}

/* A new reference, or NULL if the value is no tensor. */
GTorchTensor *
gt_dup_tensor (PyObject *value)
{
  if (value == NULL || !PyObject_TypeCheck (value, pygobject_lookup_class (G_TYPE_OBJECT))
      || !GTORCH_IS_TENSOR (pygobject_get (value)))
    return NULL;
  return (GTorchTensor *) g_object_ref (pygobject_get (value));
}

static GTorchTensor *
call_gradient (GTorchTensor *grad, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = hook_call (data, grad, error);
  GTorchTensor *changed = gt_dup_tensor (result);

  Py_XDECREF (result);
  PyGILState_Release (state);
  return changed;
}

static gboolean
call_accumulated (GTorchTensor *tensor, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = hook_call (data, tensor, error);
  gboolean success = result != NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return success;
}

static PyObject *
add_hook (PyObject *module, PyObject *args)
{
  PyObject *wrapper, *function;
  GError *error = NULL;
  GObject *object;
  int accumulated;
  guint64 id;
  Hook *hook;

  if (!PyArg_ParseTuple (args, "OOp", &wrapper, &function, &accumulated))
    return NULL;
  object = PyObject_TypeCheck (wrapper, pygobject_lookup_class (G_TYPE_OBJECT))
               ? pygobject_get (wrapper)
               : NULL;
  if (!GTORCH_IS_TENSOR (object))
    return PyErr_Format (PyExc_TypeError, "the tensor is not initialized");
  hook = PyObject_GC_New (Hook, &hook_type);
  if (hook == NULL)
    return NULL;
  hook->function = Py_NewRef (function);
  PyObject_GC_Track ((PyObject *) hook);
  /* on failure this frees the hook, too */
  if (accumulated)
    id =
        gtorch_tensor_register_post_accumulate_grad_hook ((GTorchTensor *) object, call_accumulated,
                                                          hook, gt_unref, &error);
  else
    id = gtorch_tensor_register_hook ((GTorchTensor *) object, call_gradient, hook, gt_unref,
                                      &error);
  if (gt_raise (&error))
    return NULL;
  return PyLong_FromUnsignedLongLong (id);
}

/* --- hooks of modules --- */

/* PyGObject would keep some memory for each of them, and for each call. What they lead to is in the
 * dictionary of the module, see _gtorch_hooks.py. */

static GObject *
get_module (PyObject *wrapper)
{
  GObject *object = PyObject_TypeCheck (wrapper, pygobject_lookup_class (G_TYPE_OBJECT))
                        ? pygobject_get (wrapper)
                        : NULL;

  if (GTORCH_IS_MODULE (object))
    return object;
  PyErr_SetString (PyExc_TypeError, "the module is not initialized");
  return NULL;
}

static PyObject *
inputs_to_tuple (GTorchTensor **inputs, gsize n)
{
  PyObject *tuple = PyTuple_New (n);
  gsize i;

  for (i = 0; tuple != NULL && i < n; i++)
    {
      PyObject *input = pygobject_new ((GObject *) inputs[i]);

      if (input == NULL)
        Py_CLEAR (tuple);
      else
        PyTuple_SET_ITEM (tuple, i, input);
    }
  return tuple;
}

static GPtrArray *
call_before (GTorchModule *module, GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result = gt_call (data,
                              Py_BuildValue ("(NN)", pygobject_new ((GObject *) module),
                                             inputs_to_tuple (inputs, n)),
                              error);
  GPtrArray *others = NULL;
  Py_ssize_t i;

  if (result != NULL && PyList_Check (result))
    {
      others = g_ptr_array_new_with_free_func (g_object_unref);
      for (i = 0; i < PyList_GET_SIZE (result); i++)
        {
          GTorchTensor *other = gt_dup_tensor (PyList_GET_ITEM (result, i));

          if (other != NULL)
            g_ptr_array_add (others, other);
        }
    }
  Py_XDECREF (result);
  PyGILState_Release (state);
  return others;
}

static GTorchTensor *
call_after (GTorchModule *module, GTorchTensor **inputs, gsize n, GTorchTensor *output,
            gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (data,
               Py_BuildValue ("(NNN)", pygobject_new ((GObject *) module),
                              inputs_to_tuple (inputs, n), pygobject_new ((GObject *) output)),
               error);
  GTorchTensor *other = gt_dup_tensor (result);

  Py_XDECREF (result);
  PyGILState_Release (state);
  return other;
}

static PyObject *
add_module_hook (PyObject *self, PyObject *args)
{
  PyObject *wrapper, *function;
  GTorchModule *module;
  int after, prepend, always;
  guint64 id;

  if (!PyArg_ParseTuple (args, "OOppp", &wrapper, &function, &after, &prepend, &always))
    return NULL;
  module = (GTorchModule *) get_module (wrapper);
  if (module == NULL)
    return NULL;
  Py_INCREF (function);
  id = after ? gtorch_module_register_forward_hook_full (module, prepend, always, call_after,
                                                         function, gt_unref)
             : gtorch_module_register_forward_pre_hook_full (module, prepend, call_before, function,
                                                             gt_unref);
  return PyLong_FromUnsignedLongLong (id);
}

static void
unref_if_any (gpointer object)
{
  if (object != NULL)
    g_object_unref (object);
}

/* Takes what a hook has returned: a list of gradients and None, or None. */
static GPtrArray *
take_gradients (PyObject *result)
{
  GPtrArray *grads = NULL;
  Py_ssize_t i;

  if (result != NULL && PyList_Check (result))
    {
      grads = g_ptr_array_new_with_free_func (unref_if_any);
      for (i = 0; i < PyList_GET_SIZE (result); i++)
        g_ptr_array_add (grads, gt_dup_tensor (PyList_GET_ITEM (result, i)));
    }
  Py_XDECREF (result);
  return grads;
}

static GPtrArray *
call_backward_before (GTorchModule *module, GTorchTensor **grads, gsize n, gpointer data,
                      GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  GPtrArray *others =
      take_gradients (gt_call (data,
                               Py_BuildValue ("(NN)", pygobject_new ((GObject *) module),
                                              inputs_to_tuple (grads, n)),
                               error));

  PyGILState_Release (state);
  return others;
}

static GPtrArray *
call_backward_after (GTorchModule *module, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
                     gsize n_outputs, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  GPtrArray *others = take_gradients (
      gt_call (data,
               Py_BuildValue ("(NNN)", pygobject_new ((GObject *) module),
                              inputs_to_tuple (grads, n), inputs_to_tuple (of_outputs, n_outputs)),
               error));

  PyGILState_Release (state);
  return others;
}

static PyObject *
add_backward_hook (PyObject *self, PyObject *args)
{
  PyObject *wrapper, *function;
  GTorchModule *module;
  int after, prepend;
  guint64 id;

  if (!PyArg_ParseTuple (args, "OOpp", &wrapper, &function, &after, &prepend))
    return NULL;
  module = (GTorchModule *) get_module (wrapper);
  if (module == NULL)
    return NULL;
  Py_INCREF (function);
  id = after ? gtorch_module_register_full_backward_hook (module, prepend, call_backward_after,
                                                          function, gt_unref)
             : gtorch_module_register_full_backward_pre_hook (module, prepend, call_backward_before,
                                                              function, gt_unref);
  return PyLong_FromUnsignedLongLong (id);
}

static gboolean
call_module (GTorchModule *module, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  PyObject *result =
      gt_call (data, Py_BuildValue ("(N)", pygobject_new ((GObject *) module)), error);
  gboolean success = result != NULL;

  Py_XDECREF (result);
  PyGILState_Release (state);
  return success;
}

static PyObject *
apply (PyObject *self, PyObject *args)
{
  PyObject *wrapper, *function;
  GError *error = NULL;
  GObject *module;

  if (!PyArg_ParseTuple (args, "OO", &wrapper, &function))
    return NULL;
  module = get_module (wrapper);
  if (module == NULL)
    return NULL;
  if (!gtorch_module_apply ((GTorchModule *) module, call_module, function, &error))
    {
      gt_raise (&error);
      return NULL;
    }
  Py_RETURN_NONE;
}

/* --- hooks of nodes --- */

/* Calls it with the tuples, which are taken; one may be NULL. */
static GPtrArray *
node_hook_call (gpointer data, PyObject *grads, PyObject *of_outputs, GError **error)
{
  PyObject *function = Py_XNewRef (((Hook *) data)->function);
  GPtrArray *others = NULL;

  if (function != NULL) /* the collector has not cleared it */
    others = take_gradients (gt_call (function,
                                      of_outputs != NULL ? Py_BuildValue ("(OO)", grads, of_outputs)
                                                         : Py_BuildValue ("(O)", grads),
                                      error));
  Py_XDECREF (function);
  Py_XDECREF (grads);
  Py_XDECREF (of_outputs);
  return others;
}

static GPtrArray *
call_node_before (GTorchGradNode *node, GTorchTensor **grads, gsize n, gpointer data,
                  GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  GPtrArray *others = node_hook_call (data, inputs_to_tuple (grads, n), NULL, error);

  PyGILState_Release (state);
  return others;
}

static GPtrArray *
call_node_after (GTorchGradNode *node, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
                 gsize n_outputs, gpointer data, GError **error)
{
  PyGILState_STATE state = PyGILState_Ensure ();
  GPtrArray *others = node_hook_call (data, inputs_to_tuple (grads, n),
                                      inputs_to_tuple (of_outputs, n_outputs), error);

  PyGILState_Release (state);
  return others;
}

static PyObject *
add_node_hook (PyObject *module, PyObject *args)
{
  PyObject *node, *function;
  Hook *hook;
  guint64 id;
  int after;

  if (!PyArg_ParseTuple (args, "OOp", &node, &function, &after))
    return NULL;
  if (!pyg_boxed_check (node, GTORCH_TYPE_GRAD_NODE))
    return PyErr_Format (PyExc_TypeError, "%R is no node", node);
  hook = PyObject_GC_New (Hook, &hook_type);
  if (hook == NULL)
    return NULL;
  hook->function = Py_NewRef (function);
  PyObject_GC_Track (hook);
  id = after ? gtorch_grad_node_register_hook (pyg_boxed_get (node, GTorchGradNode),
                                               call_node_after, hook, gt_unref)
             : gtorch_grad_node_register_prehook (pyg_boxed_get (node, GTorchGradNode),
                                                  call_node_before, hook, gt_unref);
  return PyLong_FromUnsignedLongLong (id);
}

/* --- collections --- */

static gpointer
find_proxy (GObject *object)
{
  PyGObject *wrapper = g_object_get_qdata (object, gt_wrapper_quark);

  if (wrapper == NULL || (wrapper->private_flags.flags & PYGOBJECT_USING_TOGGLE_REF) == 0)
    return NULL;
  return wrapper;
}

typedef void (*ValueFunc) (gpointer data, gpointer value);

static void
each_of_handlers (GObject *object, ValueFunc func, gpointer data)
{
  InstanceData *instance = instance_quark != 0 ? g_object_get_qdata (object, instance_quark) : NULL;
  GSList *link;

  for (link = instance != NULL ? instance->closures : NULL; link != NULL; link = link->next)
    {
      PyGClosure *closure = link->data;

      func (data, closure->callback);
      func (data, closure->extra_args);
      func (data, closure->swap_data);
    }
}

/* Reports signal handlers, if PyGObject does not do so itself. */
static void
add_handlers (GTorchReferences *self, GObject *object)
{
  if (object->ref_count != 1 || g_object_get_qdata (object, gt_wrapper_quark) == NULL)
    each_of_handlers (object, (ValueFunc) gtorch_references_add_value, self);
}

typedef struct
{
  visitproc visit;
  void *arg;
  int result;
} Visit;

static void
visit_value (gpointer value, gpointer data)
{
  Visit *visit = data;

  if (visit->result == 0 && value != NULL)
    visit->result = visit->visit (value, visit->arg);
}

static void
visit_handler (gpointer data, gpointer value)
{
  visit_value (value, data);
}

static int
traverse (PyObject *self, visitproc visit, void *arg)
{
  Visit told = { visit, arg, 0 };
  GObject *object = ((PyGObject *) self)->obj;
  int result;

  Py_VISIT (Py_TYPE (self)); /* as in classes that are defined in Python */
  result = base_traverse (self, visit, arg);
  if (G_LIKELY (references == NULL) || result != 0 || object == NULL)
    return result;
  if (visit == take_away)
    {
      if (is_reaching) /* supposed garbage is examined again */
        gtorch_references_begin (references);
      is_reaching = FALSE;
      gtorch_references_count (references, object, visit_value, &told);
    }
  else if (visit == reach)
    {
      is_reaching = TRUE;
      gtorch_references_follow (references, object, visit_value, &told);
      each_of_handlers (object, visit_handler, &told);
    }
  return told.result;
}

/* A value that is always in use signals the beginning of the second step. During the first observation it
 * also learns the functions. */
static visitproc seen[3];
static guint n_seen;

static int
witness_traverse (PyObject *self, visitproc visit, void *arg)
{
  if (n_seen < G_N_ELEMENTS (seen))
    seen[n_seen++] = visit;
  if (visit == reach)
    is_reaching = TRUE;
  return 0;
}

static PyTypeObject witness_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "gi.overrides._gtorch.Witness",
  .tp_basicsize = sizeof (PyObject),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
  .tp_traverse = witness_traverse,
  .tp_dealloc = (destructor) PyObject_GC_Del,
};

static PyObject *
collecting (PyObject *module, PyObject *args)
{
  PyObject *info, *generation;
  const char *phase;

  if (!PyArg_ParseTuple (args, "sO!", &phase, &PyDict_Type, &info))
    return NULL;
  g_clear_pointer (&references, gtorch_references_free);
  generation = PyDict_GetItemString (info, "generation");
  if (g_str_equal (phase, "start") && generation != NULL && PyLong_AsLong (generation) == 2)
    {
      references = gtorch_references_new (find_proxy, add_handlers, gt_unref);
      is_reaching = FALSE;
    }
  Py_RETURN_NONE;
}

static PyMethodDef collecting_method = { "collecting", collecting, METH_VARARGS,
                                         "For gc.callbacks." };

/* Observes a collection of a new value, and registers for later ones. */
static gboolean
watch (void)
{
  PyObject *witness = (PyObject *) PyObject_GC_New (PyObject, &witness_type);
  PyObject *gc = PyImport_ImportModule ("gc");
  PyObject *callbacks = NULL, *callback = NULL, *result = NULL;
  gboolean success = FALSE;

  if (witness == NULL || gc == NULL)
    goto out;
  PyObject_GC_Track (witness);
  n_seen = 0;
  result = PyObject_CallMethod (gc, "collect", "i", 0);
  if (result == NULL || n_seen != 2 || seen[0] == seen[1])
    goto out;
  callbacks = PyObject_GetAttrString (gc, "callbacks");
  callback = PyCFunction_New (&collecting_method, NULL);
  if (callbacks == NULL || callback == NULL || !PyList_Check (callbacks)
      || PyList_Append (callbacks, callback) < 0)
    goto out;
  take_away = seen[0];
  reach = seen[1];
  Py_INCREF (witness); /* kept for ever */
  success = TRUE;

out:
  Py_XDECREF (callback);
  Py_XDECREF (callbacks);
  Py_XDECREF (result);
  Py_XDECREF (gc);
  Py_XDECREF (witness);
  return success;
}

/* Tests that a handler connected to @wrapper is found in the expected layout. */
static gboolean
try_handlers (PyObject *wrapper)
{
  GObject *object = pygobject_get (wrapper);
  PyObject *function = PyCFunction_New (&collecting_method, NULL);
  PyObject *id =
      function != NULL ? PyObject_CallMethod (wrapper, "connect", "sO", "notify", function) : NULL;
  InstanceData *instance;
  PyObject *done = NULL;
  GQuark quark;

  quark = g_quark_try_string ("PyGObject::instance-data");
  instance = quark != 0 && id != NULL ? g_object_get_qdata (object, quark) : NULL;
  if (instance != NULL && instance->type == Py_TYPE (wrapper) && instance->closures != NULL
      && instance->closures->next == NULL
      && ((PyGClosure *) instance->closures->data)->callback == function)
    instance_quark = quark;
  if (id != NULL)
    done = PyObject_CallMethod (wrapper, "disconnect", "O", id);
  if (instance_quark != 0 && instance->closures != NULL)
    instance_quark = 0;
  Py_XDECREF (done);
  Py_XDECREF (id);
  Py_XDECREF (function);
  return done != NULL;
}

static PyObject *
collect_cycles (PyObject *module, PyObject *args)
{
  PyObject *classes, *wrapper;
  Py_ssize_t i;

  if (!PyArg_ParseTuple (args, "O!O", &PyTuple_Type, &classes, &wrapper))
    return NULL;
  if (gt_wrapper_quark == 0 || take_away != NULL)
    Py_RETURN_FALSE;
  if (!PyObject_TypeCheck (wrapper, pygobject_lookup_class (G_TYPE_OBJECT)))
    return PyErr_Format (PyExc_TypeError, "an object is needed to try handlers with");
  if (!try_handlers (wrapper))
    return NULL;
  if (!watch ())
    {
      if (PyErr_Occurred () != NULL)
        return NULL;
      Py_RETURN_FALSE;
    }
  for (i = 0; i < PyTuple_GET_SIZE (classes); i++)
    {
      PyTypeObject *type = (PyTypeObject *) PyTuple_GET_ITEM (classes, i);
      PyTypeObject *base = type;

      if (!PyType_Check (type))
        return PyErr_Format (PyExc_TypeError, "%R is not a class", type);
      while (base != NULL && (base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0)
        base = base->tp_base;
      if (base == NULL || base->tp_traverse == NULL || base == type
          || (base_traverse != NULL && base_traverse != base->tp_traverse))
        return PyErr_Format (PyExc_TypeError, "%R is not a class of objects", type);
      base_traverse = base->tp_traverse;
      type->tp_traverse = traverse;
    }
  Py_RETURN_TRUE;
}

static PyMethodDef functions[] = {
  { "add_hook", add_hook, METH_VARARGS,
    "add_hook(tensor, function, accumulated): a hook that the collector sees; its number." },
  { "add_node_hook", add_node_hook, METH_VARARGS,
    "add_node_hook(node, function, after): a hook of a recorded operation; its number." },
  { "add_backward_hook", add_backward_hook, METH_VARARGS,
    "add_backward_hook(module, function, after, prepend): a hook of a module; its number." },
  { "add_module_hook", add_module_hook, METH_VARARGS,
    "add_module_hook(module, function, after, prepend, always): a hook of a module; its number." },
  { "apply", apply, METH_VARARGS, "apply(module, function): for each module inside, and it." },
  { "collect_cycles", collect_cycles, METH_VARARGS,
    "collect_cycles(classes, object): lets the collector see what their objects lead to." },
  { NULL, NULL, 0, NULL },
};

gboolean
gt_collect_init (PyObject *module)
{
  return PyType_Ready (&hook_type) >= 0 && PyType_Ready (&witness_type) >= 0
         && PyModule_AddFunctions (module, functions) >= 0;
}
