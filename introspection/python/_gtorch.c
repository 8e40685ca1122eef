/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The accelerator of the Python binding: the first base of the override class Tensor. It has no fields of
 * its own, so its slots are inherited by objects that PyGObject creates and manages. Each function
 * handles the usual arguments; all others are passed to the Python function of the same name, so that
 * both have the same semantics.
 *
 * PyGObject releases the GIL in each call and whenever a wrapper is freed. Beside a busy thread each
 * release costs a switch interval (5 ms), so this code keeps the GIL for small work, and detaches the
 * object from a dying wrapper before PyGObject sees it. */

#include "_gtorch.h"

#include <math.h>
#include <structmember.h>

enum
{
  GT_OTHER,
  GT_TENSOR,
  GT_NUMBER,
  GT_WHOLE,
};

static PyTypeObject *tensor_type; /* the override class, set by set_type () */
static PyObject *fallbacks;       /* maps the name to the function */
static PyObject *dtypes;          /* a tuple of the members of GTorch.DType, by value */
GQuark gt_wrapper_quark;

static inline gboolean
gt_is (PyObject *object)
{
  return Py_TYPE (object) == tensor_type
         || (tensor_type != NULL && PyObject_TypeCheck (object, tensor_type));
}

gboolean
gt_is_tensor (PyObject *object)
{
  return gt_is (object);
}

static inline GTorchTensor *
gt_get (PyObject *object)
{
  return (GTorchTensor *) pygobject_get (object);
}

static gboolean
gt_alive (PyObject *self)
{
  if (gt_is (self) && pygobject_get (self) != NULL)
    return TRUE;
  PyErr_SetString (PyExc_TypeError, "the tensor is not initialized");
  return FALSE;
}

static inline gboolean
gt_is_operand (PyObject *object)
{
  return gt_is (object) || PyFloat_CheckExact (object) || PyLong_CheckExact (object);
}

/* --- arguments --- */

static gboolean
gt_tensor (PyObject *object, GTorchTensor **tensor)
{
  if (!gt_is (object))
    return FALSE;
  *tensor = gt_get (object);
  return *tensor != NULL;
}

static gboolean
gt_optional (PyObject *object, GTorchTensor **tensor)
{
  return object == Py_None || gt_tensor (object, tensor);
}

gboolean
gt_int (PyObject *object, gint64 *value)
{
  int overflow;

  if (!PyLong_CheckExact (object))
    return FALSE;
  *value = PyLong_AsLongLongAndOverflow (object, &overflow);
  return overflow == 0;
}

static gboolean
gt_double (PyObject *object, gdouble *value)
{
  gint64 whole;

  if (PyFloat_CheckExact (object))
    {
      *value = PyFloat_AS_DOUBLE (object);
      return TRUE;
    }
  if (!gt_int (object, &whole))
    return FALSE;
  *value = whole;
  /* Python reports numbers that a double cannot represent */
  return *value < 0x1p63 && (gint64) *value == whole;
}

/* A number of the tensor's dtype: integers are exact. An infinite bound beside one is the end of their
 * range. */
typedef struct
{
  gdouble real;
  gint64 whole;
  enum
  {
    GT_REAL,
    GT_INTEGER,
    GT_INFINITE,
  } kind;
} Number;

static gboolean
gt_element (PyObject *object, Number *number)
{
  if (gt_int (object, &number->whole))
    {
      number->kind = GT_INTEGER;
      number->real = number->whole;
      return TRUE;
    }
  if (!gt_double (object, &number->real))
    return FALSE;
  number->kind = isinf (number->real) ? GT_INFINITE : GT_REAL;
  number->whole = number->real > 0 ? G_MAXINT64 : G_MININT64;
  return TRUE;
}

/* Returns FALSE for what C must be given as a double, such as a bound of the value of the constant for
 * none. */
static inline gboolean
gt_is_whole (const Number *number, gboolean is_bound)
{
  return number->kind != GT_REAL && !(is_bound && number->whole == GTORCH_NONE);
}

