/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "gtorch-gtk-private.h"

/**
 * GTorchGtkParameterRow:
 *
 * What a [class@ParameterList] shows of a parameter, as properties for the widgets of its columns.
 *
 * Since: 0.1
 */

struct _GTorchGtkParameterRow
{
  GObject parent_instance;
  GTorchParameter *parameter;
  gchar *name, *shape, *device;
  gint dtype;   /* a GTorchDType */
  gdouble norm; /* NaN: not known yet */
};

enum
{
  PROP_PARAMETER = 1,
  PROP_NAME,
  PROP_SHAPE,
  PROP_DTYPE,
  PROP_DEVICE,
  PROP_N_ELEMENTS,
  PROP_NORM,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchGtkParameterRow, gtorch_gtk_parameter_row, G_TYPE_OBJECT)

static void
gtorch_gtk_parameter_row_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchGtkParameterRow *self = GTORCH_GTK_PARAMETER_ROW (object);

  switch (id)
    {
    case PROP_PARAMETER:
      g_value_set_object (value, self->parameter);
      break;
    case PROP_NAME:
      g_value_set_string (value, self->name);
      break;
    case PROP_SHAPE:
      g_value_set_string (value, self->shape);
      break;
    case PROP_DTYPE:
      g_value_set_string (value, gtorch_gtk_parameter_row_get_dtype (self));
      break;
    case PROP_DEVICE:
      g_value_set_string (value, self->device);
      break;
    case PROP_N_ELEMENTS:
      g_value_set_int64 (value, gtorch_gtk_parameter_row_get_n_elements (self));
      break;
    case PROP_NORM:
      g_value_set_double (value, self->norm);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
gtorch_gtk_parameter_row_finalize (GObject *object)
{
  GTorchGtkParameterRow *self = GTORCH_GTK_PARAMETER_ROW (object);

  g_clear_object (&self->parameter);
  g_free (self->name);
  g_free (self->shape);
  g_free (self->device);
  G_OBJECT_CLASS (gtorch_gtk_parameter_row_parent_class)->finalize (object);
}

static void
gtorch_gtk_parameter_row_class_init (GTorchGtkParameterRowClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_gtk_parameter_row_get_property;
  object_class->finalize = gtorch_gtk_parameter_row_finalize;
  /**
   * GTorchGtkParameterRow:parameter:
   *
   * The parameter.
   *
   * Since: 0.1
   */
  props[PROP_PARAMETER] =
      g_param_spec_object ("parameter", NULL, NULL, GTORCH_TYPE_PARAMETER, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:name:
   *
   * The full name, such as `layers.0.weight`.
   *
   * Since: 0.1
   */
  props[PROP_NAME] = g_param_spec_string ("name", NULL, NULL, NULL, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:shape:
   *
   * The shape as text, such as `64 × 3 × 3`.
   *
   * Since: 0.1
   */
  props[PROP_SHAPE] = g_param_spec_string ("shape", NULL, NULL, NULL, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:dtype:
   *
   * The name of the dtype.
   *
   * Since: 0.1
   */
  props[PROP_DTYPE] = g_param_spec_string ("dtype", NULL, NULL, NULL, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:device:
   *
   * The name of the device.
   *
   * Since: 0.1
   */
  props[PROP_DEVICE] = g_param_spec_string ("device", NULL, NULL, NULL, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:n-elements:
   *
   * The number of elements.
   *
   * Since: 0.1
   */
  props[PROP_N_ELEMENTS] =
      g_param_spec_int64 ("n-elements", NULL, NULL, 0, G_MAXINT64, 0, GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkParameterRow:norm:
   *
   * The Euclidean norm, when it was last computed; NaN before the first time.
   *
   * Since: 0.1
   */
  props[PROP_NORM] =
      g_param_spec_double ("norm", NULL, NULL, -G_MAXDOUBLE, G_MAXDOUBLE, 0, GTORCH_GTK_PARAM_READ);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_gtk_parameter_row_init (GTorchGtkParameterRow *self)
{
  self->norm = NAN;
}

GTorchGtkParameterRow *
gtorch_gtk_parameter_row_new (GTorchParameter *parameter)
{
  GTorchGtkParameterRow *self = g_object_new (GTORCH_GTK_TYPE_PARAMETER_ROW, NULL);
  GTorchTensor *tensor = GTORCH_TENSOR (parameter);

  self->parameter = g_object_ref (parameter);
  self->name = gtorch_parameter_dup_full_name (parameter);
  self->shape = gtorch_gtk_shape_text (tensor, " × ");
  self->device = gtorch_device_to_string (gtorch_tensor_get_device (tensor));
  self->dtype = (gint) gtorch_tensor_get_dtype (tensor);
  return self;
}

gboolean
gtorch_gtk_parameter_row_equals (GTorchGtkParameterRow *self, GTorchGtkParameterRow *other)
{
  return self->parameter == other->parameter && g_strcmp0 (self->name, other->name) == 0
         && g_str_equal (self->shape, other->shape) && g_str_equal (self->device, other->device)
         && self->dtype == other->dtype;
}

void
gtorch_gtk_parameter_row_set_norm (GTorchGtkParameterRow *self, gdouble norm)
{
  if (self->norm == norm || (isnan (self->norm) && isnan (norm)))
    return;
  self->norm = norm;
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_NORM]);
}

/**
 * gtorch_gtk_parameter_row_get_parameter: (get-property parameter)
 * @self: a row
 *
 * Gets the parameter.
 *
 * Returns: (transfer none): the parameter
 *
 * Since: 0.1
 */
GTorchParameter *
gtorch_gtk_parameter_row_get_parameter (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NULL);
  return self->parameter;
}

/**
 * gtorch_gtk_parameter_row_get_name: (get-property name)
 * @self: a row
 *
 * Gets the full name.
 *
 * Returns: (transfer none) (nullable): the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_gtk_parameter_row_get_name (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NULL);
  return self->name;
}

/**
 * gtorch_gtk_parameter_row_get_shape: (get-property shape)
 * @self: a row
 *
 * Gets the shape as text.
 *
 * Returns: (transfer none) (nullable): the text
 *
 * Since: 0.1
 */
const gchar *
gtorch_gtk_parameter_row_get_shape (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NULL);
  return self->shape;
}

/**
 * gtorch_gtk_parameter_row_get_dtype: (get-property dtype)
 * @self: a row
 *
 * Gets the name of the dtype.
 *
 * Returns: (transfer none) (nullable): the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_gtk_parameter_row_get_dtype (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NULL);
  if (self->parameter == NULL)
    return NULL;
  return gtorch_dtype_get_name (gtorch_tensor_get_dtype (GTORCH_TENSOR (self->parameter)));
}

/**
 * gtorch_gtk_parameter_row_get_device: (get-property device)
 * @self: a row
 *
 * Gets the name of the device.
 *
 * Returns: (transfer none) (nullable): the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_gtk_parameter_row_get_device (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NULL);
  return self->device;
}

/**
 * gtorch_gtk_parameter_row_get_n_elements: (get-property n-elements)
 * @self: a row
 *
 * Gets the number of elements.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
gint64
gtorch_gtk_parameter_row_get_n_elements (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), 0);
  return self->parameter != NULL ? gtorch_tensor_get_numel (GTORCH_TENSOR (self->parameter)) : 0;
}

/**
 * gtorch_gtk_parameter_row_get_norm: (get-property norm)
 * @self: a row
 *
 * Gets the Euclidean norm.
 *
 * Returns: the norm when it was last computed; NaN before the first time
 *
 * Since: 0.1
 */
gdouble
gtorch_gtk_parameter_row_get_norm (GTorchGtkParameterRow *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_ROW (self), NAN);
  return self->norm;
}
