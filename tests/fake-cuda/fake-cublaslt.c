/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Stands for NVIDIA's library, which needs a GPU: every function says that it does not support what is
 * asked. */

#include <stddef.h>

#define NOT_SUPPORTED 15

#define FUNCTION(name)                                      \
  __attribute__ ((visibility ("default"))) int name (void); \
  int name (void) { return NOT_SUPPORTED; }

__attribute__ ((visibility ("default"))) size_t cublasLtGetVersion (void);

size_t
cublasLtGetVersion (void)
{
  return 130102;
}

FUNCTION (cublasLtCreate)
FUNCTION (cublasLtMatmul)
FUNCTION (cublasLtMatmulAlgoGetHeuristic)
FUNCTION (cublasLtMatmulDescCreate)
FUNCTION (cublasLtMatmulDescDestroy)
FUNCTION (cublasLtMatmulDescSetAttribute)
FUNCTION (cublasLtMatmulPreferenceCreate)
FUNCTION (cublasLtMatmulPreferenceDestroy)
FUNCTION (cublasLtMatmulPreferenceSetAttribute)
FUNCTION (cublasLtMatrixLayoutCreate)
FUNCTION (cublasLtMatrixLayoutDestroy)
FUNCTION (cublasLtMatrixLayoutSetAttribute)