/* Returns FALSE for numbers that a double cannot represent: Python reports these. */
static inline gboolean
gt_is_exact (const Number *number)
{
  return number->kind != GT_INTEGER
         || (number->real < 0x1p63 && (gint64) number->real == number->whole);
}

static gboolean
gt_bool (PyObject *object, gboolean *value)
{
  if (!PyBool_Check (object))
    return FALSE;
  *value = object == Py_True;
  return TRUE;
}

gboolean
gt_ints (PyObject *object, Ints *ints)
{
  gsize i, n;

  if (object == Py_None)
    {
      ints->n = 0;
      return TRUE;
    }
  if (gt_int (object, &ints->data[0]))
    {
      ints->n = 1;
      return TRUE;
    }
  if (!PyList_CheckExact (object) && !PyTuple_CheckExact (object) && !gt_is_size (object))
    return FALSE;
  n = PySequence_Fast_GET_SIZE (object);
  if (n > MAX_INTS)
    return FALSE;
  for (i = 0; i < n; i++)
    if (!gt_int (PySequence_Fast_GET_ITEM (object, i), &ints->data[i]))
      return FALSE;
  ints->n = n;
  return TRUE;
}

/* The same for those that have no default: None is left to Python, which refuses it. */
static gboolean
gt_sizes (PyObject *object, Ints *ints)
{
  return object != Py_None && gt_ints (object, ints);
}

/* None, or at least one. */
static gboolean
gt_some_ints (PyObject *object, Ints *ints)
{
  return gt_ints (object, ints) && (object == Py_None || ints->n > 0);
}

/* At least one. */
static gboolean
gt_items (PyObject *object, Ints *ints)
{
  return gt_sizes (object, ints) && ints->n > 0;
}

gboolean
gt_dtype (PyObject *object, gint *value)
{
  Py_ssize_t i;

  if (object == Py_None)
    {
      *value = GTORCH_DTYPE_NONE;
      return TRUE;
    }
  for (i = 0; dtypes != NULL && i < PyTuple_GET_SIZE (dtypes); i++)
    if (PyTuple_GET_ITEM (dtypes, i) == object)
      {
        *value = i;
        return TRUE;
      }
  return FALSE;
}

static gboolean
gt_enum (PyObject *object, gint *value)
{
  return FALSE;
}

static int
gt_form (PyObject *object, GTorchTensor **tensor, gdouble *number, gint64 *whole, int has_whole)
{
  if (object == NULL)
    return GT_OTHER;
  if (gt_tensor (object, tensor))
    return GT_TENSOR;
  if (PyFloat_CheckExact (object))
    {
      *number = PyFloat_AS_DOUBLE (object);
      return GT_NUMBER;
    }
  if (!has_whole)
    return gt_double (object, number) ? GT_NUMBER : GT_OTHER;
  return gt_int (object, whole) ? GT_WHOLE : GT_OTHER;
}

static gboolean
gt_collect (const char *const *known, Py_ssize_t n_known, Py_ssize_t n_required,
            PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **values)
{
  Py_ssize_t i, k, n_names = names != NULL ? PyTuple_GET_SIZE (names) : 0;

  if (n + n_names > n_known)
    return FALSE;
  for (i = 0; i < n; i++)
    values[i] = args[i];
  for (i = 0; i < n_names; i++)
    {
      for (k = n; k < n_known; k++)
        if (PyUnicode_CompareWithASCIIString (PyTuple_GET_ITEM (names, i), known[k]) == 0)
          break;
      if (k == n_known)
        return FALSE;
      values[k] = args[n + i];
    }
  for (i = 0; i < n_known && n_required > 0; i++)
    if (values[i] == NULL && i < n_required)
      return FALSE;
  return TRUE;
}

