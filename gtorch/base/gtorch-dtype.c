/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <float.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-dtype-private.h"
#include "base/gtorch-text-private.h"

/* clang-format off */
const GTorchDTypeInfo gtorch_dtype_infos[GTORCH_N_DTYPES] = {
  /*                         name, size, align, kind, signed, compute, accumulate, real, DLPack, safetensors, min, max, eps */
  [GTORCH_DTYPE_NONE]       = { "none", 0, 1, GTORCH_KIND_NONE, FALSE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE, 0, NULL, 0, 0, 0 },
  [GTORCH_DTYPE_FLOAT32]    = { "float32", 4, 4, GTORCH_KIND_FLOAT, TRUE, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT32, 2, "F32", -FLT_MAX, FLT_MAX, FLT_EPSILON },
  [GTORCH_DTYPE_FLOAT64]    = { "float64", 8, 8, GTORCH_KIND_FLOAT, TRUE, GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_FLOAT64, 2, "F64", -DBL_MAX, DBL_MAX, DBL_EPSILON },
  [GTORCH_DTYPE_FLOAT16]    = { "float16", 2, 2, GTORCH_KIND_FLOAT, TRUE, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16, 2, "F16", -65504.0, 65504.0, 0x1p-10 },
  [GTORCH_DTYPE_BFLOAT16]   = { "bfloat16", 2, 2, GTORCH_KIND_FLOAT, TRUE, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_BFLOAT16, 4, "BF16", -0x1.fep127, 0x1.fep127, 0x1p-7 },
  [GTORCH_DTYPE_INT8]       = { "int8", 1, 1, GTORCH_KIND_INT, TRUE, GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT8, 0, "I8", G_MININT8, G_MAXINT8, 0 },
  [GTORCH_DTYPE_UINT8]      = { "uint8", 1, 1, GTORCH_KIND_INT, FALSE, GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64, GTORCH_DTYPE_UINT8, 1, "U8", 0, G_MAXUINT8, 0 },
  [GTORCH_DTYPE_INT16]      = { "int16", 2, 2, GTORCH_KIND_INT, TRUE, GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT16, 0, "I16", G_MININT16, G_MAXINT16, 0 },
  [GTORCH_DTYPE_INT32]      = { "int32", 4, 4, GTORCH_KIND_INT, TRUE, GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT32, 0, "I32", G_MININT32, G_MAXINT32, 0 },
  [GTORCH_DTYPE_INT64]      = { "int64", 8, 8, GTORCH_KIND_INT, TRUE, GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT64, 0, "I64", (gdouble) G_MININT64, (gdouble) G_MAXINT64, 0 },
  [GTORCH_DTYPE_BOOL]       = { "bool", 1, 1, GTORCH_KIND_BOOL, FALSE, GTORCH_DTYPE_BOOL, GTORCH_DTYPE_INT64, GTORCH_DTYPE_BOOL, 6, "BOOL", 0, 1, 0 },
  [GTORCH_DTYPE_COMPLEX64]  = { "complex64", 8, 4, GTORCH_KIND_COMPLEX, TRUE, GTORCH_DTYPE_COMPLEX64, GTORCH_DTYPE_COMPLEX64, GTORCH_DTYPE_FLOAT32, 5, "C64", -FLT_MAX, FLT_MAX, FLT_EPSILON },
  [GTORCH_DTYPE_COMPLEX128] = { "complex128", 16, 8, GTORCH_KIND_COMPLEX, TRUE, GTORCH_DTYPE_COMPLEX128, GTORCH_DTYPE_COMPLEX128, GTORCH_DTYPE_FLOAT64, 5, NULL, -DBL_MAX, DBL_MAX, DBL_EPSILON },
};
/* clang-format on */

static gint default_dtype = GTORCH_DTYPE_FLOAT32;

