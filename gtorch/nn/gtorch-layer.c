/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The construction of layers: what constructed () calls, which is generated from their rows, and those of
 * their properties that are no members of the instance. */

#include "config.h"

#include "nn/gtorch-layer-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "nn/gtorch-init.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-range-private.h"
#include "nn/gtorch-module-members.h"
#include "tensor/gtorch-uninitialized-private.h"

/* --- properties --- */

void
gtorch_layer_get_parameter_value (gpointer object, const GTorchField *field, GValue *value)
{
  g_value_take_object (value, gtorch_module_dup_parameter (object, field->offset));
}

void
gtorch_layer_get_buffer_value (gpointer object, const GTorchField *field, GValue *value)
{
  g_value_take_object (value, gtorch_module_dup_buffer (object, field->offset));
}

gboolean
gtorch_layer_set_buffer_value (gpointer object, const GTorchField *field, const GValue *value)
{
  g_autofree gchar *name = g_strdelimit (g_strdup (field->name), "-", '_');
  g_autoptr (GTorchTensor) former = gtorch_module_dup_buffer (object, field->offset);
  GTorchTensor *tensor = g_value_get_object (value);

  if (former == tensor)
    return FALSE;
  return gtorch_module_set_buffer (object, name, tensor, NULL);
}

/* The tensor that tells where a module is and of what dtype: its own, or that of a descendant; none if its
 * construction failed. A new reference. */
static GTorchTensor *
first_tensor (GTorchModule *module)
{
  g_autoptr (GPtrArray) children = NULL;
  GTorchTensor *found = NULL;

  if (gtorch_module_get_private (module)->error != NULL)
    return NULL;
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (module, i == 1);

      for (guint j = 0; j < members->len; j++)
        if (g_array_index (members, GTorchMember, j).tensor != NULL)
          return g_steal_pointer (&g_array_index (members, GTorchMember, j).tensor);
    }
  children = gtorch_module_dup_children (module, NULL);
  for (guint i = 0; i < children->len && found == NULL; i++)
    found = first_tensor (children->pdata[i]);
  return found;
}

void
gtorch_layer_get_device_value (gpointer object, const GTorchField *field, GValue *value)
{
  g_autoptr (GTorchTensor) tensor = first_tensor (object);

  g_value_set_object (value, tensor != NULL
                                 ? gtorch_tensor_get_device (tensor)
                                 : G_STRUCT_MEMBER (GTorchDevice *, object, field->offset));
}

/* A layer that could not be made has the dtype that was asked for. */
void
gtorch_layer_get_dtype_value (gpointer object, const GTorchField *field, GValue *value)
{
  g_autoptr (GTorchTensor) tensor =
      gtorch_module_get_private (object)->error == NULL ? first_tensor (object) : NULL;

  g_value_set_enum (value, tensor != NULL ? (gint) gtorch_tensor_get_dtype (tensor)
                                          : G_STRUCT_MEMBER (gint, object, field->offset));
}

/* --- construction --- */

static gboolean G_GNUC_PRINTF (4, 5)
    refuse (GTorchModule *self, gint code, GError **error, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", gtorch_module_type_name (self), text);
  return FALSE;
}

gboolean
gtorch_layer_check_least (GTorchModule *self, const gchar *name, gint64 value, gint64 least,
                          GError **error)
{
  if (value >= least)
    return TRUE;
  return refuse (self, GTORCH_ERROR_INVALID, error,
                 _ ("%s must be at least %" PRId64 ", it is %" PRId64), name, least, value);
}

gboolean
gtorch_layer_check_between (GTorchModule *self, const gchar *name, gint64 value, gint64 low,
                            gint64 high, GError **error)
{
  if (value >= low && value <= high)
    return TRUE;
  return refuse (self, GTORCH_ERROR_INVALID, error,
                 _ ("%s must be from %" PRId64 " to %" PRId64 ", it is %" PRId64), name, low, high,
                 value);
}

gboolean
gtorch_layer_check_greater (GTorchModule *self, const gchar *name, gdouble value,
                            const gchar *other_name, gdouble other, GError **error)
{
  if (value > other)
    return TRUE;
  return refuse (self, GTORCH_ERROR_INVALID, error,
                 _ ("%s must be greater than %s, %g is not greater than %g"), name, other_name,
                 value, other);
}