/* Accepts reshape (2, 3), or reshape ([2, 3]) as above. */
static gboolean
gt_collect_sizes (const char *const *known, Py_ssize_t n_known, Py_ssize_t n_required,
                  PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **values,
                  Ints *sizes)
{
  Py_ssize_t i;

  if (n == 0 || !PyLong_CheckExact (args[0]))
    return n == 1 && names == NULL
           && gt_collect (known, n_known, n_required, args, n, names, values);
  if (names != NULL || n > MAX_INTS)
    return FALSE;
  for (i = 0; i < n; i++)
    if (!gt_int (args[i], &sizes->data[i]))
      return FALSE;
  sizes->n = n;
  return TRUE;
}

/* --- results --- */

PyObject *
gt_settle (PyObject *result)
{
  PyObject *type, *value, *traceback;

  if (G_UNLIKELY (result == NULL))
    {
      PyErr_Fetch (&type, &value, &traceback);
      PyErr_NormalizeException (&type, &value, &traceback);
      PyErr_Restore (type, value, traceback);
    }
  return result;
}

/* Returns the function in Python, which is made when it is first asked for, or NULL without an exception. */
static PyObject *
gt_find (const char *name)
{
  PyObject *key, *function = fallbacks != NULL ? PyDict_GetItemString (fallbacks, name) : NULL;

  if (function != NULL || fallbacks == NULL)
    return function;
  key = PyUnicode_FromString (name);
  function = key != NULL ? PyObject_GetItem (fallbacks, key) : NULL;
  Py_XDECREF (key);
  if (function == NULL)
    PyErr_Clear ();
  else
    Py_DECREF (function); /* the table keeps it */
  return function;
}

static PyObject *
gt_fallback (const char *name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  PyObject *function = gt_find (name);
  Py_ssize_t i, total = n + (names != NULL ? PyTuple_GET_SIZE (names) : 0);
  PyObject **all, *result;

  if (function == NULL)
    return PyErr_Format (PyExc_TypeError, "%s: arguments of these types are not taken", name);
  all = g_new (PyObject *, total + 1);
  all[0] = self;
  for (i = 0; i < total; i++)
    all[i + 1] = args[i];
  result = PyObject_Vectorcall (function, all, n + 1, names);
  g_free (all);
  return gt_settle (result);
}

static PyObject *
gt_reflect (const char *name, const char *reflected, PyObject *a, PyObject *b)
{
  if (gt_is (a))
    return gt_fallback (name, a, &b, 1, NULL);
  if (reflected != NULL && gt_find (reflected) != NULL)
    return gt_fallback (reflected, b, &a, 1, NULL);
  Py_RETURN_NOTIMPLEMENTED;
}

/* Python also looks for += among the slots of sequences, where NotImplemented would be a result. */
static PyObject *
gt_iadd_otherwise (PyObject *a, PyObject *b)
{
  PyObject *result = gt_reflect ("__iadd__", NULL, a, b);

  if (result != Py_NotImplemented)
    return result;
  Py_DECREF (result);
  return PyNumber_Add (a, b);
}

static PyObject *
gt_compare_otherwise (PyObject *a, PyObject *b, int op)
{
  static const char *const names[] = {
    [Py_LT] = "__lt__", [Py_LE] = "__le__", [Py_EQ] = "__eq__",
    [Py_NE] = "__ne__", [Py_GT] = "__gt__", [Py_GE] = "__ge__",
  };

  return gt_reflect (names[op], NULL, a, b);
}

gboolean
gt_raise (GError **error)
{
  gboolean is_raised = pyg_error_check (error);

  if (is_raised)
    gt_settle (NULL);
  return is_raised;
}

PyObject *
gt_result (GTorchTensor *tensor, GError **error)
{
  if (G_UNLIKELY (tensor == NULL))
    {
      gt_raise (error);
      return NULL;
    }
  return pygobject_new_full ((GObject *) tensor, TRUE, NULL);
}