GType
gtorch_dtype_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_DTYPE_NONE, "GTORCH_DTYPE_NONE", "none" },
    { GTORCH_DTYPE_FLOAT32, "GTORCH_DTYPE_FLOAT32", "float32" },
    { GTORCH_DTYPE_FLOAT64, "GTORCH_DTYPE_FLOAT64", "float64" },
    { GTORCH_DTYPE_FLOAT16, "GTORCH_DTYPE_FLOAT16", "float16" },
    { GTORCH_DTYPE_BFLOAT16, "GTORCH_DTYPE_BFLOAT16", "bfloat16" },
    { GTORCH_DTYPE_INT8, "GTORCH_DTYPE_INT8", "int8" },
    { GTORCH_DTYPE_UINT8, "GTORCH_DTYPE_UINT8", "uint8" },
    { GTORCH_DTYPE_INT16, "GTORCH_DTYPE_INT16", "int16" },
    { GTORCH_DTYPE_INT32, "GTORCH_DTYPE_INT32", "int32" },
    { GTORCH_DTYPE_INT64, "GTORCH_DTYPE_INT64", "int64" },
    { GTORCH_DTYPE_BOOL, "GTORCH_DTYPE_BOOL", "bool" },
    { GTORCH_DTYPE_COMPLEX64, "GTORCH_DTYPE_COMPLEX64", "complex64" },
    { GTORCH_DTYPE_COMPLEX128, "GTORCH_DTYPE_COMPLEX128", "complex128" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchDType", values));
  return type;
}

static const GTorchDTypeInfo *
dtype_info (GTorchDType dtype)
{
  return (guint) dtype < GTORCH_N_DTYPES ? &gtorch_dtype_infos[dtype] : &gtorch_dtype_infos[0];
}

/**
 * gtorch_dtype_get_name:
 * @dtype: a dtype
 *
 * Gets the name of @dtype as it is printed: `float32`, `int64`, …
 *
 * Returns: the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_dtype_get_name (GTorchDType dtype)
{
  return dtype_info (dtype)->name;
}

/**
 * gtorch_dtype_from_name:
 * @name: a name such as `float32`; PyTorch's short names (`float`, `double`, `half`, `long`, `int`,
 *   `short`, `cfloat`, `cdouble`) are understood too
 * @error: return location for an error
 *
 * Finds a dtype by its name.
 *
 * Returns: the dtype, or %GTORCH_DTYPE_NONE with @error set to %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchDType
gtorch_dtype_from_name (const gchar *name, GError **error)
{
  static const struct
  {
    const gchar *name;
    GTorchDType dtype;
  } short_names[] = {
    { "float", GTORCH_DTYPE_FLOAT32 },    { "double", GTORCH_DTYPE_FLOAT64 },
    { "half", GTORCH_DTYPE_FLOAT16 },     { "short", GTORCH_DTYPE_INT16 },
    { "int", GTORCH_DTYPE_INT32 },        { "long", GTORCH_DTYPE_INT64 },
    { "cfloat", GTORCH_DTYPE_COMPLEX64 }, { "cdouble", GTORCH_DTYPE_COMPLEX128 },
  };
  guint i;

  g_return_val_if_fail (name != NULL, GTORCH_DTYPE_NONE);

  for (i = 1; i < GTORCH_N_DTYPES; i++)
    if (strcmp (name, gtorch_dtype_infos[i].name) == 0)
      return i;
  for (i = 0; i < G_N_ELEMENTS (short_names); i++)
    if (strcmp (name, short_names[i].name) == 0)
      return short_names[i].dtype;

  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("dtype: there is none called “%s”"),
               gtorch_name_str (name));
  return GTORCH_DTYPE_NONE;
}

/**
 * gtorch_dtype_get_size:
 * @dtype: a dtype
 *
 * Gets the size of one element.
 *
 * Returns: the size in bytes; 0 for %GTORCH_DTYPE_NONE
 *
 * Since: 0.1
 */
gsize
gtorch_dtype_get_size (GTorchDType dtype)
{
  return dtype_info (dtype)->size;
}

