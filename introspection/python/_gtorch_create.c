/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* New tensors: zeros (2, 3), tensor ([1.0, 2.0]). What the arguments are usually is done here: sizes
 * as numbers or as a list, a dtype, and a device; lists of numbers, in one another or not. The
 * functions in Python do the rest, and tell what is wrong. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

/* None, a device or its name. */
static gboolean
gt_device (PyObject *object, GTorchDevice **device)
{
  *device = NULL;
  if (object == Py_None)
    return TRUE;
  if (PyUnicode_CheckExact (object))
    {
      const gchar *name = PyUnicode_AsUTF8 (object);

      if (name == NULL)
        PyErr_Clear ();
      *device = name != NULL ? gtorch_device_new_from_string (name, NULL) : NULL;
      if (*device == NULL)
        return FALSE;
      g_object_unref (*device); /* the manager keeps all devices */
      return TRUE;
    }
  if (!PyObject_TypeCheck (object, &PyGObject_Type) || !GTORCH_IS_DEVICE (pygobject_get (object)))
    return FALSE;
  *device = GTORCH_DEVICE (pygobject_get (object));
  return TRUE;
}

typedef struct
{
  gint dtype;
  GTorchDevice *device;
} Options;

/* Reads what is given by name. */
static gboolean
gt_options (PyObject *const *values, PyObject *names, Options *options)
{
  Py_ssize_t n = names != NULL ? PyTuple_GET_SIZE (names) : 0;

  options->dtype = GTORCH_DTYPE_NONE;
  options->device = NULL;
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *name = PyTuple_GET_ITEM (names, i);

      if (PyUnicode_CompareWithASCIIString (name, "dtype") == 0)
        {
          if (!gt_dtype (values[i], &options->dtype))
            return FALSE;
        }
      else if (PyUnicode_CompareWithASCIIString (name, "device") == 0)
        {
          if (!gt_device (values[i], &options->device))
            return FALSE;
        }
      else if (PyUnicode_CompareWithASCIIString (name, "requires_grad") != 0
               || values[i] != Py_False)
        return FALSE;
    }
  return TRUE;
}

/* --- of a size --- */

static gboolean
gt_size (PyObject *const *args, Py_ssize_t n, Ints *size)
{
  if (n < 1 || n > MAX_INTS)
    return FALSE;
  if (n == 1 && !PyLong_CheckExact (args[0]))
    return args[0] != Py_None && gt_ints (args[0], size);
  for (Py_ssize_t i = 0; i < n; i++)
    if (!gt_int (args[i], &size->data[i]))
      return FALSE;
  size->n = n;
  return TRUE;
}

static GTorchDevice *
device_of (const Options *options)
{
  return options->device != NULL ? options->device : gtorch_get_default_device ();
}

static gboolean
gt_is_small (const Ints *size)
{
  gint64 numel = 1;

  for (gsize i = 0; i < size->n; i++)
    if (size->data[i] < 0 || size->data[i] >= LARGE || (numel *= size->data[i]) >= LARGE)
      return FALSE;
  return TRUE;
}

static GTorchTensor *
new_rand (const gint64 *shape, gsize n_dims, GTorchDType dtype, GTorchDevice *device,
          GError **error)
{
  return gtorch_rand (shape, n_dims, dtype, device, NULL, error);
}

static GTorchTensor *
new_randn (const gint64 *shape, gsize n_dims, GTorchDType dtype, GTorchDevice *device,
           GError **error)
{
  return gtorch_randn (shape, n_dims, dtype, device, NULL, error);
}

typedef GTorchTensor *(*New) (const gint64 *shape, gsize n_dims, GTorchDType dtype,
                              GTorchDevice *device, GError **error);

static inline PyObject *
create_sized (New new_, gboolean is_drawn, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  Ints size;
  Options options;
  GTorchTensor *made;
  GError *error = NULL;

  if (!gt_size (args, n, &size) || !gt_options (args + n, names, &options))
    return NULL;
  if (is_drawn && gtorch_dtype_is_complex (options.dtype)) /* of two tensors */
    return NULL;
  if (gt_is_small (&size) && !gt_lets_run (device_of (&options)))
    made = new_ (size.data, size.n, options.dtype, options.device, &error);
  else
    {
      Py_BEGIN_ALLOW_THREADS made = new_ (size.data, size.n, options.dtype, options.device, &error);
      Py_END_ALLOW_THREADS
    }
  return gt_result (made, &error);
}

static PyObject *
create_empty (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  return create_sized (gtorch_empty, FALSE, args, n, names);
}

static PyObject *
create_zeros (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  return create_sized (gtorch_zeros, FALSE, args, n, names);
}

static PyObject *
create_ones (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  return create_sized (gtorch_ones, FALSE, args, n, names);
}

static PyObject *
create_rand (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  return create_sized (new_rand, TRUE, args, n, names);
}

static PyObject *
create_randn (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  return create_sized (new_randn, TRUE, args, n, names);
}

/* --- of numbers --- */

#define MAX_NUMBERS 1024
#define MAX_DIMS    16 /* of a tensor */

typedef struct
{
  gsize n;
  gsize n_dims;
  gint64 shape[MAX_INTS];
  gboolean has_reals;
  gdouble reals[MAX_NUMBERS];
  gint64 wholes[MAX_NUMBERS];
} Numbers;