static PyObject *
gt_self (PyObject *self, gpointer ok, GError **error)
{
  if (G_UNLIKELY (ok == NULL))
    {
      gt_raise (error);
      return NULL;
    }
  return Py_NewRef (self);
}

/* number OP tensor: converts the number to a zero-dimensional tensor. */
static PyObject *
gt_lift (PyObject *(*function) (PyObject *, PyObject *const *, Py_ssize_t, PyObject *),
         PyObject *number, PyObject *tensor)
{
  GTorchDevice *device;
  GTorchDType dtype;
  PyObject *lifted, *result;
  GError *error = NULL;
  gdouble real = 0;
  gint64 whole = 0;

  if (!gt_alive (tensor))
    return NULL;
  device = gtorch_tensor_get_device (gt_get (tensor));
  /* in a narrower dtype, the number would be rounded before the computation */
  dtype = gtorch_tensor_get_dtype (gt_get (tensor));
  dtype = dtype == GTORCH_DTYPE_FLOAT64 || dtype == GTORCH_DTYPE_COMPLEX128 ? GTORCH_DTYPE_FLOAT64
                                                                            : GTORCH_DTYPE_NONE;
  if (gt_int (number, &whole))
    lifted = gt_result (gtorch_tensor_new_from_ints (&whole, 1, NULL, 0, GTORCH_DTYPE_INT64, device,
                                                     &error),
                        &error);
  else if (gt_double (number, &real))
    lifted = gt_result (gtorch_tensor_new_from_doubles (&real, 1, NULL, 0, dtype, device, &error),
                        &error);
  else
    Py_RETURN_NOTIMPLEMENTED;
  if (lifted == NULL)
    return NULL;
  result = function (lifted, &tensor, 1, NULL);
  Py_DECREF (lifted);
  return result;
}

/* Runs the call; if it takes long, other threads may run meanwhile. */
#define GT_CALL(CALL)                                \
  do                                                 \
    {                                                \
      if (G_LIKELY (!gt_takes_long (gt_get (self)))) \
        CALL;                                        \
      else                                           \
        {                                            \
          Py_BEGIN_ALLOW_THREADS CALL;               \
          Py_END_ALLOW_THREADS                       \
        }                                            \
    }                                                \
  while (0)

#define GT_RUN_AND(CALL, DONE)           \
  do                                     \
    {                                    \
      GError *error = NULL;              \
      GTorchTensor *made;                \
                                         \
      if (G_UNLIKELY (!gt_alive (self))) \
        return NULL;                     \
      GT_CALL (made = CALL);             \
      DONE;                              \
    }                                    \
  while (0)

#define GT_RUN(CALL)         GT_RUN_AND (CALL, return gt_result (made, &error))
#define GT_RUN_INPLACE(CALL) GT_RUN_AND (CALL, return gt_self (self, made, &error))

/* --- indexing --- */

typedef struct
{
  gsize n_items, n_tensors;
  gint64 items[4 * MAX_INTS];
  GTorchTensor *tensors[MAX_INTS];
} Index;

static gboolean
index_slice (PyObject *object, gint64 *item)
{
  PySliceObject *slice = (PySliceObject *) object;

  item[0] = GTORCH_INDEX_SLICE;
  item[1] = 0;
  item[2] = G_MAXINT64;
  item[3] = 1;
  return (slice->start == Py_None || gt_int (slice->start, &item[1]))
         && (slice->stop == Py_None || gt_int (slice->stop, &item[2]))
         && (slice->step == Py_None || gt_int (slice->step, &item[3]));
}

static gboolean
index_add (Index *index, PyObject *object)
{
  gint64 *item = &index->items[index->n_items];

  item[1] = item[2] = item[3] = 0;
  if (gt_int (object, &item[1]))
    item[0] = GTORCH_INDEX_INT;
  else if (PySlice_Check (object))
    {
      if (!index_slice (object, item))
        return FALSE;
    }
  else if (object == Py_None)
    item[0] = GTORCH_INDEX_NEW_AXIS;
  else if (object == Py_Ellipsis)
    item[0] = GTORCH_INDEX_ELLIPSIS;
  else if (gt_tensor (object, &index->tensors[index->n_tensors]))
    {
      item[0] = GTORCH_INDEX_TENSOR;
      item[1] = index->n_tensors++;
    }
  else
    return FALSE;
  index->n_items += 4;
  return TRUE;
}

