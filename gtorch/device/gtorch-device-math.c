/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How exactly a device computes and how it selects algorithms, as functions and as properties. */

#include "config.h"

#include "device/gtorch-device-math.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-text-private.h"

typedef GTorchDevice Self;

static const GTorchField fields[] = {
  /**
   * GTorchDevice:matmul-precision:
   *
   * How exactly matrix products of float32 (and complex64) are computed: `mm`, `bmm`, `matmul`, `linear`
   * and the operations built on them, and their gradients; also those in recurrent networks, where a GPU
   * treats [enum@Precision.BF16] as TF32.
   *
   * [enum@Precision.IEEE] by default. With [enum@Precision.TF32] a GPU with tensor cores is several times
   * as fast and about a hundred times less exact; with [enum@Precision.BF16] it may be twice as fast again,
   * and eight times less exact. A change affects operations that begin later. Devices that support neither,
   * the CPU among them, keep the setting without using it. [func@set_float32_matmul_precision] sets it for
   * all devices.
   *
   * Since: 0.1
   */
  { "matmul-precision",
    GTORCH_PROPERTY_ENUM (GTorchPrecision, gtorch_precision_get_type,
                          gtorch_device_get_matmul_precision, gtorch_device_set_matmul_precision),
    .value = GTORCH_PRECISION_IEEE },
  /**
   * GTorchDevice:conv-precision:
   *
   * How exactly convolutions and their gradients are computed; see [property@Device:matmul-precision]. A
   * GPU treats [enum@Precision.BF16] as TF32 here.
   *
   * Since: 0.1
   */
  { "conv-precision",
    GTORCH_PROPERTY_ENUM (GTorchPrecision, gtorch_precision_get_type,
                          gtorch_device_get_conv_precision, gtorch_device_set_conv_precision),
    .value = GTORCH_PRECISION_IEEE },
  /**
   * GTorchDevice:benchmark:
   *
   * Whether the available algorithms of a matrix product, a convolution or a recurrent network are timed, to
   * use the fastest.
   *
   * %FALSE by default: NVIDIA's libraries choose by the shapes. With %TRUE the first operation with new
   * shapes, dtypes and layouts runs several times with each of about a dozen algorithms and waits for the
   * GPU, which takes a fraction of a second; later operations use the result. The choice, and with it the
   * last bits of results, may differ from one run of a program to the next. Nothing is timed while a graph
   * is captured, nor where an operation accumulates into its output. The CPU keeps the setting without
   * using it.
   *
   * Since: 0.1
   */
  { "benchmark", GTORCH_PROPERTY_BOOL (gtorch_device_get_benchmark, gtorch_device_set_benchmark) },
  /**
   * GTorchDevice:deterministic:
   *
   * Whether only algorithms are used that give the same bits each time.
   *
   * %FALSE by default. It makes a difference, and may cost time, on a GPU: for the gradients of attention in
   * 16-bit dtypes, with [property@Device:benchmark] for the gradients of convolutions, and for recurrent
   * networks, which then do without cuDNN. All other
   * operations sum in a fixed order in any case. The CPU keeps the setting without using it.
   *
   * Since: 0.1
   */
  { "deterministic",
    GTORCH_PROPERTY_BOOL (gtorch_device_get_deterministic, gtorch_device_set_deterministic) },
};

void
gtorch_device_install_math_properties (GObjectClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

static void
set_choice (GTorchDevice *self, gint *place, gint choice, const gchar *name)
{
  gint former;

  do
    former = g_atomic_int_get (place);
  while (!g_atomic_int_compare_and_exchange (place, former, choice));
  if (former != choice)
    g_object_notify (G_OBJECT (self), name);
}

/**
 * gtorch_device_get_matmul_precision: (get-property matmul-precision)
 * @self: a device
 *
 * Gets the precision of matrix products of float32 and complex64.
 *
 * Returns: the precision
 *
 * Since: 0.1
 */
GTorchPrecision
gtorch_device_get_matmul_precision (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), GTORCH_PRECISION_IEEE);
  self = gtorch_device_resolved (self);
  return g_atomic_int_get (&self->matmul_precision);
}

/**
 * gtorch_device_set_matmul_precision: (set-property matmul-precision)
 * @self: a device
 * @precision: the precision
 *
 * Sets the precision of matrix products of float32 and complex64, in all threads, from the next operation
 * on; see [property@Device:matmul-precision].
 *
 * ```c
 * gtorch_device_set_matmul_precision (device, GTORCH_PRECISION_TF32);
 * product = gtorch_tensor_mm (a, b, &error);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_device_set_matmul_precision (GTorchDevice *self, GTorchPrecision precision)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (precision >= GTORCH_PRECISION_IEEE && precision <= GTORCH_PRECISION_BF16);
  self = gtorch_device_resolved (self);
  set_choice (self, &self->matmul_precision, precision, "matmul-precision");
}

/**
 * gtorch_device_get_conv_precision: (get-property conv-precision)
 * @self: a device
 *
 * Gets the precision of convolutions of float32.
 *
 * Returns: the precision
 *
 * Since: 0.1
 */