static gboolean
numbers_add (Numbers *numbers, PyObject *object)
{
  gdouble *real = &numbers->reals[numbers->n];
  gint64 *whole = &numbers->wholes[numbers->n];

  if (numbers->n == MAX_NUMBERS)
    return FALSE;
  if (PyFloat_CheckExact (object))
    {
      *real = PyFloat_AS_DOUBLE (object);
      numbers->has_reals = TRUE;
    }
  else if (gt_int (object, whole))
    {
      *real = *whole;
    }
  else
    return FALSE;
  numbers->n++;
  return TRUE;
}

static gboolean
is_list (PyObject *object)
{
  return PyList_CheckExact (object) || PyTuple_CheckExact (object);
}

static gboolean
numbers_add_all (Numbers *numbers, PyObject *object, gsize depth)
{
  Py_ssize_t n;

  if (depth == numbers->n_dims)
    return numbers_add (numbers, object);
  if (!is_list (object) || PySequence_Fast_GET_SIZE (object) != numbers->shape[depth])
    return FALSE;
  n = PySequence_Fast_GET_SIZE (object);
  for (Py_ssize_t i = 0; i < n; i++)
    if (!numbers_add_all (numbers, PySequence_Fast_GET_ITEM (object, i), depth + 1))
      return FALSE;
  return TRUE;
}

/* The shape is that of the first elements. */
static gboolean
numbers_read (Numbers *numbers, PyObject *data)
{
  PyObject *inner = data;

  numbers->n = numbers->n_dims = 0;
  numbers->has_reals = FALSE;
  while (is_list (inner))
    {
      Py_ssize_t n = PySequence_Fast_GET_SIZE (inner);

      if (n == 0 || n > MAX_NUMBERS || numbers->n_dims == MAX_DIMS)
        return FALSE;
      numbers->shape[numbers->n_dims++] = n;
      inner = PySequence_Fast_GET_ITEM (inner, 0);
    }
  return numbers_add_all (numbers, data, 0);
}

static PyObject *
create_tensor (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  Numbers numbers;
  Options options;
  GTorchTensor *made;
  GError *error = NULL;

  if (n != 1 || !gt_options (args + n, names, &options) || gtorch_dtype_is_complex (options.dtype)
      || options.dtype == GTORCH_DTYPE_BOOL || gt_lets_run (device_of (&options))
      || !numbers_read (&numbers, args[0]))
    return NULL;
  if (numbers.has_reals)
    made = gtorch_tensor_new_from_doubles (numbers.reals, numbers.n, numbers.shape, numbers.n_dims,
                                           options.dtype, options.device, &error);
  else
    made = gtorch_tensor_new_from_ints (numbers.wholes, numbers.n, numbers.shape, numbers.n_dims,
                                        options.dtype == GTORCH_DTYPE_NONE ? GTORCH_DTYPE_INT64
                                                                           : options.dtype,
                                        options.device, &error);
  return gt_result (made, &error);
}

/* full (size, number): whole numbers make a tensor of these. */
static PyObject *
create_full (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  Ints size;
  Options options;
  GTorchTensor *made;
  GError *error = NULL;
  gint64 whole = 0;

  if (n != 2 || args[0] == Py_None || !gt_ints (args[0], &size) || !gt_is_small (&size)
      || !(PyFloat_CheckExact (args[1]) || gt_int (args[1], &whole))
      || !gt_options (args + n, names, &options) || gt_lets_run (device_of (&options)))
    return NULL;
  if (PyFloat_CheckExact (args[1]))
    made = gtorch_full (size.data, size.n, PyFloat_AS_DOUBLE (args[1]), options.dtype,
                        options.device, &error);
  else
    made = gtorch_full_int (size.data, size.n, whole,
                            options.dtype == GTORCH_DTYPE_NONE ? GTORCH_DTYPE_INT64 : options.dtype,
                            options.device, &error);
  return gt_result (made, &error);
}

/* arange (end), arange (start, end) and arange (start, end, step) of whole numbers. */
static PyObject *
create_arange (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  gint64 values[] = { 0, 0, 1 };
  Options options;
  GError *error = NULL;

  if (n < 1 || n > 3 || !gt_options (args + n, names, &options))
    return NULL;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!gt_int (args[i], &values[n == 1 ? 1 : i]))
      return NULL;
  if (ABS (values[1] - (gdouble) values[0]) >= LARGE || gt_lets_run (device_of (&options)))
    return NULL;
  return gt_result (gtorch_arange_int (values[0], values[1], values[2],
                                       options.dtype == GTORCH_DTYPE_NONE ? GTORCH_DTYPE_INT64
                                                                          : options.dtype,
                                       options.device, &error),
                    &error);
}

/* The stream that is current on the current GPU. Without one, Python tells. */
static PyObject *
create_current_stream (PyObject *const *args, Py_ssize_t n, PyObject *names)
{
  static GTorchDevice *device;
  GTorchDevice *current;

  if (n != 0 || names != NULL)
    return NULL;
  if (device == NULL)
    device = gtorch_device_new_from_string ("cuda", NULL);
  current = device != NULL ? gtorch_device_resolve (device) : NULL;
  if (current == NULL || gtorch_device_get_device_type (current) != GTORCH_DEVICE_TYPE_CUDA)
    return NULL;
  return pygobject_new ((GObject *) gtorch_stream_get_current (current));
}

GtCreator
gt_creator (const char *name)
{
  static const struct
  {
    const char *name;
    GtCreator create;
  } creators[] = {
    { "arange", create_arange }, { "current_stream", create_current_stream },
    { "full", create_full },     { "empty", create_empty },
    { "ones", create_ones },     { "rand", create_rand },
    { "randn", create_randn },   { "tensor", create_tensor },
    { "zeros", create_zeros },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (creators); i++)
    if (strcmp (creators[i].name, name) == 0)
      return creators[i].create;
  return NULL;
}