static gboolean
index_encode (Index *index, PyObject *key)
{
  Py_ssize_t i;

  index->n_items = index->n_tensors = 0;
  if (!PyTuple_CheckExact (key))
    return index_add (index, key);
  if (PyTuple_GET_SIZE (key) > MAX_INTS)
    return FALSE;
  for (i = 0; i < PyTuple_GET_SIZE (key); i++)
    if (!index_add (index, PyTuple_GET_ITEM (key, i)))
      return FALSE;
  return TRUE;
}

static PyObject *
gt_subscript (PyObject *self, PyObject *key)
{
  Index index;

  if (!gt_alive (self))
    return NULL;
  if (!index_encode (&index, key))
    return gt_fallback ("__getitem__", self, &key, 1, NULL);
  GT_RUN (gtorch_tensor_index (gt_get (self), index.items, index.n_items, index.tensors,
                               index.n_tensors, &error));
}

static int
gt_ass_subscript (PyObject *self, PyObject *key, PyObject *value)
{
  PyObject *args[] = { key, value };
  PyObject *result;
  GTorchTensor *source, *ok;
  GError *error = NULL;
  Index index;

  if (!gt_alive (self))
    return -1;
  if (value == NULL)
    {
      PyErr_SetString (PyExc_TypeError, "parts of a tensor cannot be deleted");
      return -1;
    }
  if (!gt_tensor (value, &source) || !index_encode (&index, key))
    {
      result = gt_fallback ("__setitem__", self, args, 2, NULL);
      Py_XDECREF (result);
      return result != NULL ? 0 : -1;
    }
  GT_CALL (ok = gtorch_tensor_index_put_inplace (gt_get (self), index.items, index.n_items,
                                                 index.tensors, index.n_tensors, source, FALSE,
                                                 &error));
  if (ok != NULL)
    return 0;
  gt_raise (&error);
  return -1;
}

static Py_ssize_t
gt_length (PyObject *self)
{
  const gint64 *shape;
  gsize n_dims;

  if (!gt_alive (self))
    return -1;
  shape = gtorch_tensor_get_shape (gt_get (self), &n_dims);
  if (n_dims > 0)
    return shape[0];
  PyErr_SetString (PyExc_TypeError, "a tensor without dimensions has no length");
  return -1;
}

/* --- attributes --- */

static PyObject *
gt_shape (PyObject *self, void *closure)
{
  const gint64 *shape;
  gsize n_dims;

  if (!gt_alive (self))
    return NULL;
  shape = gtorch_tensor_get_shape (gt_get (self), &n_dims);
  return gt_size_new (shape, n_dims);
}

static PyObject *
gt_get_dtype (PyObject *self, void *closure)
{
  GTorchDType dtype;

  if (!gt_alive (self))
    return NULL;
  dtype = gtorch_tensor_get_dtype (gt_get (self));
  return Py_NewRef (PyTuple_GET_ITEM (dtypes, dtype));
}

static PyObject *
gt_ndim (PyObject *self, void *closure)
{
  return gt_alive (self) ? PyLong_FromLong (gtorch_tensor_get_n_dims (gt_get (self))) : NULL;
}

static PyObject *
gt_dim (PyObject *self, PyObject *unused)
{
  return gt_ndim (self, NULL);
}

static PyObject *
gt_numel (PyObject *self, PyObject *unused)
{
  return gt_alive (self) ? PyLong_FromLongLong (gtorch_tensor_get_numel (gt_get (self))) : NULL;
}

