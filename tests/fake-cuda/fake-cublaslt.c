/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Stands for NVIDIA's library, which needs a GPU: it takes descriptions of products and finds algorithms for
 * them, but says that it does not support the product itself. */

#include "fake-cublaslt.h"

#include <stdlib.h>
#include <string.h>

/* They are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define NOT_SUPPORTED 15

typedef struct
{
  unsigned long long algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} Heuristic;

EXPORT FakeCublasLt fake_cublaslt;

static int
create (void **object)
{
  *object = malloc (sizeof (int));
  return *object == NULL;
}

EXPORT size_t
cublasLtGetVersion (void)
{
  return 130102;
}

EXPORT int
cublasLtCreate (void **handle)
{
  static int the_one;

  *handle = &the_one;
  return 0;
}

EXPORT int
cublasLtMatmulDescCreate (void **desc, int compute, int scale)
{
  (void) scale;
  if (create (desc) != 0)
    return 3;
  *(int *) *desc = compute;
  fake_cublaslt.n_plans++;
  fake_cublaslt.n_present++;
  return 0;
}

EXPORT int
cublasLtMatmulDescSetAttribute (void *desc, int attribute, const void *value, size_t size)
{
  (void) desc;
  (void) attribute;
  (void) value;
  (void) size;
  return 0;
}

EXPORT int
cublasLtMatmulDescDestroy (void *desc)
{
  free (desc);
  fake_cublaslt.n_present--;
  return 0;
}

EXPORT int
cublasLtMatrixLayoutCreate (void **layout, int type, unsigned long long rows,
                            unsigned long long columns, long long stride)
{
  (void) type;
  (void) rows;
  (void) columns;
  (void) stride;
  return create (layout);
}

EXPORT int
cublasLtMatrixLayoutSetAttribute (void *layout, int attribute, const void *value, size_t size)
{
  return cublasLtMatmulDescSetAttribute (layout, attribute, value, size);
}

EXPORT int
cublasLtMatrixLayoutDestroy (void *layout)
{
  free (layout);
  return 0;
}

EXPORT int
cublasLtMatmulPreferenceCreate (void **preference)
{
  return create (preference);
}

EXPORT int
cublasLtMatmulPreferenceSetAttribute (void *preference, int attribute, const void *value,
                                      size_t size)
{
  return cublasLtMatmulDescSetAttribute (preference, attribute, value, size);
}

EXPORT int
cublasLtMatmulPreferenceDestroy (void *preference)
{
  free (preference);
  return 0;
}

EXPORT int
cublasLtMatmulAlgoGetHeuristic (void *handle, void *desc, void *a, void *b, void *c, void *d,
                                void *preference, int n_wanted, Heuristic *results, int *n_results)
{
  (void) handle;
  (void) desc;
  (void) a;
  (void) b;
  (void) c;
  (void) d;
  (void) preference;
  (void) n_wanted;
  memset (results, 0, sizeof *results);
  results->workspace = 4096;
  *n_results = 1;
  return 0;
}

EXPORT int
cublasLtMatmul (void *handle, void *desc, ...)
{
  (void) handle;
  fake_cublaslt.compute = *(int *) desc;
  fake_cublaslt.n_products++;
  return NOT_SUPPORTED;
}