/**
 * gtorch_dtype_is_floating_point:
 * @dtype: a dtype
 *
 * Tells whether @dtype is one of the real floating-point dtypes.
 *
 * Returns: %TRUE for float32, float64, float16 and bfloat16
 *
 * Since: 0.1
 */
gboolean
gtorch_dtype_is_floating_point (GTorchDType dtype)
{
  return dtype_info (dtype)->kind == GTORCH_KIND_FLOAT;
}

/**
 * gtorch_dtype_is_complex:
 * @dtype: a dtype
 *
 * Tells whether @dtype has a real and an imaginary part.
 *
 * Returns: %TRUE for complex64 and complex128
 *
 * Since: 0.1
 */
gboolean
gtorch_dtype_is_complex (GTorchDType dtype)
{
  return dtype_info (dtype)->kind == GTORCH_KIND_COMPLEX;
}

/**
 * gtorch_dtype_is_signed:
 * @dtype: a dtype
 *
 * Tells whether @dtype has negative values.
 *
 * Returns: %FALSE for uint8 and bool
 *
 * Since: 0.1
 */
gboolean
gtorch_dtype_is_signed (GTorchDType dtype)
{
  return dtype_info (dtype)->is_signed;
}

/**
 * gtorch_dtype_promote:
 * @first: a dtype
 * @second: a dtype
 *
 * Finds the dtype in which tensors of the two are combined: the smallest that holds both kinds, by
 * PyTorch's rules. Of two 16-bit floats that differ it is float32; an integer never widens a float.
 *
 * Returns: the common dtype
 *
 * Since: 0.1
 */
GTorchDType
gtorch_dtype_promote (GTorchDType first, GTorchDType second)
{
  const GTorchDTypeInfo *a = dtype_info (first);
  const GTorchDTypeInfo *b = dtype_info (second);

  if (first == second)
    return first;
  if (a->kind == GTORCH_KIND_NONE)
    return second;
  if (b->kind == GTORCH_KIND_NONE)
    return first;
  if (a->kind < b->kind)
    {
      GTorchDType dtype = first;
      const GTorchDTypeInfo *info = a;

      first = second;
      second = dtype;
      a = b;
      b = info;
    }
  if (a->kind == GTORCH_KIND_COMPLEX)
    return second == GTORCH_DTYPE_FLOAT64 || second == GTORCH_DTYPE_COMPLEX128
               ? GTORCH_DTYPE_COMPLEX128
               : first;
  if (a->kind != b->kind)
    return first;
  if (a->kind == GTORCH_KIND_FLOAT)
    return a->size == b->size ? GTORCH_DTYPE_FLOAT32 : (a->size > b->size ? first : second);
  if (a->is_signed == b->is_signed)
    return a->size > b->size ? first : second;
  /* uint8 with a signed one: int8 cannot hold it */
  if (first == GTORCH_DTYPE_UINT8)
    return second == GTORCH_DTYPE_INT8 ? GTORCH_DTYPE_INT16 : second;
  return first == GTORCH_DTYPE_INT8 ? GTORCH_DTYPE_INT16 : first;
}

/**
 * gtorch_get_default_dtype:
 *
 * Gets the dtype of new tensors when none is named, and of results that leave the integers.
 *
 * Returns: the default dtype, float32 unless it was changed
 *
 * Since: 0.1
 */
GTorchDType
gtorch_get_default_dtype (void)
{
  return g_atomic_int_get (&default_dtype);
}

/**
 * gtorch_set_default_dtype:
 * @dtype: a floating-point dtype
 * @error: return location for an error
 *
 * Sets the default dtype of the process.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_DTYPE if @dtype is not a real floating-point dtype
 *
 * Since: 0.1
 */
gboolean
gtorch_set_default_dtype (GTorchDType dtype, GError **error)
{
  if ((guint) dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("set_default_dtype: %d is not a dtype"), (gint) dtype);
      return FALSE;
    }
  if (!gtorch_dtype_is_floating_point (dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("set_default_dtype: %s is not a floating-point dtype"),
                   gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  g_atomic_int_set (&default_dtype, dtype);
  return TRUE;
}