/* Waits for the computation of the element, which may be work that needs this interpreter. */
static PyObject *
gt_item (PyObject *self, PyObject *unused)
{
  GTorchTensor *tensor;
  GTorchDType dtype;
  GError *error = NULL;
  gdouble real = 0, imaginary = 0;
  gboolean truth = FALSE;
  gint64 whole = 0;

  if (!gt_alive (self))
    return NULL;
  tensor = gt_get (self);
  dtype = gtorch_tensor_get_dtype (tensor);
  Py_BEGIN_ALLOW_THREADS if (gtorch_dtype_is_floating_point (dtype)) real =
      gtorch_tensor_item_double (tensor, &error);
  else if (gtorch_dtype_is_complex (dtype))
      gtorch_tensor_item_complex (tensor, &real, &imaginary, &error);
  else if (dtype == GTORCH_DTYPE_BOOL) gtorch_tensor_item_bool (tensor, &truth, &error);
  else whole = gtorch_tensor_item_int (tensor, &error);
  Py_END_ALLOW_THREADS if (error != NULL)
  {
    gt_raise (&error);
    return NULL;
  }
  if (gtorch_dtype_is_floating_point (dtype))
    return PyFloat_FromDouble (real);
  if (gtorch_dtype_is_complex (dtype))
    return PyComplex_FromDoubles (real, imaginary);
  return dtype == GTORCH_DTYPE_BOOL ? PyBool_FromLong (truth) : PyLong_FromLongLong (whole);
}

static PyObject *
gt_detach (PyObject *self, PyObject *unused)
{
  GError *error = NULL;

  return gt_alive (self) ? gt_result (gtorch_tensor_detach (gt_get (self), &error), &error) : NULL;
}

/* --- the buffer protocol --- */

typedef struct
{
  Py_ssize_t shape[2 * MAX_INTS];
  GBytes *keep; /* the memory outlives release () while it is exported */
} Shown;

static const char *
gt_format (GTorchDType dtype)
{
  static const char *const formats[] = {
    [GTORCH_DTYPE_FLOAT32] = "f",    [GTORCH_DTYPE_FLOAT64] = "d",     [GTORCH_DTYPE_FLOAT16] = "e",
    [GTORCH_DTYPE_INT8] = "b",       [GTORCH_DTYPE_UINT8] = "B",       [GTORCH_DTYPE_INT16] = "h",
    [GTORCH_DTYPE_INT32] = "i",      [GTORCH_DTYPE_INT64] = "q",       [GTORCH_DTYPE_BOOL] = "?",
    [GTORCH_DTYPE_COMPLEX64] = "Zf", [GTORCH_DTYPE_COMPLEX128] = "Zd",
  };

  return dtype < G_N_ELEMENTS (formats) ? formats[dtype] : NULL;
}

/* Returns the memory from the first element on; the bytes keep the whole storage alive. */
static GBytes *
gt_keep (GTorchTensor *tensor, GError **error)
{
  const gint64 one[] = { 1 };
  GTorchTensor *first;
  GBytes *bytes;

  if (gtorch_tensor_is_contiguous (tensor) || gtorch_tensor_get_numel (tensor) == 0)
    return gtorch_tensor_get_bytes (tensor, error);
  first = gtorch_tensor_as_strided (tensor, one, 1, one, 1, GTORCH_NONE, error);
  bytes = first != NULL ? gtorch_tensor_get_bytes (first, error) : NULL;
  g_clear_object (&first);
  return bytes;
}

