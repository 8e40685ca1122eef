/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-dtype.h>

G_BEGIN_DECLS

#define GTORCH_N_DTYPES 13

typedef enum
{
  GTORCH_KIND_NONE,
  GTORCH_KIND_BOOL,
  GTORCH_KIND_INT,
  GTORCH_KIND_FLOAT,
  GTORCH_KIND_COMPLEX,
} GTorchDTypeKind;

/* The one table of dtypes: everything that is known of a dtype is a row of it. */
typedef struct
{
  const gchar *name;
  guint8 size;
  guint8 alignment;
  guint8 kind;
  gboolean is_signed;
  guint8 compute;           /* the dtype in which CPU loops compute it (float32 for float16, …) */
  guint8 accumulate;        /* the dtype in which sums of it are kept */
  guint8 real;              /* of a complex dtype: that of its parts, else itself */
  guint8 dlpack_code;       /* DLDataTypeCode */
  const gchar *safetensors; /* its name in a safetensors header, or NULL */
  gdouble min, max, eps;
} GTorchDTypeInfo;

extern const GTorchDTypeInfo gtorch_dtype_infos[GTORCH_N_DTYPES];

static inline gsize
gtorch_dtype_size (guint dtype)
{
  return gtorch_dtype_infos[dtype].size;
}

static inline guint
gtorch_dtype_kind (guint dtype)
{
  return gtorch_dtype_infos[dtype].kind;
}

/* Sets of dtypes, as masks of 1 << dtype. */
#define GTORCH_DTYPES(d) (1u << GTORCH_DTYPE_##d)
#define GTORCH_DTYPES_FLOAT                                                    \
  (GTORCH_DTYPES (FLOAT32) | GTORCH_DTYPES (FLOAT64) | GTORCH_DTYPES (FLOAT16) \
   | GTORCH_DTYPES (BFLOAT16))
#define GTORCH_DTYPES_INT                                                                       \
  (GTORCH_DTYPES (INT8) | GTORCH_DTYPES (UINT8) | GTORCH_DTYPES (INT16) | GTORCH_DTYPES (INT32) \
   | GTORCH_DTYPES (INT64))
#define GTORCH_DTYPES_COMPLEX (GTORCH_DTYPES (COMPLEX64) | GTORCH_DTYPES (COMPLEX128))
#define GTORCH_DTYPES_BOOL    GTORCH_DTYPES (BOOL)
#define GTORCH_DTYPES_REAL    (GTORCH_DTYPES_FLOAT | GTORCH_DTYPES_INT)
#define GTORCH_DTYPES_ALL     (GTORCH_DTYPES_REAL | GTORCH_DTYPES_COMPLEX | GTORCH_DTYPES_BOOL)

G_END_DECLS