GTorchPrecision
gtorch_device_get_conv_precision (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), GTORCH_PRECISION_IEEE);
  self = gtorch_device_resolved (self);
  return g_atomic_int_get (&self->conv_precision);
}

/**
 * gtorch_device_set_conv_precision: (set-property conv-precision)
 * @self: a device
 * @precision: the precision
 *
 * Sets the precision of convolutions of float32 and their gradients, in all threads, from the next
 * operation on; see [property@Device:conv-precision].
 *
 * Since: 0.1
 */
void
gtorch_device_set_conv_precision (GTorchDevice *self, GTorchPrecision precision)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (precision >= GTORCH_PRECISION_IEEE && precision <= GTORCH_PRECISION_BF16);
  self = gtorch_device_resolved (self);
  set_choice (self, &self->conv_precision, precision, "conv-precision");
}

/* PyTorch's words, in the order of GTorchPrecision. */
static const gchar *const precision_names[] = { "highest", "high", "medium" };

/**
 * gtorch_set_float32_matmul_precision:
 * @precision: `highest`, `high` or `medium`
 * @error: return location for an error
 *
 * Sets [property@Device:matmul-precision] of all devices in PyTorch's terms: `highest` is IEEE, `high`
 * TF32, `medium` BF16.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if @precision is none of the three
 *
 * Since: 0.1
 */
gboolean
gtorch_set_float32_matmul_precision (const gchar *precision, GError **error)
{
  guint wanted, type, i;

  g_return_val_if_fail (precision != NULL, FALSE);
  for (wanted = 0; wanted < G_N_ELEMENTS (precision_names); wanted++)
    if (g_str_equal (precision, precision_names[wanted]))
      break;
  if (wanted == G_N_ELEMENTS (precision_names))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("set_float32_matmul_precision: “%s” is not highest, high or medium"),
                   gtorch_name_str (precision));
      return FALSE;
    }
  for (type = 0; type < GTORCH_N_DEVICE_TYPES; type++)
    for (i = 0; gtorch_backends[type] != NULL && i < gtorch_backends[type]->count (NULL); i++)
      {
        GTorchDevice *device = gtorch_backends[type]->get (i, NULL);

        if (device != NULL)
          gtorch_device_set_matmul_precision (device, wanted);
      }
  return TRUE;
}

/**
 * gtorch_get_float32_matmul_precision:
 *
 * Gets [property@Device:matmul-precision] of this thread's current device, in PyTorch's terms.
 *
 * Returns: `highest`, `high` or `medium`
 *
 * Since: 0.1
 */
const gchar *
gtorch_get_float32_matmul_precision (void)
{
  return precision_names[gtorch_device_get_matmul_precision (gtorch_device_or_current (NULL))];
}

/**
 * gtorch_device_get_benchmark: (get-property benchmark)
 * @self: a device
 *
 * Tells whether algorithms are timed; see [property@Device:benchmark].
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_device_get_benchmark (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  self = gtorch_device_resolved (self);
  return g_atomic_int_get (&self->benchmark);
}

/**
 * gtorch_device_set_benchmark: (set-property benchmark)
 * @self: a device
 * @benchmark: whether to time the algorithms of matrix products and convolutions
 *
 * Sets whether the first operation with new shapes looks for the fastest algorithm, in all threads; see
 * [property@Device:benchmark].
 *
 * ```c
 * gtorch_device_set_benchmark (device, TRUE);
 * output = gtorch_module_forward (model, input, &error);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_device_set_benchmark (GTorchDevice *self, gboolean benchmark)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  set_choice (self, &self->benchmark, !!benchmark, "benchmark");
}

/**
 * gtorch_device_get_deterministic: (get-property deterministic)
 * @self: a device
 *
 * Tells whether results must be bitwise reproducible; see [property@Device:deterministic].
 *
 * Returns: %TRUE if they must
 *
 * Since: 0.1
 */
gboolean
gtorch_device_get_deterministic (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  self = gtorch_device_resolved (self);
  return g_atomic_int_get (&self->deterministic);
}

/**
 * gtorch_device_set_deterministic: (set-property deterministic)
 * @self: a device
 * @deterministic: whether results must be bitwise reproducible
 *
 * Sets whether results must be bitwise reproducible, in all threads, from the next operation on; see
 * [property@Device:deterministic].
 *
 * Since: 0.1
 */
void
gtorch_device_set_deterministic (GTorchDevice *self, gboolean deterministic)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  set_choice (self, &self->deterministic, !!deterministic, "deterministic");
}