static int
gt_getbuffer (PyObject *self, Py_buffer *view, int flags)
{
  GTorchTensor *tensor;
  const gint64 *shape, *strides;
  GError *error = NULL;
  gsize i, n_dims, size;
  GBytes *keep;
  Shown *shown;

  view->obj = NULL;
  if (!gt_alive (self))
    return -1;
  tensor = gt_get (self);
  if (gtorch_tensor_get_requires_grad (tensor))
    {
      PyErr_SetString (PyExc_BufferError, "a tensor that requires grad does not show its memory: "
                                          "use t.detach(), which shares it");
      return -1;
    }
  if (gtorch_tensor_is_released (tensor) || gt_format (gtorch_tensor_get_dtype (tensor)) == NULL
      || ((flags & PyBUF_WRITABLE) && gtorch_tensor_is_read_only (tensor))
      || ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !gtorch_tensor_is_contiguous (tensor))
      || gtorch_device_get_device_type (gtorch_tensor_get_device (tensor))
             != GTORCH_DEVICE_TYPE_CPU)
    {
      PyErr_SetString (PyExc_BufferError, "the memory of this tensor cannot be shown like this");
      return -1;
    }
  Py_BEGIN_ALLOW_THREADS keep =
      gtorch_device_synchronize (gtorch_tensor_get_device (tensor), NULL, &error)
          ? gt_keep (tensor, &error)
          : NULL;
  Py_END_ALLOW_THREADS if (keep == NULL)
  {
    PyErr_SetString (PyExc_BufferError, error->message);
    g_error_free (error);
    return -1;
  }
  shape = gtorch_tensor_get_shape (tensor, &n_dims);
  strides = gtorch_tensor_get_strides (tensor, &n_dims);
  size = gtorch_dtype_get_size (gtorch_tensor_get_dtype (tensor));
  shown = g_new0 (Shown, 1);
  shown->keep = keep;
  for (i = 0; i < n_dims; i++)
    {
      shown->shape[i] = shape[i];
      shown->shape[MAX_INTS + i] = strides[i] * (gint64) size;
    }
  view->obj = Py_NewRef (self);
  view->buf = (gpointer) g_bytes_get_data (keep, NULL);
  view->len = gtorch_tensor_get_numel (tensor) * (gint64) size;
  view->readonly = gtorch_tensor_is_read_only (tensor);
  view->itemsize = size;
  view->format =
      flags & PyBUF_FORMAT ? (char *) gt_format (gtorch_tensor_get_dtype (tensor)) : NULL;
  view->ndim = n_dims;
  view->shape = flags & PyBUF_ND ? shown->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shown->shape + MAX_INTS : NULL;
  view->suboffsets = NULL;
  view->internal = shown;
  return 0;
}

static void
gt_releasebuffer (PyObject *self, Py_buffer *view)
{
  Shown *shown = view->internal;

  g_bytes_unref (shown->keep);
  g_free (shown);
}

/* --- the type --- */

#define GT_METHOD(NAME, FUNCTION, DOC)                                                 \
  {                                                                                    \
    NAME, (PyCFunction) (void (*) (void)) FUNCTION, METH_FASTCALL | METH_KEYWORDS, DOC \
  }
#define GT_OWN_METHODS                                                                  \
  { "numel", gt_numel, METH_NOARGS, "numel($self, /)\n--\n\nThe number of elements." }, \
      { "dim", gt_dim, METH_NOARGS, "dim($self, /)\n--\n\nThe number of dimensions." }, \
      { "item", gt_item, METH_NOARGS,                                                   \
        "item($self, /)\n--\n\nThe one element as a number of Python's." },             \
      { "detach", gt_detach, METH_NOARGS,                                               \
        "detach($self, /)\n--\n\nThe same elements, without what is recorded for gradients." },
#define GT_OWN_NUMBER

#include "_gtorch_ops.inc"

static PyGetSetDef gt_getset[] = {
  { "shape", gt_shape, NULL, "The sizes of the dimensions.", NULL },
  { "dtype", gt_get_dtype, NULL, "The type of the elements.", NULL },
  { "ndim", gt_ndim, NULL, "The number of dimensions.", NULL },
  { NULL, NULL, NULL, NULL, NULL },
};

static PyMappingMethods gt_mapping = {
  .mp_length = gt_length,
  .mp_subscript = gt_subscript,
  .mp_ass_subscript = gt_ass_subscript,
};

