/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What cublasLtMatmul was asked for last. */
typedef struct
{
  /* What the test makes of a product, of which nothing is computed; returns a cublasStatus_t. */
  int (*multiply) (void *stream, unsigned algorithm);
  int compute;  /* cublasComputeType_t */
  int epilogue; /* cublasLtEpilogue_t, 0: none was set */
  int refuses_epilogues;
  unsigned n_plans;   /* descriptions of products made so far */
  unsigned n_present; /* of these, not destroyed yet */
  unsigned n_products;
  unsigned n_homeless; /* of these, without the memory that they were to work in */
  unsigned algorithm;  /* of the last one: there are 5 for each, 0 is proposed first */
  struct
  {
    const void *a, *b, *bias;
    void *c, *workspace;
    double alpha, beta;
  } last; /* of float32, as the library's matrices */
} FakeCublasLt;

extern FakeCublasLt fake_cublaslt;
