/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for cuBLASLt, which needs a GPU: it accepts descriptions of products and finds algorithms
 * for them, but reports the product as unsupported unless the test computes it. */

#include "fake-cublaslt.h"

#include <stdlib.h>
#include <string.h>

/* The functions are declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT        __attribute__ ((visibility ("default")))
#define NOT_SUPPORTED 15
#define N_ALGORITHMS  5u
#define EPILOGUE      7
#define BIAS          8

typedef struct
{
  unsigned long long algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} Heuristic;

/* A descriptor of any kind. */
typedef struct
{
  int compute;
  int epilogue;
  const void *bias;
} Object;

EXPORT FakeCublasLt fake_cublaslt;

static int
create (void **object)
{
  *object = calloc (1, sizeof (Object));
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
  ((Object *) *desc)->compute = compute;
  fake_cublaslt.n_plans++;
  fake_cublaslt.n_present++;
  return 0;
}

EXPORT int
cublasLtMatmulDescSetAttribute (void *desc, int attribute, const void *value, size_t size)
{
  (void) size;
  if (attribute == EPILOGUE)
    ((Object *) desc)->epilogue = *(const int *) value;
  if (attribute == BIAS)
    ((Object *) desc)->bias = *(const void *const *) value;
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
  (void) layout;
  (void) attribute;
  (void) value;
  (void) size;
  return 0;
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
  (void) preference;
  (void) attribute;
  (void) value;
  (void) size;
  return 0;
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
  int i;

  (void) handle;
  (void) a;
  (void) b;
  (void) c;
  (void) d;
  (void) preference;
  *n_results = 0;
  if (((Object *) desc)->epilogue != 0 && fake_cublaslt.refuses_epilogues)
    return NOT_SUPPORTED;
  *n_results = n_wanted < (int) N_ALGORITHMS ? n_wanted : (int) N_ALGORITHMS;
  memset (results, 0, *n_results * sizeof *results);
  for (i = 0; i < *n_results; i++)
    {
      results[i].algo[0] = i;
      results[i].workspace = 4096;
    }
  return 0;
}

EXPORT int
cublasLtMatmul (void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                void *d, void *d_layout, const unsigned long long *algo, void *workspace,
                size_t n_workspace, void *stream)
{
  (void) handle;
  (void) a_layout;
  (void) b_layout;
  (void) c;
  (void) c_layout;
  (void) d_layout;
  fake_cublaslt.last.a = a;
  fake_cublaslt.last.b = b;
  fake_cublaslt.last.bias = ((Object *) desc)->bias;
  fake_cublaslt.last.c = d;
  fake_cublaslt.last.workspace = workspace;
  fake_cublaslt.last.alpha = *(const float *) alpha;
  fake_cublaslt.last.beta = *(const float *) beta;
  if (workspace == NULL && n_workspace > 0)
    fake_cublaslt.n_homeless++;
  fake_cublaslt.compute = ((Object *) desc)->compute;
  fake_cublaslt.epilogue = ((Object *) desc)->epilogue;
  fake_cublaslt.n_products++;
  fake_cublaslt.algorithm = (unsigned) algo[0];
  if (fake_cublaslt.multiply == NULL)
    return NOT_SUPPORTED;
  return fake_cublaslt.multiply (stream, (unsigned) algo[0]);
}