static PyBufferProcs gt_buffer = {
  .bf_getbuffer = gt_getbuffer,
  .bf_releasebuffer = gt_releasebuffer,
};

/* Detaches the object from a wrapper with a single reference, so that PyGObject has nothing left to do
 * that would release the GIL. */
static void
gt_finalize (PyObject *self)
{
  PyGObject *wrapper = (PyGObject *) self;
  GObject *object = wrapper->obj;

  if (gt_wrapper_quark == 0 || object == NULL || Py_REFCNT (self) != 1
      || wrapper->weakreflist != NULL
      || (wrapper->private_flags.flags & PYGOBJECT_USING_TOGGLE_REF) != 0)
    return;
  g_object_set_qdata (object, gt_wrapper_quark, NULL);
  wrapper->obj = NULL;
  g_object_unref (object);
  /* Where PyGObject frees what the object leads to, and the interpreter ends meanwhile, it leaves the
   * thread without the lock. Taking it ends the thread. */
  if (!PyGILState_Check ())
    PyEval_RestoreThread (PyGILState_GetThisThreadState ());
}

static PyTypeObject gt_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "gi.overrides._gtorch.Tensor",
  .tp_basicsize = sizeof (PyObject),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
  .tp_as_mapping = &gt_mapping,
  .tp_as_buffer = &gt_buffer,
  .tp_getset = gt_getset,
  .tp_finalize = gt_finalize,
};

/* The hook relies on the name under which PyGObject stores the wrapper: this tests it. */
static void
try_hook (PyObject *wrapper)
{
  GQuark quark = g_quark_try_string ("PyGObject::wrapper");

  if (quark != 0 && g_object_get_qdata (pygobject_get (wrapper), quark) == wrapper)
    gt_wrapper_quark = quark;
}

static PyObject *
set_up (PyObject *module, PyObject *args)
{
  PyObject *type, *functions, *members, *wrapper;

  if (!PyArg_ParseTuple (args, "O!O!O!O", &PyType_Type, &type, &PyDict_Type, &functions,
                         &PyTuple_Type, &members, &wrapper))
    return NULL;
  if (!PyObject_TypeCheck (wrapper, (PyTypeObject *) type))
    return PyErr_Format (PyExc_TypeError, "a tensor is needed to try the hook with");
  tensor_type = (PyTypeObject *) Py_NewRef (type);
  fallbacks = Py_NewRef (functions);
  dtypes = Py_NewRef (members);
  try_hook (wrapper);
  return PyBool_FromLong (gt_wrapper_quark != 0);
}

static PyMethodDef functions[] = {
  { "set_up", set_up, METH_VARARGS,
    "set_up(type, fallbacks, dtypes, tensor): tells the class and the functions in Python." },
  { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
  PyModuleDef_HEAD_INIT,
  .m_name = "_gtorch",
  .m_size = -1,
  .m_methods = functions,
};

PyMODINIT_FUNC PyInit__gtorch (void);

PyMODINIT_FUNC
PyInit__gtorch (void)
{
  PyObject *self, *api = pygobject_init (3, 40, 0);

  if (api == NULL)
    return NULL;
  Py_DECREF (api);
  gt_type.tp_as_number = &gt_number;
  gt_type.tp_methods = gt_methods;
  gt_type.tp_richcompare = gt_compare;
  gt_type.tp_hash = (hashfunc) _Py_HashPointer;
  if (PyType_Ready (&gt_type) < 0)
    return NULL;
  self = PyModule_Create (&module);
  if (self != NULL && PyModule_AddObjectRef (self, "TensorMixin", (PyObject *) &gt_type) < 0)
    Py_CLEAR (self);
  if (self != NULL
      && !(gt_collect_init (self) && gt_calls_init (self) && gt_functions_init (self)
           && gt_size_init (self) && gt_blocks_init (self) && gt_guard_init (self)))
    Py_CLEAR (self);
  return self;
}
