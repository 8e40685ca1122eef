/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The arguments of the last cublasLtMatmul, and the settings of the test. */
typedef struct
{
  /* Stands in for a product, of which nothing is computed; returns a cublasStatus_t. */
  int (*multiply) (void *stream, unsigned algorithm);
  int compute;  /* cublasComputeType_t */
  int epilogue; /* cublasLtEpilogue_t; 0 if none was set */
  int refuses_epilogues;
  unsigned n_plans;   /* product descriptions created so far */
  unsigned n_present; /* descriptions not destroyed yet */
  unsigned n_products;
  unsigned n_homeless; /* products that ran without their workspace */
  /* the algorithm of the last product: there are 5, number 0 is proposed first */
  unsigned algorithm;
  struct
  {
    const void *a, *b, *bias;
    void *c, *workspace;
    double alpha, beta;
  } last; /* for float32, the type of the library's matrices */
} FakeCublasLt;

extern FakeCublasLt fake_cublaslt;