static gboolean
check_sizes (GTorchModule *self, const gchar *name, GTorchSize *size, guint length, gint64 least,
             gboolean nones, GError **error)
{
  const gint64 *values;
  gsize n;

  if (size == NULL)
    return refuse (self, GTORCH_ERROR_INVALID, error, _ ("%s must be given"), name);
  values = gtorch_size_get_values (size, &n);
  if (length > 0 && n != 1 && n != length)
    return refuse (self, GTORCH_ERROR_INVALID, error,
                   _ ("%s must have 1 or %u numbers, it has %zu"), name, length, n);
  if (n == 0 || n > GTORCH_MAX_DIMS)
    return refuse (self, GTORCH_ERROR_INVALID, error,
                   _ ("%s must have 1 to %d dimensions, it has %zu"), name, GTORCH_MAX_DIMS, n);
  for (gsize i = 0; i < n; i++)
    if (!(nones && values[i] == GTORCH_NONE)
        && !gtorch_layer_check_least (self, name, values[i], least, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_layer_check_size (GTorchModule *self, const gchar *name, GTorchSize *size, guint length,
                         gint64 least, GError **error)
{
  return check_sizes (self, name, size, length, least, FALSE, error);
}

gboolean
gtorch_layer_check_some_sizes (GTorchModule *self, const gchar *name, GTorchSize *size,
                               guint length, gint64 least, GError **error)
{
  return check_sizes (self, name, size, length, least, TRUE, error);
}

gboolean
gtorch_layer_check_multiple (GTorchModule *self, const gchar *name, gint64 value,
                             const gchar *other_name, gint64 other, GError **error)
{
  if (value % other == 0)
    return TRUE;
  return refuse (self, GTORCH_ERROR_INVALID, error,
                 _ ("%s must be divisible by %s, %" PRId64 " is not by %" PRId64), name, other_name,
                 value, other);
}

gboolean
gtorch_layer_check_range (GTorchModule *self, const gchar *name, gdouble value, gdouble low,
                          gdouble high, gboolean is_open, GError **error)
{
  return gtorch_check_range (gtorch_module_type_name (self), name, value, low, high, is_open,
                             error);
}

gboolean
gtorch_layer_check_factors (GTorchModule *self, const gchar *name, GTorchFactors *factors,
                            guint length, gdouble low, gdouble high, gboolean is_open,
                            GError **error)
{
  const guint most = length > 0 ? length : 3;
  const gdouble *values;
  gsize n;

  values = gtorch_factors_get_values (factors, &n);
  if (n != 1 && (length > 0 ? n != length : n == 0 || n > most))
    return refuse (self, GTORCH_ERROR_INVALID, error,
                   length > 0 ? _ ("%s must have 1 or %u numbers, it has %zu")
                              : _ ("%s must have 1 to %u numbers, it has %zu"),
                   name, most, n);
  for (gsize i = 0; i < n; i++)
    if (!gtorch_layer_check_range (self, name, values[i], low, high, is_open, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_layer_check_nonzero (GTorchModule *self, const gchar *name, gint64 value, GError **error)
{
  return value != 0 || refuse (self, GTORCH_ERROR_INVALID, error, _ ("%s must not be 0"), name);
}

gboolean
gtorch_layer_check_index (GTorchModule *self, const gchar *name, gint64 *value, gint64 n,
                          GError **error)
{
  if (*value == GTORCH_NONE)
    return TRUE;
  if (*value < -n || *value >= n)
    return refuse (self, GTORCH_ERROR_INDEX, error,
                   _ ("%s %" PRId64 " is out of range for %" PRId64 " rows"), name, *value, n);
  if (*value < 0)
    *value += n;
  return TRUE;
}

gboolean
gtorch_layer_check_type (gpointer self, GType type, GError **error)
{
  if (g_type_is_a (G_TYPE_FROM_INSTANCE (self), type))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: it is no %s"),
               gtorch_module_type_name (self), g_type_name (type));
  return FALSE;
}

gboolean
gtorch_layer_takes (GTorchModule *self, gsize n_inputs, guint least, guint n, const gchar *names,
                    GError **error)
{
  if (n_inputs >= least && n_inputs <= n)
    return TRUE;
  if (least < n)
    return refuse (self, GTORCH_ERROR_NOT_SUPPORTED, error,
                   _ ("forward takes %u to %u tensors, %s; %zu were given"), least, n, names,
                   n_inputs);
  return refuse (self, GTORCH_ERROR_NOT_SUPPORTED, error,
                 _ ("forward takes %u tensors, %s; %zu were given"), n, names, n_inputs);
}

GTorchImpl *
gtorch_layer_input (GTorchTensor **inputs, gsize n_inputs, gsize i)
{
  GTorchImpl *impl = i < n_inputs ? gtorch_tensor_unwrap (inputs[i]) : NULL;

  return impl != NULL && impl->dtype == GTORCH_DTYPE_BOOL && impl->numel == 0 ? NULL : impl;
}

GTorchTensor *
gtorch_layer_call_some (GTorchModule *self, GTorchTensor **inputs, gsize least, gsize n_inputs,
                        GError **error)
{
  const gint64 none = 0;
  g_autoptr (GTorchTensor) absent = NULL;

  while (n_inputs > least && inputs[n_inputs - 1] == NULL)
    n_inputs--;
  for (gsize i = least; i < n_inputs; i++)
    if (inputs[i] == NULL)
      {
        if (absent == NULL)
          absent = gtorch_tensor_wrap (
              gtorch_op_zeros (&none, 1, GTORCH_DTYPE_BOOL, gtorch_device_cpu (), error));
        if (absent == NULL)
          return NULL;
        inputs[i] = absent;
      }
  return gtorch_module_call (self, inputs, n_inputs, error);
}

void
gtorch_layer_default_size (GTorchSize **size, gint64 value)
{
  if (*size == NULL)
    *size = gtorch_size_new (&value, 1);
}

void
gtorch_layer_expand_size (GTorchSize **size, guint length)
{
  gint64 values[GTORCH_MAX_DIMS];

  if (*size == NULL || gtorch_size_get_length (*size) != 1)
    return;
  for (guint i = 0; i < length; i++)
    values[i] = gtorch_layer_numbers (*size)[0];
  gtorch_size_unref (*size);
  *size = gtorch_size_new (values, length);
}

static gboolean
make_buffer (GTorchModule *self, const GTorchLayerTensor *tensor, GError **error)
{
  GTorchImpl *impl;

  if (tensor->init == GTORCH_LAYER_COUNT)
    impl = gtorch_op_zeros (tensor->shape, tensor->n_dims, GTORCH_DTYPE_INT64, NULL, error);
  else if (tensor->init == GTORCH_LAYER_ONES)
    impl = gtorch_op_ones (tensor->shape, tensor->n_dims, GTORCH_DTYPE_NONE, NULL, error);
  else
    impl = gtorch_op_zeros (tensor->shape, tensor->n_dims, GTORCH_DTYPE_NONE, NULL, error);
  if (impl != NULL && tensor->n_dims > 0 && gtorch_lazy_is_waiting (self))
    {
      GTorchImpl *waiting = gtorch_impl_new_uninitialized (impl->device, impl->dtype);

      gtorch_impl_unref (impl);
      impl = waiting;
    }
  if (impl == NULL)
    return FALSE;
  gtorch_module_add_buffer (self, tensor->name, impl, tensor->init == GTORCH_LAYER_COUNT);
  return TRUE;
}

gboolean
gtorch_layer_set_values (GTorchModule *self, GTorchTensor *parameter, GTorchTensor *first,
                         const GTorchLayerTensor *tensor, GError **error)
{
  gint64 fan_in;
  gdouble bound;

  switch (tensor->init)
    {
    case GTORCH_LAYER_KAIMING:
      return gtorch_init_kaiming_uniform (parameter, sqrt (5), GTORCH_FAN_MODE_IN,
                                          GTORCH_NONLINEARITY_LEAKY_RELU, NULL, error);
    case GTORCH_LAYER_FAN_IN:
      if (!gtorch_init_calculate_fan (first, &fan_in, NULL, error))
        return FALSE;
      bound = fan_in > 0 ? 1 / sqrt ((gdouble) fan_in) : 0;
      return gtorch_init_uniform (parameter, -bound, bound, NULL, error);
    case GTORCH_LAYER_NORMAL:
      return gtorch_init_normal (parameter, 0, 1, NULL, error);
    case GTORCH_LAYER_ONES:
      return gtorch_init_constant (parameter, 1, error);
    case GTORCH_LAYER_VALUE:
      return gtorch_init_constant (parameter, tensor->value, error);
    case GTORCH_LAYER_UNIFORM:
      bound = 1 / sqrt (tensor->value);
      return gtorch_init_uniform (parameter, -bound, bound, NULL, error);
    default:
      return gtorch_init_constant (parameter, 0, error);
    }
}

void
gtorch_layer_make_tensors (GTorchModule *self, const GTorchLayerTensor *tensors, guint n,
                           gpointer data)
{
  g_autoptr (GPtrArray) made = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree const GTorchLayerTensor **rows = g_new (const GTorchLayerTensor *, n);
  GError *error = NULL;

  for (guint i = 0; i < n; i++)
    {
      const GTorchLayerTensor *tensor = &tensors[i];

      if (tensor->is_buffer)
        {
          if (tensor->is_wanted && !make_buffer (self, tensor, &error))
            break;
        }
      else if (!tensor->is_wanted)
        gtorch_module_register_parameter (self, tensor->name, NULL, NULL);
      else
        {
          GTorchTensor *parameter =
              gtorch_lazy_is_waiting (self)
                  ? gtorch_module_add_uninitialized (self, tensor->name)
                  : gtorch_module_add_parameter (self, tensor->name, tensor->shape,
                                                 (guint) tensor->n_dims);

          if (parameter == NULL) /* the error is stored in the module */
            return;
          rows[made->len] = tensor;
          g_ptr_array_add (made, parameter);
        }
    }
  for (guint i = 0; i < made->len && error == NULL && !gtorch_lazy_is_waiting (self); i++)
    gtorch_layer_set_values (self, made->pdata[i], made->pdata[0], rows[i], &error);
  if (error != NULL)
    gtorch_module_set_error (self, error);
}

void
gtorch_layer_move (GTorchModule *self, GTorchDevice *device, gint dtype)
{
  GError *error = NULL;

  if ((device == NULL && dtype == GTORCH_DTYPE_NONE)
      || gtorch_module_get_private (self)->error != NULL)
    return;
  if (!gtorch_module_to (self, device, dtype, &error))
    gtorch_module_set_error (self, error);
}
