/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layers of pooling that give the indices of the maxima as a second output. */

#include "config.h"

#include "nn/gtorch-layer-indices.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "tensor/gtorch-hold-private.h"

GTorchTensor *
gtorch_layer_refuse_indices (GTorchModule *self, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: with return_indices there are two outputs: forward_with_indices gives both"),
               gtorch_module_type_name (self));
  return NULL;
}

typedef gboolean (*Pool) (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                          const gint64 *stride, gsize n_stride, const gint64 *padding,
                          gsize n_padding, const gint64 *dilation, gsize n_dilation,
                          gboolean ceil_mode, GTorchImpl **values, GTorchImpl **indices,
                          GError **error);
typedef gboolean (*Adaptive) (GTorchImpl *self, const gint64 *output_size, gsize n_output_size,
                              GTorchImpl **values, GTorchImpl **indices, GError **error);

typedef gboolean (*Fractional) (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                                const gint64 *output_size, gsize n_output_size,
                                gdouble output_ratio, GTorchImpl *random_samples,
                                GTorchGenerator *generator, GTorchImpl **values,
                                GTorchImpl **indices, GError **error);

static GTorchSize *
dup_size (GTorchModule *self, const gchar *name)
{
  GTorchSize *size = NULL;

  g_object_get (self, name, &size, NULL);
  return size;
}

static gboolean
run_pool (GTorchModule *self, Pool pool, GTorchImpl *input, GTorchImpl **values,
          GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchSize) kernel = dup_size (self, "kernel-size");
  g_autoptr (GTorchSize) stride = dup_size (self, "stride");
  g_autoptr (GTorchSize) padding = dup_size (self, "padding");
  g_autoptr (GTorchSize) dilation = dup_size (self, "dilation");
  gboolean ceil_mode;

  g_object_get (self, "ceil-mode", &ceil_mode, NULL);
  return pool (input, gtorch_layer_numbers (kernel), gtorch_size_get_length (kernel),
               gtorch_layer_numbers (stride), gtorch_size_get_length (stride),
               gtorch_layer_numbers (padding), gtorch_size_get_length (padding),
               gtorch_layer_numbers (dilation), gtorch_size_get_length (dilation), ceil_mode,
               values, indices, error);
}

static gboolean
run_adaptive (GTorchModule *self, Adaptive pool, GTorchImpl *input, GTorchImpl **values,
              GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchSize) size = dup_size (self, "output-size");

  return pool (input, gtorch_layer_numbers (size), gtorch_size_get_length (size), values, indices,
               error);
}

static gboolean
run_fractional (GTorchModule *self, Fractional pool, GTorchImpl *input, GTorchImpl **values,
                GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchSize) kernel = dup_size (self, "kernel-size");
  g_autoptr (GTorchSize) size = dup_size (self, "output-size");
  gdouble ratio;

  g_object_get (self, "output-ratio", &ratio, NULL);
  return pool (input, gtorch_layer_numbers (kernel), gtorch_size_get_length (kernel),
               size != NULL ? gtorch_layer_numbers (size) : NULL,
               size != NULL ? gtorch_size_get_length (size) : 0, ratio, NULL, NULL, values, indices,
               error);
}

static const struct
{
  GType (*type) (void);
  Pool pool;
  Adaptive adaptive;
  Fractional fractional;
} forms[] = {
  { gtorch_max_pool1d_get_type, gtorch_op_max_pool1d_with_indices, NULL },
  { gtorch_max_pool2d_get_type, gtorch_op_max_pool2d_with_indices, NULL },
  { gtorch_max_pool3d_get_type, gtorch_op_max_pool3d_with_indices, NULL },
  { gtorch_adaptive_max_pool1d_get_type, NULL, gtorch_op_adaptive_max_pool1d_with_indices },
  { gtorch_adaptive_max_pool2d_get_type, NULL, gtorch_op_adaptive_max_pool2d_with_indices },
  { gtorch_adaptive_max_pool3d_get_type, NULL, gtorch_op_adaptive_max_pool3d_with_indices },
  { gtorch_fractional_max_pool2d_layer_get_type,
    .fractional = gtorch_op_fractional_max_pool2d_with_indices },
  { gtorch_fractional_max_pool3d_layer_get_type,
    .fractional = gtorch_op_fractional_max_pool3d_with_indices },
};

static gboolean
run_form (GTorchModule *self, guint i, GTorchImpl *input, GTorchImpl **values, GTorchImpl **indices,
          GError **error)
{
  if (forms[i].pool != NULL)
    return run_pool (self, forms[i].pool, input, values, indices, error);
  if (forms[i].adaptive != NULL)
    return run_adaptive (self, forms[i].adaptive, input, values, indices, error);
  return run_fractional (self, forms[i].fractional, input, values, indices, error);
}

/**
 * gtorch_module_forward_with_indices:
 * @self: a [class@MaxPool2d] or another layer of maxima of windows
 * @input: its input
 * @error: return location for an error
 *
 * Computes the maxima of windows, and where in its sequence, image or volume each was found, as layers such
 * as [class@MaxUnpool2d] want it. No hooks are called.
 *
 * ```c
 * g_autoptr (GPtrArray) both = gtorch_module_forward_with_indices (GTORCH_MODULE (pool), x, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the maxima and the indices; %NULL with
 *   %GTORCH_ERROR_NOT_SUPPORTED if it is another layer, and with the errors of forward
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_module_forward_with_indices (GTorchModule *self, GTorchTensor *input, GError **error)
{
  GTORCH_HOLD_TENSOR (input);
  GTorchImpl *values = NULL, *indices = NULL;
  GPtrArray *both;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  if (!gtorch_module_is_usable (self, error))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (forms); i++)
    {
      if (!g_type_is_a (G_OBJECT_TYPE (self), forms[i].type ()))
        continue;
      if (!run_form (self, i, gtorch_tensor_unwrap (input), &values, &indices, error))
        return NULL;
      both = g_ptr_array_new_with_free_func (g_object_unref);
      g_ptr_array_add (both, gtorch_tensor_wrap (values));
      g_ptr_array_add (both, gtorch_tensor_wrap (indices));
      return both;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("%s: it finds no indices"),
               gtorch_module_type_name (self));
  return NULL;
}
